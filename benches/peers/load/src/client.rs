//! One keep-alive connection that asks and waits, over and over.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::case::{Case, INITIALIZE, INITIALIZED, post};

pub struct Client {
    socket: TcpStream,
    buffer: Vec<u8>,
}

/// The end of a chunked body.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

impl Client {
    pub async fn connect(port: u16) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).await.expect("a server");
        socket.set_nodelay(true).expect("a socket");
        Self { socket, buffer: vec![0; 64 << 10] }
    }

    /// Sends a request and reads its whole response, which is to be a success. Returns the response's head and how long
    /// its body was.
    pub async fn ask(&mut self, request: &[u8]) -> (&str, usize) {
        self.socket.write_all(request).await.expect("a server");
        let (head, mut read) = self.read_head().await;
        let body = match header(self.text(head), "content-length") {
            Some(length) => {
                let length: usize = length.parse().expect("a length");
                if self.buffer.len() < head + length {
                    self.buffer.resize(head + length, 0);
                }
                while read < head + length {
                    read += self.read_at(read).await;
                }
                assert_eq!(read, head + length, "nothing behind the body");
                length
            }
            None if self.text(head).starts_with("HTTP/1.1 202") => 0,
            None => {
                while !self.buffer[head..read].ends_with(LAST_CHUNK) {
                    if self.buffer.len() < read + (16 << 10) {
                        self.buffer.resize(2 * self.buffer.len(), 0);
                    }
                    read += self.read_at(read).await;
                }
                read - head
            }
        };
        let text = self.text(head);
        assert!(text.starts_with("HTTP/1.1 20"), "{text}{}", String::from_utf8_lossy(&self.buffer[head..read]));
        (text, body)
    }

    /// Sends a request, and returns once the head of the response and the first bytes of its body are there.
    pub async fn begin(&mut self, request: &[u8], has_bytes: bool) {
        self.socket.write_all(request).await.expect("a server");
        let (head, read) = self.read_head().await;
        assert!(self.text(head).starts_with("HTTP/1.1 200"), "{}", self.text(head));
        if has_bytes && read == head {
            self.read_at(read).await;
        }
        self.shrink();
    }

    /// Gives back what it needs only while it reads.
    pub fn shrink(&mut self) {
        self.buffer = Vec::new();
    }

    /// Opens a session, and returns its id.
    pub async fn open_session(&mut self) -> String {
        let (head, _) = self.ask(&post("/mcp", "", INITIALIZE)).await;
        let session = header(head, "mcp-session-id").expect("a session").to_owned();
        let headers = format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
        self.ask(&post("/mcp", &headers, INITIALIZED)).await;
        session
    }

    async fn read_head(&mut self) -> (usize, usize) {
        let mut read = 0;
        loop {
            let from = read;
            read += self.read_at(read).await;
            let from = from.saturating_sub(3);
            if let Some(at) = self.buffer[from..read].windows(4).position(|four| four == b"\r\n\r\n") {
                return (from + at + 4, read);
            }
        }
    }

    async fn read_at(&mut self, at: usize) -> usize {
        let read = self.socket.read(&mut self.buffer[at..]).await.expect("a response");
        assert!(read > 0, "the server hung up: {}", String::from_utf8_lossy(&self.buffer[..at]));
        read
    }

    fn text(&self, head: usize) -> &str {
        std::str::from_utf8(&self.buffer[..head]).expect("a head")
    }
}

/// A header of a response.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// A connection and the request of a case, in a session where the case has one.
pub async fn ready(port: u16, case: &Case) -> (Client, Vec<u8>) {
    let mut client = Client::connect(port).await;
    let session = if case.in_session() { Some(client.open_session().await) } else { None };
    let request = case.request(session.as_deref());
    (client, request)
}

/// So many calls on one connection.
pub async fn calls(port: u16, case: &Case, calls: usize) {
    let (mut client, request) = ready(port, case).await;
    for _ in 0..calls {
        client.ask(&request).await;
    }
}
