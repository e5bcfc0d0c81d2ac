//! What `initialize` says (up to 2025-11-25).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::legacy;
use super::refusal::Refusal;
use super::revision::{Revision, Revisions};

/// What `initialize` must say.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeParams {
    pub(crate) protocol_version: String,
    pub(crate) capabilities: Box<RawValue>,
    pub(crate) client_info: Option<Box<RawValue>>,
}

impl InitializeParams {
    pub(crate) fn read(params: Option<&[u8]>) -> Option<Self> {
        let params: Self = serde_json::from_slice(params?).ok()?;
        params.capabilities.get().starts_with('{').then_some(params)
    }

    /// The revision `initialize` is answered in. Without readable params it is an error, in the newest legacy one.
    pub(crate) fn revision(params: Option<&Self>, served: Revisions) -> Result<Revision, Refusal> {
        legacy::negotiate(params.map_or("", |params| params.protocol_version.as_str()), served)
    }
}
