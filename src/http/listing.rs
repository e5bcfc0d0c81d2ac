//! A handler's list of tools, read for its `x-mcp-header` annotations.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::parameter_source::judge;
use crate::exchange;
use crate::exchange::call::{Call, Caller, Form};
use crate::protocol::envelope::{self, Body};
use crate::protocol::names::{meta, method};
use crate::protocol::parameter_headers::ParameterHeaders;
use crate::protocol::refusal::Refusal;
use crate::protocol::scan::Caps;

/// The annotated tools of one caller.
#[derive(Clone, Debug, Default)]
pub(super) struct Listing {
    /// Tools without annotations are left out: most are.
    annotated: HashMap<Box<str>, Arc<ParameterHeaders>>,
    time_to_live: Option<Duration>,
}

impl Listing {
    pub(super) fn of(page: Page<'_>) -> Self {
        Self::default().with(page)
    }

    /// The same list with what a page says of its tools.
    pub(super) fn with(&self, page: Page<'_>) -> Self {
        let mut listing = self.clone();
        listing.add(page);
        listing
    }

    fn add(&mut self, page: Page<'_>) {
        // Pages may differ: the list is fresh while all of them are.
        self.time_to_live = self.time_to_live.into_iter().chain(page.time_to_live()).min();
        for tool in page.tools {
            let headers = tool.input_schema.map(ParameterHeaders::of_schema).unwrap_or_default();
            if headers.is_empty() && headers.faults().is_empty() {
                self.annotated.remove(&*tool.name);
            } else {
                self.annotated.insert(tool.name.into(), Arc::new(headers));
            }
        }
    }

    /// For how long it says it may be kept.
    pub(super) fn time_to_live(&self) -> Option<Duration> {
        self.time_to_live
    }

    /// The tools that have annotations.
    pub(super) fn annotated(&self) -> impl Iterator<Item = (&str, &ParameterHeaders)> {
        self.annotated.iter().map(|(tool, headers)| (&**tool, &**headers))
    }

    /// Compares a call of a tool with the tool's annotations.
    pub(super) fn judge(&self, tool: &str, call: &Call) -> Result<(), Refusal> {
        self.annotated.get(tool).map_or(Ok(()), |headers| judge(headers, call))
    }
}

/// What a page of `tools/list` says that matters here.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<Tool<'a>>,
    next_cursor: Option<String>,
    /// Of whatever type: a bad one does not make the list a bad one.
    #[serde(borrow)]
    ttl_ms: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    input_schema: Option<&'a RawValue>,
}

impl<'a> Page<'a> {
    pub(super) fn read(result: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(result).ok()
    }

    /// For how long it says it may be kept. 0 is as good as silence: it is what a client reads where nothing is said.
    fn time_to_live(&self) -> Option<Duration> {
        let milliseconds = serde_json::from_str(self.ttl_ms?.get()).ok().filter(|ttl| *ttl > 0)?;
        Some(Duration::from_millis(milliseconds))
    }

    pub(super) fn tools(&self) -> usize {
        self.tools.len()
    }

    /// Whether no page follows.
    pub(super) fn is_whole(&self) -> bool {
        self.next_cursor.is_none()
    }
}

/// Whether a `tools/list` asked for a page other than the first.
pub(super) fn has_cursor(call: &Call) -> bool {
    call.message.cursor().is_some_and(|cursor| cursor != b"null")
}

/// Asks the handler for all its tools, in the caller's name. `None` where it fails, goes in circles or lists too much.
pub(super) async fn ask(call: &Arc<Call>) -> Option<Listing> {
    let limits = &call.server.limits;
    let mut listing = Listing::default();
    let mut seen = Vec::new();
    let mut tools = 0_usize;
    for _ in 0..limits.listing_pages {
        let reply = exchange::own_request(&page_call(call, seen.last())?).await?;
        let page = Page::read(reply.json())?;
        tools = tools.saturating_add(page.tools.len());
        if tools > limits.listing_tools {
            return None;
        }
        let next = page.next_cursor.clone();
        listing.add(page);
        match next {
            None => return Some(listing),
            Some(cursor) if seen.contains(&cursor) => return None,
            Some(cursor) => seen.push(cursor),
        }
    }
    None
}

#[derive(Serialize)]
struct PageParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a String>,
    #[serde(rename = "_meta")]
    meta: Value,
}

/// A `tools/list` of our own, with all that the caller's request says of the caller.
fn page_call(call: &Call, cursor: Option<&String>) -> Option<Arc<Call>> {
    let capabilities: Option<&RawValue> =
        call.message.client_capabilities().and_then(|json| serde_json::from_slice(json).ok());
    let client_info: Option<&RawValue> = call.message.client_info().and_then(|json| serde_json::from_slice(json).ok());
    let params = PageParams {
        cursor,
        meta: json!({
            (meta::PROTOCOL_VERSION): call.revision.as_str(),
            (meta::CLIENT_CAPABILITIES): capabilities,
            (meta::CLIENT_INFO): client_info,
        }),
    };
    let request = json!({ "jsonrpc": "2.0", "id": 0, "method": method::TOOLS_LIST, "params": params });
    match envelope::read(Bytes::from(request.to_string()), Caps::default()) {
        Ok(Body::Message(message)) => {
            let caller = Caller {
                revision: call.revision,
                via: call.via.clone(),
                principal: call.principal.clone(),
                account: call.account.clone(),
                session: None,
                form: Form::JsonOnly,
            };
            Some(Arc::new(Call::new(&call.server, message, caller)))
        }
        _ => None,
    }
}
