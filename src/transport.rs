//! What every transport can be told, whatever carries its bytes.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// The life of a transport, whatever carries its bytes. Implemented by the transports of this crate only.
pub trait Transport: sealed::Sealed + Send + Sync {
    /// Returns how much is going on.
    fn counts(&self) -> Counts;

    /// Takes no new work, ends the streams that listen for changes, waits up to `within` for what is in flight, then
    /// cancels the rest, each answered with an error, and reports.
    ///
    /// New requests get status 503 with `Retry-After`, on a byte stream `-32603`; answers to questions that were asked
    /// before are still taken. A request that does not end when it is cancelled, since nobody polls its connection, is
    /// given up a second later.
    ///
    /// Safe to call more than once: every call waits for the same work. A transport cannot be started again.
    ///
    /// # Cancel safety
    ///
    /// If dropped, the transport goes on refusing new work, but nothing is cancelled.
    fn drain(&self, within: Duration) -> Pin<Box<dyn Future<Output = DrainReport> + Send + '_>>;
}

/// How much is going on in a transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Requests and notifications whose handler is at work.
    pub in_flight: usize,
    /// Event streams open; of a byte stream its subscriptions, and the stream itself while it is served.
    pub streams: usize,
    /// Sessions open.
    pub sessions: usize,
}

/// What a drain did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DrainReport {
    /// Requests and notifications in flight when the drain began.
    pub in_flight: usize,
    /// How many of them were cancelled at the deadline.
    pub cut: usize,
}

/// Drains several transports at once, and reports on each in order.
///
/// ```
/// # async fn shutdown(http: mcp_transport::StreamableHttpService) {
/// use std::time::Duration;
///
/// let reports = mcp_transport::drain_all(&[&http], Duration::from_secs(30)).await;
/// # }
/// ```
pub async fn drain_all(transports: &[&dyn Transport], within: Duration) -> Vec<DrainReport> {
    futures::future::join_all(transports.iter().map(|transport| transport.drain(within))).await
}

pub(crate) mod sealed {
    /// Keeps the trait ours, so that it can grow.
    pub trait Sealed {}
}
