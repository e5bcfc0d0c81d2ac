//! Panics, broken connections, sessions that are left, streams that nobody reads: by the thousand, and what is left
//! of them. Bounded to well under half a minute on two cores.
//!
//! What is random is drawn from a seed that a failing test prints; `STRESS_SEED` runs it again.
//!
//!     cargo test --release --test stress -- --ignored --nocapture --test-threads=1
//!
//! measures what an idle session, stream and listener cost.

mod asks;
mod drops;
mod hostile;
mod measure;
mod panics;
mod resume;
mod sessions;
mod stalled;
mod support;
