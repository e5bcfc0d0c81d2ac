//! Progress and log messages: when they travel at all.

use std::sync::Arc;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use mcp_transport::{Capabilities, LogLevel, Progress, StreamableHttpService};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{METHOD, TOKEN, is_internal, is_reply, messages, reply, work};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::handler::Script;
use crate::support::request::{Call, LOG_LEVEL, meta};

pub fn register(wire: &mut Wire) {
    wire.any("progress/rules", Carriers::Every, only_upwards);
    wire.any("progress/rules/token", Carriers::Every, only_with_a_token);
    wire.any("progress/rules/shape", Carriers::Every, members);
    wire.any("progress/rules/burst", Carriers::Every, the_last_of_a_burst_arrives);
    wire.any("progress/rules/threads", Carriers::H1, upwards_from_many_threads);
    wire.any("log/declared", Carriers::Every, only_where_logging_is_declared);
    wire.any("log/declared/level", Carriers::Every, every_level);
}

/// Reports the numbers in `params.report`, `null` standing for what JSON cannot write.
fn reporting() -> Script {
    Script::new(|request, cx| async move {
        let params: Value = request.params()?;
        for number in params["report"].as_array().expect("numbers") {
            let number = number.as_f64();
            for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                cx.progress(Progress::new(number.unwrap_or(odd))).await;
            }
        }
        reply(1)
    })
}

/// The params of all reports, and nothing but reports.
fn reports(messages: &[Value]) -> Vec<Value> {
    let params = messages.iter().map(|message| {
        assert_eq!((&message["jsonrpc"], &message["method"]), (&json!("2.0"), &json!("notifications/progress")));
        message["params"].clone()
    });
    params.collect()
}

async fn only_upwards(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(reporting())).await;
    let table = [
        (json!([1, 2, 3]), json!([1, 2, 3])),
        (json!([1, 1, 0.5, 2, null, 1.75, 2, 2.5, 3]), json!([1, 2, 2.5, 3])),
        (json!([-5, -6, -4.5, 0, -0.0, 1e-9]), json!([-5, -4.5, 0, 1e-9])),
        (json!([1e300, 1e299]), json!([1e300])),
        (json!([null, null]), json!([])),
    ];
    for (reported, sent) in table {
        let mut call = work(cx);
        call.set("/params/report", reported.clone());
        let answer = client.send(call).await;
        if sent == json!([]) {
            assert!(is_reply(&answer.json().await, 1), "nothing was sent: JSON");
            continue;
        }
        let (messages, response) = messages(answer).await;
        let numbers: Vec<_> = reports(&messages).iter().map(|params| params["progress"].as_f64()).collect();
        let wanted: Vec<_> = sent.as_array().unwrap().iter().map(Value::as_f64).collect();
        assert_eq!(numbers, wanted, "{reported}");
        assert!(is_reply(&response, 1));
    }
}

/// A request with this JSON text for a token.
fn with_token(cx: Cx, token: &str) -> Call {
    let mut call = Call::of(cx.revision, METHOD, json!({"report": [1], "_meta": {"progressToken": "<token>"}}));
    call.replace("\"<token>\"", token);
    call
}

async fn only_with_a_token(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(reporting())).await;
    let good = ["\"t\"", "\"\"", "\"\\u0074 \\n\"", "7", "0", "-3", "12345678901234567890123", "1.0", "\"null\""];
    for token in good {
        let text = client.send(with_token(cx, token)).await.text().await;
        assert!(text.contains(&format!("\"progressToken\":{token}")), "{token} as it was: {text}");
    }
    for token in ["null", "true", "1.5", "1e2", "[\"t\"]", "{}"] {
        let answer = client.send(with_token(cx, token)).await;
        assert!(is_reply(&answer.json().await, 1), "{token} is no token");
    }
    let none = Call::of(cx.revision, METHOD, json!({"report": [1], "_meta": {}}));
    assert!(is_reply(&client.send(none).await.json().await, 1));
    // Only the one in `_meta` counts.
    let elsewhere = Call::of(cx.revision, METHOD, json!({"report": [1], "progressToken": "t"}));
    assert!(is_reply(&client.send(elsewhere).await.json().await, 1));
    let mut escaped = with_token(cx, "\"t\"");
    escaped.replace("progressToken", "progress\\u0054oken");
    let (sent, _) = messages(client.send(escaped).await).await;
    assert_eq!(reports(&sent), [json!({"progressToken": "t", "progress": 1})]);
}

async fn members(cx: Cx) {
    let script = Script::new(|_, cx| async move {
        cx.progress(Progress::new(1.0)).await;
        cx.progress(Progress::new(1.5).total(3.0)).await;
        cx.progress(Progress::new(2.0).total(f64::NAN).message("two \"of\" three")).await;
        cx.progress(Progress::new(3.0).total(3.25).message("done")).await;
        reply(1)
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let (sent, _) = messages(client.send(work(cx)).await).await;
    assert_eq!(
        reports(&sent),
        [
            json!({"progressToken": TOKEN, "progress": 1}),
            json!({"progressToken": TOKEN, "progress": 1.5, "total": 3}),
            json!({"progressToken": TOKEN, "progress": 2, "message": "two \"of\" three"}),
            json!({"progressToken": TOKEN, "progress": 3, "total": 3.25, "message": "done"}),
        ]
    );
}

async fn the_last_of_a_burst_arrives(cx: Cx) {
    const LAST: u32 = 5000;
    let script = Script::new(|_, cx| async move {
        for n in 1..=LAST {
            cx.progress(Progress::new(n.into())).await;
        }
        reply(1)
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let (sent, response) = messages(client.send(work(cx)).await).await;
    let numbers: Vec<_> = reports(&sent).iter().map(|params| params["progress"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next));
    assert_eq!(numbers.last(), Some(&LAST.into()));
    assert!(is_reply(&response, 1));
}

/// What one thread reports must not overtake what another has reported already.
async fn upwards_from_many_threads(cx: Cx) {
    use std::sync::atomic::{AtomicU32, Ordering};

    let script = Script::new(|_, cx| async move {
        let (next, runtime) = (Arc::new(AtomicU32::new(1)), tokio::runtime::Handle::current());
        let report = || {
            let (cx, next, runtime) = (cx.clone(), Arc::clone(&next), runtime.clone());
            tokio::task::spawn_blocking(move || {
                runtime.block_on(async {
                    for _ in 0..2000 {
                        let n = next.fetch_add(1, Ordering::SeqCst);
                        cx.progress(Progress::new(n.into())).await;
                    }
                });
            })
        };
        for thread in [report(), report(), report(), report()] {
            thread.await.expect("no panic");
        }
        reply(1)
    });
    let client = cx.serve(StreamableHttpService::new(script)).await;
    let (sent, _) = messages(client.send(work(cx)).await).await;
    let numbers: Vec<_> = reports(&sent).iter().map(|params| params["progress"].as_u64().unwrap()).collect();
    let falls = numbers.windows(2).find(|pair| pair[0] >= pair[1]);
    assert_eq!(falls, None, "of {} reports", numbers.len());
}

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

fn level(name: &str) -> LogLevel {
    serde_json::from_value(name.into()).expect("a level")
}

/// Logs at every level, in the handler and later in a stream.
fn logging() -> Script {
    Script::new(|request, cx| async move {
        for name in LEVELS {
            cx.log(level(name), json!({"at": name})).await?;
        }
        sleep(Duration::from_millis(1)).await;
        cx.log_from("wire", LogLevel::Emergency, "last").await?;
        if request.params::<Value>()?["detour"] == true {
            cx.notify("notifications/message", json!({"level": "emergency", "data": "detour"})).await?;
        }
        reply(1)
    })
}

async fn only_where_logging_is_declared(cx: Cx) {
    let silent = Capabilities::new().tools().prompts().resources().completions();
    let silent: Client = cx.serve(StreamableHttpService::new(logging().declaring(silent))).await;
    assert!(is_reply(&silent.send(work(cx)).await.json().await, 1));
    let mut detour = work(cx);
    detour.set("/params/detour", true);
    assert!(is_internal(&silent.send(detour).await.json().await), "no way round");
    if !cx.modern() {
        let set = Call::legacy(cx.revision, "logging/setLevel", json!({"level": "debug"}));
        silent.send(set).await.text().await;
        assert!(is_reply(&silent.send(work(cx)).await.json().await, 1), "asking for a level declares nothing");
    }
    let declared = cx.serve(StreamableHttpService::new(logging().declaring(Capabilities::new().logging()))).await;
    let answer = declared.send(work(cx)).await;
    assert_eq!(answer.header(CONTENT_TYPE.as_str()), "text/event-stream");
    let (sent, response) = messages(answer).await;
    assert!(sent.iter().all(|message| message["method"] == "notifications/message"), "{sent:?}");
    assert_eq!(sent.last().unwrap()["params"], json!({"level": "emergency", "logger": "wire", "data": "last"}));
    assert!(is_reply(&response, 1));
}

/// What goes out: from 2026-07-28 on from the level the request names, and nothing where it names none; before that,
/// outside a session, from `info` up.
async fn every_level(cx: Cx) {
    let client = cx.serve(StreamableHttpService::new(logging())).await;
    let asked: Vec<_> = if cx.modern() { LEVELS.into_iter().map(Some).collect() } else { vec![None] };
    for least in asked {
        let mut call = Call::of(cx.revision, METHOD, json!({}));
        if let Some(least) = least {
            call.set(&meta(LOG_LEVEL), least);
        }
        let (sent, response) = messages(client.send(call).await).await;
        let wanted = LEVELS.iter().filter(|name| level(name) >= level(least.unwrap_or("info")));
        let wanted: Vec<_> = wanted.map(|name| json!({"level": name, "data": {"at": name}})).collect();
        let (last, levels) = sent.split_last().expect("the last of all");
        assert_eq!(levels.iter().map(|message| message["params"].clone()).collect::<Vec<_>>(), wanted);
        assert_eq!(last["params"]["logger"], "wire");
        assert!(is_reply(&response, 1));
    }
    if cx.modern() {
        let call = Call::modern(METHOD, json!({}));
        assert!(is_reply(&client.send(call).await.json().await, 1), "no level, no messages");
    }
}
