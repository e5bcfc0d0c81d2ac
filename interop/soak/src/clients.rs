//! Clients that come, do anything, and leave anyhow.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use mcp_transport::testing::request;
use mcp_transport::{Changes, Revision};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{sleep, timeout};

use super::server;

/// What was done in all.
#[derive(Default)]
pub struct Tally {
    pub connections: AtomicUsize,
    pub requests: AtomicUsize,
    pub answers: AtomicUsize,
    pub refused: AtomicUsize,
    pub killed: AtomicUsize,
    pub resumed: AtomicUsize,
}

/// Random numbers, the same again for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % most
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

const DEEDS: [&str; 10] = ["", "", "wait", "stream", "stream", "flood", "hang", "panic", "ask", "go"];

const LEGACY: [Revision; 4] =
    [Revision::V2024_11_05, Revision::V2025_03_26, Revision::V2025_06_18, Revision::V2025_11_25];

/// A connection that sends requests.
enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

impl Sender {
    async fn send(&mut self, request: Request<Bytes>) -> hyper::Result<http::Response<hyper::body::Incoming>> {
        match self {
            Self::One(sender) => {
                sender.ready().await?;
                sender.send_request(request.map(Full::new)).await
            }
            Self::Two(sender) => {
                sender.ready().await?;
                sender.send_request(request.map(Full::new)).await
            }
        }
    }
}

/// One client over HTTP, from its connection to its end.
pub async fn http(address: SocketAddr, tally: &Tally, mut random: Random) {
    let Ok(stream) = TcpStream::connect(address).await else { return };
    tally.connections.fetch_add(1, Relaxed);
    let io = TokioIo::new(stream);
    let (mut sender, connection) = if random.below(2) == 0 {
        let Ok((sender, connection)) = http1::handshake(io).await else { return };
        (Sender::One(sender), tokio::spawn(async move { drop(connection.await) }))
    } else {
        let Ok((sender, connection)) = http2::handshake(TokioExecutor::new(), io).await else { return };
        (Sender::Two(sender), tokio::spawn(async move { drop(connection.await) }))
    };
    // At any moment, also in the middle of a request.
    let life = Duration::from_millis(random.of(&[5, 20, 50, 200, 1000, 1000]));
    let lived = timeout(life, talk(&mut sender, tally, &mut random)).await;
    tally.killed.fetch_add(usize::from(lived.is_err()), Relaxed);
    connection.abort();
    let _ = connection.await;
}

async fn talk(sender: &mut Sender, tally: &Tally, random: &mut Random) -> Option<()> {
    let is_legacy = random.below(2) == 0;
    let revision = if is_legacy { random.of(&LEGACY) } else { Revision::V2026_07_28 };
    let session = if is_legacy { Some(open(sender, revision).await?) } else { None };
    for tag in 0..20 {
        let deed = random.of(&DEEDS);
        let mut message = match (random.below(8), &session) {
            (0, Some(_)) => bare(Method::GET),
            (0, None) => listen(tag),
            (1, Some(_)) => request(revision, "resources/subscribe", json!({"uri": "a"})),
            _ => request(revision, "prompts/get", json!({"name": "t", "do": deed, "tag": tag})),
        };
        if let Some(session) = &session {
            message.headers_mut().insert("mcp-session-id", session.clone());
            message = numbered(message, tag);
        }
        tally.requests.fetch_add(1, Relaxed);
        let answer = sender.send(message).await.ok()?;
        if !answer.status().is_success() {
            tally.refused.fetch_add(1, Relaxed);
        }
        // A reader that is slow, or that reads no more.
        let patience = Duration::from_millis(random.of(&[0, 1, 10, 100]));
        let pause = Duration::from_millis(random.of(&[0, 0, 0, 2]));
        let read = timeout(patience, read(answer.into_body(), pause)).await.ok().flatten();
        match (read, &session) {
            (Some(read), _) if read.has_answer => {
                assert!(read.tag.is_none_or(|read| read == tag), "another request's answer");
                tally.answers.fetch_add(1, Relaxed);
            }
            (Some(Read { last_id: Some(id), .. }), Some(session)) => {
                let mut message = bare(Method::GET);
                message.headers_mut().insert("mcp-session-id", session.clone());
                message.headers_mut().insert("last-event-id", HeaderValue::from_str(&id).ok()?);
                let answer = sender.send(message).await.ok()?;
                tally.resumed.fetch_add(1, Relaxed);
                let _ = timeout(Duration::from_millis(100), read_all(answer.into_body())).await;
            }
            _ => {}
        }
    }
    if let Some(session) = session.filter(|_| random.below(2) == 0) {
        let mut message = bare(Method::DELETE);
        message.headers_mut().insert("mcp-session-id", session);
        sender.send(message).await.ok()?;
    }
    Some(())
}

async fn read_all(body: hyper::body::Incoming) {
    let _ = body.collect().await;
}

/// What was read of an answer.
struct Read {
    has_answer: bool,
    tag: Option<u64>,
    last_id: Option<String>,
}

async fn read(mut body: hyper::body::Incoming, pause: Duration) -> Option<Read> {
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        text.extend_from_slice(&frame.ok()?.into_data().unwrap_or_default());
        sleep(pause).await;
    }
    let text = String::from_utf8(text).ok()?;
    let mut read = Read { has_answer: false, tag: None, last_id: None };
    for line in text.lines() {
        if let Some(id) = line.strip_prefix("id: ") {
            read.last_id = Some(id.to_owned());
        }
        let json = line.strip_prefix("data: ").unwrap_or(line);
        let Ok(message) = serde_json::from_str::<Value>(json) else { continue };
        if message.get("result").or(message.get("error")).is_some() {
            read.has_answer = true;
            read.tag = message["result"]["tag"].as_u64();
        }
    }
    Some(read)
}

async fn open(sender: &mut Sender, revision: Revision) -> Option<HeaderValue> {
    let client = json!({"name": "soak", "version": "1"});
    let able = json!({"elicitation": {}});
    let params = json!({"protocolVersion": revision.as_str(), "capabilities": able, "clientInfo": client});
    let answer = sender.send(request(Revision::V2024_11_05, "initialize", params)).await.ok()?;
    let session = answer.headers().get("mcp-session-id").cloned();
    let _ = answer.into_body().collect().await;
    let session = session?;
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let mut message = request(revision, "x", ()).map(|_| Bytes::from(ready.to_string()));
    message.headers_mut().insert("mcp-session-id", session.clone());
    let _ = sender.send(message).await.ok()?.into_body().collect().await;
    Some(session)
}

fn bare(method: Method) -> Request<Bytes> {
    let request = Request::builder().method(method).uri("/mcp").header("accept", "text/event-stream");
    request.body(Bytes::new()).expect("a request")
}

fn listen(id: u64) -> Request<Bytes> {
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["a", "b"]});
    let listen = request(Revision::V2026_07_28, "subscriptions/listen", json!({"notifications": filter}));
    numbered(listen, id)
}

fn numbered(request: Request<Bytes>, id: u64) -> Request<Bytes> {
    request.map(|body| match serde_json::from_slice::<Value>(&body) {
        Ok(mut message) => {
            message["id"] = json!(id + 100);
            Bytes::from(message.to_string())
        }
        Err(_) => body,
    })
}

/// One client of a byte stream, and its server: both eras on one stream.
pub async fn stream(changes: &Changes, tally: &Tally, mut random: Random) {
    let Ok((ours, theirs)) = UnixStream::pair() else { return };
    tally.connections.fetch_add(1, Relaxed);
    let (reader, writer) = theirs.into_split();
    let transport = server::stream(changes, reader, writer);
    let serving = tokio::spawn(async move { transport.serve().await });
    let life = Duration::from_millis(random.of(&[5, 20, 100, 500]));
    let lived = timeout(life, lines(ours, tally, &mut random)).await;
    tally.killed.fetch_add(usize::from(lived.is_err()), Relaxed);
    // The server sees its client gone, and ends by itself.
    let served = timeout(Duration::from_secs(5), serving).await;
    assert!(served.is_ok_and(|joined| joined.is_ok()), "a byte stream that is served for nobody");
}

async fn lines(stream: UnixStream, tally: &Tally, random: &mut Random) -> Option<()> {
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader).lines();
    let initialize = json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params":
        {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}});
    writer.write_all(format!("{initialize}\n").as_bytes()).await.ok()?;
    for tag in 0..50_u64 {
        let modern =
            request(Revision::V2026_07_28, "prompts/get", json!({"name": "t", "do": random.of(&DEEDS), "tag": tag}));
        let legacy = json!({"jsonrpc": "2.0", "id": tag + 1000, "method": "prompts/get", "params":
            {"name": "t", "do": random.of(&DEEDS), "tag": tag}});
        let line = match random.below(5) {
            0 => legacy.to_string().into_bytes(),
            1 => listen(tag).into_body().to_vec(),
            2 => b"no JSON".to_vec(),
            _ => numbered(modern, tag).into_body().to_vec(),
        };
        tally.requests.fetch_add(1, Relaxed);
        writer.write_all(&[&line[..], b"\n"].concat()).await.ok()?;
        if random.below(3) > 0 {
            let patience = Duration::from_millis(random.of(&[1, 5, 30]));
            while let Ok(Ok(Some(line))) = timeout(patience, reader.next_line()).await {
                let message: Value = serde_json::from_str(&line).expect("JSON on every line");
                if message.get("result").is_some_and(|result| result.get("tag").is_some()) {
                    let id = message["id"].as_u64().expect("a number");
                    assert_eq!(message["result"]["tag"], id % 100, "another request's answer");
                    tally.answers.fetch_add(1, Relaxed);
                }
            }
        }
    }
    Some(())
}
