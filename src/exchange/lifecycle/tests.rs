use std::thread;

use bytes::Bytes;
use futures::FutureExt;
use tokio::runtime::Builder;

use super::*;
use crate::exchange::call::{Caller, Form, Via};
use crate::protocol::envelope::{self, Body};
use crate::protocol::revision::Revision;
use crate::protocol::scan::Caps;
use crate::server::ServerBuilder;
use crate::{Capabilities, McpError, McpHandler, Reply, Request, RequestContext, ServerInfo};

struct Nothing;

impl McpHandler for Nothing {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("test", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new()
    }

    async fn request(&self, _: Request, _: RequestContext) -> Result<Reply, McpError> {
        Reply::empty()
    }
}

fn server() -> Arc<Server> {
    Arc::new(ServerBuilder::new(Nothing).assemble())
}

fn call(server: &Arc<Server>) -> Arc<Call> {
    let body = envelope::read(Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"x"}"#), Caps::default());
    let Ok(Body::Message(message)) = body else {
        panic!("a message");
    };
    let via = Via::Http(http::Request::new(()).into_parts().0);
    let (revision, account) = (Revision::V2026_07_28, server.admission.account(None));
    let caller = Caller { revision, via, principal: None, account, session: None, form: Form::JsonFirst };
    Arc::new(Call::new(server, message, caller))
}

impl Lifecycle {
    /// How many exchanges a drain can reach.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.each(|calls| calls.len()).sum()
    }
}

fn paused<T>(test: impl Future<Output = T>) -> T {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(test)
}

#[test]
fn a_ticket_counts_until_it_is_dropped() {
    let server = server();
    let lifecycle = &server.lifecycle;
    let (one, two) = (call(&server), call(&server));
    let (mut first, mut second) = (Ticket::take(&server).unwrap(), Ticket::take(&server).unwrap());
    assert_eq!((lifecycle.counts().in_flight, lifecycle.waiting()), (2, 0));
    first.wait(&one);
    first.wait(&one);
    second.wait(&two);
    assert_eq!((lifecycle.counts().in_flight, lifecycle.waiting()), (2, 2));
    drop(first);
    assert_eq!((lifecycle.counts().in_flight, lifecycle.waiting()), (1, 1));
    drop(second);
    assert_eq!((lifecycle.counts().in_flight, lifecycle.waiting()), (0, 0));
    assert_eq!((Arc::strong_count(&one), Arc::weak_count(&one)), (1, 0));
}

#[test]
fn a_drain_turns_away_who_comes_later() {
    paused(async {
        let server = server();
        assert_eq!(server.lifecycle.drain(Duration::from_secs(1)).await, DrainReport::default());
        assert_eq!(Ticket::take(&server).unwrap_err().kind(), RefusalKind::Draining);
        assert_eq!(server.lifecycle.counts().in_flight, 0, "one that is turned away does not count");
    });
}

#[test]
fn a_drain_reaches_who_waits_and_who_begins_to() {
    paused(async {
        let server = server();
        let (waits, begins, left) = (call(&server), call(&server), call(&server));
        let mut tickets: Vec<_> = (0..3).map(|_| Ticket::take(&server).unwrap()).collect();
        tickets[0].wait(&waits);
        tickets[1].wait(&left);
        left.cancellation.cancel(CancelCause::Disconnected);
        let mut draining = Box::pin(server.lifecycle.drain(Duration::ZERO));
        assert!(draining.as_mut().now_or_never().is_none());
        assert_eq!(waits.cancellation.cause(), Some(CancelCause::Drained));
        // Still in its first poll when the others were cut.
        assert_eq!(begins.cancellation.cause(), None);
        tickets[2].wait(&begins);
        assert_eq!(begins.cancellation.cause(), Some(CancelCause::Drained));
        assert_eq!(left.cancellation.cause(), Some(CancelCause::Disconnected));
        drop(tickets);
        let report = draining.await;
        assert_eq!((report.in_flight, report.cut), (3, 2));
        assert_eq!(server.lifecycle.waiting(), 0);
    });
}

#[test]
fn a_drain_does_not_wait_for_ever_for_the_last_poll() {
    paused(async {
        let server = server();
        let _kept = Ticket::take(&server).unwrap();
        let start = tokio::time::Instant::now();
        let report = server.lifecycle.drain(Duration::from_secs(1)).await;
        assert_eq!((report.in_flight, report.cut), (1, 0), "it never came to where it can be reached");
        assert!((2..=3).contains(&start.elapsed().as_secs()));
    });
}

/// A drain that waits hears of the end of the last.
#[test]
fn no_end_of_work_is_missed() {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    for _ in 0..300 {
        let server = server();
        thread::scope(|scope| {
            let tickets = [Ticket::take(&server).unwrap(), Ticket::take(&server).unwrap()];
            for ticket in tickets {
                scope.spawn(|| drop(ticket));
            }
            // Well within the patience of whoever runs the tests, unless one was missed.
            let report = runtime.block_on(server.lifecycle.drain(Duration::from_secs(600)));
            assert_eq!(report.cut, 0);
        });
    }
}
