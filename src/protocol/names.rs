//! The words of the protocol: methods, headers, `_meta` keys and error codes, each spelled once.

/// Methods the transport answers or must recognise.
pub(crate) mod method {
    pub(crate) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
    pub(crate) const CANCELLED: &str = "notifications/cancelled";
    pub(crate) const DISCOVER: &str = "server/discover";
    pub(crate) const ELICITATION_CREATE: &str = "elicitation/create";
    pub(crate) const INITIALIZE: &str = "initialize";
    pub(crate) const INITIALIZED: &str = "notifications/initialized";
    pub(crate) const LISTEN: &str = "subscriptions/listen";
    pub(crate) const MESSAGE: &str = "notifications/message";
    pub(crate) const PING: &str = "ping";
    pub(crate) const PROGRESS: &str = "notifications/progress";
    pub(crate) const PROMPTS_GET: &str = "prompts/get";
    pub(crate) const PROMPTS_LIST: &str = "prompts/list";
    pub(crate) const PROMPTS_LIST_CHANGED: &str = "notifications/prompts/list_changed";
    pub(crate) const RESOURCES_LIST: &str = "resources/list";
    pub(crate) const RESOURCES_LIST_CHANGED: &str = "notifications/resources/list_changed";
    pub(crate) const RESOURCES_READ: &str = "resources/read";
    pub(crate) const RESOURCES_SUBSCRIBE: &str = "resources/subscribe";
    pub(crate) const RESOURCES_TEMPLATES_LIST: &str = "resources/templates/list";
    pub(crate) const RESOURCES_UPDATED: &str = "notifications/resources/updated";
    pub(crate) const RESOURCES_UNSUBSCRIBE: &str = "resources/unsubscribe";
    pub(crate) const ROOTS_LIST: &str = "roots/list";
    pub(crate) const SAMPLING_CREATE_MESSAGE: &str = "sampling/createMessage";
    pub(crate) const SET_LEVEL: &str = "logging/setLevel";
    pub(crate) const TOOLS_CALL: &str = "tools/call";
    pub(crate) const TOOLS_LIST: &str = "tools/list";
    pub(crate) const TOOLS_LIST_CHANGED: &str = "notifications/tools/list_changed";

    /// Whether results of the method say for how long they may be kept (2026-07-28, Caching).
    pub(crate) fn has_cache_hints(method: &str) -> bool {
        const ALL: [&str; 6] =
            [DISCOVER, TOOLS_LIST, PROMPTS_LIST, RESOURCES_LIST, RESOURCES_READ, RESOURCES_TEMPLATES_LIST];
        ALL.contains(&method)
    }

    /// The same text, where it is a method of the specification or of its tasks extension that a client may send, and
    /// else `other`.
    pub(crate) fn label(text: &str) -> &'static str {
        const OTHERS: [&str; 8] = [
            "completion/complete",
            "notifications/roots/list_changed",
            "notifications/tasks/status",
            "tasks/cancel",
            "tasks/get",
            "tasks/list",
            "tasks/result",
            "tasks/update",
        ];
        known(text.as_bytes()).or_else(|| OTHERS.into_iter().find(|known| *known == text)).unwrap_or("other")
    }

    /// The same text without an owner, where it is one of these.
    pub(crate) fn known(text: &[u8]) -> Option<&'static str> {
        const ALL: [&str; 17] = [
            CANCELLED,
            DISCOVER,
            INITIALIZE,
            INITIALIZED,
            LISTEN,
            PING,
            PROGRESS,
            PROMPTS_GET,
            PROMPTS_LIST,
            RESOURCES_LIST,
            RESOURCES_READ,
            RESOURCES_SUBSCRIBE,
            RESOURCES_TEMPLATES_LIST,
            RESOURCES_UNSUBSCRIBE,
            SET_LEVEL,
            TOOLS_CALL,
            TOOLS_LIST,
        ];
        ALL.into_iter().find(|known| known.as_bytes() == text)
    }
}

/// Header names, in the lower case that `http::HeaderName` keeps.
pub(crate) mod header {
    use http::HeaderName;

    pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
    pub(crate) const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
    pub(crate) const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
    pub(crate) const PARAM_PREFIX: &str = "mcp-param-";
    pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
    pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
}

/// Keys of `params._meta` and of a result's `_meta`.
pub(crate) mod meta {
    pub(crate) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    pub(crate) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    pub(crate) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    pub(crate) const PROGRESS_TOKEN: &str = "progressToken";
    pub(crate) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
    pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
}

/// JSON-RPC error codes.
pub(crate) mod code {
    pub(crate) const PARSE_ERROR: i32 = -32700;
    pub(crate) const INVALID_REQUEST: i32 = -32600;
    pub(crate) const METHOD_NOT_FOUND: i32 = -32601;
    pub(crate) const INVALID_PARAMS: i32 = -32602;
    pub(crate) const INTERNAL_ERROR: i32 = -32603;
    /// Up to 2025-11-25; 2026-07-28 says `INVALID_PARAMS` instead.
    pub(crate) const RESOURCE_NOT_FOUND: i32 = -32002;
    /// 2025-11-25 only.
    pub(crate) const URL_ELICITATION_REQUIRED: i32 = -32042;
    pub(crate) const HEADER_MISMATCH: i32 = -32020;
    pub(crate) const MISSING_CLIENT_CAPABILITY: i32 = -32021;
    pub(crate) const UNSUPPORTED_VERSION: i32 = -32022;
}
