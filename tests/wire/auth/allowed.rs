//! What a token allows: by method and name, decided before anything runs.

use std::sync::{Arc, Mutex};

use http::StatusCode;
use http::header::WWW_AUTHENTICATE;
use mcp_transport::{Attempt, Denied, Principal, RefusalKind, Revision, StreamableHttpService};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::owner::open;
use super::{Site, bearing, principal, wanting};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::{Answer, Client};
use crate::support::handler::Script;
use crate::support::request::{Call, ID};
use crate::support::session::{self, Session};

pub fn register(wire: &mut Wire) {
    wire.any("auth/allowed", Carriers::Every, step_up);
    wire.any("auth/allowed/every-message", Carriers::Every, every_message);
    wire.any_legacy("auth/allowed/in-a-session", Carriers::Every, in_a_session);
    wire.any("auth/allowed/told", Carriers::Every, told);
    wire.any("auth/allowed/never", Carriers::Every, never);
    wire.any("auth/allowed/injection", Carriers::Every, injection);
    wire.any("auth/allowed/no-layer", Carriers::Every, no_layer);
    wire.any("auth/allowed/panics", Carriers::Every, panics);
    wire.any_legacy("auth/never-blocked", Carriers::Every, never_blocked);
    wire.modern_part_of_any("auth/never-blocked/modern", Carriers::Every, never_blocked_modern);
    wire.only(Revision::V2025_03_26, "auth/batch", Carriers::Every, batch);
    wire.only(Revision::V2025_03_26, "auth/batch/settles", Carriers::Every, batch_settles);
}

/// Denies what is being tried, and nothing else.
#[derive(Clone, Default)]
struct Rule(Arc<Mutex<&'static str>>);

impl Rule {
    fn deny(&self, method: &'static str) {
        *self.0.lock().expect("nobody panicked") = method;
    }

    fn judge(&self, attempt: &Attempt<'_>) -> Result<(), Denied> {
        let denied = *self.0.lock().expect("nobody panicked");
        if denied == attempt.method() || denied == "*" { attempt.require(&["more"]) } else { Ok(()) }
    }

    async fn site(&self, cx: Cx) -> Site {
        let rule = self.clone();
        Site::ruled(cx, move |attempt| rule.judge(attempt)).await
    }
}

/// A scope that is missing is named, with all others of the operation; with it the same request gets through.
async fn step_up(cx: Cx) {
    let site = Site::ruled(cx, |attempt| match (attempt.method(), attempt.name()) {
        ("tools/call", Some("write")) => attempt.require(&["files:read", "files:write"]),
        ("tools/call" | "prompts/get", _) => attempt.require(&["files:read"]),
        _ => Ok(()),
    })
    .await;
    let write = || Call::of(cx.revision, "tools/call", json!({"name": "write"}));
    for (call, token) in [(write(), "alice"), (write(), "alice.1.files-read"), (write(), "alice.1.x+y")] {
        let answer = site.client.send(bearing(call, token)).await;
        wanting(answer, "files:read files:write", Some(&ID.into())).await;
        assert_eq!(site.behind.take(), [RefusalKind::NotAuthorized]);
    }
    wanting(site.client.send(bearing(site.call(), "alice")).await, "files:read", Some(&ID.into())).await;
    assert_eq!(site.ran(), [""; 0]);
    assert_eq!(site.at_layer.take(), []);

    let site = Site::ruled(cx, |attempt| attempt.require(&["read", "write"])).await;
    for (token, status) in [
        ("alice.1.read+write", StatusCode::OK),
        ("alice.1.write+x+read", StatusCode::OK),
        ("alice.1.read", StatusCode::FORBIDDEN),
        ("alice.1.read+writer", StatusCode::FORBIDDEN),
        ("alice.1.READ+write", StatusCode::FORBIDDEN),
        ("alice", StatusCode::FORBIDDEN),
    ] {
        assert_eq!(site.client.send(bearing(site.call(), token)).await.status, status, "{token}");
    }
}

/// Requests and notifications, also those that the transport answers itself, without a session.
async fn every_message(cx: Cx) {
    let rule = Rule::default();
    let site = rule.site(cx).await;
    let requests: &[_] = if cx.modern() {
        &["server/discover", "tools/list", "tools/call", "prompts/get", "subscriptions/listen", "x/y"]
    } else {
        &["initialize", "ping", "tools/list", "tools/call", "prompts/get", "logging/setLevel", "x/y"]
    };
    for &method in requests {
        rule.deny(method);
        let call = || match method {
            "initialize" => session::initialize(cx.revision),
            "subscriptions/listen" => crate::listen::listen(json!({"toolsListChanged": true})),
            _ => Call::of(cx.revision, method, json!({"name": "a", "level": "info"})),
        };
        wanting(site.client.send(bearing(call(), "alice")).await, "more", Some(&ID.into())).await;
        assert_eq!((site.behind.take(), site.ran()), (vec![RefusalKind::NotAuthorized], vec![]), "{method}");
        assert_eq!(site.service.counts().sessions, 0, "{method}");
        let answer = site.client.send(bearing(call(), "alice.1.more")).await;
        assert_ne!(answer.status, StatusCode::FORBIDDEN, "{method}");
        rule.deny("");
        assert_ne!(site.client.send(bearing(call(), "alice")).await.status, StatusCode::FORBIDDEN, "{method}");
        site.ran();
        site.behind.take();
        if method == "initialize" {
            assert_eq!(site.service.counts().sessions, 2);
            return Box::pin(rest(cx, &rule, &site, &requests[1..])).await;
        }
    }
    notifications(&rule, &site).await;
}

/// The same once sessions are open that belong to none of these messages.
async fn rest(cx: Cx, rule: &Rule, site: &Site, requests: &[&'static str]) {
    for &method in requests {
        rule.deny(method);
        let call = || Call::of(cx.revision, method, json!({"name": "a", "level": "info"}));
        wanting(site.client.send(bearing(call(), "alice")).await, "more", Some(&ID.into())).await;
        assert_eq!(site.ran(), [""; 0], "{method}");
        let answer = site.client.send(bearing(call(), "alice.1.more")).await;
        assert_ne!(answer.status, StatusCode::FORBIDDEN, "{method}");
        site.ran();
    }
    notifications(rule, site).await;
}

async fn notifications(rule: &Rule, site: &Site) {
    for method in ["notifications/x", "notifications/initialized", "notifications/roots/list_changed"] {
        rule.deny(method);
        let call = || Call::of(site.cx.revision, method, json!({})).notification();
        wanting(site.client.send(bearing(call(), "alice")).await, "more", None).await;
        assert_eq!(site.ran(), [""; 0], "{method}");
        session::accepted(site.client.send(bearing(call(), "alice.1.more")).await).await;
        site.ran();
    }
}

/// The same in a session; a GET is `subscriptions/listen`.
async fn in_a_session(cx: Cx) {
    let rule = Rule::default();
    let site = rule.site(cx).await;
    let session = open(&site, "alice").await;
    for method in ["ping", "tools/call", "prompts/get", "logging/setLevel", "resources/subscribe", "x/y"] {
        rule.deny(method);
        let call = || session.call(method, json!({"name": "a", "level": "info", "uri": "a:b"}));
        wanting(site.client.send(bearing(call(), "alice")).await, "more", Some(&ID.into())).await;
        assert_eq!(site.ran(), [""; 0], "{method}");
        let answer = site.client.send(bearing(call(), "alice.1.more")).await;
        assert_eq!(answer.status, StatusCode::OK, "{method}");
        site.ran();
    }
    rule.deny("notifications/x");
    let told = || session.notification("notifications/x", Value::Null);
    wanting(site.client.send(bearing(told(), "alice")).await, "more", None).await;
    assert_eq!(site.ran(), [""; 0]);
    rule.deny("subscriptions/listen");
    wanting(site.client.send(bearing(session.get(), "alice")).await, "more", None).await;
    assert_eq!(site.service.counts().streams, 0);
    let stream = site.client.send(bearing(session.get(), "alice.1.more")).await;
    assert_eq!(stream.status, StatusCode::OK);
}

/// What the application is asked by.
async fn told(cx: Cx) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&heard);
    let site = Site::ruled(cx, move |attempt| {
        // Whoever does not say which revision it speaks speaks 2025-03-26.
        assert_eq!(attempt.revision(), cx.revision.max(Revision::V2025_03_26));
        assert_eq!(attempt.http().uri.path(), "/mcp");
        let params: Value = serde_json::from_slice(attempt.params_json().unwrap_or(b"null")).expect("JSON");
        let said = json!([
            attempt.method(),
            attempt.name(),
            attempt.uri(),
            params["arguments"],
            attempt.principal().map(Principal::as_str),
            attempt.token().map(|token| token.scopes().to_string()),
        ]);
        hears.lock().expect("nobody panicked").push(said);
        Ok(())
    })
    .await;
    for (method, params, facts) in [
        ("tools/call", json!({"name": "a", "arguments": {"b": 1}}), json!(["tools/call", "a", null, {"b": 1}])),
        ("resources/read", json!({"uri": "a:b"}), json!(["resources/read", null, "a:b", null])),
    ] {
        let call = Call::of(cx.revision, method, params);
        assert_eq!(site.client.send(bearing(call, "alice.1.x+y")).await.status, StatusCode::OK);
        let mut facts = facts;
        facts.as_array_mut().expect("a list").extend([json!(principal("alice")), json!("x y")]);
        assert_eq!(std::mem::take(&mut *heard.lock().expect("nobody panicked")), [facts]);
    }
}

async fn denied(answer: Answer, message: &str) {
    assert_eq!(answer.header(WWW_AUTHENTICATE.as_str()), "");
    let error = answer.error(StatusCode::FORBIDDEN, -32600, Some(&ID.into())).await;
    assert_eq!(error, json!({"code": -32600, "message": message}));
}

/// What no token opens does not ask for one.
async fn never(cx: Cx) {
    let site = Site::ruled(cx, |attempt| match attempt.name() {
        Some("a") => Err(Denied::new()),
        _ => Err(Denied::new().description("Never on a \"Monday\"")),
    })
    .await;
    denied(site.client.send(bearing(site.call(), "alice.1.all")).await, "Not allowed").await;
    let other = Call::of(cx.revision, "prompts/get", json!({"name": "b"}));
    denied(site.client.send(bearing(other, "alice.1.all")).await, "Never on a \"Monday\"").await;
    assert_eq!(site.ran(), [""; 0]);
}

/// The application may say what it likes, and may repeat what the client said: the header stays whole.
async fn injection(cx: Cx) {
    let site = Site::ruled(cx, |attempt| {
        let name = attempt.name().unwrap_or_default().to_owned();
        Err(Denied::insufficient_scope(["more", &name]).description(name))
    })
    .await;
    for (name, shown) in [
        ("x\", scope=\"admin", "x?, scope=?admin"),
        ("x\r\nSet-Cookie: a=b", "x??Set-Cookie: a=b"),
        ("x\\", "x?"),
        ("\u{e9}\u{0}", "??"),
    ] {
        let call = Call::of(cx.revision, "prompts/get", json!({ "name": name }));
        let answer = site.client.send(bearing(call, "alice")).await;
        let expected = format!(
            r#"Bearer error="insufficient_scope", error_description="{shown}", scope="more", resource_metadata="https://mcp.test{}""#,
            super::METADATA
        );
        assert_eq!(answer.header(WWW_AUTHENTICATE.as_str()), expected);
        assert!(!answer.headers.contains_key("set-cookie"));
        let error = answer.error(StatusCode::FORBIDDEN, -32600, Some(&ID.into())).await;
        assert_eq!(error["message"], name);
    }
}

/// Behind a layer of the application's own the rules are the same; where to ask for scopes is the application's secret.
async fn no_layer(cx: Cx) {
    let script = Script::new(|_, _| async { mcp_transport::Reply::of(json!({"messages": []})) });
    let builder = StreamableHttpService::builder(script).principal(|head| {
        let name = head.headers.get(session::ACCOUNT)?.to_str().ok()?;
        Some(Principal::new(name))
    });
    let builder = builder.authorize(|attempt| match attempt.principal().map(Principal::as_str) {
        Some("one") => Ok(()),
        Some(_) => attempt.require(&["more"]),
        None => Err(Denied::new()),
    });
    let client: Client = cx.serve(builder.build().expect("a service")).await;
    let call = || Call::of(cx.revision, "prompts/get", json!({"name": "a"}));
    denied(client.send(call()).await, "Not allowed").await;
    let answer = client.send(call().header(session::ACCOUNT, "two")).await;
    let expected = r#"Bearer error="insufficient_scope", error_description="Not allowed", scope="more""#;
    assert_eq!(answer.header(WWW_AUTHENTICATE.as_str()), expected);
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(client.send(call().header(session::ACCOUNT, "one")).await.status, StatusCode::OK);
}

/// A rule that cannot tell lets nobody in.
async fn panics(cx: Cx) {
    let site = Site::ruled(cx, |attempt| match attempt.name() {
        Some("a") => std::panic::resume_unwind(Box::new("on purpose")),
        _ => Ok(()),
    })
    .await;
    let answer = site.client.send(bearing(site.call(), "alice")).await;
    assert_eq!(answer.header(WWW_AUTHENTICATE.as_str()), "");
    let error = answer.error(StatusCode::INTERNAL_SERVER_ERROR, -32603, Some(&ID.into())).await;
    assert_eq!(error, json!({"code": -32603, "message": "Internal error"}));
    assert_eq!(site.behind.take(), [RefusalKind::HookPanicked]);
    assert_eq!(site.ran(), [""; 0]);
    let other = Call::of(cx.revision, "prompts/get", json!({"name": "b"}));
    assert_eq!(site.client.send(bearing(other, "alice")).await.status, StatusCode::OK);
}

/// A request with the id `run` that is being answered.
async fn at_work(site: &Site, session: &Session) -> JoinHandle<String> {
    let call = bearing(session.call("prompts/get", json!({"name": "ask"})).id("run"), "alice");
    let client = site.client.clone();
    let running = tokio::spawn(async move { client.send(call).await.text().await });
    crate::listen::until(|| site.service.counts().in_flight == 1).await;
    running
}

/// What brings to its end what is under way.
async fn never_blocked(cx: Cx) {
    let rule = Rule::default();
    let site = rule.site(cx).await;
    let session = open(&site, "alice").await;
    let running = at_work(&site, &session).await;
    rule.deny("*");
    wanting(site.client.send(bearing(session.call("ping", Value::Null), "alice")).await, "more", Some(&ID.into()))
        .await;
    // A response that nothing waits for is refused as such.
    let response = session.post(json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    let answer = site.client.send(bearing(response, "alice")).await;
    answer.error(StatusCode::BAD_REQUEST, -32600, None).await;
    session::accepted(site.client.send(bearing(session.cancellation("run"), "alice")).await).await;
    assert_eq!(running.await.expect("an end"), "");
    assert_eq!(site.service.counts().in_flight, 0);
    let answer = site.client.send(bearing(session.delete(), "alice")).await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
}

async fn never_blocked_modern(cx: Cx) {
    let site = Site::ruled(cx, |_| Err(Denied::new())).await;
    let call = Call::of(cx.revision, "notifications/cancelled", json!({"requestId": 1})).notification();
    session::accepted(site.client.send(bearing(call, "alice")).await).await;
    let call = Call::of(cx.revision, "notifications/x", json!({})).notification();
    assert_eq!(site.client.send(bearing(call, "alice")).await.status, StatusCode::FORBIDDEN);
}

fn element(id: Value, method: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {"name": "a"}})
}

/// One that is denied denies all, and the client hears of all scopes at once.
async fn batch(cx: Cx) {
    let site = Site::ruled(cx, |attempt| match attempt.method() {
        "prompts/get" => attempt.require(&["a", "b"]),
        "completion/complete" => attempt.require(&["b", "c"]),
        "x/never" => Err(Denied::new()),
        "notifications/x" => attempt.require(&["d"]),
        _ => Ok(()),
    })
    .await;
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/x"});
    let fine = || element(1.into(), "tools/call");
    let all =
        [fine(), element(2.into(), "prompts/get"), json!(7), element(3.into(), "completion/complete"), notification];
    wanting(site.client.send(bearing(Call::post(json!(all)), "alice")).await, "a b c d", None).await;
    assert_eq!(site.ran(), [""; 0]);
    assert_eq!(site.behind.take(), [RefusalKind::NotAuthorized]);
    let hopeless = json!([fine(), element(2.into(), "prompts/get"), element(3.into(), "x/never")]);
    let answer = site.client.send(bearing(Call::post(hopeless), "alice")).await;
    assert_eq!(answer.header(WWW_AUTHENTICATE.as_str()), "");
    answer.error(StatusCode::FORBIDDEN, -32600, None).await;
    let answer = site.client.send(bearing(Call::post(json!(all)), "alice.1.a+b+c+d")).await;
    assert_eq!(answer.json().await.as_array().map(Vec::len), Some(4));
    let answer = site.client.send(bearing(Call::post(json!([fine()])), "alice")).await;
    assert_eq!(answer.status, StatusCode::OK);
}

/// A cancellation in it counts.
async fn batch_settles(cx: Cx) {
    let rule = Rule::default();
    let site = rule.site(cx).await;
    let session = open(&site, "alice").await;
    let running = at_work(&site, &session).await;
    rule.deny("ping");
    let cancellation = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "run"}});
    let response = json!({"jsonrpc": "2.0", "id": 9, "result": {}});
    let all = session.post(json!([element(1.into(), "ping"), cancellation, response]));
    wanting(site.client.send(bearing(all, "alice")).await, "more", None).await;
    assert_eq!(running.await.expect("an end"), "");
    assert_eq!(site.service.counts().in_flight, 0);
}
