//! No limit without a test: the trials that reach each, and one just below.

use std::collections::BTreeSet;

use mcp_transport::{Limits, StreamableHttpService};

use crate::support::stage::Stage;

/// Each setter of `Limits`, and a trial that reaches it.
const TABLE: [(&str, &str); 34] = [
    ("ask_time", "ask/ends/time"),
    ("batch", "limit/each/batch"),
    ("body_bytes", "limit/each/body"),
    ("body_bytes_by_caller", "limit/each/body-bytes-by-caller"),
    ("body_bytes_in_all", "limit/each/body-bytes-in-all"),
    ("body_time", "limit/each/body-time"),
    ("commit_after", "limit/each/commit"),
    ("drain_time", "stdio/eof/late"),
    ("handler_time", "limit/each/handler-time"),
    ("in_flight", "limit/each/in-flight"),
    ("in_flight_by_caller", "limit/each/in-flight-by-caller"),
    ("in_flight_in_all", "limit/each/in-flight-in-all"),
    ("keep_alive", "limit/each/keep-alive"),
    ("listeners", "limit/each/listeners"),
    ("listeners_by_caller", "limit/each/listeners-by-caller"),
    ("listing_pages", "limit/each/listing-pages"),
    ("listing_tools", "limit/each/listing-tools"),
    ("nesting", "limit/each/nesting"),
    ("queue_bytes", "limit/each/queue-bytes"),
    ("queue_bytes_by_caller", "limit/each/queue-bytes-by-caller"),
    ("queue_bytes_in_all", "limit/each/queue-bytes-in-all"),
    ("rounds", "mrtr/answers/most-rounds"),
    ("session_idle", "limit/each/session-idle"),
    ("sessions", "limit/each/sessions"),
    ("sessions_by_caller", "limit/each/sessions-by-caller"),
    ("state_bytes", "mrtr/state/over-long"),
    ("stored_bytes", "limit/each/stored-bytes"),
    ("stored_bytes_in_all", "limit/each/stored-bytes-in-all"),
    ("stored_events", "limit/each/stored-events"),
    ("stored_for", "limit/each/stored-for"),
    ("unread_time", "limit/each/unread-time"),
    ("unread_time", "limit/each/unread-time-of-gets"),
    ("unread_time", "limit/each/unread-time-of-listeners"),
    ("unread_time", "limit/each/unread-time-frees"),
];

/// Compares the setters with the table, and the table with the trials that are registered.
pub fn check(trials: &BTreeSet<String>) -> Result<(), String> {
    let source = include_str!("../../../src/limits.rs");
    let setters = source.lines().filter_map(|line| line.trim().strip_prefix("pub const fn ")?.split('(').next());
    let setters: BTreeSet<_> = setters.collect();
    let named: BTreeSet<_> = TABLE.iter().map(|(setter, _)| *setter).collect();
    if setters != named {
        return Err(format!("limits without a trial, or trials without a limit: {:?}", &setters ^ &named));
    }
    match TABLE.iter().find(|(_, trial)| !trials.contains(*trial)) {
        Some((setter, trial)) => Err(format!("{trial}, which reaches {setter}, is no trial")),
        None => Ok(()),
    }
}

/// What cannot be is refused, and named.
pub fn checked() {
    let build = |limits: Limits| StreamableHttpService::builder(Stage::default().script()).limits(limits).build();
    let default = Limits::default;
    for (limits, field) in [
        (default().body_bytes_by_caller((4 << 20) - 1), "body_bytes_by_caller"),
        (default().body_bytes_in_all((4 << 20) - 1), "body_bytes_in_all"),
        (default().body_bytes(64 << 20).body_bytes(65 << 20), "body_bytes"),
        (default().body_time(std::time::Duration::ZERO), "body_time"),
    ] {
        let error = build(limits).expect_err("no such limits");
        assert!(error.to_string().contains(field), "{error}");
    }
    assert!(build(default().body_bytes_by_caller(4 << 20).body_bytes_in_all(4 << 20)).is_ok());
    assert!(build(default().unread_time(std::time::Duration::MAX)).is_ok());
}
