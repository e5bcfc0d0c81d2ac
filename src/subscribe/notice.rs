//! A change as a message, written once for all who hear of it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use serde::Serialize;

use crate::protocol::names::{meta, method};
use crate::protocol::sse::Frame;

/// What a listener hears: a change, ready to be told.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    Tools,
    Prompts,
    Resources,
    Updated(Arc<Updated>),
    /// No change but a message of the transport's own to this client, as an event.
    Message(Bytes),
}

/// A resource that was updated, and the event that says so.
#[derive(Debug)]
pub(crate) struct Updated {
    pub(crate) uri: Box<str>,
    event: Bytes,
}

impl Updated {
    pub(crate) fn new(uri: &str) -> Self {
        #[derive(Serialize)]
        struct Params<'a> {
            uri: &'a str,
        }
        let frame = Frame::notification(method::RESOURCES_UPDATED, Some(&Params { uri }));
        Self { uri: uri.into(), event: frame.map(|frame| frame.event()).unwrap_or_default() }
    }
}

/// What closes a notification without params, and one with; an event ends with two line feeds.
const END: &[u8] = b"}\n\n";
const END_WITH_PARAMS: &[u8] = b"}}\n\n";

impl Notice {
    /// The event as a client of the handshake era reads it.
    pub(crate) fn legacy(&self) -> Bytes {
        match self {
            Self::Tools => Bytes::from_static(TOOLS),
            Self::Prompts => Bytes::from_static(PROMPTS),
            Self::Resources => Bytes::from_static(RESOURCES),
            Self::Updated(updated) => updated.event.clone(),
            Self::Message(event) => event.clone(),
        }
    }

    /// The same with the subscription it is for (2026-07-28). `id` is JSON.
    pub(crate) fn tagged(&self, id: &[u8]) -> Bytes {
        let event = self.legacy();
        let (head, open): (&[u8], &[u8]) = match self {
            Self::Updated(_) => (event.strip_suffix(END_WITH_PARAMS).unwrap_or_default(), b",\"_meta\":{\""),
            _ => (event.strip_suffix(END).unwrap_or_default(), b",\"params\":{\"_meta\":{\""),
        };
        let key = meta::SUBSCRIPTION_ID.as_bytes();
        let mut tagged = BytesMut::with_capacity(head.len() + open.len() + key.len() + id.len() + 8);
        for part in [head, open, key, b"\":", id, b"}", END_WITH_PARAMS] {
            tagged.extend_from_slice(part);
        }
        tagged.freeze()
    }
}

const TOOLS: &[u8] = b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
const PROMPTS: &[u8] =
    b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}\n\n";
const RESOURCES: &[u8] =
    b"event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/list_changed\"}\n\n";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn data(event: &[u8]) -> Value {
        let text = std::str::from_utf8(event).unwrap();
        let data = text.strip_prefix("event: message\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
        assert!(!data.contains('\n'));
        serde_json::from_str(data).unwrap()
    }

    #[test]
    fn every_notice_reads_right_in_both_eras() {
        let updated = Notice::Updated(Arc::new(Updated::new("file:///a \"b\"\n")));
        for (notice, method) in [
            (Notice::Tools, "notifications/tools/list_changed"),
            (Notice::Prompts, "notifications/prompts/list_changed"),
            (Notice::Resources, "notifications/resources/list_changed"),
        ] {
            assert_eq!(data(&notice.legacy()), json!({"jsonrpc": "2.0", "method": method}));
            assert_eq!(
                data(&notice.tagged(b"\"x\"")),
                json!({"jsonrpc": "2.0", "method": method, "params": {"_meta": {meta::SUBSCRIPTION_ID: "x"}}})
            );
        }
        let method = "notifications/resources/updated";
        let uri = "file:///a \"b\"\n";
        assert_eq!(data(&updated.legacy()), json!({"jsonrpc": "2.0", "method": method, "params": {"uri": uri}}));
        assert_eq!(
            data(&updated.tagged(b"7")),
            json!({"jsonrpc": "2.0", "method": method, "params": {"uri": uri, "_meta": {meta::SUBSCRIPTION_ID: 7}}})
        );
    }
}
