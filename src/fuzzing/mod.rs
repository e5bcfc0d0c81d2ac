//! The bodies of the fuzz targets: each takes any bytes and panics where a rule of the crate is broken.
//!
//! The targets in `fuzz/` call them, and the tests below feed them what was found worth keeping. No build that a user
//! makes has this module.

// What is asserted here ends a test, and nobody's server.
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, missing_docs)]

mod envelope;
mod headers;
mod ids;
mod lines;
mod parameters;
mod shape;
#[cfg(feature = "state")]
mod state;
#[cfg(test)]
mod tests;

pub use self::envelope::envelope;
pub use self::headers::headers;
pub use self::ids::event_id;
pub use self::lines::lines;
pub use self::parameters::parameters;
pub use self::shape::shape;
#[cfg(feature = "state")]
pub use self::state::state;

/// Takes the bytes before the next NUL, which stands between the parts of an input.
fn part<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
    let part = &rest[..end];
    *rest = rest.get(end + 1..).unwrap_or_default();
    part
}

/// The headers that lines of `name: value` make. What cannot be one is left out.
fn header_map(lines: &[u8]) -> http::HeaderMap {
    let mut headers = http::HeaderMap::new();
    for line in lines.split(|&byte| byte == b'\n').take(64) {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            continue;
        };
        let name = http::HeaderName::from_bytes(&line[..colon]);
        let value = http::HeaderValue::from_bytes(&line[colon + 1..]);
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}
