//! Every example, started as a process of its own, answers clients of both eras over HTTP/1.1 and HTTP/2.
//!
//! `cargo test` builds the examples before it runs this. `cargo test --test examples` alone does not, and meets those
//! of the last build.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::{HeaderName, Request, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// One test for each example: a request, and what its answer holds.
macro_rules! examples {
    ($($example:ident: $method:literal $params:tt => $answer:literal;)*) => {$(
        #[tokio::test]
        async fn $example() {
            let example = Example::start(stringify!($example));
            for wire in [Wire::H1, Wire::H2] {
                for request in [legacy($method, json!($params)), modern($method, json!($params))] {
                    let (status, answer) = example.send(wire, request).await;
                    assert!(status == StatusCode::OK && answer.contains($answer), "{wire:?}: {status} {answer}");
                }
            }
        }
    )*};
}

examples! {
    ask: "tools/call" {"name": "delete", "arguments": {"path": "a.txt"}} => r#""text":"Nothing was deleted.""#;
    axum: "tools/call" {"name": "add_note", "arguments": {"text": "buy milk"}} => r#""text":"Noted.""#;
    echo: "tools/call" {"name": "echo", "arguments": {"text": "one two"}} => r#""text":"one two""#;
    everything: "resources/read" {"uri": "test://template/123/data"} => "Data for ID: 123";
    hyper: "resources/read" {"uri": "greeting:///world"} => r#""text":"Hello, world!""#;
    resume: "tools/call" {"name": "render", "arguments": {"frames": 2, "interval_ms": 1}} => r#""text":"rendered 2 frames""#;
    sessions: "tools/call" {"name": "unlock"} => r#""text":"There is a new tool now.""#;
    streaming: "tools/call" {"name": "count", "arguments": {"to": 2, "interval_ms": 1}} => r#""text":"counted to 2""#;
}

/// What the README tells its readers to type, and what it says they will see.
#[tokio::test]
async fn readme() {
    let echo = Example::start("echo");
    let blocks =
        include_str!("../README.md").split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let (mut commands, mut answers) = (Vec::new(), Vec::new());
    for (language, text) in blocks {
        match language {
            "sh" if text.starts_with("curl ") => commands.push(text),
            "json" => answers.push(text.trim_end()),
            _ => {}
        }
    }
    assert_eq!((commands.len(), answers.len()), (2, 2), "one command and its answer for each era");
    for (command, answer) in commands.into_iter().zip(answers) {
        let (status, body) = echo.send(Wire::H1, request_of(command)).await;
        assert_eq!((status, body.as_str()), (StatusCode::OK, answer), "{command}");
    }
}

/// Reads a curl command in which every value is quoted: option, value, option, value …
fn request_of(command: &str) -> Request<Full<Bytes>> {
    let (mut request, mut body) = (Request::post("/"), String::new());
    let words: Vec<_> = command.split('\'').map(str::trim).collect();
    for pair in words.chunks_exact(2) {
        match pair[0].rsplit(' ').next() {
            Some("curl") => request = request.uri(pair[1].parse::<Uri>().unwrap().path()),
            Some("-H") => {
                let (name, value) = pair[1].split_once(": ").unwrap();
                request = request.header(name, value);
            }
            Some("-d") => body = pair[1].to_owned(),
            other => panic!("curl has an option {other:?} that is not known here"),
        }
    }
    request.body(Full::from(body)).unwrap()
}

#[tokio::test]
async fn axum_keeps_strangers_out() {
    let axum = Example::start("axum");
    for mut request in [legacy("tools/list", json!({})), modern("tools/list", json!({}))] {
        request.headers_mut().remove(header::AUTHORIZATION);
        assert_eq!(axum.send(Wire::H1, request).await.0, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn axum_shares_its_state_with_its_own_pages() {
    let axum = Example::start("axum");
    let note = json!({"name": "add_note", "arguments": {"text": "buy milk"}});
    axum.send(Wire::H1, modern("tools/call", note)).await;
    let page = Request::get("/api/notes").header(header::AUTHORIZATION, "Bearer bob").body(Full::default()).unwrap();
    assert_eq!(axum.send(Wire::H1, page).await, (StatusCode::OK, "ada: buy milk".to_owned()));
}

#[cfg(unix)]
#[tokio::test]
async fn axum_stops_gracefully() {
    let mut axum = Example::start("axum");
    axum.send(Wire::H1, modern("tools/list", json!({}))).await;
    // A connection that nothing closes but the server.
    let _idle = TcpStream::connect(&axum.address).await.unwrap();

    let kill = format!("kill -TERM {}", axum.process.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let deadline = Instant::now() + Duration::from_secs(20);
    let status = loop {
        match axum.process.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() < deadline => tokio::time::sleep(Duration::from_millis(10)).await,
            None => panic!("it goes on"),
        }
    };
    assert!(status.success(), "{status}");
    let mut last_words = String::new();
    axum.stdout.read_to_string(&mut last_words).unwrap();
    assert_eq!(last_words, "[DrainReport { in_flight: 0, cut: 0 }]\n");
}

/// From nothing to a token, and from that to one that allows more, by what the answers say.
#[tokio::test]
async fn auth_tells_the_way_in() {
    let auth = Example::start("auth");
    for wire in [Wire::H1, Wire::H2] {
        for request in [legacy, modern] {
            let call = async |tool: &str, token: Option<&str>| {
                let mut request = request("tools/call", json!({ "name": tool }));
                request.headers_mut().remove(header::AUTHORIZATION);
                if let Some(token) = token {
                    request.headers_mut().insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
                }
                let response = auth.exchange(wire, request).await;
                let (head, body) = response.into_parts();
                let challenge = head.headers.get(header::WWW_AUTHENTICATE).map(|value| value.to_str().unwrap());
                let challenge = challenge.unwrap_or_default().to_owned();
                let body = body.collect().await.unwrap().to_bytes();
                (head.status, challenge, String::from_utf8(body.to_vec()).unwrap())
            };
            let (status, challenge, _) = call("look", None).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED);
            assert_eq!(parameter(&challenge, "error"), None, "{challenge}");
            let scope = parameter(&challenge, "scope").unwrap();
            let at = parameter(&challenge, "resource_metadata").unwrap();
            let get = Request::get(at.parse::<Uri>().unwrap().path()).body(Full::default()).unwrap();
            let (status, document) = auth.send(wire, get).await;
            assert_eq!(status, StatusCode::OK);
            let document: Value = serde_json::from_str(&document).unwrap();
            assert_eq!(document["resource"], format!("http://{}/mcp", auth.address));
            let issuer = document["authorization_servers"][0].as_str().unwrap();
            let resource = document["resource"].as_str().unwrap();

            let token = sign(issuer, resource, scope, 60);
            let (status, _, body) = call("look", Some(&token)).await;
            assert!(
                status == StatusCode::OK && body.contains("ada") && body.contains("sees a file"),
                "{status} {body}"
            );
            let (status, challenge, _) = call("delete", Some(&token)).await;
            assert_eq!(status, StatusCode::FORBIDDEN);
            assert_eq!(parameter(&challenge, "error"), Some("insufficient_scope"), "{challenge}");
            let more = sign(issuer, resource, parameter(&challenge, "scope").unwrap(), 60);
            let (status, _, body) = call("delete", Some(&more)).await;
            assert!(status == StatusCode::OK && body.contains("has deleted it"), "{status} {body}");

            for wrong in [
                sign(issuer, resource, scope, -1),
                sign(issuer, "http://127.0.0.1:1/mcp", scope, 60),
                sign("http://localhost:9001", resource, scope, 60),
                format!("{token}A"),
                token.rsplit_once('.').unwrap().0.to_owned() + ".",
            ] {
                let (status, challenge, _) = call("look", Some(&wrong)).await;
                assert_eq!(status, StatusCode::UNAUTHORIZED, "{wrong}");
                assert_eq!(parameter(&challenge, "error"), Some("invalid_token"), "{challenge}");
            }
        }
    }
}

/// A parameter of a challenge.
fn parameter<'a>(challenge: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = challenge.split_once(&format!(" {name}=\""))?;
    Some(rest.split_once('"').unwrap().0)
}

/// What the authorization server would give ada.
fn sign(issuer: &str, resource: &str, scope: &str, seconds: i64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let expires = now.checked_add_signed(seconds).unwrap();
    let claims = json!({"iss": issuer, "sub": "ada", "aud": resource, "scope": scope, "exp": expires});
    let key = jsonwebtoken::EncodingKey::from_secret(b"our secret");
    jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap()
}

/// What they serve by HTTP they serve on a pipe too.
#[test]
fn echo_and_everything_speak_on_stdio() {
    for (example, call, answer) in [
        ("echo", json!({"name": "echo", "arguments": {"text": "one two"}}), "one two"),
        ("everything", json!({"name": "greet", "arguments": {"name": "Ann"}}), "Hello, Ann!"),
    ] {
        let mut command = Command::new(binary(example));
        let mut process =
            command.arg("--stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("run `cargo test`");
        let mut stdin = process.stdin.take().unwrap();
        writeln!(stdin, "{}\n{}", line("2025-06-18", 1, call.clone()), line("2026-07-28", 2, call)).unwrap();
        // And then the process ends.
        drop(stdin);
        let output = process.wait_with_output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success() && said.lines().count() == 2, "{said}");
        assert!(said.lines().all(|line| line.contains(answer)), "{said}");
    }
}

/// A client by HTTP notes something, and the host on the pipe hears of it and sees it.
#[tokio::test]
async fn both_share_one_server() {
    let mut command = Command::new(binary("both"));
    command.args(["--http", "127.0.0.1:0"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("run `cargo test`");
    let (mut stdin, mut heard) = (process.stdin.take().unwrap(), String::new());
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    let mut listening = String::new();
    BufReader::new(process.stderr.take().unwrap()).read_line(&mut listening).unwrap();
    let address = listening.strip_prefix("listening on http://").unwrap().trim_end().strip_suffix("/mcp").unwrap();

    let client = json!({"name": "examples", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    writeln!(stdin, "{hello}").unwrap();
    stdout.read_line(&mut heard).unwrap();

    let mut both = Example { address: address.to_owned(), path: "/mcp".to_owned(), process, stdout };
    let note = json!({"name": "note", "arguments": {"text": "buy milk"}});
    assert_eq!(both.send(Wire::H1, modern("tools/call", note)).await.0, StatusCode::OK);
    both.stdout.read_line(&mut heard).unwrap();
    assert!(heard.contains("notifications/resources/list_changed"), "{heard}");
    writeln!(stdin, "{}", json!({"jsonrpc": "2.0", "id": 2, "method": "resources/list"})).unwrap();
    both.stdout.read_line(&mut heard).unwrap();
    assert!(heard.contains("buy milk"), "{heard}");
    drop(stdin);
    assert!(both.process.wait().unwrap().success());
}

/// The kernel says who calls, and one count is kept for all of a user's streams.
#[cfg(unix)]
#[test]
fn unix_socket_knows_its_peer() {
    use std::os::unix::net::UnixStream;
    let path = std::env::temp_dir().join(format!("mcp-transport-{}.sock", std::process::id()));
    let mut command = Command::new(binary("unix_socket"));
    command.arg("--socket").arg(&path).stdout(Stdio::piped());
    let mut process = command.spawn().expect("run `cargo test`");
    let mut stdout = BufReader::new(process.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    for count in 1..=2 {
        let mut socket = UnixStream::connect(&path).unwrap();
        writeln!(socket, "{}", line("2026-07-28", 1, json!({"name": "count"}))).unwrap();
        let mut answer = String::new();
        BufReader::new(socket).read_line(&mut answer).unwrap();
        let text = format!("has called {count} times, now from process {}", std::process::id());
        assert!(answer.contains(&text), "{answer}");
    }
    process.kill().unwrap();
    process.wait().unwrap();
    std::fs::remove_file(path).unwrap();
}

/// A call as it stands on a byte stream.
fn line(revision: &str, id: u64, mut call: Value) -> Value {
    if revision == "2026-07-28" {
        call["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": revision,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call})
}

/// Each session has notes of its own, and hears on its stream what a tool and the clock publish.
#[tokio::test]
async fn sessions_keep_notes_and_hear_of_changes() {
    for wire in [Wire::H1, Wire::H2] {
        let sessions = Example::start("sessions");
        let (mine, other) = (sessions.open(wire).await, sessions.open(wire).await);
        let call = async |session: &str, method: &str, params: Value| {
            let (status, answer) = sessions.send(wire, within(session, legacy(method, params))).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
            answer
        };
        let tool = async |session: &str, tool: Value| call(session, "tools/call", tool).await;
        tool(&mine, json!({"name": "remember", "arguments": {"text": "buy milk"}})).await;
        assert!(tool(&mine, json!({"name": "recall"})).await.contains("buy milk"));
        assert!(!tool(&other, json!({"name": "recall"})).await.contains("buy milk"));

        let get = Request::get("/").header(header::ACCEPT, "text/event-stream").body(Full::default()).unwrap();
        let mut stream = sessions.exchange(wire, within(&mine, get)).await.into_body();
        call(&mine, "resources/subscribe", json!({"uri": "clock://now"})).await;
        tool(&other, json!({"name": "unlock"})).await;
        let mut heard = String::new();
        for change in
            ["notifications/tools/list_changed", r#"notifications/resources/updated","params":{"uri":"clock://now""#]
        {
            while !heard.contains(change) {
                let frame = tokio::time::timeout(Duration::from_secs(20), stream.frame()).await.expect(change);
                let frame = frame.unwrap_or_else(|| panic!("no {change} in {heard}")).unwrap();
                heard.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
            }
        }
        assert!(call(&mine, "tools/list", json!({})).await.contains("secret"));
    }
}

/// The client keeps losing its connection, by its own fault or at the server's word, and has the whole task in the end.
#[tokio::test]
async fn resume_heals_what_broke_off() {
    for (wire, version) in [(Wire::H1, "2025-06-18"), (Wire::H2, "2025-06-18"), (Wire::H1, "2025-11-25")] {
        let resume = Example::start("resume");
        let session = resume.open_as(wire, version).await;
        let arguments = json!({"frames": 4, "interval_ms": 200});
        let params = json!({"name": "render", "arguments": arguments, "_meta": {"progressToken": 1}});
        let mut request = within(&session, post(version, "tools/call", params));
        let (mut told, mut retries, mut visits) = (Vec::new(), 0, 0);
        while !told.iter().any(|told: &String| told.contains("rendered 4 frames")) {
            let mut stream = resume.exchange(wire, request).await.into_body();
            let (mut text, mut last) = (String::new(), None);
            // Leaves after the first report, if the server has not let it go before.
            while !text.contains("progress") || !text.ends_with("\n\n") {
                let frame = tokio::time::timeout(Duration::from_secs(20), stream.frame()).await.expect(version);
                let Some(frame) = frame else { break };
                text.push_str(std::str::from_utf8(frame.unwrap().data_ref().unwrap()).unwrap());
            }
            for line in text.lines() {
                match line.split_once(": ") {
                    Some(("id", id)) => last = Some(id.to_owned()),
                    Some(("data", data)) if !data.is_empty() => told.push(data.to_owned()),
                    Some(("retry", _)) => retries += 1,
                    _ => {}
                }
            }
            visits += 1;
            assert!(visits < 20, "{told:?}");
            let get = Request::get("/").header(header::ACCEPT, "text/event-stream");
            let get = get.header("last-event-id", last.expect("an id")).body(Full::default()).unwrap();
            request = within(&session, get);
        }
        let progress = told.iter().filter(|told| told.contains("notifications/progress")).count();
        assert_eq!((told.len(), progress), (5, 4), "each once: {told:?}");
        assert_eq!(retries > 0, version == "2025-11-25", "{retries}");
    }
}

/// Puts a request into a session.
fn within(session: &str, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    request.headers_mut().insert("mcp-session-id", session.parse().unwrap());
    request
}

/// An example that runs until this is dropped.
struct Example {
    process: Child,
    stdout: BufReader<ChildStdout>,
    address: String,
    /// Where it serves MCP.
    path: String,
}

impl Example {
    fn start(name: &str) -> Self {
        let file = binary(name);
        let started = Command::new(&file).args(["--http", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn();
        let mut process = started.unwrap_or_else(|error| panic!("{}: {error}; run `cargo test`", file.display()));
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let (address, path) = line
            .strip_prefix("listening on http://")
            .and_then(|url| url.trim_end().split_once('/'))
            .unwrap_or_else(|| panic!("{name} says {line:?}"));
        Self { address: address.to_owned(), path: format!("/{path}"), process, stdout }
    }

    /// Opens a session of 2025-06-18, and returns its id.
    async fn open(&self, wire: Wire) -> String {
        self.open_as(wire, "2025-06-18").await
    }

    /// The same of any revision.
    async fn open_as(&self, wire: Wire, version: &str) -> String {
        let client = json!({"name": "examples", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let response = self.exchange(wire, legacy("initialize", params)).await;
        response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
    }

    /// Sends a request, and returns all of its answer.
    async fn send(&self, wire: Wire, request: Request<Full<Bytes>>) -> (StatusCode, String) {
        let response = self.exchange(wire, request).await;
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    /// Sends a request on a connection of its own. One without a path goes to where MCP is served.
    async fn exchange(&self, wire: Wire, mut request: Request<Full<Bytes>>) -> Response<Incoming> {
        let path = match request.uri().path() {
            "/" => &self.path,
            other => other,
        };
        let absolute = format!("http://{}{path}", self.address);
        *request.uri_mut() = match wire {
            Wire::H1 => path.parse().unwrap(),
            Wire::H2 => absolute.parse().unwrap(),
        };
        let io = TokioIo::new(TcpStream::connect(&self.address).await.unwrap());
        match wire {
            Wire::H1 => {
                request.headers_mut().insert(header::HOST, self.address.parse().unwrap());
                let (mut sender, connection) = http1::handshake(io).await.unwrap();
                tokio::spawn(connection);
                sender.send_request(request).await.unwrap()
            }
            Wire::H2 => {
                let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
                tokio::spawn(connection);
                sender.send_request(request).await.unwrap()
            }
        }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[derive(Clone, Copy, Debug)]
enum Wire {
    H1,
    H2,
}

/// Cargo puts the tests into `deps`, and the examples beside it.
fn binary(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).unwrap();
    profile.join("examples").join(format!("{example}{}", std::env::consts::EXE_SUFFIX))
}

/// A request of 2025-06-18, without a session.
fn legacy(method: &str, params: Value) -> Request<Full<Bytes>> {
    post("2025-06-18", method, params)
}

/// A request of 2026-07-28.
fn modern(method: &str, mut params: Value) -> Request<Full<Bytes>> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = ["name", "uri"].iter().find_map(|member| params[*member].as_str()?.parse().ok());
    let mut request = post("2026-07-28", method, params);
    request.headers_mut().insert("mcp-method", method.parse().unwrap());
    request.headers_mut().extend(name.map(|name| (HeaderName::from_static("mcp-name"), name)));
    request
}

fn post(version: &str, method: &str, params: Value) -> Request<Full<Bytes>> {
    let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": method});
    message["params"] = params;
    Request::post("/")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header(header::AUTHORIZATION, "Bearer ada")
        .header("mcp-protocol-version", version)
        .body(Full::from(message.to_string()))
        .unwrap()
}
