//! One publish, and every client that wants to hear of it, in the form of its revision.

use std::time::Duration;

use futures::future::join_all;
use http::StatusCode;
use mcp_transport::{Changes, Era, Limits, Revision, StreamableHttpService};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::harness::{Carriers, Cx, Wire};
use crate::listen::{PROMPTS, RESOURCES, TOOLS, UPDATED, all, ended, listen, publish_all, script, tagged};
use crate::support::client::{Answer, Client};
use crate::support::request::ID;
use crate::support::session::{self, Session};

pub fn register(wire: &mut Wire) {
    wire.any("publish/bridge", Carriers::Every, bridge);
    wire.any("publish/bridge/transports", Carriers::Every, several_transports);
    wire.any("publish/slow", Carriers::Every, nobody_reads);
    wire.any("publish/slow/coalesce", Carriers::Every, equal_changes_are_one);
    wire.any("publish/slow/stalled", Carriers::Sockets, stalled_socket);
    wire.any("publish/slow/lively", Carriers::Every, what_comes_after_is_told);
}

/// A client that hears of changes, whatever its revision calls that.
struct Listener {
    revision: Revision,
    stream: Answer,
    _session: Option<Session>,
}

impl Listener {
    /// Opens a stream for everything there is to hear, and updates of these resources.
    async fn open(client: &Client, revision: Revision, uris: &[&str]) -> Self {
        if revision.era() == Era::Modern {
            let mut stream = client.send(listen(all(uris))).await;
            assert_eq!(stream.status, StatusCode::OK);
            let acknowledged = stream.next_message().await.expect("an acknowledgement");
            assert_eq!(acknowledged["params"]["notifications"], all(uris));
            return Self { revision, stream, _session: None };
        }
        let session = session::open(client, revision).await;
        let stream = session.listen().await;
        for uri in uris {
            assert_eq!(session.result("resources/subscribe", json!({ "uri": uri })).await, json!({}));
        }
        Self { revision, stream, _session: Some(session) }
    }

    /// A change as this client reads it.
    fn form(&self, method: &str, params: Value) -> Value {
        match (self.revision.era(), params.as_object().is_some_and(serde_json::Map::is_empty)) {
            (Era::Modern, _) => tagged(ID, method, params),
            (Era::Legacy, true) => json!({"jsonrpc": "2.0", "method": method}),
            (Era::Legacy, false) => json!({"jsonrpc": "2.0", "method": method, "params": params}),
        }
    }

    /// What [`publish_all`] makes it read.
    fn all(&self, uris: &[&str]) -> Vec<Value> {
        let lists = [TOOLS, PROMPTS, RESOURCES].map(|method| self.form(method, json!({})));
        let updates = uris.iter().map(|uri| self.form(UPDATED, json!({ "uri": uri })));
        lists.into_iter().chain(updates).collect()
    }

    /// Reads these messages and no other.
    async fn reads(&mut self, messages: Vec<Value>) {
        for message in messages {
            assert_eq!(self.stream.next_message().await, Some(message), "{}", self.revision);
        }
    }

    /// Reads on to the end.
    async fn rest(self) -> Vec<Value> {
        let mut messages = self.stream.events().await;
        if self.revision.era() == Era::Modern {
            assert_eq!(messages.pop(), Some(ended(ID)));
        }
        messages
    }
}

/// Ends all streams and returns all that was still to come on each.
async fn end(service: &StreamableHttpService, listeners: Vec<Listener>) -> Vec<Vec<Value>> {
    let rest = join_all(listeners.into_iter().map(Listener::rest));
    tokio::join!(service.drain(Duration::from_secs(5)), rest).1
}

async fn serve(cx: Cx, changes: &Changes) -> (Client, StreamableHttpService) {
    let service = StreamableHttpService::builder(script()).changes(changes).build().expect("a service");
    (cx.serve(service.clone()).await, service)
}

/// The client of this trial's revision stands beside one of every revision, on one endpoint.
async fn bridge(cx: Cx) {
    let changes = Changes::new();
    let (client, service) = serve(cx, &changes).await;
    let mut listeners = vec![Listener::open(&client, cx.revision, &["file:///own", "file:///a"]).await];
    for revision in Revision::ALL {
        listeners.push(Listener::open(&client, revision, &["file:///a"]).await);
    }
    assert_eq!(service.counts().streams, 6);
    publish_all(&changes, &["file:///a", "file:///nobody's", "file:///own"]);
    for (number, listener) in listeners.iter_mut().enumerate() {
        let uris = if number == 0 { &["file:///a", "file:///own"][..] } else { &["file:///a"] };
        listener.reads(listener.all(uris)).await;
    }
    // One at a time, in any order; and once to each.
    for (change, method) in [
        (Changes::resources_list_changed as fn(&Changes), RESOURCES),
        (Changes::tools_list_changed, TOOLS),
        (Changes::prompts_list_changed, PROMPTS),
    ] {
        change(&changes);
        for listener in &mut listeners {
            listener.reads(vec![listener.form(method, json!({}))]).await;
        }
    }
    assert!(end(&service, listeners).await.concat().is_empty());
}

/// One handle given to several transports reaches the clients of all, also once one of them is gone.
async fn several_transports(cx: Cx) {
    let changes = Changes::new();
    let (one, _kept) = serve(cx, &changes).await;
    let (two, going) = serve(cx, &changes).await;
    let apart = Changes::new();
    let (other, _other) = serve(cx, &apart).await;
    let mut first = Listener::open(&one, cx.revision, &["a"]).await;
    let mut second = Listener::open(&two, cx.revision, &["a"]).await;
    let mut stranger = Listener::open(&other, cx.revision, &["a"]).await;
    publish_all(&changes, &["a"]);
    first.reads(first.all(&["a"])).await;
    second.reads(second.all(&["a"])).await;
    drop((second, two, going));
    changes.resource_updated("a");
    first.reads(vec![first.form(UPDATED, json!({"uri": "a"}))]).await;
    // Had anything of the others' come here, it would come first.
    apart.prompts_list_changed();
    stranger.reads(vec![stranger.form(PROMPTS, json!({}))]).await;
}

/// A stream that nobody reads holds nobody up: neither who publishes, nor who reads theirs.
async fn nobody_reads(cx: Cx) {
    let changes = Changes::new();
    let (client, service) = serve(cx, &changes).await;
    let stalled = Listener::open(&client, cx.revision, &["a", "b"]).await;
    let mut lively = Listener::open(&client, cx.revision, &["b"]).await;
    let started = Instant::now();
    for _ in 0..1000 {
        publish_all(&changes, &["a", "b"]);
        lively.reads(lively.all(&["b"])).await;
    }
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let mut rest = end(&service, vec![stalled, lively]).await;
    assert_eq!(rest.pop(), Some(Vec::new()));
    // How much of it was on its way already, the carrier knows; of each change something is told.
    let told = rest.remove(0);
    for (method, uri) in [(TOOLS, None), (PROMPTS, None), (RESOURCES, None), (UPDATED, Some("a")), (UPDATED, Some("b"))]
    {
        let is_it = |message: &&Value| message["method"] == method && message["params"]["uri"].as_str() == uri;
        assert!((1..=1000).contains(&told.iter().filter(is_it).count()), "{method} {uri:?}");
    }
}

/// Changes that nobody has read yet are told once, however often they happened, in the order of the first.
async fn equal_changes_are_one(cx: Cx) {
    let changes = Changes::new();
    let (client, service) = serve(cx, &changes).await;
    let listener = Listener::open(&client, cx.revision, &["a", "b", "c"]).await;
    for _ in 0..10_000 {
        // Nothing else runs in between: the stream has no chance to read.
        publish_all(&changes, &["c", "a", "c", "b"]);
    }
    let told = listener.all(&["c", "a", "b"]);
    assert_eq!(end(&service, vec![listener]).await, [told]);
}

/// A socket that is open and not read takes what fits into its buffers; from there on changes wait as one of each kind,
/// and all that still matters is told once it is read again.
async fn stalled_socket(cx: Cx) {
    let changes = Changes::new();
    let (client, service) = serve(cx, &changes).await;
    let uris: Vec<_> = (0..20).map(|n| format!("file:///{n}/{}", "x".repeat(8000))).collect();
    let uris: Vec<_> = uris.iter().map(String::as_str).collect();
    let mut stalled = Listener::open(&client.another(), cx.revision, &uris).await;
    let mut lively = Listener::open(&client, cx.revision, &uris).await;
    // 8 MB in all: more than the buffers of a socket that nobody reads hold.
    for _ in 0..50 {
        for uri in &uris {
            changes.resource_updated(uri);
        }
        lively.reads(uris.iter().map(|uri| lively.form(UPDATED, json!({ "uri": uri }))).collect()).await;
    }
    // Now it is full, and this happens all the same.
    publish_all(&changes, &uris);
    lively.reads(lively.all(&uris)).await;
    let mut told = Vec::new();
    let list = stalled.form(RESOURCES, json!({}));
    let read = async {
        // Lists are told before updates, and all twenty of these are due.
        while told.last() != Some(&list) {
            told.push(stalled.stream.next_message().await.expect("the stream goes on"));
        }
        for _ in 0..20 {
            told.push(stalled.stream.next_message().await.expect("the stream goes on"));
        }
    };
    timeout(Duration::from_secs(15), read).await.expect("in time");
    let updates = told.split_off(told.len() - 20);
    let mut updated: Vec<_> = updates.iter().map(|update| update["params"]["uri"].as_str().expect("a URI")).collect();
    updated.sort_unstable();
    let mut expected = uris.clone();
    expected.sort_unstable();
    assert_eq!(updated, expected);
    assert!(told.len() < 850, "{} of 1000 updates were kept for a client that did not read", told.len());
    assert!(end(&service, vec![stalled, lively]).await.concat().is_empty());
}

/// A change that happens after its like was read is a new one.
async fn what_comes_after_is_told(cx: Cx) {
    let changes = Changes::new();
    let limits = Limits::default();
    let service = StreamableHttpService::builder(script()).changes(&changes).limits(limits).build().expect("a service");
    let client = cx.serve(service.clone()).await;
    let mut listener = Listener::open(&client, cx.revision, &["a", "b"]).await;
    for round in 0..50 {
        for _ in 0..=round % 3 {
            publish_all(&changes, &["a", "b", "a"]);
        }
        listener.reads(listener.all(&["a", "b"])).await;
    }
    assert!(end(&service, vec![listener]).await.concat().is_empty());
}
