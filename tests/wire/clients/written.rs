//! What clients send first, written in every way that HTTP and JSON allow: headers in any order and case, any `Accept`
//! that can be met, members in any order, `params` left out. Nothing of that changes the answer.

use mcp_transport::{Era, Revisions};
use serde_json::{Value, json};

use super::first::{PROBERS, only};
use super::legacy_revisions;
use crate::harness::{Carriers, Cx, Wire};
use crate::support::client::Client;
use crate::support::fixture::{self, CLIENTS};
use crate::support::request::SESSION_ID;

pub fn register(wire: &mut Wire) {
    for revision in legacy_revisions() {
        for name in CLIENTS {
            wire.client(revision, &format!("{name}/written"), Carriers::H1, move |cx| legacy(cx, name));
        }
    }
    for name in PROBERS {
        let modern = mcp_transport::Revision::V2026_07_28;
        wire.client(modern, &format!("{name}/written"), Carriers::H1, move |cx| modern_steps(cx, name));
    }
}

async fn legacy(cx: Cx, name: &'static str) {
    let (service, _sleeps) = only(Revisions::only([cx.revision]));
    let client = cx.serve(service.clone()).await;
    let version = cx.revision.as_str();
    let opened = client.send(fixture::call(name, "initialize", "")).await;
    let session = opened.header(SESSION_ID).to_owned();
    let tries =
        each_way(cx, &client, &fixture::bytes(name, "initialize", ""), &format!("\"protocolVersion\":\"{version}\""))
            .await;
    assert_eq!(service.counts().sessions, tries + 1, "a session each");
    let list = fixture::bytes(name, "list", &session).replace("2025-11-25", version);
    each_way(cx, &client, &list, "\"tools\":[]").await;
}

async fn modern_steps(cx: Cx, name: &'static str) {
    for revisions in [Revisions::all(), Revisions::modern_only()] {
        let (service, _sleeps) = only(revisions);
        let client = cx.serve(service).await;
        each_way(cx, &client, &fixture::bytes(name, "discover", ""), "\"supportedVersions\":[\"2026-07-28\"]").await;
        each_way(cx, &client, &fixture::bytes(name, "modern-list", ""), "\"tools\":[]").await;
    }
}

/// Sends a request in every way, and looks for this in each answer. Returns how many ways there are.
async fn each_way(cx: Cx, client: &Client, request: &str, wanted: &str) -> usize {
    let request = Written::read(request);
    let mut ways = request.other_heads();
    ways.extend(request.other_bodies(cx.revision.era()));
    ways.push(("as it is", request));
    for (way, request) in &ways {
        let id = serde_json::from_str::<Value>(&request.body).expect("a message")["id"].clone();
        let seen = client.raw(request.bytes()).await.until(&format!("\"id\":{id}}}")).await;
        assert!(seen.starts_with("HTTP/1.1 200 OK\r\n") && seen.contains(wanted), "{way}: {seen}");
    }
    ways.len()
}

/// A request as lines and body, without what only says how long the body is.
#[derive(Clone)]
struct Written {
    line: String,
    headers: Vec<(String, String)>,
    body: String,
    framing: Framing,
}

#[derive(Clone, Copy)]
enum Framing {
    Length,
    Chunked,
}

impl Written {
    fn read(request: &str) -> Self {
        let (head, body) = request.split_once("\r\n\r\n").expect("a head");
        let (line, headers) = head.split_once("\r\n").expect("headers");
        let headers = headers.split("\r\n").map(|header| {
            let (name, value) = header.split_once(": ").expect("a header");
            (name.to_owned(), value.to_owned())
        });
        let headers = headers.filter(|(name, _)| !name.eq_ignore_ascii_case("content-length")).collect();
        Self { line: line.to_owned(), headers, body: body.to_owned(), framing: Framing::Length }
    }

    fn bytes(&self) -> String {
        let headers: String = self.headers.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect();
        let (line, body) = (&self.line, &self.body);
        match self.framing {
            Framing::Length => format!("{line}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()),
            Framing::Chunked => {
                let (first, rest) = body.split_at(1);
                let (first, rest) = (chunk(first), chunk(rest));
                format!("{line}\r\n{headers}Transfer-Encoding: chunked\r\n\r\n{first}{rest}0\r\n\r\n")
            }
        }
    }

    fn other_heads(&self) -> Vec<(&'static str, Self)> {
        let mut ways = vec![
            (
                "headers in the reverse order",
                Self { headers: self.headers.iter().rev().cloned().collect(), ..self.clone() },
            ),
            ("names in upper case", self.headers(|name, value| (name.to_uppercase(), value.to_owned()))),
            ("names in lower case", self.headers(|name, value| (name.to_lowercase(), value.to_owned()))),
            ("names in title case", self.headers(|name, value| (title_case(name), value.to_owned()))),
            ("white space around values", self.headers(|name, value| (name.to_owned(), format!(" \t {value}\t ")))),
            ("no Accept", self.with("accept", &[])),
            ("Accept twice", self.with("accept", &["application/json", "text/event-stream"])),
            ("in chunks", Self { framing: Framing::Chunked, ..self.clone() }),
        ];
        for accept in [
            "*/*",
            "application/json",
            "text/event-stream",
            "application/*",
            "TEXT/Event-Stream;q=0.5, Application/JSON ; q=0.4",
            "text/html, image/gif, */*;q=0.1",
        ] {
            ways.push((accept, self.with("accept", &[accept])));
        }
        for content_type in ["application/json; charset=utf-8", "Application/JSON;x=\"1;2\""] {
            ways.push((content_type, self.with("content-type", &[content_type])));
        }
        ways
    }

    fn other_bodies(&self, era: Era) -> Vec<(&'static str, Self)> {
        let message: Value = serde_json::from_str(&self.body).expect("a message");
        let body = |body: String| Self { body, ..self.clone() };
        let edited = |edit: &dyn Fn(&mut Value)| {
            let mut message = message.clone();
            edit(&mut message);
            body(message.to_string())
        };
        let mut ways = vec![
            ("members in the order of the alphabet", body(in_order(&message, false))),
            ("members in the reverse order", body(in_order(&message, true))),
            ("laid out in lines", body(serde_json::to_string_pretty(&message).expect("a message"))),
            ("members nobody knows", edited(&|message| message["x"] = json!({"id": 7, "method": []}))),
        ];
        for id in
            [json!(0), json!(1), json!(-1), json!("0"), json!(""), json!("server-discover-probe-1"), json!("listen:0")]
        {
            ways.push(("another id", edited(&|message| message["id"] = id.clone())));
        }
        if message["method"] == "tools/list" {
            for token in [json!(0), json!("0"), json!(null), json!(1.5), json!([])] {
                ways.push((
                    "a progress token",
                    edited(&|message| message["params"]["_meta"]["progressToken"] = token.clone()),
                ));
            }
            if era == Era::Legacy {
                ways.push((
                    "params left out",
                    edited(&|message| drop(message.as_object_mut().expect("an object").remove("params"))),
                ));
                ways.push(("empty params", edited(&|message| message["params"] = json!({}))));
            }
        }
        ways
    }

    fn headers(&self, change: impl Fn(&str, &str) -> (String, String)) -> Self {
        Self { headers: self.headers.iter().map(|(name, value)| change(name, value)).collect(), ..self.clone() }
    }

    /// These in place of any of that name.
    fn with(&self, name: &str, values: &[&str]) -> Self {
        let mut headers = self.headers.clone();
        headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        headers.extend(values.iter().map(|value| (name.to_owned(), (*value).to_owned())));
        Self { headers, ..self.clone() }
    }
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn title_case(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + &rest.to_lowercase()
    });
    words.collect::<Vec<_>>().join("-")
}

/// The message with its members in this order, whatever a map of serde_json does.
fn in_order(message: &Value, is_reverse: bool) -> String {
    let mut members: Vec<_> = message.as_object().expect("an object").iter().collect();
    members.sort_by_key(|(name, _)| *name);
    if is_reverse {
        members.reverse();
    }
    let members: Vec<_> = members.into_iter().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
    format!("{{{}}}", members.join(","))
}
