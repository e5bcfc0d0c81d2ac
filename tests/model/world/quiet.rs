//! The end of a script: everything that is owed is paid, and nothing is left.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{Method, StatusCode};
use mcp_transport::Counts;

use super::handler::End;
use super::slot::Slot;
use super::stream::Call;
use super::{Reads, World, wire};

impl World {
    /// All read what there is, for as long as anything comes, and a little longer.
    async fn quiet(&mut self) {
        let mut silent = 0;
        // Questions time out, silent answers become streams, handlers wait 20 s at most.
        while silent < 8 {
            let mut progress = false;
            for _ in 0..4 {
                tokio::task::yield_now().await;
                for connection in 0..self.connections.len() {
                    for _ in 0..1000 {
                        if !self.look(connection) {
                            break;
                        }
                        progress = true;
                    }
                }
            }
            silent = if progress { 0 } else { silent + 1 };
            if !progress {
                tokio::time::advance(Duration::from_millis(4001)).await;
            }
        }
    }

    pub(super) async fn end(&mut self) {
        self.quiet().await;
        self.nothing_is_owed();
        if self.ends_by_drain {
            self.drain().await;
        }
        self.leave().await;
    }

    fn nothing_is_owed(&self) {
        for stream in &self.streams {
            // An array has all answers or none.
            let holds = |call: &Call| call.json_only && call.act.end == End::Hang && !call.cancelled && !call.drained;
            if stream.calls.iter().any(|tag| holds(&self.calls[*tag])) {
                continue;
            }
            for &tag in &stream.calls {
                let call = &self.calls[tag];
                assert!(stream.lost || !call.is_owed(), "it was never answered: {call:?}");
            }
        }
        for connection in &self.connections {
            if connection.slot.is_gone() || connection.superseded {
                continue;
            }
            let due = match connection.reads {
                Reads::General { session, .. } if !self.sessions[session].unsure => &self.sessions[session].due,
                Reads::Listen(listener) => &self.listeners[listener].due,
                _ => continue,
            };
            assert!(due.due.is_empty(), "nobody told of {due:?}");
        }
    }

    /// Every request is answered or reported cut.
    async fn drain(&mut self) {
        self.draining = true;
        for call in &mut self.calls {
            call.drained = true;
        }
        // It is safe to call twice.
        let mut drains: Vec<_> = (1..3)
            .map(|seconds| {
                let service = self.service.clone();
                Box::pin(async move { service.drain(Duration::from_secs(seconds)).await })
            })
            .collect();
        for _ in 0..20 {
            let mut cx = Context::from_waker(Waker::noop());
            drains.retain_mut(|drain| match drain.as_mut().poll(&mut cx) {
                Poll::Ready(report) => {
                    assert!(report.cut <= report.in_flight, "{report:?}");
                    false
                }
                Poll::Pending => true,
            });
            for connection in 0..self.connections.len() {
                while self.look(connection) {}
            }
            tokio::time::advance(Duration::from_millis(250)).await;
        }
        assert!(drains.is_empty(), "a drain that hangs");
        self.nothing_is_owed();
        let (status, ..) = self.ask(wire::initialize(mcp_transport::Revision::V2025_11_25)).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    }

    /// All clients leave, and nothing of them stays.
    async fn leave(&mut self) {
        for connection in &mut self.connections {
            connection.slot = Slot::Gone;
        }
        for session in 0..self.sessions.len() {
            let Self { sessions, .. } = self;
            let request = wire::inside(&sessions[session].id, wire::bare(Method::DELETE));
            let request = wire::named(sessions[session].person, request);
            self.sessions[session].gone = true;
            self.ask(request).await;
        }
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert_eq!(self.counts(), Counts::default(), "something is left");
        assert_eq!(Arc::strong_count(&self.acts.live), 1, "a handler is at work for nobody");
    }
}
