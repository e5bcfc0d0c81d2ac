//! A handler that knows better than its list which arguments are mirrored.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_transport::{
    Capabilities, McpError, McpHandler, Notification, ParameterHeaders, ParameterSource, Reply, Request,
    RequestContext, ServerInfo, StreamableHttpService,
};
use serde_json::json;

use super::{REGION, annotated};
use crate::harness::{Carriers, Cx, Wire};
use crate::modern::{Heard, INTERNAL, MISMATCH};
use crate::support::handler::Script;
use crate::support::request::Call;

pub fn register(wire: &mut Wire) {
    wire.modern("param/source/hook", Carriers::Every, hook);
}

/// A handler with a hook of its own.
struct Hooked {
    script: Script,
    hook: fn(&str, &RequestContext) -> ParameterSource,
}

impl McpHandler for Hooked {
    fn server_info(&self) -> ServerInfo {
        self.script.server_info()
    }

    fn capabilities(&self) -> Capabilities {
        self.script.capabilities()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        self.script.request(request, cx).await
    }

    async fn notification(&self, notification: Notification, cx: RequestContext) {
        self.script.notification(notification, cx).await;
    }

    fn parameter_headers(&self, tool: &str, cx: &RequestContext) -> ParameterSource {
        (self.hook)(tool, cx)
    }
}

async fn hook(cx: Cx) {
    fn known(tool: &str, cx: &RequestContext) -> ParameterSource {
        let schema = annotated("x")["inputSchema"].take();
        match tool {
            "strict" => ParameterSource::Known(Arc::new(ParameterHeaders::of_schema(&schema))),
            "lax" => ParameterSource::Known(Arc::default()),
            "by caller" if cx.http().is_some_and(|head| head.headers.contains_key("x-user")) => known("strict", cx),
            "by caller" => known("lax", cx),
            "bad" => {
                let schema = json!({"properties": {"region": {"type": "number", "x-mcp-header": "Region"}}});
                ParameterSource::Known(Arc::new(ParameterHeaders::of_schema(&schema)))
            }
            "broken" => panic!("the hook fell over"),
            _ => ParameterSource::Listing,
        }
    }
    let (asked, ran) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let script = Script::new({
        let (asked, ran) = (Arc::clone(&asked), Arc::clone(&ran));
        move |request, _| {
            let listing = request.method() == "tools/list";
            if listing { &asked } else { &ran }.fetch_add(1, Ordering::SeqCst);
            async move { Reply::of(json!({"tools": [annotated("listed"), annotated("lax")]})) }
        }
    });
    let heard = Heard::default();
    let handler = Arc::new(Hooked { script, hook: known });
    let service = StreamableHttpService::builder(handler).observer(heard.clone()).build().expect("a service");
    let client = cx.serve(service).await;
    let send = |name: &str, header: Option<&str>, user: bool| {
        let mut call = Call::modern("tools/call", json!({"name": name, "arguments": {"region": "eu"}}));
        header.into_iter().for_each(|value| call.put(REGION, value));
        if user {
            call.put("x-user", "a");
        }
        let client = client.clone();
        async move { client.send(call).await.json().await["error"]["code"].as_i64() }
    };
    assert_eq!(send("strict", Some("eu"), false).await, None);
    assert_eq!(send("strict", Some("us"), false).await, Some(MISMATCH));
    assert_eq!(send("strict", None, false).await, Some(MISMATCH));
    assert_eq!(send("lax", None, false).await, None);
    assert_eq!(send("lax", Some("us"), false).await, None, "what the hook says is all");
    assert_eq!(send("by caller", None, true).await, Some(MISMATCH));
    assert_eq!(send("by caller", None, false).await, None);
    assert_eq!(asked.load(Ordering::SeqCst), 0, "no list was asked for");
    assert_eq!(ran.load(Ordering::SeqCst), 4);

    assert_eq!(send("listed", None, false).await, Some(MISMATCH));
    assert_eq!(asked.load(Ordering::SeqCst), 1, "the hook sent it to the list");

    for _ in 0..2 {
        assert_eq!(send("bad", Some("us"), false).await, None);
    }
    let told = heard.misuses();
    assert!(told.len() == 1 && told[0].contains("\"bad\"") && told[0].contains("/properties/region"), "{told:?}");

    assert_eq!(send("broken", Some("eu"), false).await, Some(INTERNAL));
    assert_eq!(heard.panics(), ["the hook fell over"]);
    assert_eq!(ran.load(Ordering::SeqCst), 6);
}
