//! The corpus: what is worth trying each time, and what was found once.

use std::path::Path;

/// Feeds a target all files of its folder, and tells which one broke it.
fn corpus(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files: Vec<_> = folder.read_dir().expect("a corpus").map(|entry| entry.unwrap().path()).collect();
    assert!(!files.is_empty(), "{} is empty", folder.display());
    files.sort();
    for file in files {
        println!("{}", file.display());
        body(&std::fs::read(&file).unwrap());
    }
}

macro_rules! targets {
    ($($(#[$attribute:meta])* $target:ident)*) => {$(
        $(#[$attribute])*
        #[test]
        fn $target() {
            corpus(stringify!($target), super::$target);
        }
    )*};
}

targets! {
    envelope
    event_id
    headers
    lines
    parameters
    shape
    #[cfg(feature = "state")]
    state
}
