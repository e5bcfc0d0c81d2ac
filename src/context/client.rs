//! What a client says of itself.

use std::fmt;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::protocol::input;

/// What a client says it is. Self-reported: for display and logs, never for decisions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ClientInfo {
    /// The name of the software.
    pub name: String,
    /// Its version.
    pub version: String,
    /// A name for people to read (from 2025-06-18 on).
    #[serde(default)]
    pub title: Option<String>,
}

/// What a client declared that it can do.
#[derive(Clone, Copy)]
pub struct ClientCapabilities<'a>(pub(super) Option<&'a [u8]>);

impl ClientCapabilities<'_> {
    /// Whether the member at this path was declared, whatever it holds, `null` and `false` apart.
    ///
    /// ```
    /// # fn f(cx: mcp_transport::RequestContext) {
    /// let can_sample = cx.client_capabilities().declares(&["sampling"]);
    /// let has_tasks = cx.client_capabilities().declares(&["extensions", "io.modelcontextprotocol/tasks"]);
    /// # }
    /// ```
    pub fn declares(&self, path: &[&str]) -> bool {
        self.0.is_some_and(|capabilities| input::declares(capabilities, path))
    }

    /// Reads them as a type of the application's own; `None` where there are none or they are something else.
    pub fn parse<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(self.0?).ok()
    }
}

impl fmt::Debug for ClientCapabilities<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientCapabilities").field(&self.parse::<Value>()).finish()
    }
}
