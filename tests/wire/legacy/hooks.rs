//! Hooks on the life of sessions that panic, and everybody else's sessions.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::StatusCode;
use mcp_transport::{
    Exchange, Limits, Misuse, Observer, Principal, Session as Opened, SessionEnd, StreamableHttpService,
};
use serde_json::json;
use tokio::time::sleep;

use super::account;
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::handler::Script;
use crate::support::request::{ID, SESSION_ID};
use crate::support::session::{self, ACCOUNT, Session, initialize};

pub fn register(wire: &mut Wire) {
    wire.legacy("initialize/mints/hook-panics", Carriers::Every, opening);
    wire.legacy("delete/ends/hook-panics", Carriers::Every, deleting);
    wire.legacy("session/idle/hook-panics", Carriers::Clock, expiring);
    wire.legacy("session/idle/cap-hook-panics", Carriers::Every, making_room);
}

/// What the application hears.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn note(&self, what: String) {
        self.0.lock().expect("nobody panicked").push(what);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("nobody panicked"))
    }
}

impl Observer for Told {
    fn panicked(&self, exchange: &Exchange<'_>, message: &str) {
        self.note(format!("{}: {message}", exchange.method()));
    }

    fn misuse(&self, misuse: &Misuse) {
        self.note(misuse.to_string());
    }

    fn session_closed(&self, _: &Opened, end: SessionEnd) {
        self.note(format!("{end:?}"));
    }
}

/// Hooks panic for the account named after them.
async fn serve(cx: Cx, limits: Limits) -> (Client, StreamableHttpService, Told) {
    fn panics_for(session: &Opened, name: &str) {
        if session.principal().map(Principal::as_str) == Some(name) {
            resume_unwind(Box::new("boom"));
        }
    }
    let script = Script::echo(json!([]));
    let script = script.watching(|session| panics_for(session, "opened"), |session, _| panics_for(session, "closed"));
    let told = Told::default();
    let builder = StreamableHttpService::builder(script).observer(told.clone()).principal(account).limits(limits);
    let service = builder.build().expect("a service");
    (cx.serve(service.clone()).await, service, told)
}

async fn open(cx: Cx, client: &Client, name: &str) -> Session {
    session::open_by(client, initialize(cx.revision).header(ACCOUNT, name)).await
}

/// `initialize` fails, and there is no session.
async fn opening(cx: Cx) {
    let (client, service, told) = serve(cx, Limits::default().sessions(1)).await;
    for _ in 0..3 {
        let answer = client.send(initialize(cx.revision).header(ACCOUNT, "opened")).await;
        assert_eq!(answer.header(SESSION_ID), "");
        let error = answer.error(StatusCode::OK, -32603, Some(&ID.into())).await;
        assert_eq!(error["message"], "Internal error");
        assert_eq!(told.take(), ["initialize: boom"], "and no word of a session that ended");
        let counts = service.counts();
        assert_eq!((counts.sessions, counts.in_flight), (0, 0));
    }
    // The place is free.
    assert!(open(cx, &client, "somebody").await.is_open().await);
}

async fn deleting(cx: Cx) {
    let (client, service, told) = serve(cx, Limits::default()).await;
    let session = open(cx, &client, "closed").await;
    session.end().await;
    assert_eq!(told.take(), ["session_closed panicked: boom", "Deleted"]);
    assert!(!session.is_open().await);
    assert_eq!(service.counts().sessions, 0);
}

/// The sweeper goes on.
async fn expiring(cx: Cx) {
    let (client, service, told) = serve(cx, Limits::default()).await;
    for _ in 0..3 {
        for name in ["closed", "somebody", "closed"] {
            open(cx, &client, name).await;
        }
        sleep(Duration::from_secs(32 * 60)).await;
        assert_eq!(service.counts().sessions, 0);
        let mut all = told.take();
        all.sort_unstable();
        let boom = "session_closed panicked: boom";
        assert_eq!(all, ["Expired", "Expired", "Expired", boom, boom]);
    }
}

/// Whoever needs the place gets it.
async fn making_room(cx: Cx) {
    let (client, service, told) = serve(cx, Limits::default().sessions(1)).await;
    session::start_by(&client, initialize(cx.revision).header(ACCOUNT, "closed")).await;
    let session = open(cx, &client, "somebody").await;
    assert_eq!(told.take(), ["session_closed panicked: boom", "Evicted"]);
    assert!(session.is_open().await);
    assert_eq!(service.counts().sessions, 1);
}
