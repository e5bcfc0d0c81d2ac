//! What went wrong inside is the application's to know, not the client's.

use mcp_transport::{Limits, LogLevel, McpError, Progress, Reply};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::{Value, json};

use super::{METHOD, is_reply, observed, reply, tell, work};
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::assert_error;
use crate::support::handler::Script;
use crate::support::request::Call;

pub fn register(wire: &mut Wire) {
    wire.any("fault/error-text", Carriers::Every, internal_errors_say_nothing);
    wire.any("fault/error-text/params", Carriers::Every, parsers_say_nothing);
    wire.any("fault/error-text/own", Carriers::Every, what_a_handler_says_is_said);
}

/// What must not leave.
const SECRET: &str = "s3cret";

/// Fails to be written as JSON, saying why.
struct Unwritable;

impl Serialize for Unwritable {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom(SECRET))
    }
}

/// Every way in which something fails inside.
const WAYS: [&str; 10] =
    ["internal", "source", "data", "panic", "string", "unwritable", "number", "reserved", "notify", "log"];

fn fail(way: &str) -> Result<Reply, McpError> {
    match way {
        "internal" => Err(McpError::internal(SECRET)),
        "source" => Err(McpError::internal(std::io::Error::other(format!("open /{SECRET}")))),
        "data" => Err(McpError::new(7, "fine").with_data(&Unwritable)),
        "panic" => std::panic::resume_unwind(Box::new(SECRET)),
        "string" => Reply::of(SECRET),
        "unwritable" => Reply::of(&Unwritable),
        "number" => Reply::of(json!([SECRET])),
        "reserved" => Err(McpError::new(-32050, SECRET).with_data(SECRET)),
        _ => reply(0),
    }
}

fn failing() -> Script {
    Script::new(|request, cx| async move {
        let params: Value = request.params()?;
        if params["streams"] == true {
            tell(&cx, 1).await;
        }
        match params["way"].as_str().expect("a way") {
            "notify" => cx.notify("notifications/said", Unwritable).await?,
            "log" => cx.log(LogLevel::Error, Unwritable).await?,
            way => return fail(way),
        }
        reply(0)
    })
}

async fn internal_errors_say_nothing(cx: Cx) {
    let (service, heard) = observed(failing(), Limits::default());
    let client = cx.serve(service).await;
    for way in WAYS {
        for streams in [false, true] {
            let mut call = work(cx);
            call.set("/params/way", way);
            call.set("/params/streams", streams);
            let answer = client.send(call).await;
            assert_eq!(answer.status, 200);
            let response = if streams {
                let mut events = answer.events().await;
                assert_eq!(events.len(), 2);
                events.pop().expect("a response")
            } else {
                answer.json().await
            };
            let error = assert_error(response, -32603, Some(&1.into()));
            assert_eq!(error, json!({"code": -32603, "message": "Internal error"}), "{way}");
        }
    }
    let all = [heard.of("internal"), heard.of("panicked"), heard.of("misuse")].concat();
    assert_eq!(all.len(), 2 * WAYS.len(), "the application hears of every one: {all:?}");
    for way in [heard.of("internal"), heard.of("panicked")].concat() {
        // Two ways fail at our own doing, with nothing of the application's to tell.
        let ours = way.contains("NotAnObject");
        assert!(ours || way.contains(SECRET), "{way}");
    }
}

async fn parsers_say_nothing(cx: Cx) {
    #[derive(Debug, serde::Deserialize)]
    struct Inner {
        #[allow(dead_code)]
        expected_member: u8,
    }
    let script = Script::new(|request, _| async move {
        if request.method() == METHOD {
            request.params::<Inner>()?;
        } else {
            request.arguments::<Inner>()?;
        }
        reply(0)
    });
    let (service, _) = observed(script, Limits::default());
    let client = cx.serve(service).await;
    for (method, said) in [(METHOD, "Invalid params"), ("prompts/get", "Invalid arguments")] {
        for bad in [json!({}), json!({"expected_member": SECRET}), json!({"expected_member": 256})] {
            let mut params = if method == METHOD { bad } else { json!({"arguments": bad}) };
            params["name"] = "p".into();
            let answer = client.send(Call::of(cx.revision, method, params)).await;
            let error = assert_error(answer.json().await, -32602, Some(&1.into()));
            assert_eq!(error, json!({"code": -32602, "message": said}));
        }
    }
}

/// What a handler puts into an error of its own does leave, and so does all else it says.
async fn what_a_handler_says_is_said(cx: Cx) {
    let script = Script::new(|request, cx| async move {
        if request.params::<Value>()?["fails"] == true {
            return Err(McpError::new(7, "no \"more\"\n").with_data(json!({"why": ["because"]})));
        }
        cx.progress(Progress::new(1.0).message("said")).await;
        reply(1)
    });
    let (service, heard) = observed(script, Limits::default());
    let client = cx.serve(service).await;
    let mut fails = work(cx);
    fails.set("/params/fails", true);
    let error = assert_error(client.send(fails).await.json().await, 7, Some(&1.into()));
    assert_eq!(error, json!({"code": 7, "message": "no \"more\"\n", "data": {"why": ["because"]}}));
    let events = client.send(work(cx)).await.events().await;
    assert_eq!(events[0]["params"]["message"], "said");
    assert!(is_reply(&events[1], 1));
    assert_eq!(heard.of("internal"), Vec::<String>::new());
}
