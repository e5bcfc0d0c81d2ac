//! Whose a session is, who knows it, and what is served without one.

use std::time::Duration;

use http::header::{ACCEPT, ALLOW};
use http::{Method, StatusCode};
use mcp_transport::{Principal, Reply, RequestContext, Revision, Sessions, StreamableHttpService};
use serde_json::{Value, json};
use tokio::time::advance;

use super::{Bench, Then, assert_unknown, everything_said, print};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::handler::Script;
use crate::support::request::{Call, ID, PROTOCOL_VERSION, SESSION_ID};
use crate::support::session::{self, ACCOUNT, Session, accepted, initialize, initialize_with};

pub fn register(wire: &mut Wire) {
    wire.legacy("session/unknown/deleted", Carriers::Every, deleted);
    wire.legacy("session/unknown/expired", Carriers::Clock, expired);
    wire.legacy("session/unknown/near-misses", Carriers::Every, near_misses);
    wire.legacy("session/unknown/spelling", Carriers::H1, header_spelling);
    wire.legacy("session/owner", Carriers::Every, owner);
    wire.legacy("session/owner/extension", Carriers::Clock, owner_by_extension);
    wire.legacy("session/owner/client", Carriers::Every, keeps_its_client);
    wire.legacy("session/sessionless", Carriers::Every, sessionless);
    wire.legacy("session/sessionless/required", Carriers::Every, required);
    wire.legacy("session/sessionless/off", Carriers::Every, off);
    wire.legacy("version/negotiated-governs", Carriers::Every, negotiated_governs);
    wire.legacy("version/unsupported/session", Carriers::Every, unsupported_in_a_session);
    wire.legacy("status/in-band/session", Carriers::Every, in_band);
}

async fn deleted(cx: Cx) {
    let bench = Bench::open(cx).await;
    let (session, other) = (bench.session(cx).await, bench.session(cx).await);
    session.end().await;
    bench.life.take();
    assert_unknown(&session).await;
    assert_eq!(bench.life.take(), [""; 0]);
    assert!(other.is_open().await, "another session is left alone");
    // It is as unknown as one that never was.
    let never = Session { id: "none".to_owned(), ..session.clone() };
    assert_same(&session, &never).await;
}

async fn expired(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    advance(Duration::from_secs(30 * 60)).await;
    bench.life.take();
    assert_unknown(&session).await;
    assert_eq!(bench.life.take(), [format!("closed {} Expired", session.id)]);
    let never = Session { id: "none".to_owned(), ..session.clone() };
    assert_same(&session, &never).await;
}

/// An id is taken as it is spelled, and whole.
async fn near_misses(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    bench.life.take();
    let id = session.id.clone();
    let swapped: String = id
        .chars()
        .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
        .collect();
    for near in [id[1..].to_owned(), id[..id.len() - 1].to_owned(), format!("{id}="), format!("{id},{id}"), swapped] {
        assert_unknown(&Session { id: near, ..session.clone() }).await;
    }
    assert_eq!(bench.life.take(), [""; 0]);
    // White space around it is not part of it.
    let padded = session.call("x/quick", Value::Null).header(SESSION_ID, format!(" {id}\t"));
    assert_eq!(bench.client.send(padded).await.result().await["session"], id);
}

/// The name of the header is read in any case, and one that stands in two lines is refused whatever the lines say.
async fn header_spelling(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    let body = session.call("x/quick", Value::Null).into_bytes();
    let body = String::from_utf8(body).expect("text");
    let post = |headers: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len(),
        )
    };
    let id = &session.id;
    for name in ["Mcp-Session-Id", "mcp-session-id", "MCP-SESSION-ID", "mCP-sESSION-iD"] {
        let mut raw = bench.client.raw(post(&format!("{name}:\t {id} \r\n"))).await;
        assert_eq!(raw.status().await, Some(StatusCode::OK));
        assert!(raw.until(&format!("\"session\":\"{id}\"")).await.contains("\"result\""), "{name}");
    }
    for second in [id.as_str(), "", "none"] {
        for (first, second) in [(id.as_str(), second), (second, id.as_str())] {
            let headers = format!("Mcp-Session-Id: {first}\r\nmcp-session-id: {second}\r\n");
            let mut raw = bench.client.raw(post(&headers)).await;
            assert_eq!(raw.status().await, Some(StatusCode::BAD_REQUEST), "{headers}");
        }
    }
}

/// Sends everything in both sessions' names, and no answer tells one from the other.
async fn assert_same(one: &Session, other: &Session) {
    let calls = |session: &Session| {
        let (requests, others) = everything_said(session);
        requests.into_iter().chain(others)
    };
    for (one_call, other_call) in calls(one).zip(calls(other)) {
        let said = format!("{} {}", one_call.method, one_call.body);
        let (left, right) = (one.client.send(one_call).await, other.client.send(other_call).await);
        let left = print(left).await;
        assert_eq!(left, print(right).await, "{said}");
        assert_eq!(left.0, StatusCode::NOT_FOUND, "{said}");
    }
}

/// A session is its owner's. To all others there is none of that name.
async fn owner(cx: Cx) {
    let bench = Bench::open(cx).await;
    let by = |account| initialize(cx.revision).header(ACCOUNT, account);
    let ada = session::open_by(&bench.client, by("ada")).await;
    let nobody = bench.session(cx).await;
    bench.life.take();
    let (asking, mut run) = bench.work(ada.call("x/work", json!({"tag": 1}))).await;
    let mut stream = ada.listen().await;
    bench.life.take();
    for (session, account) in
        [(&ada, Some("bob")), (&ada, None), (&ada, Some("Ada")), (&ada, Some("")), (&nobody, Some("ada"))]
    {
        let foreign = Session { account: account.map(str::to_owned), ..session.clone() };
        assert_unknown(&foreign).await;
        assert_same(&foreign, &Session { id: "none".to_owned(), ..foreign.clone() }).await;
    }
    // Nothing was run, cancelled, closed or taken over.
    assert_eq!(bench.life.take(), [""; 0]);
    assert!(run.waits());
    bench.service.changes().tools_list_changed();
    assert!(stream.next_message().await.is_some());
    run.go(Then::Answer);
    assert_eq!(asking.await.expect("an answer").result().await, json!({"done": 1}));
    assert!(ada.is_open().await && nobody.is_open().await);
}

/// The same where a layer in front says who asks.
async fn owner_by_extension(cx: Cx) {
    let script = Script::new(|_, cx: RequestContext| async move {
        let session = cx.session().ok_or_else(|| mcp_transport::McpError::internal("no session"))?;
        let names = [session.principal(), cx.principal()]
            .map(|name| name.map(Principal::as_str).unwrap_or_default().to_owned());
        Reply::of(json!({ "names": names }))
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let by = |mut call: Call, name: Option<&'static str>| {
        call.extensions.extend(
            name.map(|name| {
                let mut extensions = http::Extensions::new();
                extensions.insert(Principal::new(name));
                extensions
            })
            .unwrap_or_default(),
        );
        call
    };
    let session = session::start_by(&client, by(initialize(cx.revision), Some("ada"))).await;
    for name in [None, Some("bob"), Some("ADA")] {
        let answer = client.send(by(session.call("x/quick", Value::Null), name)).await;
        answer.error(StatusCode::NOT_FOUND, -32600, Some(&ID.into())).await;
    }
    let result = client.send(by(session.call("x/quick", Value::Null), Some("ada"))).await.result().await;
    assert_eq!(result["names"], json!(["ada", "ada"]));
}

/// What the client says of itself in `initialize` reaches the handler with every message of the session.
async fn keeps_its_client(cx: Cx) {
    let script = Script::new(|_, cx: RequestContext| async move {
        let info = cx.client_info().map(|info| json!([info.name, info.version]));
        let declared = cx.client_capabilities().parse::<Value>();
        Reply::of(json!({"info": info, "declared": declared, "roots": cx.client_capabilities().declares(&["roots"])}))
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let declared =
        json!({"roots": {"listChanged": true}, "extensions": {"com.example/x": {"a": 1}}, "unheard-of": [1]});
    let session = session::open_by(&client, initialize_with(cx.revision.as_str(), declared.clone())).await;
    let other = session::open(&client, cx.revision).await;
    let result = session.result("x/quick", Value::Null).await;
    assert_eq!(result, json!({"info": ["wire", "1"], "declared": declared, "roots": true}));
    let result = other.result("x/quick", Value::Null).await;
    assert_eq!(result, json!({"info": ["wire", "1"], "declared": {}, "roots": false}));
    let mut unnamed = initialize(cx.revision);
    unnamed.remove("/params/clientInfo");
    let unnamed = session::open_by(&client, unnamed).await;
    assert_eq!(unnamed.result("x/quick", Value::Null).await["info"], Value::Null);
    let sessionless = client.send(Call::legacy(cx.revision, "x/quick", Value::Null)).await.result().await;
    assert_eq!(sessionless, json!({"info": null, "declared": null, "roots": false}));
}

/// Whoever names no session is served as if there were none at all.
async fn sessionless(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    bench.life.take();
    let call = |method| Call::legacy(cx.revision, method, json!({"tag": 1}));
    let assumed = cx.revision.max(Revision::V2025_03_26);
    for _ in 0..2 {
        let answer = bench.client.send(call("x/quick")).await;
        assert_eq!(answer.header(SESSION_ID), "");
        let result = answer.result().await;
        assert_eq!(result, json!({"method": "x/quick", "revision": assumed.as_str(), "session": null}));
    }
    accepted(bench.client.send(call("notifications/x").notification()).await).await;
    assert_eq!(bench.life.take(), ["request x/quick", "request x/quick", "notification notifications/x"]);
    // The same id, at once, as often as one likes: nobody can tell whose it is.
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(bench.work(call("x/work")).await);
    }
    let (busy, mut run) = bench.work(session.call("x/work", json!({"tag": 2}))).await;
    for (asking, mut run) in asked {
        assert!(run.cx.session().is_none() && run.cx.client_info().is_none());
        run.go(Then::Answer);
        assert_eq!(asking.await.expect("an answer").result().await, json!({"done": 1}));
    }
    run.go(Then::Answer);
    assert_eq!(busy.await.expect("an answer").result().await, json!({"done": 2}));
    assert_eq!(bench.service.counts().sessions, 1);
}

/// A policy may demand a session of everything but `initialize`.
async fn required(cx: Cx) {
    let bench = Bench::with(cx, |builder| builder.sessions(Sessions::Required)).await;
    let session = bench.session(cx).await;
    bench.life.take();
    for method in ["x/quick", "tools/call", "ping", "logging/setLevel", "resources/subscribe", "server/discover"] {
        let call = || Call::legacy(cx.revision, method, json!({"level": "info", "uri": "a"}));
        bench.client.send(call()).await.error(StatusCode::BAD_REQUEST, -32600, Some(&ID.into())).await;
        bench.client.send(call().notification()).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
    }
    for body in
        [json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]), json!({"jsonrpc": "2.0", "id": 1, "result": {}})]
    {
        bench.client.send(Call::post(body)).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
    }
    // A version that is not served is still the first thing said, and a session that is not known no missing one.
    let unserved = Call::legacy(cx.revision, "x/quick", Value::Null).header(PROTOCOL_VERSION, "2024-10-07");
    bench.client.send(unserved).await.error(StatusCode::BAD_REQUEST, -32022, Some(&ID.into())).await;
    let unknown = Call::legacy(cx.revision, "x/quick", Value::Null).header(SESSION_ID, "none");
    bench.client.send(unknown).await.error(StatusCode::NOT_FOUND, -32600, Some(&ID.into())).await;
    let answer = bench.client.send(Call::get()).await;
    assert_eq!(answer.header(ALLOW.as_str()), "POST, GET, DELETE");
    answer.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await;
    let delete = Call::bare(Method::DELETE);
    bench.client.send(delete).await.error(StatusCode::BAD_REQUEST, -32600, None).await;
    assert_eq!(bench.life.take(), [""; 0]);

    assert_eq!(session.result("x/quick", Value::Null).await["session"], session.id);
    session.notify("notifications/x", Value::Null).await;
    assert_eq!(bench.life.take(), ["request x/quick", "notification notifications/x"]);
    // 2026-07-28 has no sessions that could be demanded.
    bench.client.send(Call::modern("x/quick", json!({}))).await.result().await;
}

/// A policy may open none: then everything is sessionless.
async fn off(cx: Cx) {
    let bench = Bench::with(cx, |builder| builder.sessions(Sessions::Off)).await;
    for _ in 0..2 {
        let answer = bench.client.send(initialize(cx.revision)).await;
        assert_eq!(answer.header(SESSION_ID), "");
        answer.result().await;
    }
    let initialized = Call::legacy(cx.revision, "notifications/initialized", Value::Null).notification();
    accepted(bench.client.send(initialized).await).await;
    let answer = bench.client.send(Call::legacy(cx.revision, "x/quick", Value::Null)).await;
    assert_eq!(answer.result().await["session"], Value::Null);
    let named = Call::legacy(cx.revision, "x/quick", Value::Null).header(SESSION_ID, "none");
    bench.client.send(named).await.error(StatusCode::NOT_FOUND, -32600, Some(&ID.into())).await;
    bench.client.send(Call::get()).await.error(StatusCode::METHOD_NOT_ALLOWED, -32600, None).await;
}

/// Whatever served version a header names, a session goes on in its own.
async fn negotiated_governs(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    bench.life.take();
    let headers = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"].map(Some);
    for version in headers.into_iter().chain([None]) {
        let headed = |mut call: Call| {
            call.headers.remove(PROTOCOL_VERSION);
            match version {
                Some(version) => call.header(PROTOCOL_VERSION, version),
                None => call,
            }
        };
        let answer = bench.client.send(headed(session.call("x/quick", Value::Null))).await;
        assert_eq!(answer.result().await["revision"], cx.revision.as_str(), "{version:?}");
        accepted(bench.client.send(headed(session.notification("notifications/x", Value::Null))).await).await;
        // The array rule is the session's.
        let batch = headed(session.post(json!([{"jsonrpc": "2.0", "id": 1, "method": "x/quick"}])));
        let answer = bench.client.send(batch).await;
        if cx.revision == Revision::V2025_03_26 {
            assert_eq!(answer.status, StatusCode::OK);
            assert_eq!(answer.json().await[0]["result"]["revision"], "2025-03-26", "{version:?}");
        } else {
            answer.error(StatusCode::BAD_REQUEST, -32600, None).await;
        }
        let stream = bench.client.send(headed(session.get())).await;
        assert_eq!(stream.status, StatusCode::OK, "{version:?}");
        drop(stream);
        let doomed = bench.session(cx).await;
        let mut delete = headed(doomed.delete());
        delete.put(SESSION_ID, &doomed.id);
        assert_eq!(bench.client.send(delete).await.status, StatusCode::NO_CONTENT);
        while bench.service.counts().streams > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// A version that is not served is refused in a session too, and before the session is looked for.
async fn unsupported_in_a_session(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    bench.life.take();
    for version in ["2024-10-07", "DRAFT-1", "latest", ""] {
        let (requests, others) = everything_said(&session);
        let requests = requests.into_iter().map(|call| (call, Some(json!(ID))));
        for (call, id) in requests.chain(others.into_iter().map(|call| (call, None))) {
            for call in [call.header(PROTOCOL_VERSION, version)] {
                let error = bench.client.send(call).await.error(StatusCode::BAD_REQUEST, -32022, id.as_ref()).await;
                assert_eq!(error["data"]["requested"], version);
                assert_eq!(error["data"]["supported"].as_array().map(Vec::len), Some(4));
            }
        }
    }
    assert_eq!(bench.life.take(), [""; 0]);
    assert!(session.is_open().await);
}

/// In a session as without one: a handler's error is an answer.
async fn in_band(cx: Cx) {
    let bench = Bench::open(cx).await;
    let session = bench.session(cx).await;
    for (then, code) in [(Then::Fail, 7), (Then::Panic, -32603)] {
        for accept in ["application/json", "application/json, text/event-stream", "text/event-stream"] {
            let call = session.call("x/work", Value::Null).header(ACCEPT.as_str(), accept);
            let (asking, mut run) = bench.work(call).await;
            run.go(then);
            let answer = asking.await.expect("an answer");
            if accept == "text/event-stream" {
                assert_eq!(answer.status, StatusCode::OK);
                let events = answer.events().await;
                assert_eq!((events.len(), &events[0]["error"]["code"]), (1, &json!(code)));
            } else {
                answer.error(StatusCode::OK, code, Some(&ID.into())).await;
            }
        }
    }
    for (method, code) in [("server/discover", -32601), ("logging/setLevel", -32602), ("resources/subscribe", -32602)] {
        session.request(method, json!({})).await.error(StatusCode::OK, code, Some(&ID.into())).await;
    }
}
