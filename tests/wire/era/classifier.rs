//! The public classifier against the service, which gives away by its answers what it took a message for.

use http::Method;
use mcp_transport::{Era, RefusalKind, Revisions, Rung, StreamableHttpService, classify};
use serde_json::{Value, json};

use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::request::{CLAIM, Call, MCP_METHOD, PROTOCOL_VERSION};
use crate::support::seen::{Refusals, Seen};

pub fn register(wire: &mut Wire) {
    wire.any("era/public-classifier", Carriers::Every, agrees);
}

/// A service that answers what it takes for modern in a way of its own: it serves no modern revision.
struct Judge {
    client: Client,
    refusals: Refusals,
}

impl Judge {
    async fn new(cx: Cx) -> Self {
        let refusals = Refusals::default();
        let builder = StreamableHttpService::builder(Seen::default().script());
        let builder = builder.revisions(Revisions::legacy_only()).observer(refusals.clone());
        Self { client: cx.serve(builder.build().expect("a service")).await, refusals }
    }

    /// The era, if the message gets far enough to have one.
    async fn era(&self, call: Call) -> Option<Era> {
        self.client.send(call).await.text().await;
        match self.refusals.take().as_slice() {
            [RefusalKind::EraNotServed | RefusalKind::NotInThisEra] => Some(Era::Modern),
            [kind] if kind.rung() < Rung::Era => None,
            [_] | [] => Some(Era::Legacy),
            several => panic!("refused more than once: {several:?}"),
        }
    }
}

async fn agrees(cx: Cx) {
    let judge = Judge::new(cx).await;
    let seen = Seen::default();
    let whole = cx.serve(StreamableHttpService::new(seen.script())).await;
    let (mut modern, mut legacy, mut neither) = (0, 0, 0);
    for versions in headers(cx) {
        for body in bodies() {
            for method in [Method::POST, Method::GET, Method::DELETE] {
                let call = || call(&method, &versions, &body);
                let said = classify(&method, &call().headers, &body);
                let context = format!("{method} {versions:?} {}", String::from_utf8_lossy(&body));
                match judge.era(call()).await {
                    Some(era) => assert_eq!(said, era, "{context}"),
                    None => neither += 1,
                }
                *(if said == Era::Modern { &mut modern } else { &mut legacy }) += 1;
                whole.send(call()).await.text().await;
                for (_, revision) in seen.take() {
                    assert_eq!(said, revision.era(), "{context}");
                }
            }
        }
    }
    assert!(modern > 100 && legacy > 100 && neither < modern + legacy - 200, "{modern} {legacy} {neither}");
}

fn call(method: &Method, versions: &[&[u8]], body: &[u8]) -> Call {
    let mut call = Call::post(Value::Null).header(MCP_METHOD, "x");
    call.method = method.clone();
    versions.iter().for_each(|version| call.add(PROTOCOL_VERSION, version));
    if *method == Method::POST { call.raw(body) } else { call }
}

fn headers(cx: Cx) -> Vec<Vec<&'static [u8]>> {
    vec![
        vec![],
        vec![cx.revision.as_str().as_bytes()],
        vec![b" 2026-07-28\t"],
        vec![b"2027-01-31"],
        vec![b"2026-07-27"],
        vec![b"2026-13-45"],
        vec![b"DRAFT-1"],
        vec![b"2026-07-28\xff"],
        vec![b"2025-11-25", b"2026-07-28"],
        vec![b"2025-11-25", b"2025-11-25"],
    ]
}

/// Bodies with the claim in every place where it counts, and in places where it does not.
fn bodies() -> Vec<Vec<u8>> {
    let message = |params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "x", "params": params});
    let claim = |value: Value| message(json!({"_meta": {CLAIM: value}}));
    let plain = message(json!({}));
    let notification = json!({"jsonrpc": "2.0", "method": "x", "params": {"_meta": {CLAIM: "2026-07-28"}}});
    let with = |at: usize, length: usize| {
        let mut elements = vec![plain.clone(); length];
        elements[at] = claim(json!("2026-07-28"));
        Value::from(elements)
    };
    let values = [
        plain.clone(),
        json!({"jsonrpc": "2.0", "id": 1, "method": "x"}),
        claim(json!("2026-07-28")),
        claim(json!("2025-03-26")),
        claim(json!(null)),
        claim(json!({"a": [1]})),
        notification,
        message(json!({"_meta": {"progressToken": 1}})),
        message(json!({"_meta": {CLAIM.to_lowercase(): "2026-07-28"}})),
        message(json!({"_meta": [{CLAIM: "2026-07-28"}]})),
        message(json!({"_meta": {"x": {CLAIM: "2026-07-28"}}})),
        message(json!({"arguments": {"_meta": {CLAIM: "2026-07-28"}}})),
        message(json!({CLAIM: "2026-07-28", "protocolVersion": "2026-07-28"})),
        json!({"jsonrpc": "2.0", "id": 1, "method": "x", "_meta": {CLAIM: "2026-07-28"}}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {"_meta": {CLAIM: "2026-07-28"}}}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}, "params": {"_meta": {CLAIM: "2026-07-28"}}}),
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}}),
        json!({"jsonrpc": "2.0", "id": [], "method": "x", "params": {"_meta": {CLAIM: "2026-07-28"}}}),
        json!([]),
        json!([plain]),
        json!([[claim(json!("2026-07-28"))]]),
        json!([1, {"params": {"_meta": {CLAIM: 1}}}]),
        with(0, 1),
        with(2, 3),
        with(99, 100),
        with(100, 101),
        with(250, 300),
        json!(7),
    ];
    let text = claim(json!("2026-07-28")).to_string();
    let spelled = [
        text.replace("_meta", "\\u005fm\\u0065ta").into_bytes(),
        text.replace("params", "par\\u0061ms").into_bytes(),
        text.replace("io.modelcontextprotocol/", "io.modelcontextprotocol\\/").into_bytes(),
        text.replace("\"_meta\"", "\"_meta\":{},\"_meta\"").into_bytes(),
        format!("\u{feff} \r\n\t{text}\n").into_bytes(),
        format!("{text}x").into_bytes(),
        format!("{}{}", "[".repeat(129), "]".repeat(129)).into_bytes(),
        b"\xff".to_vec(),
        Vec::new(),
    ];
    values.iter().map(|value| value.to_string().into_bytes()).chain(spelled).collect()
}
