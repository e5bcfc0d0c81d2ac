//! The rules of the two eras in the words of the contract, to hold the service's answers against.

use mcp_transport::{Era, Revision, Revisions};
use serde_json::Value;

use crate::support::client::Answer;
use crate::support::request::{CLAIM, Call, ID, MCP_METHOD, PROTOCOL_VERSION, meta};
use crate::support::seen::Seen;

/// A request as far as its era goes.
#[derive(Clone, Debug)]
pub struct Case {
    pub served: Revisions,
    /// The lines of `MCP-Protocol-Version`.
    pub versions: Vec<Vec<u8>>,
    pub claim: Option<Value>,
    pub method: &'static str,
    /// What `initialize` asks for.
    pub asked: &'static str,
}

/// What becomes of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The handler answers it, in this revision.
    Handled(Revision),
    /// The transport answers it; `initialize` with this version.
    Answered(Option<Revision>),
    /// In band, up to 2025-11-25.
    MethodNotFound,
    Refused(Refused),
}

/// A refusal of a request that carries an id.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    pub status: u16,
    pub code: i64,
    /// What its text names.
    pub names: &'static str,
    /// `supported`, sorted, and `requested`, where it is the wrong version.
    pub versions: Option<(Vec<String>, String)>,
}

const fn refused(status: u16, code: i64, names: &'static str) -> Outcome {
    Outcome::Refused(Refused { status, code, names, versions: None })
}

/// The names of the served revisions of an era, sorted.
pub fn names(served: Revisions, era: Era) -> Vec<String> {
    let all = Revision::ALL.into_iter();
    all.filter(|revision| served.contains(*revision) && revision.era() == era).map(|r| r.to_string()).collect()
}

/// Whether a version header is a date from 2026-07-28 on.
pub fn is_modern_date(text: &str) -> bool {
    let parts: Vec<_> = text.trim().split('-').collect();
    let digits = |part: &&str, length| part.len() == length && part.bytes().all(|byte| byte.is_ascii_digit());
    let [year, month, day] = parts.as_slice() else {
        return false;
    };
    if !digits(year, 4) || !digits(month, 2) || !digits(day, 2) {
        return false;
    }
    let number = |part: &str| part.parse::<u32>().expect("digits");
    let (year, month, day) = (number(year), number(month), number(day));
    (1..=12).contains(&month) && (1..=31).contains(&day) && (year, month, day) >= (2026, 7, 28)
}

impl Case {
    /// The request: whole but for what the case says.
    pub fn call(&self) -> Call {
        let params = serde_json::json!({"protocolVersion": self.asked, "capabilities": {}, "level": "info"});
        let mut call = Call::modern(self.method, params).without(PROTOCOL_VERSION);
        assert!(call.headers.contains_key(MCP_METHOD));
        for version in &self.versions {
            call.add(PROTOCOL_VERSION, version);
        }
        match &self.claim {
            Some(claim) => call.set(&meta(CLAIM), claim.clone()),
            None => call.remove(&meta(CLAIM)),
        }
        call
    }

    /// What the contract says becomes of it.
    pub fn outcome(&self) -> Outcome {
        let is_modern = |line: &Vec<u8>| std::str::from_utf8(line).is_ok_and(is_modern_date);
        if self.claim.is_some() || self.versions.iter().any(is_modern) {
            return if names(self.served, Era::Modern).is_empty() { refused(400, -32600, "") } else { self.modern() };
        }
        if names(self.served, Era::Legacy).is_empty() { self.without_legacy() } else { self.legacy() }
    }

    /// The one version line less the white space around it, if it is visible ASCII.
    fn header(&self) -> Option<&str> {
        let text = std::str::from_utf8(&self.versions[0]).ok()?;
        text.is_ascii().then(|| text.trim())
    }

    fn unsupported(&self, era: Era, requested: &str) -> Outcome {
        let requested = requested.chars().filter(char::is_ascii_graphic).take(64).collect();
        let versions = Some((names(self.served, era), requested));
        Outcome::Refused(Refused { status: 400, code: -32022, names: "", versions })
    }

    fn serves(&self, era: Era, name: &str) -> Option<Revision> {
        Revision::parse(name).filter(|revision| self.served.contains(*revision) && revision.era() == era)
    }

    /// The matrix of header and claim.
    fn modern(&self) -> Outcome {
        let mismatch = refused(400, -32020, "");
        if self.method == "initialize" && self.claim.is_none() || self.versions.len() != 1 {
            return mismatch;
        }
        let Some(header) = self.header() else {
            return mismatch;
        };
        let served = self.serves(Era::Modern, header);
        match (self.claim.as_ref().and_then(Value::as_str), served) {
            (None, Some(_)) => refused(400, -32602, CLAIM),
            (Some(claim), _) if claim != header => mismatch,
            (_, None) => self.unsupported(Era::Modern, header),
            (Some(_), Some(revision)) => match self.method {
                "initialize" | "ping" | "logging/setLevel" => refused(404, -32601, ""),
                "server/discover" => Outcome::Answered(None),
                _ => Outcome::Handled(revision),
            },
        }
    }

    fn legacy(&self) -> Outcome {
        if self.versions.len() > 1 {
            return refused(400, -32600, "");
        }
        let mut version = Some(Revision::V2025_03_26);
        if !self.versions.is_empty() {
            let header = self.header().unwrap_or_default();
            version = self.serves(Era::Legacy, header);
            if version.is_none() {
                return self.unsupported(Era::Legacy, header);
            }
        }
        if self.method == "initialize" {
            let latest = names(self.served, Era::Legacy).last().and_then(|name| Revision::parse(name));
            return Outcome::Answered(self.serves(Era::Legacy, self.asked).or(latest));
        }
        let Some(version) = version.filter(|version| self.served.contains(*version)) else {
            return self.unsupported(Era::Legacy, "2025-03-26");
        };
        match self.method {
            "ping" | "logging/setLevel" => Outcome::Answered(None),
            "server/discover" | "subscriptions/listen" => Outcome::MethodNotFound,
            _ => Outcome::Handled(version),
        }
    }

    fn without_legacy(&self) -> Outcome {
        match self.versions.len() {
            _ if self.method == "initialize" => self.unsupported(Era::Modern, self.asked),
            0 => refused(400, -32020, ""),
            _ => self.unsupported(Era::Modern, self.header().unwrap_or_default()),
        }
    }

    /// Holds an answer, and what the handler saw, against the contract.
    pub async fn check(&self, answer: Answer, seen: &Seen) {
        let outcome = self.outcome();
        let got = actual(&outcome, self.method, answer).await;
        assert_eq!(got, outcome, "{self:?}");
        let handled = match outcome {
            Outcome::Handled(revision) => vec![(self.method.to_owned(), revision)],
            _ => Vec::new(),
        };
        assert_eq!(seen.take(), handled, "{self:?}");
    }
}

/// Reads an answer, looking for what is `expected` of its text.
async fn actual(expected: &Outcome, method: &str, answer: Answer) -> Outcome {
    let status = answer.status.as_u16();
    let body = answer.json().await;
    assert_eq!(body["id"], ID, "{body}");
    let Some(error) = body.get("error") else {
        assert_eq!(status, 200, "{body}");
        let revision = |key: &str| body["result"][key].as_str().and_then(Revision::parse);
        return match (method, revision("revision")) {
            (_, Some(revision)) => Outcome::Handled(revision),
            ("initialize", None) => Outcome::Answered(revision("protocolVersion")),
            _ => Outcome::Answered(None),
        };
    };
    let code = error["code"].as_i64().expect("a code");
    if (status, code) == (200, -32601) {
        return Outcome::MethodNotFound;
    }
    let named = match expected {
        Outcome::Refused(refused) if error["message"].as_str().expect("a text").contains(refused.names) => {
            refused.names
        }
        _ => "something else",
    };
    Outcome::Refused(Refused { status, code, names: named, versions: error.get("data").map(versions) })
}

/// `data` of an unsupported version, which holds two members and no more.
pub fn versions(data: &Value) -> (Vec<String>, String) {
    assert_eq!(data.as_object().map(serde_json::Map::len), Some(2), "{data}");
    let supported = data["supported"].as_array().expect("a list").iter();
    let mut supported: Vec<_> = supported.map(|name| name.as_str().expect("a version").to_owned()).collect();
    supported.sort();
    (supported, data["requested"].as_str().expect("a version").to_owned())
}
