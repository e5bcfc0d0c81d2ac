//! A client of one revision that has everything it reads checked, and answers whatever it is asked.

use std::io::{BufRead, BufReader, Read};

use mcp_transport::{Era, Revision};
use serde_json::{Map, Value, json};
use ureq::http::{Request, Response};
use ureq::{Agent, Body};

use crate::schemas::{Kind, check};

pub struct Peer {
    agent: Agent,
    url: String,
    pub revision: Revision,
    session: Option<String>,
    /// What it has read, and how much of it no schema allows.
    pub checked: usize,
    pub faults: Vec<String>,
}

/// An open event stream.
pub struct Stream {
    lines: Box<dyn BufRead>,
    /// The id of the last event, where events have ids.
    last: Option<String>,
}

impl Peer {
    /// A client that has shaken hands, where its revision has that.
    pub fn connect(url: &str, revision: Revision) -> Self {
        let agent = Agent::config_builder().http_status_as_error(false).build().new_agent();
        let mut peer = Self { agent, url: url.to_owned(), revision, session: None, checked: 0, faults: Vec::new() };
        if peer.is_modern() {
            peer.call("server/discover", json!({}));
            return peer;
        }
        let client = json!({"name": "check-schema", "version": "1"});
        let hello = json!({"protocolVersion": revision.as_str(), "capabilities": capabilities(), "clientInfo": client});
        peer.call("initialize", hello);
        peer.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        peer.call("ping", json!({}));
        peer
    }

    pub fn is_modern(&self) -> bool {
        self.revision.era() == Era::Modern
    }

    /// Asks for all there is, and for each of it.
    pub fn walk(&mut self) {
        for tool in self.list("tools/list", "tools") {
            // A form of 2025-06-18 cannot ask for several choices. This tool does, whoever its client is.
            if tool["name"] == "test_elicitation_sep1330_enums" && self.revision == Revision::V2025_06_18 {
                continue;
            }
            let arguments = arguments(&tool["inputSchema"], 1);
            self.call("tools/call", json!({"name": tool["name"], "arguments": arguments}));
        }
        for prompt in self.list("prompts/list", "prompts") {
            let names = prompt["arguments"].as_array().cloned().unwrap_or_default();
            let names = names.iter().filter_map(|argument| argument["name"].as_str());
            let arguments: Map<_, _> = names.map(|name| (name.to_owned(), json!("a"))).collect();
            self.call("prompts/get", json!({"name": prompt["name"], "arguments": arguments}));
        }
        for resource in self.list("resources/list", "resources") {
            self.call("resources/read", json!({"uri": resource["uri"]}));
        }
        self.list("resources/templates/list", "resourceTemplates");
        for uri in ["x:nothing", "greeting:///world"] {
            self.call("resources/read", json!({ "uri": uri }));
        }
        let completion = json!({"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}});
        self.call("completion/complete", completion);
        self.call("tools/call", json!({"name": "nothing"}));
        self.call("x/unknown", json!({}));
    }

    fn list(&mut self, method: &str, member: &str) -> Vec<Value> {
        self.call(method, json!({}))[member].as_array().cloned().unwrap_or_default()
    }

    /// Asks, goes on until there is an answer, and returns the result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let mut params = params;
        for _ in 0..10 {
            let response = self.exchange(method, params.clone());
            self.check_response(method, &response);
            let result = &response["result"];
            if result["resultType"] != "input_required" {
                return result.clone();
            }
            let asked = result["inputRequests"].as_object().cloned().unwrap_or_default();
            let responses: Map<String, Value> = asked.iter().map(|(key, asked)| (key.clone(), answer(asked))).collect();
            asked.values().for_each(|asked| self.check(Kind::Request, asked["method"].as_str(), asked));
            params["inputResponses"] = responses.into();
            params["requestState"] = result["requestState"].clone();
        }
        self.faults.push(format!("{} {method} asks without end: {params}", self.revision));
        Value::Null
    }

    /// Opens the stream on which changes are told.
    pub fn listen(&mut self) -> Stream {
        if self.is_modern() {
            let filter = json!({"toolsListChanged": true, "resourceSubscriptions": []});
            let message = self.message("subscriptions/listen", json!({ "notifications": filter }));
            let mut stream = self.post(message);
            self.hear(&mut stream);
            return stream;
        }
        self.get(None)
    }

    /// The session's stream; behind an event, the one it was on.
    fn get(&self, last: Option<&str>) -> Stream {
        let mut request = Request::get(&self.url).header("accept", "text/event-stream").header("authorization", ADA);
        request = request.header("mcp-protocol-version", self.revision.as_str());
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        Stream::of(self.agent.run(request.body(()).expect("a request")).expect("an answer"))
    }

    /// Waits for one notification.
    pub fn hear(&mut self, stream: &mut Stream) {
        let message = stream.next().expect("a message");
        self.check(Kind::Notification, message["method"].as_str(), &message);
    }

    /// Sends a request, and reads up to its response.
    fn exchange(&mut self, method: &str, params: Value) -> Value {
        let message = self.message(method, params);
        let mut stream = self.post(message);
        loop {
            let Some(message) = stream.next() else {
                let last = stream.last.unwrap_or_else(|| panic!("no answer to {method}"));
                stream = self.get(Some(&last));
                continue;
            };
            match (message.get("method").and_then(Value::as_str), message.get("id")) {
                (None, _) => return message,
                (method, None) => self.check(Kind::Notification, method, &message),
                (method, Some(id)) => {
                    self.check(Kind::Request, method, &message);
                    self.post(json!({"jsonrpc": "2.0", "id": id, "result": answer(&message)}));
                }
            }
        }
    }

    fn message(&self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({"progressToken": "p"});
        if self.is_modern() {
            params["_meta"] = json!({
                "progressToken": "p",
                "io.modelcontextprotocol/protocolVersion": self.revision.as_str(),
                "io.modelcontextprotocol/clientCapabilities": capabilities(),
                "io.modelcontextprotocol/logLevel": "debug",
            });
        }
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    }

    fn post(&mut self, message: Value) -> Stream {
        let method = message["method"].as_str().unwrap_or_default();
        let mut request = Request::post(&self.url)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("authorization", ADA);
        if method != "initialize" {
            request = request.header("mcp-protocol-version", self.revision.as_str());
        }
        if self.is_modern() {
            request = request.header("mcp-method", method);
            let params = &message["params"];
            if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
                request = request.header("mcp-name", name);
            }
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        let body = message.to_string().into_bytes();
        let response = self.agent.run(request.body(body).expect("a request")).expect("an answer");
        if let Some(session) = response.headers().get("mcp-session-id") {
            self.session = session.to_str().ok().map(str::to_owned);
        }
        Stream::of(response)
    }

    fn check_response(&mut self, method: &str, response: &Value) {
        let is_envelope = response["jsonrpc"] == "2.0" && response["id"] == 1;
        if !is_envelope {
            self.faults.push(format!("{} {method}: not a response: {response}", self.revision));
        }
        match response.get("result") {
            None => self.check(Kind::Error, Some(method), response),
            Some(result) if result["resultType"] == "input_required" => {
                self.check(Kind::Result, Some("input_required"), result);
            }
            Some(result) => self.check(Kind::Result, Some(method), result),
        }
    }

    fn check(&mut self, kind: Kind, method: Option<&str>, value: &Value) {
        let method = method.unwrap_or_default();
        self.checked += 1;
        if let Err(fault) = check(self.revision, kind, method, value) {
            self.faults.push(format!("{} {kind:?} of {method}: {fault}: {value}", self.revision));
        }
    }
}

/// What the example `axum` wants to see.
const ADA: &str = "Bearer ada";

fn capabilities() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
}

/// Which number the example `ask` wants to hear.
const CODE: u32 = 42;

/// Something that an object's schema allows, with a number for each number in it.
fn arguments(schema: &Value, number: u32) -> Value {
    let members = schema["properties"].as_object().cloned().unwrap_or_default();
    members.iter().map(|(name, schema)| (name.clone(), instance(schema, number))).collect::<Map<_, _>>().into()
}

fn instance(schema: &Value, number: u32) -> Value {
    let chosen = schema["enum"].get(0).or_else(|| schema["oneOf"].get(0)?.get("const"));
    match (chosen, schema["type"].as_str()) {
        (Some(chosen), _) => chosen.clone(),
        (None, Some("boolean")) => json!(true),
        (None, Some("integer" | "number")) => json!(number),
        (None, Some("object")) => arguments(schema, number),
        (None, Some("array")) => json!([]),
        (None, _) => json!("Ada"),
    }
}

/// Yes to everything.
fn answer(asked: &Value) -> Value {
    let params = &asked["params"];
    match asked["method"].as_str() {
        Some("elicitation/create") if params["mode"] == "url" => json!({"action": "accept"}),
        Some("elicitation/create") => {
            json!({"action": "accept", "content": arguments(&params["requestedSchema"], CODE)})
        }
        Some("roots/list") => json!({"roots": []}),
        _ => json!({"role": "assistant", "model": "none", "content": {"type": "text", "text": "hm"}}),
    }
}

impl Stream {
    fn of(response: Response<Body>) -> Self {
        Self { lines: Box::new(BufReader::new(response.into_body().into_reader())), last: None }
    }

    /// The next message of an event stream, or a body of JSON as the only one.
    fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        while self.lines.read_line(&mut line).expect("an answer") > 0 {
            // An event without data says only where a client that comes back may go on.
            if let Some(message) = line.strip_prefix("data: ").filter(|message| !message.trim().is_empty()) {
                return Some(serde_json::from_str(message).expect("JSON"));
            }
            if let Some(id) = line.strip_prefix("id: ") {
                self.last = Some(id.trim_end().to_owned());
            }
            if line.starts_with('{') {
                self.lines.read_to_string(&mut line).expect("an answer");
                return Some(serde_json::from_str(&line).expect("JSON"));
            }
            line.clear();
        }
        None
    }
}
