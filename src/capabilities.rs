//! What a server is and what it can do, as the handler says it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::protocol::revision::Era;

/// What a server is: its name and version. Clients show it to people.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    name: Cow<'static, str>,
    version: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Cow<'static, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    website_url: Option<Cow<'static, str>>,
}

impl ServerInfo {
    /// Names the software and its version.
    ///
    /// ```
    /// use mcp_transport::ServerInfo;
    ///
    /// let info = ServerInfo::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    /// ```
    pub fn new(name: impl Into<Cow<'static, str>>, version: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), version: version.into(), title: None, description: None, website_url: None }
    }

    /// A name for people to read (from 2025-06-18 on; older clients ignore it).
    #[must_use]
    pub fn title(mut self, title: impl Into<Cow<'static, str>>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What it is for, in a sentence (from 2025-11-25 on; older clients ignore it).
    #[must_use]
    pub fn description(mut self, description: impl Into<Cow<'static, str>>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Where people read more (from 2025-11-25 on; older clients ignore it).
    #[must_use]
    pub fn website_url(mut self, url: impl Into<Cow<'static, str>>) -> Self {
        self.website_url = Some(url.into());
        self
    }
}

/// What a server can do, as `initialize` and `server/discover` tell clients. Nothing is declared unless said.
///
/// `listChanged` and `subscribe` are told only to clients that a change can reach: those of 2026-07-28, and older ones
/// with a session.
///
/// ```
/// use mcp_transport::Capabilities;
///
/// let capabilities = Capabilities::new().tools().logging();
/// ```
#[derive(Clone, Debug, Default)]
pub struct Capabilities {
    core: BTreeSet<&'static str>,
    /// The lists whose changes are published.
    changes: BTreeSet<&'static str>,
    subscribes: bool,
    experimental: Map<String, Value>,
    extensions: Map<String, Value>,
    legacy_extensions: Map<String, Value>,
}

impl Capabilities {
    /// Declares nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Declares tools: the handler answers `tools/list` and `tools/call`.
    #[must_use]
    pub fn tools(self) -> Self {
        self.with("tools")
    }

    /// Declares prompts: the handler answers `prompts/list` and `prompts/get`.
    #[must_use]
    pub fn prompts(self) -> Self {
        self.with("prompts")
    }

    /// Declares resources: the handler answers `resources/list`, `resources/templates/list` and `resources/read`.
    #[must_use]
    pub fn resources(self) -> Self {
        self.with("resources")
    }

    /// Declares tools whose list changes: [`Changes::tools_list_changed`](crate::Changes::tools_list_changed).
    #[must_use]
    pub fn tools_list_changed(self) -> Self {
        self.tools().with_changes("tools")
    }

    /// Declares prompts whose list changes: [`Changes::prompts_list_changed`](crate::Changes::prompts_list_changed).
    #[must_use]
    pub fn prompts_list_changed(self) -> Self {
        self.prompts().with_changes("prompts")
    }

    /// Declares resources whose list changes:
    /// [`Changes::resources_list_changed`](crate::Changes::resources_list_changed).
    #[must_use]
    pub fn resources_list_changed(self) -> Self {
        self.resources().with_changes("resources")
    }

    /// Declares resources that clients can subscribe to:
    /// [`Changes::resource_updated`](crate::Changes::resource_updated).
    #[must_use]
    pub fn resources_subscribe(mut self) -> Self {
        self = self.resources();
        self.subscribes = true;
        self
    }

    /// Declares completions (from 2025-03-26 on): the handler answers `completion/complete`.
    #[must_use]
    pub fn completions(self) -> Self {
        self.with("completions")
    }

    /// Declares logging: the handler sends log messages. Without it [`RequestContext::log`](crate::RequestContext::log)
    /// sends nothing. `logging/setLevel` is answered by the transport.
    #[must_use]
    pub fn logging(self) -> Self {
        self.with("logging")
    }

    /// Declares an experimental capability of this name. The specification wants `settings` to be an object.
    #[must_use]
    pub fn experimental(mut self, name: impl Into<String>, settings: Value) -> Self {
        self.experimental.insert(name.into(), settings);
        self
    }

    /// Declares an extension (2026-07-28), such as `io.modelcontextprotocol/tasks`, to clients of the modern era. The
    /// specification wants `settings` to be an object, `{}` where there are none.
    #[must_use]
    pub fn extension(mut self, id: impl Into<String>, settings: Value) -> Self {
        self.extensions.insert(id.into(), settings);
        self
    }

    /// Declares an extension to clients of both eras: one that also works without per-request capabilities.
    #[must_use]
    pub fn extension_in_both_eras(mut self, id: impl Into<String>, settings: Value) -> Self {
        let id = id.into();
        self.legacy_extensions.insert(id.clone(), settings.clone());
        self.extension(id, settings)
    }

    fn with(mut self, name: &'static str) -> Self {
        self.core.insert(name);
        self
    }

    fn with_changes(mut self, name: &'static str) -> Self {
        self.changes.insert(name);
        self
    }

    pub(crate) fn declares(&self, name: &str) -> bool {
        self.core.contains(name)
    }

    /// Whether changes of this list are published.
    pub(crate) fn changes(&self, name: &str) -> bool {
        self.changes.contains(name)
    }

    /// Whether updates of resources are published.
    pub(crate) fn subscribes(&self) -> bool {
        self.subscribes
    }

    /// As a client of this era reads them. Changes are declared exactly where they can be delivered.
    pub(crate) fn to_json(&self, era: Era, delivery: Delivery) -> Value {
        let mut all = Map::new();
        for name in &self.core {
            let mut settings = Map::new();
            if delivery == Delivery::OnStreams {
                if self.changes(name) {
                    settings.insert("listChanged".to_owned(), Value::Bool(true));
                }
                if self.subscribes && *name == "resources" {
                    settings.insert("subscribe".to_owned(), Value::Bool(true));
                }
            }
            all.insert((*name).to_owned(), Value::Object(settings));
        }
        let extensions = match era {
            Era::Legacy => &self.legacy_extensions,
            Era::Modern => &self.extensions,
        };
        for (name, members) in [("experimental", &self.experimental), ("extensions", extensions)] {
            if !members.is_empty() {
                all.insert(name.to_owned(), Value::Object(members.clone()));
            }
        }
        Value::Object(all)
    }
}

/// Whether the client can be told of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// On a stream that it may open.
    OnStreams,
    /// Not at all: it has no session.
    Nowhere,
}
