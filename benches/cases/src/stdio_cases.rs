//! The byte stream: lines in, lines out.

use mcp_transport::{Revision, StdioTransport};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex};

use crate::Case;
use crate::handler::Tools;
use crate::kit::{Again, RUNTIME, text};

/// Lines that are written at once.
const LINES: usize = 64;

/// So many calls of 100 bytes in flight.
pub fn calls() -> Case {
    let ((ours, theirs), (out, read)) = (duplex(1 << 20), duplex(1 << 20));
    RUNTIME.spawn(async move { StdioTransport::new(Tools(2), theirs, out).serve().await });
    let (mut input, mut lines) = (ours, BufReader::new(read).lines());
    let call = Again::call(Revision::V2026_07_28, "echo", json!({ "text": text(100) }));
    let batch: Vec<u8> = (0..LINES)
        .flat_map(|id| {
            let mut call: serde_json::Value = serde_json::from_slice(call.0.body()).expect("JSON");
            call["id"] = id.into();
            format!("{call}\n").into_bytes()
        })
        .collect();
    Case::new(move || {
        RUNTIME.block_on(async {
            input.write_all(&batch).await.expect("a server");
            for _ in 0..LINES {
                let line = lines.next_line().await.expect("a server").expect("a line");
                assert!(line.contains("\"result\""), "{line}");
            }
        });
    })
}
