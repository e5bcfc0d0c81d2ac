//! A client that hides nothing: every header and byte of a request is the test's, every byte of an answer is kept.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HOST};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tower::ServiceExt;

use super::server::{self, Body, Boxed, Server};
use super::sse::{Decoder, Event, Frame};

/// Speaks to one server, on as many connections as needed. The server ends with the last clone.
///
/// Over HTTP/1.1 every request has a connection of its own; over HTTP/2 all requests of one client and its clones
/// share one. To leave: drop the [`Answer`] or the future of [`Client::send`], or abort the task that awaits it.
#[derive(Clone)]
pub struct Client {
    carrier: Target,
}

#[derive(Clone)]
enum Target {
    InProcess(Boxed),
    H1(Arc<Server>),
    H2(Arc<Server>, Arc<tokio::sync::OnceCell<Shared>>),
}

/// The one connection of an HTTP/2 client.
struct Shared {
    sender: http2::SendRequest<Body>,
    _connection: Arc<Connection>,
}

impl Client {
    pub fn in_process(service: Boxed) -> Self {
        Self { carrier: Target::InProcess(service) }
    }

    pub fn h1(server: Server) -> Self {
        Self { carrier: Target::H1(Arc::new(server)) }
    }

    pub fn h2(server: Server) -> Self {
        Self { carrier: Target::H2(Arc::new(server), Arc::default()) }
    }

    /// A client of the same server with no connection in common.
    pub fn another(&self) -> Self {
        match &self.carrier {
            Target::H2(server, _) => Self { carrier: Target::H2(Arc::clone(server), Arc::default()) },
            _ => self.clone(),
        }
    }

    /// Where the server listens.
    ///
    /// # Panics
    ///
    /// In process, where there is no address.
    pub fn address(&self) -> SocketAddr {
        match &self.carrier {
            Target::InProcess(_) => panic!("no address in process"),
            Target::H1(server) | Target::H2(server, _) => server.address,
        }
    }

    /// Sends a request whose body is known, and returns once the head of the answer is there.
    pub async fn send(&self, request: impl Into<Request<Full<Bytes>>>) -> Answer {
        self.send_body(request.into()).await
    }

    /// Sends a request with any body, such as one that comes in pieces or breaks off.
    pub async fn send_body<B>(&self, request: Request<B>) -> Answer
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<server::BoxError>,
    {
        self.try_send(request).await.expect("an answer")
    }

    /// [`Client::send_body`] where there may be no answer because the request breaks off.
    pub async fn try_send<B>(&self, request: Request<B>) -> hyper::Result<Answer>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<server::BoxError>,
    {
        let request = request.map(server::body);
        match &self.carrier {
            Target::InProcess(service) => {
                let response = service.clone().oneshot(host(request, "localhost")).await;
                Ok(Answer::new(response.unwrap_or_else(|never| match never {}), None))
            }
            Target::H1(server) => {
                let (mut sender, connection) = connect_h1(server.address).await;
                let response = sender.send_request(host(request, &server.address.to_string())).await?;
                Ok(Answer::new(response.map(server::body), Some(connection)))
            }
            Target::H2(server, shared) => {
                let shared = shared.get_or_init(|| connect_h2(server.address)).await;
                let request = absolute(request, server.address);
                let response = shared.sender.clone().send_request(request).await?;
                Ok(Answer::new(response.map(server::body), Some(Arc::clone(&shared._connection))))
            }
        }
    }

    /// Writes bytes that no HTTP library would, on a new connection.
    pub async fn raw(&self, bytes: impl AsRef<[u8]>) -> Raw {
        let stream = socket(self.address()).await;
        let mut raw = Raw { stream, received: Vec::new() };
        raw.write(bytes).await;
        raw
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// Drives a connection; dropping it closes the socket.
#[derive(Debug)]
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn socket(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("TCP_NODELAY");
    stream
}

async fn connect_h1(address: SocketAddr) -> (http1::SendRequest<Body>, Arc<Connection>) {
    let io = TokioIo::new(socket(address).await);
    let (sender, connection) = http1::handshake(io).await.expect("a handshake");
    let driver = tokio::spawn(async move {
        let _ = connection.await;
    });
    (sender, Arc::new(Connection(driver)))
}

async fn connect_h2(address: SocketAddr) -> Shared {
    let io = TokioIo::new(socket(address).await);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.expect("a handshake");
    let driver = tokio::spawn(async move {
        let _ = connection.await;
    });
    Shared { sender, _connection: Arc::new(Connection(driver)) }
}

/// Adds the `Host` that HTTP/1.1 demands, unless the test brought its own.
fn host(mut request: Request<Body>, authority: &str) -> Request<Body> {
    let value = HeaderValue::from_str(authority).expect("an authority");
    request.headers_mut().entry(HOST).or_insert(value);
    request
}

/// Adds scheme and authority, which stand in the request line's place over HTTP/2.
fn absolute(mut request: Request<Body>, address: SocketAddr) -> Request<Body> {
    let named = request.headers_mut().remove(HOST);
    let authority = named.map_or_else(|| address.to_string(), |host| host.to_str().expect("an authority").to_owned());
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    let uri = Uri::builder().scheme("http").authority(authority).path_and_query(path).build();
    *request.uri_mut() = uri.expect("an absolute URI");
    request
}

/// An answer whose head has arrived. Dropping it before its end is what a client does that leaves.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    body: Body,
    decoder: Decoder,
    _connection: Option<Arc<Connection>>,
}

impl Answer {
    fn new(response: Response<Body>, connection: Option<Arc<Connection>>) -> Self {
        let (head, body) = response.into_parts();
        Self { status: head.status, headers: head.headers, body, decoder: Decoder::default(), _connection: connection }
    }

    /// A header of the answer as text, or `""`.
    ///
    /// # Panics
    ///
    /// If it is there twice.
    pub fn header(&self, name: &str) -> &str {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next().map_or("", |value| value.to_str().expect("a header is visible ASCII"));
        assert!(values.next().is_none(), "{name} twice in an answer");
        value
    }

    /// The next piece of the body as it came, or `None` at its end.
    ///
    /// # Panics
    ///
    /// If the body breaks off.
    pub async fn chunk(&mut self) -> Option<Bytes> {
        loop {
            let frame = self.body.frame().await?.expect("the body goes on");
            match frame.into_data() {
                Ok(data) if !data.is_empty() => return Some(data),
                _ => {}
            }
        }
    }

    /// The whole body as text.
    pub async fn text(mut self) -> String {
        let mut bytes = Vec::new();
        while let Some(chunk) = self.chunk().await {
            bytes.extend_from_slice(&chunk);
        }
        String::from_utf8(bytes).expect("an answer is UTF-8")
    }

    /// The whole body, which is one JSON value and says so.
    pub async fn json(self) -> Value {
        assert_eq!(self.header(CONTENT_TYPE.as_str()), "application/json");
        let text = self.text().await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }

    /// The result of a response that came as JSON with status 200.
    pub async fn result(self) -> Value {
        assert_eq!(self.status, StatusCode::OK);
        let mut response = self.json().await;
        assert!(response.get("error").is_none(), "an error: {response}");
        response.get_mut("result").map(Value::take).expect("a result")
    }

    /// The error of an answer that came as JSON, judged by [`assert_error`].
    pub async fn error(self, status: StatusCode, code: i64, id: Option<&Value>) -> Value {
        let (got, allow) = (self.status, self.header(ALLOW.as_str()).to_owned());
        let error = assert_error(self.json().await, code, id);
        assert_eq!(got, status, "{error}");
        assert_eq!(allow.is_empty(), status != StatusCode::METHOD_NOT_ALLOWED, "Allow stands beside 405");
        error
    }

    /// The next frame of an event stream, comments included, or `None` at its end.
    pub async fn frame(&mut self) -> Option<Frame> {
        assert_eq!(self.header(CONTENT_TYPE.as_str()), "text/event-stream");
        loop {
            if let Some(frame) = self.decoder.next().expect("a strict event stream") {
                return Some(frame);
            }
            let Some(chunk) = self.chunk().await else {
                self.decoder.finish().expect("a strict event stream");
                return None;
            };
            self.decoder.push(&chunk);
        }
    }

    /// The next event, whatever comments come before it, or `None` at the stream's end.
    pub async fn next_event(&mut self) -> Option<Event> {
        loop {
            match self.frame().await? {
                Frame::Event(event) => return Some(event),
                Frame::Comment(_) => {}
            }
        }
    }

    /// The message of the next event, or `None` at the stream's end.
    pub async fn next_message(&mut self) -> Option<Value> {
        let event = self.next_event().await?;
        let data = event.data.expect("an event with data");
        Some(serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error} in {data}")))
    }

    /// All messages of an event stream up to its end.
    pub async fn events(mut self) -> Vec<Value> {
        let mut messages = Vec::new();
        while let Some(message) = self.next_message().await {
            messages.push(message);
        }
        messages
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, headers, .. } = self;
        f.debug_struct("Answer").field("status", status).field("headers", headers).finish_non_exhaustive()
    }
}

/// Takes a JSON-RPC error response apart: exactly these members, this code, and this id or none at all.
pub fn assert_error(response: Value, code: i64, id: Option<&Value>) -> Value {
    let Value::Object(mut members) = response else {
        panic!("no error response: {response}");
    };
    let error = members.remove("error").unwrap_or_else(|| panic!("no error in {members:?}"));
    assert_eq!(error["code"], code, "{error}");
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
    assert_eq!(members.remove("jsonrpc"), Some("2.0".into()));
    assert_eq!(members.remove("id").as_ref(), id, "{error}");
    assert!(members.is_empty(), "more in an error response: {members:?}");
    error
}

/// A bare connection.
#[derive(Debug)]
pub struct Raw {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Raw {
    /// Writes more; a server that has hung up already is no failure here.
    pub async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// Says that nothing more will be written.
    pub async fn finish(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Reads until `wanted` has arrived, or the server hung up, and returns all that came so far.
    pub async fn until(&mut self, wanted: &str) -> String {
        loop {
            let text = String::from_utf8_lossy(&self.received);
            if text.contains(wanted) {
                return text.into_owned();
            }
            let mut piece = [0; 4096];
            match self.stream.read(&mut piece).await {
                Ok(read @ 1..) => self.received.extend_from_slice(&piece[..read]),
                _ => return text.into_owned(),
            }
        }
    }

    /// The status of the answer, or `None` if the server hung up without one.
    pub async fn status(&mut self) -> Option<StatusCode> {
        let head = self.until("\r\n\r\n").await;
        let code = head.strip_prefix("HTTP/1.1 ")?.split(' ').next()?;
        code.parse().ok()
    }
}
