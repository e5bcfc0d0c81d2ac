//! Checks whatever the examples send against the schema of each revision, and so a server that sends every kind of
//! content.
//!
//!     check-schema DIRECTORY
//!
//! DIRECTORY holds the built examples. Every message that a client of a revision reads from them goes through the types
//! that were generated from the revision's schema. They read what the schema asks for and pass over what it does not
//! know, for the schemas are open.

mod everything;
mod peer;
mod schemas;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use mcp_transport::Revision;
use serde_json::{Value, json};

use self::peer::Peer;
use self::schemas::{Kind, check};

fn main() -> ExitCode {
    let directory = std::env::args().nth(1).expect("usage: check-schema DIRECTORY");
    let mut faults = controls();
    let own = everything::serve();
    for revision in Revision::ALL {
        let mut peers = vec![walk(&own, revision)];
        for name in EXAMPLES {
            peers.push(walk(&Example::start(Path::new(&directory), name).url, revision));
        }
        peers.push(changes(&Example::start(Path::new(&directory), "sessions").url, revision));
        println!("{revision}: {} messages", peers.iter().map(|peer| peer.checked).sum::<usize>());
        faults.extend(peers.into_iter().flat_map(|peer| peer.faults));
    }
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Those that say on standard output where they serve HTTP.
const EXAMPLES: [&str; 7] = ["ask", "axum", "echo", "everything", "hyper", "sessions", "streaming"];

fn walk(url: &str, revision: Revision) -> Peer {
    let mut peer = Peer::connect(url, revision);
    peer.walk();
    peer
}

/// What no schema allows, for a check that cannot fail is none.
fn controls() -> Vec<String> {
    use Revision::*;
    let call = |content: Value| json!({ "content": [content] });
    let audio = || json!({"type": "audio", "data": "AAAA", "mimeType": "audio/wav"});
    let link = || json!({"type": "resource_link", "uri": "x:a", "name": "a"});
    let url = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": "x:a"}});
    let output =
        json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "array"}}]});
    let bad = [
        (V2024_11_05, Kind::Result, "tools/call", call(audio())),
        (V2024_11_05, Kind::Result, "tools/call", call(link())),
        (V2025_03_26, Kind::Result, "tools/call", call(link())),
        (V2025_03_26, Kind::Result, "tools/call", json!({"structuredContent": {}})),
        (V2025_06_18, Kind::Result, "tools/call", json!({"content": [], "structuredContent": [1]})),
        (V2025_06_18, Kind::Result, "tools/list", output.clone()),
        (V2025_11_25, Kind::Result, "tools/list", output),
        (V2025_11_25, Kind::Request, "elicitation/create", url),
        (V2026_07_28, Kind::Result, "tools/call", json!({"content": []})),
        (V2026_07_28, Kind::Result, "tools/list", json!({"tools": [], "resultType": "complete"})),
    ];
    let passes = |(revision, kind, method, value): (Revision, Kind, &str, Value)| {
        check(revision, kind, method, &value)
            .is_ok()
            .then(|| format!("{revision} {kind:?} of {method} passes: {value}"))
    };
    bad.into_iter().filter_map(passes).collect()
}

/// Hears of a change that a tool publishes.
fn changes(url: &str, revision: Revision) -> Peer {
    let mut peer = Peer::connect(url, revision);
    let mut stream = peer.listen();
    if !peer.is_modern() {
        peer.call("resources/subscribe", json!({"uri": "clock://now"}));
    }
    peer.call("tools/call", json!({"name": "unlock"}));
    peer.hear(&mut stream);
    if !peer.is_modern() {
        // The clock ticks.
        peer.hear(&mut stream);
    }
    peer
}

/// An example that runs until this is dropped.
struct Example {
    process: Child,
    url: String,
}

impl Example {
    fn start(directory: &Path, name: &str) -> Self {
        let file = directory.join(name);
        let started = Command::new(&file).args(["--http", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn();
        let mut process = started.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        let url = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{name} says {line:?}"));
        Self { url: url.to_owned(), process }
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
