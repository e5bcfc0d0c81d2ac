//! Which trace a request belongs to.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::protocol::envelope;
use crate::protocol::trace_context::{is_baggage, is_traceparent, is_tracestate};

/// The trace that a request belongs to, as its client says in `params._meta` (2026-07-28, Overview: `_meta`; clients of
/// earlier revisions do so too).
///
/// What is not of the form that W3C Trace Context and W3C Baggage prescribe is left out, and `tracestate` with a
/// `traceparent` that is none. It comes from the client: take it for what it is, and nothing in `baggage` for a right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceContext<'a> {
    traceparent: Option<Cow<'a, str>>,
    tracestate: Option<Cow<'a, str>>,
    baggage: Option<Cow<'a, str>>,
}

impl<'a> TraceContext<'a> {
    /// Returns the trace and the client's span in it, such as
    /// `00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01`.
    pub fn traceparent(&self) -> Option<&str> {
        self.traceparent.as_deref()
    }

    /// Returns what tracing systems pass on beside it, such as `congo=t61rcWkgMzE`.
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    /// Returns what the application at the other end passes on, such as `userId=alice`.
    pub fn baggage(&self) -> Option<&str> {
        self.baggage.as_deref()
    }

    /// Reads it from the text of `params`.
    pub(super) fn read(params: Option<&'a [u8]>) -> Self {
        let params: Option<Params<'a>> = params.and_then(|json| serde_json::from_slice(json).ok());
        let meta = params.and_then(|params| params.meta).unwrap_or_default();
        let traceparent = text(meta.traceparent, is_traceparent);
        let tracestate = text(meta.tracestate, is_tracestate).filter(|_| traceparent.is_some());
        Self { traceparent, tracestate, baggage: text(meta.baggage, is_baggage) }
    }
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Default, Deserialize)]
struct Meta<'a> {
    #[serde(borrow)]
    traceparent: Option<&'a RawValue>,
    #[serde(borrow)]
    tracestate: Option<&'a RawValue>,
    #[serde(borrow)]
    baggage: Option<&'a RawValue>,
}

/// A string of that form.
fn text<'a>(json: Option<&'a RawValue>, is_right: fn(&str) -> bool) -> Option<Cow<'a, str>> {
    envelope::text(json?.get().as_bytes()).filter(|text| is_right(text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    fn read(params: &serde_json::Value) -> [Option<String>; 3] {
        let params = params.to_string();
        let read = TraceContext::read(Some(params.as_bytes()));
        [read.traceparent(), read.tracestate(), read.baggage()].map(|text| text.map(str::to_owned))
    }

    #[test]
    fn what_is_no_trace_context_is_left_out() {
        let said = |text: &str| Some(text.to_owned());
        let whole = json!({ "_meta": { "traceparent": PARENT, "tracestate": "a=1", "baggage": "b=2" } });
        assert_eq!(read(&whole), [said(PARENT), said("a=1"), said("b=2")]);
        let alone = json!({ "_meta": { "tracestate": "a=1", "baggage": "b=2" } });
        assert_eq!(read(&alone), [None, None, said("b=2")]);
        let broken = json!({ "_meta": { "traceparent": "x", "tracestate": "a=1", "baggage": 7 } });
        assert_eq!(read(&broken), [None, None, None]);
        for other in [json!({}), json!({ "_meta": null }), json!({ "_meta": [] }), json!({ "_meta": {} })] {
            assert_eq!(read(&other), [None, None, None], "{other}");
        }
        assert_eq!(TraceContext::read(None), TraceContext::default());
        let twice = format!(r#"{{"_meta":{{"traceparent":"{PARENT}","traceparent":"{PARENT}"}}}}"#);
        assert_eq!(TraceContext::read(Some(twice.as_bytes())), TraceContext::default());
        let escaped = format!(r#"{{"_meta":{{"traceparent":"\u0030{}"}}}}"#, &PARENT[1..]);
        assert_eq!(TraceContext::read(Some(escaped.as_bytes())).traceparent(), Some(PARENT));
    }
}
