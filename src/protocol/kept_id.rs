//! Ids that are kept beside their requests, and so must not be long.

use super::ground::Ground;
use super::refusal::{Refusal, RefusalKind};

/// Bytes of an id that is kept.
const MOST_BYTES: usize = 1024;

/// Refuses an id that is too long to be kept; `of` says whose it is.
pub(crate) fn judge(id: &[u8], of: &'static str) -> Result<(), Refusal> {
    if id.len() <= MOST_BYTES {
        return Ok(());
    }
    let message = format!("The id of {of} has at most {MOST_BYTES} bytes");
    Err(Refusal::because(RefusalKind::Shape, message).on(Ground::KeptId))
}
