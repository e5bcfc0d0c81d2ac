#![no_main]

#[path = "../../tests/model/world/mod.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|script: &[u8]| {
    world::run(script, &mut Vec::new());
});
