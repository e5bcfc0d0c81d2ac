//! The client: what a careful client of both eras does, and nothing more forgiving.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use mcp_transport::Era;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::http1::{self, Answer, Connector};
use crate::judge::{Judgement, Response, judge};
use crate::sse::Events;

const NEWEST_LEGACY: &str = "2025-11-25";
const LEGACY: [&str; 4] = [NEWEST_LEGACY, "2025-06-18", "2025-03-26", "2024-11-05"];
const MODERN: &str = "2026-07-28";

/// One overall deadline of a handshake or of a call, whatever keep-alives arrive.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Why there is no result.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// No connection could be opened.
    Unreachable,
    /// The connection ended before the answer, and so it did when the request was sent again.
    Lost,
    TimedOut,
    /// 401 or 403.
    Forbidden(u16),
    /// 5xx.
    Unavailable(u16),
    NoCommonVersion(Vec<String>),
    /// A JSON-RPC error, and the status it came with.
    Error(u16, Value),
    /// An answer that is no answer.
    Nonsense(u16),
}

/// What is known of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Modern {
        version: String,
    },
    /// And what `initialize` will ask for.
    Legacy {
        version: String,
    },
}

impl Verdict {
    pub fn era(&self) -> Era {
        match self {
            Self::Modern { .. } => Era::Modern,
            Self::Legacy { .. } => Era::Legacy,
        }
    }
}

/// A session up to 2025-11-25.
#[derive(Clone, Debug)]
pub struct Session {
    pub id: Option<String>,
    pub version: String,
}

/// How a message is dressed for its era.
#[derive(Clone, Copy)]
enum Dress<'a> {
    Modern(&'a str),
    Initialize,
    Session(&'a Session),
}

/// Speaks to one server. What it has sent and heard is there for the tests to read.
pub struct DualClient {
    connector: Connector,
    /// The versions from 2026-07-28 on that it claims to know, best first.
    modern: Vec<String>,
    pub origin: Option<&'static str>,
    pub verdict: Option<Verdict>,
    pub session: Option<Session>,
    next_id: u64,
    /// Id and method of every request, in the order they were sent; notifications under null.
    pub sent: Vec<(Value, String)>,
    /// What came before a response, and when.
    pub heard: Vec<(Instant, Value)>,
}

impl fmt::Debug for DualClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DualClient").field("verdict", &self.verdict).field("sent", &self.sent).finish_non_exhaustive()
    }
}

impl DualClient {
    pub fn new(connector: Connector) -> Self {
        Self::knowing(connector, [MODERN])
    }

    /// One that knows other versions from 2026-07-28 on.
    pub fn knowing<const N: usize>(connector: Connector, modern: [&str; N]) -> Self {
        Self {
            connector,
            modern: modern.map(str::to_owned).to_vec(),
            origin: None,
            verdict: None,
            session: None,
            next_id: 1,
            sent: Vec::new(),
            heard: Vec::new(),
        }
    }

    /// The methods it has sent, in order.
    pub fn methods(&self) -> Vec<&str> {
        self.sent.iter().map(|(_, method)| &**method).collect()
    }

    /// Finds out what the server speaks, unless that is known, and shakes hands where that era wants it.
    pub async fn connect(&mut self) -> Result<Era, Failure> {
        timeout(DEADLINE, self.shake_hands()).await.unwrap_or(Err(Failure::TimedOut))
    }

    /// Calls the tool and returns its result.
    pub async fn call(&mut self, arguments: &Value) -> Result<Value, Failure> {
        let called = timeout(DEADLINE, self.call_at_leisure(arguments)).await;
        match called {
            Ok(outcome) => outcome,
            Err(_) => {
                self.give_up().await;
                Err(Failure::TimedOut)
            }
        }
    }

    /// Says goodbye, where there is somebody to say it to.
    pub async fn close(&mut self) {
        let Some(Session { id: Some(id), version }) = self.session.take() else { return };
        let head = format!(
            "DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: {id}\r\nMCP-Protocol-Version: {version}\r\n\r\n"
        );
        let answer = exchange(&self.connector, head.as_bytes()).await.expect("an answer to DELETE");
        assert_eq!(answer.status, 204);
    }

    async fn shake_hands(&mut self) -> Result<Era, Failure> {
        let verdict = match &self.verdict {
            Some(verdict) => verdict.clone(),
            None => self.discover().await?,
        };
        self.verdict = Some(verdict.clone());
        if let Verdict::Legacy { version } = &verdict {
            self.initialize(version).await?;
        }
        Ok(verdict.era())
    }

    async fn discover(&mut self) -> Result<Verdict, Failure> {
        let mut version = self.modern[0].clone();
        let mut untried = self.modern[1..].to_vec();
        loop {
            let response = self.request(Dress::Modern(&version), "server/discover", &json!({})).await?;
            match judge(&response) {
                Judgement::Undiscovered => return Ok(Verdict::Modern { version }),
                Judgement::Legacy => return Ok(Verdict::Legacy { version: NEWEST_LEGACY.to_owned() }),
                Judgement::Nothing => return Err(failure(response)),
                Judgement::Discovered(supported) => {
                    let common = self.modern.iter().find(|known| supported.contains(known));
                    return match common {
                        Some(version) => Ok(Verdict::Modern { version: version.clone() }),
                        None => Err(Failure::NoCommonVersion(supported)),
                    };
                }
                Judgement::Otherwise(supported) => {
                    // Each is tried once: a server that contradicts itself is no reason to go round for ever.
                    if let Some(at) = untried.iter().position(|known| supported.contains(known)) {
                        version = untried.remove(at);
                    } else if let Some(version) = LEGACY.iter().find(|known| supported.iter().any(|one| one == *known))
                    {
                        return Ok(Verdict::Legacy { version: (*version).to_owned() });
                    } else {
                        return Err(Failure::NoCommonVersion(supported));
                    }
                }
            }
        }
    }

    async fn initialize(&mut self, version: &str) -> Result<(), Failure> {
        let params = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "dual", "version": "1"},
        });
        let response = self.request(Dress::Initialize, "initialize", &params).await?;
        let id = response.session.clone();
        let version = result(response)?["protocolVersion"].as_str().unwrap_or_default().to_owned();
        if !LEGACY.contains(&&*version) {
            return Err(Failure::NoCommonVersion(vec![version]));
        }
        let session = Session { id, version };
        self.session = Some(session.clone());
        self.notify(&session, "notifications/initialized", &json!({})).await
    }

    /// With a version that the server names, where it does not know the one that was found: once.
    async fn call_at_leisure(&mut self, arguments: &Value) -> Result<Value, Failure> {
        let params = json!({"name": "work", "arguments": arguments});
        match (self.verdict.clone(), self.session.clone()) {
            (Some(Verdict::Modern { version }), _) => {
                let response = self.request(Dress::Modern(&version), "tools/call", &params).await?;
                let other = response.supported().and_then(|supported| {
                    self.modern.iter().find(|known| **known != version && supported.contains(known)).cloned()
                });
                let Some(version) = other else { return result(response) };
                self.verdict = Some(Verdict::Modern { version: version.clone() });
                result(self.request(Dress::Modern(&version), "tools/call", &params).await?)
            }
            (Some(Verdict::Legacy { .. }), Some(session)) => {
                result(self.request(Dress::Session(&session), "tools/call", &params).await?)
            }
            _ => panic!("not connected"),
        }
    }

    /// Sends a request, and once more, with a new id, if its answer is lost.
    async fn request(&mut self, dress: Dress<'_>, method: &str, params: &Value) -> Result<Response, Failure> {
        match self.attempt(dress, method, params).await {
            Err(Failure::Lost) => self.attempt(dress, method, params).await,
            outcome => outcome,
        }
    }

    async fn attempt(&mut self, dress: Dress<'_>, method: &str, params: &Value) -> Result<Response, Failure> {
        let id = json!(self.next_id);
        self.next_id += 1;
        self.sent.push((id.clone(), method.to_owned()));
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let mut answer = exchange(&self.connector, &post(message, dress, self.origin)).await?;
        let status = answer.status;
        let session = answer.header("mcp-session-id").map(str::to_owned);
        let message = if status == 200 && answer.header("content-type") == Some("text/event-stream") {
            self.read_until_response(&id, &mut answer, dress).await?
        } else {
            let text = answer.text().await.map_err(|_| Failure::Lost)?;
            serde_json::from_str(&text).unwrap_or_default()
        };
        let answered = &message["id"];
        assert!(answered.is_null() || *answered == id, "{method} under {id} is answered by {message}");
        Ok(Response { status, message, session })
    }

    /// Reads a stream live to its response.
    async fn read_until_response(
        &mut self,
        id: &Value,
        answer: &mut Answer,
        dress: Dress<'_>,
    ) -> Result<Value, Failure> {
        let mut events = Events::default();
        loop {
            // A stream that ends without its response has lost it, however properly it ends.
            let piece = answer.piece().await.ok().flatten().ok_or(Failure::Lost)?;
            events.push(&piece);
            while let Some(data) = events.next() {
                let message: Value = serde_json::from_str(&data).expect("a message in each event");
                match (message.get("method"), message.get("id")) {
                    (None, Some(answered)) if answered == id => return Ok(message),
                    (Some(method), Some(asked)) => self.reply(dress, method, asked).await?,
                    (Some(_), None) => self.heard.push((Instant::now(), message)),
                    _ => panic!("a stream for {id} carries {message}"),
                }
            }
        }
    }

    /// Answers what the server asks, while the stream it came on stays open.
    async fn reply(&mut self, dress: Dress<'_>, method: &Value, id: &Value) -> Result<(), Failure> {
        let Dress::Session(session) = dress else { panic!("a request from a server without a session") };
        let message = match method.as_str() {
            Some("ping") => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
            _ => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}}),
        };
        let answer = exchange(&self.connector, &post(message, Dress::Session(session), self.origin)).await?;
        if answer.status == 202 { Ok(()) } else { Err(Failure::Nonsense(answer.status)) }
    }

    /// A notification has no response, but its POST has an answer; without that it is sent again, like a request.
    fn notify<'a>(
        &'a mut self,
        session: &'a Session,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
            let post = post(message, Dress::Session(session), self.origin);
            self.sent.push((Value::Null, method.to_owned()));
            let answer = match exchange(&self.connector, &post).await {
                Err(Failure::Lost) => {
                    self.sent.push((Value::Null, method.to_owned()));
                    exchange(&self.connector, &post).await?
                }
                outcome => outcome?,
            };
            if answer.status == 202 { Ok(()) } else { Err(of_status(answer.status)) }
        })
    }

    /// Past its deadline a call is cancelled: in a session by a message, else by the connection that is closed already.
    async fn give_up(&mut self) {
        let Some(session) = self.session.clone() else { return };
        let (id, _) = self.sent.last().cloned().expect("a call");
        let params = json!({"requestId": id});
        let _ = timeout(DEADLINE, self.notify(&session, "notifications/cancelled", &params)).await;
    }
}

/// Opens a connection for a request and reads the head of its answer.
async fn exchange(connector: &Connector, request: &[u8]) -> Result<Answer, Failure> {
    let stream = connector().await.map_err(|_| Failure::Unreachable)?;
    http1::send(stream, request).await.map_err(|_| Failure::Lost)
}

/// The bytes of a POST.
fn post(mut message: Value, dress: Dress<'_>, origin: Option<&str>) -> Vec<u8> {
    let mut headers = String::new();
    let mut header = |name: &str, value: &str| headers += &format!("{name}: {value}\r\n");
    if let Some(origin) = origin {
        header("Origin", origin);
    }
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    if message.get("id").is_some() && method == "tools/call" {
        message["params"]["_meta"]["progressToken"] = message["id"].clone();
    }
    match dress {
        Dress::Initialize => {}
        Dress::Modern(version) => {
            let meta = &mut message["params"]["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(version);
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "dual", "version": "1"});
            header("MCP-Protocol-Version", version);
            header("Mcp-Method", &method);
            if let Some(name) = message["params"]["name"].as_str() {
                header("Mcp-Name", name);
            }
        }
        Dress::Session(session) => {
            header("MCP-Protocol-Version", &session.version);
            if let Some(id) = &session.id {
                header("Mcp-Session-Id", id);
            }
        }
    }
    let body = message.to_string();
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

/// The result that a response carries.
fn result(mut response: Response) -> Result<Value, Failure> {
    match (response.status, response.message.get_mut("result")) {
        (200, Some(result)) => Ok(result.take()),
        _ => Err(failure(response)),
    }
}

/// What an answer that is no result means.
fn failure(mut response: Response) -> Failure {
    match (of_status(response.status), response.message.get_mut("error")) {
        (Failure::Nonsense(status), Some(error)) => Failure::Error(status, error.take()),
        (failure, _) => failure,
    }
}

fn of_status(status: u16) -> Failure {
    match status {
        401 | 403 => Failure::Forbidden(status),
        500.. => Failure::Unavailable(status),
        _ => Failure::Nonsense(status),
    }
}
