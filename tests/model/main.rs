//! Sessions and streams against a simple model: scripts of random steps, and those that are worth keeping.
//!
//! `MODEL_CASES` says how many scripts are tried, `MODEL_SEED` which is the first.

mod world;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::Once;

/// Random bytes, the same again for the same seed.
fn script(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as u8
    };
    let steps = usize::from(next() % 48) + 4;
    (0..1 + 4 * steps).map(|_| next()).collect()
}

thread_local! {
    /// What panicked while a script ran, also in a task whose panic nobody sees.
    static PANICS: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Keeps panics for the report, since many scripts fail while one is shortened.
fn listen_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            let is_kept = PANICS.with_borrow_mut(|kept| kept.as_mut().map(|kept| kept.push(panic.to_string())));
            if is_kept.is_none() {
                print(panic);
            }
        }));
    });
}

/// Runs a script. Returns how many requests it took, or its steps and what went wrong.
fn outcome(script: &[u8]) -> Result<usize, Vec<String>> {
    listen_for_panics();
    PANICS.set(Some(Vec::new()));
    let mut trace = Vec::new();
    let result = catch_unwind(AssertUnwindSafe(|| world::run(script, &mut trace)));
    let panics = PANICS.take().unwrap_or_default();
    match result {
        Ok(requests) if panics.is_empty() => Ok(requests),
        _ => {
            trace.extend(panics);
            Err(trace)
        }
    }
}

/// Leaves out what the failure does not need.
fn shortened(mut script: Vec<u8>) -> Vec<u8> {
    let mut steps = (script.len() - 1) / 4;
    let mut at = steps;
    while at > 0 {
        at -= 1;
        let mut shorter = script.clone();
        shorter.drain(1 + 4 * at..5 + 4 * at);
        if outcome(&shorter).is_err() {
            script = shorter;
            steps -= 1;
            at = at.min(steps);
        }
    }
    script
}

/// Returns how many requests a script took.
fn try_out(what: &str, script: &[u8]) -> usize {
    outcome(script).unwrap_or_else(|_| {
        let short = shortened(script.to_vec());
        let trace = outcome(&short).err().unwrap_or_default();
        panic!("{what} fails, shortened to {short:?}:\n{}", trace.join("\n"));
    })
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_scripts() {
    let (first, cases) = (number("MODEL_SEED").unwrap_or(1), number("MODEL_CASES").unwrap_or(500));
    let mut requests = 0;
    for seed in first..first + cases {
        requests += try_out(&format!("MODEL_SEED={seed}"), &script(seed));
    }
    println!("{cases} scripts from {first} on, {requests} requests");
}

#[test]
fn kept_scripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/exchange");
    let mut files: Vec<_> = folder.read_dir().expect("a corpus").map(|file| file.expect("a file").path()).collect();
    assert!(!files.is_empty());
    files.sort();
    for file in files {
        try_out(&file.display().to_string(), &std::fs::read(&file).expect("a script"));
    }
}
