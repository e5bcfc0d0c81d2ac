//! The ledger: what the contract asks for, held against what is registered.

use std::collections::{BTreeMap, BTreeSet};

const LEDGER: &str = include_str!("ledger.txt");
const OWNERS: [&str; 5] = ["core", "sessions", "stdio", "dialogue", "hostile"];

/// Compares the rows that have a test with the ledger. Everything that is wrong is in the error, a line each.
pub fn check(registered: &BTreeSet<String>) -> Result<(), String> {
    compare(LEDGER, registered)
}

/// [`check`] against any ledger.
pub fn compare(ledger: &str, registered: &BTreeSet<String>) -> Result<(), String> {
    let mut faults = Vec::new();
    let mut rows = BTreeMap::new();
    for line in ledger.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match parse(line) {
            Some((row, done)) => {
                if rows.insert(row, done).is_some() {
                    faults.push(format!("{row}: stands twice in the ledger"));
                }
            }
            None => faults.push(format!("not a line of the ledger: {line}")),
        }
    }
    for (row, done) in &rows {
        if *done && !registered.contains(*row) {
            faults.push(format!("{row}: done, yet no test is registered"));
        }
    }
    for row in registered {
        if !rows.contains_key(row.as_str()) {
            faults.push(format!("{row}: a test without a row"));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// The row and whether it is done, if the line is well formed.
fn parse(line: &str) -> Option<(&str, bool)> {
    let mut words = line.split_whitespace();
    let (row, owner, state) = (words.next()?, words.next()?, words.next()?);
    let done = match state {
        "done" => true,
        "open" => false,
        _ => return None,
    };
    let well_formed = row.split('/').count() == 3 && OWNERS.contains(&owner) && words.next().is_some();
    well_formed.then_some((row, done))
}
