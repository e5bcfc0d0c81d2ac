//! The transport on the standard input and output of a real process: this binary starts itself as the server.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Failed, Trial};
use mcp_transport::{
    Capabilities, LogLevel, McpError, McpHandler, Notification, Progress, Reply, Request, RequestContext, ServerInfo,
    StdioTransport,
};
use serde_json::{Value, json};

/// Makes this binary a server.
const SERVE: &str = "--serve-on-stdio";

fn main() {
    if std::env::args().any(|argument| argument == SERVE) {
        return server();
    }
    let arguments = Arguments::from_args();
    let trials = vec![
        trial("busy", busy),
        trial("eof_in_the_middle_of_ten_calls", eof_in_the_middle_of_ten_calls),
        trial("eof_with_a_listen", eof_with_a_listen),
        trial("last_line_without_an_end", last_line_without_an_end),
        trial("input_from_a_file", input_from_a_file),
        trial("host_gone", host_gone),
        #[cfg(unix)]
        trial("terminated", terminated),
        #[cfg(all(unix, feature = "stdio-guard"))]
        trial("what_else_is_printed_goes_to_stderr", what_else_is_printed_goes_to_stderr),
        #[cfg(target_os = "linux")]
        trial("memory_stays_flat", memory_stays_flat),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

fn trial(name: &str, test: fn()) -> Trial {
    Trial::test(name, move || {
        let name = thread::Builder::new().spawn(test).map_err(|error| Failed::from(error.to_string()))?;
        name.join().map_err(|_| Failed::from("panicked"))
    })
}

struct Busy;

impl McpHandler for Busy {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("busy", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new().tools_list_changed().logging()
    }

    async fn request(&self, request: Request, cx: RequestContext) -> Result<Reply, McpError> {
        let params: Value = request.params()?;
        // As a library may.
        print_to_stdout("printed by a dependency\n");
        match request.method() {
            "x/echo" => Reply::of(json!({"n": params["n"], "text": "one\ntwo\r\n"})),
            "x/work" => {
                for step in 1..=3 {
                    cx.progress(Progress::new(step.into()).message("a\nb")).await;
                    cx.log(LogLevel::Error, "c\nd").await?;
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                Reply::of(json!({"n": params["n"]}))
            }
            "x/sleep" => {
                tokio::time::sleep(Duration::from_millis(params["ms"].as_u64().unwrap_or_default())).await;
                Reply::of(json!({"n": params["n"]}))
            }
            "x/panic" => panic!("as asked"),
            "x/child" => {
                let child = Command::new("sh").args(["-c", "echo printed by a child; cat"]).status();
                Reply::of(json!({"ok": child.is_ok_and(|status| status.success())}))
            }
            _ => Err(McpError::method_not_found()),
        }
    }

    async fn notification(&self, _: Notification, _: RequestContext) {
        print_to_stdout("printed by a hook\n");
    }
}

/// Prints where `println!` does. Past the test harness's capture, and only where that is harmless.
fn print_to_stdout(text: &str) {
    if cfg!(all(unix, feature = "stdio-guard")) {
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }
}

#[tokio::main]
async fn server() {
    let transport = StdioTransport::stdio(Busy);
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminated = signal(SignalKind::terminate()).expect("a handler of signals");
        let handle = transport.clone();
        tokio::spawn(async move {
            terminated.recv().await;
            handle.drain(Duration::from_secs(5)).await;
        });
    }
    match transport.serve().await {
        Ok(end) => eprintln!("\nended: {end:?}"),
        Err(error) => eprintln!("\nfailed: {error}"),
    }
}

/// The server as a child, and both ends of its streams.
struct Host {
    process: Child,
    /// Gone once the input has ended.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    stderr: thread::JoinHandle<String>,
}

/// What is known once the server has ended.
struct Ended {
    status: ExitStatus,
    stderr: String,
    /// What it still said.
    said: Vec<Value>,
}

impl Host {
    fn start() -> Self {
        Self::start_with(Stdio::piped())
    }

    fn start_with(stdin: Stdio) -> Self {
        let this = std::env::current_exe().expect("a path");
        let mut process = Command::new(this)
            .arg(SERVE)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut errors = process.stderr.take().expect("a pipe");
        let stderr = thread::spawn(move || {
            let mut text = Vec::new();
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let stdout = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { stdin: process.stdin.take(), process, stdout, stderr }
    }

    fn write(&mut self, text: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().expect("an open pipe");
        stdin.write_all(text.as_ref()).and_then(|()| stdin.flush()).expect("a pipe that is read");
    }

    fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n"));
    }

    /// The next line, which must be one message.
    fn next(&mut self) -> Option<Value> {
        next(&mut self.stdout)
    }

    fn heard(&mut self) -> Value {
        self.next().expect("a message")
    }

    /// Ends the input and waits for the end of the process.
    fn end(mut self) -> Ended {
        drop(self.stdin.take());
        self.ended()
    }

    fn ended(mut self) -> Ended {
        let said = std::iter::from_fn(|| self.next()).collect();
        let status = self.process.wait().expect("a status");
        Ended { status, stderr: self.stderr.join().expect("a text"), said }
    }
}

fn next(stdout: &mut impl BufRead) -> Option<Value> {
    let mut line = String::new();
    let read = stdout.read_line(&mut line).expect("UTF-8");
    (read > 0).then(|| {
        assert!(line.ends_with('\n'), "{line:?}");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0");
        message
    })
}

fn legacy(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "info",
        "progressToken": "token",
    });
    legacy(id, method, &params)
}

fn initialize() -> Value {
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    legacy("hello", "initialize", &params)
}

/// 5,000 mixed requests: each is answered once, and nothing but messages is said.
fn busy() {
    const COUNT: u64 = 5000;
    let mut host = Host::start();
    host.send(&initialize());
    assert_eq!(host.heard()["id"], "hello");
    let mut stdin = host.stdin.take().expect("a pipe");
    let writer = thread::spawn(move || {
        for n in 0..COUNT {
            let (id, params) = (if n % 2 == 0 { json!(n) } else { json!(n.to_string()) }, json!({"n": n}));
            let make = |id, method, params| {
                if n % 3 == 0 { legacy(id, method, &params) } else { modern(id, method, params) }
            };
            let message = match n % 10 {
                0 => make(id, "x/work", params),
                1 => make(id, "x/panic", params),
                2 => make(id, "x/unknown", params),
                3 => make(id, "x/sleep", json!({"n": n, "ms": n % 7})),
                _ => make(id, "x/echo", params),
            };
            let mut text = format!("{message}\n");
            match n % 50 {
                7 => text.push_str("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\r\n\n"),
                9 => text.push_str("not a message\n"),
                _ => {}
            }
            stdin.write_all(text.as_bytes()).expect("a pipe that is read");
        }
        stdin
    });
    let mut answers: BTreeMap<u64, Value> = BTreeMap::new();
    let (mut told, mut refused) = (0, 0);
    while answers.len() < usize::try_from(COUNT).expect("small") || refused < COUNT / 50 {
        let message = host.heard();
        match &message["id"] {
            Value::Null if message.get("method").is_some() => told += 1,
            Value::Null => {
                assert_eq!(message["error"]["code"], -32700);
                refused += 1;
            }
            id => {
                let n = id.as_u64().or_else(|| id.as_str()?.parse().ok()).expect("one of our ids");
                assert!(answers.insert(n, message).is_none(), "{n} is answered twice");
            }
        }
    }
    for (n, answer) in &answers {
        match n % 10 {
            1 => assert_eq!(answer["error"], json!({"code": -32603, "message": "Internal error"})),
            2 => assert_eq!(answer["error"]["code"], -32601),
            _ => assert_eq!(answer["result"]["n"], *n),
        }
    }
    // Three log messages for each request that works, and progress for those that asked for it.
    assert!(told >= 3 * COUNT / 10, "{told}");
    host.stdin = Some(writer.join().expect("a pipe"));
    let ended = host.end();
    assert!(ended.status.success() && ended.said.is_empty());
    assert!(ended.stderr.contains("ended: EndOfInput"));
}

fn eof_in_the_middle_of_ten_calls() {
    let mut host = Host::start();
    for n in 0..10 {
        host.send(&modern(n, "x/sleep", json!({"n": n, "ms": 200})));
    }
    let ended = host.end();
    assert!(ended.status.success());
    let mut answered: Vec<_> = ended.said.iter().map(|answer| answer["result"]["n"].as_u64()).collect();
    answered.sort_unstable();
    assert!(answered.into_iter().eq((0..10).map(Some)));
}

fn eof_with_a_listen() {
    let mut host = Host::start();
    host.send(&modern(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}})));
    assert_eq!(host.heard()["method"], "notifications/subscriptions/acknowledged");
    let started = Instant::now();
    let ended = host.end();
    assert!(ended.status.success() && ended.said.len() == 2);
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
}

fn last_line_without_an_end() {
    let mut host = Host::start();
    host.write(legacy(1, "ping", &json!({})).to_string());
    assert_eq!(host.end().said, [json!({"jsonrpc": "2.0", "id": 1, "result": {}})]);
}

/// Standard input need not be a pipe.
fn input_from_a_file() {
    let path = std::env::temp_dir().join(format!("mcp-transport-process-{}", std::process::id()));
    let lines: String = (0..1000).map(|n| format!("{}\n", modern(n, "x/echo", json!({"n": n})))).collect();
    std::fs::write(&path, lines).expect("a file");
    let ended = Host::start_with(std::fs::File::open(&path).expect("a file").into()).ended();
    std::fs::remove_file(path).expect("a file");
    assert_eq!((ended.status.success(), ended.said.len()), (true, 1000));
}

/// The host dies: what is written fails, and the server ends though its input goes on.
fn host_gone() {
    let Host { mut process, stdin, stdout, stderr } = Host::start();
    let mut stdin = stdin.expect("a pipe");
    stdin.write_all(format!("{}\n", modern(1, "x/sleep", json!({"ms": 100_000}))).as_bytes()).expect("a pipe");
    drop(stdout);
    stdin.write_all(format!("{}\n", modern(2, "x/echo", json!({"n": 1}))).as_bytes()).expect("a pipe");
    assert!(process.wait().expect("a status").success());
    assert!(stderr.join().expect("a text").contains("ended: PeerGone"));
}

#[cfg(unix)]
fn terminated() {
    let mut host = Host::start();
    host.send(&modern(1, "x/sleep", json!({"n": 1, "ms": 300})));
    host.send(&modern(2, "x/echo", json!({"n": 2})));
    assert_eq!(host.heard()["id"], 2);
    let kill = format!("kill -TERM {}", host.process.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    // The input stays open all the while.
    let stdin = host.stdin.take();
    let ended = host.ended();
    drop(stdin);
    assert!(ended.status.success() && ended.stderr.contains("ended: Drained"));
    assert_eq!((ended.said.len(), &ended.said[0]["result"]["n"]), (1, &json!(1)));
}

#[cfg(all(unix, feature = "stdio-guard"))]
fn what_else_is_printed_goes_to_stderr() {
    let mut host = Host::start();
    host.send(&legacy(1, "x/child", &json!({})));
    // Nor does the child, which copies what it reads, get anything of the input.
    host.send(&legacy(2, "x/echo", &json!({"n": 2})));
    let mut ids = [host.heard()["id"].clone(), host.heard()["id"].clone()];
    ids.sort_by_key(Value::as_u64);
    assert_eq!(ids, [json!(1), json!(2)]);
    host.send(&json!({"jsonrpc": "2.0", "method": "notifications/x"}));
    let ended = host.end();
    assert!(ended.said.is_empty());
    for text in ["printed by a dependency\n", "printed by a child\n", "printed by a hook\n"] {
        assert!(ended.stderr.contains(text), "{:?}", ended.stderr);
    }
}

/// Long lines, garbage and many requests leave no memory behind.
#[cfg(target_os = "linux")]
fn memory_stays_flat() {
    let mut host = Host::start();
    let resident = |host: &Host| -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", host.process.id())).expect("a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a high-water mark");
        line.trim().trim_end_matches(" kB").parse().expect("a number")
    };
    let round = |host: &mut Host| {
        host.write("x".repeat(17 << 20));
        host.write("\n");
        assert_eq!(host.heard()["error"]["code"], -32700);
        host.send(&modern(1, "x/echo", json!({"n": 1})));
        assert_eq!(host.heard()["id"], 1);
        host.write("garbage\n".repeat(1000));
        host.send(&modern(2, "x/echo", json!({"n": 2, "pad": "p".repeat(1 << 20)})));
        while host.heard()["id"] != 2 {}
    };
    round(&mut host);
    let before = resident(&host);
    (0..5).for_each(|_| round(&mut host));
    let after = resident(&host);
    assert!(after < before + (8 << 10), "{before} KiB, then {after} KiB");
    assert!(after < 64 << 10, "{after} KiB");
    assert!(host.end().status.success());
}
