//! HTTP/1.1 by hand, one connection for each request: what has arrived can be read at once, and a body that breaks off is
//! never taken for one that ends.

use std::io;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A connection, of whatever kind.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Opens connections to one server.
pub type Connector = Arc<dyn Fn() -> BoxFuture<'static, io::Result<Box<dyn Stream>>> + Send + Sync>;

/// The head of an answer, and its body as far as it has arrived.
pub struct Answer {
    pub status: u16,
    headers: Vec<(String, String)>,
    framing: Framing,
    incoming: Incoming,
}

/// What comes next in a body.
#[derive(Clone, Copy)]
enum Framing {
    /// This much, and then the end.
    Length(usize),
    ChunkSize,
    Chunk(usize),
    ChunkEnd,
}

/// What was read ahead, and where more comes from.
struct Incoming {
    stream: Box<dyn Stream>,
    bytes: Vec<u8>,
}

/// Sends a request whole and reads the head of its answer.
///
/// # Errors
///
/// Whatever cuts the connection before the head has ended.
pub async fn send(mut stream: Box<dyn Stream>, request: &[u8]) -> io::Result<Answer> {
    stream.write_all(request).await?;
    let mut incoming = Incoming { stream, bytes: Vec::new() };
    let status_line = incoming.line().await?;
    let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(|| odd(&status_line))?;
    let mut headers = Vec::new();
    loop {
        let line = incoming.line().await?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| odd(&line))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut answer = Answer { status, headers, framing: Framing::Length(0), incoming };
    answer.framing = match (answer.header("transfer-encoding"), answer.header("content-length")) {
        (Some("chunked"), None) => Framing::ChunkSize,
        (None, Some(length)) => Framing::Length(length.parse().map_err(|_| odd(length))?),
        (None, None) if status == 204 => Framing::Length(0),
        framing => return Err(odd(&format!("{framing:?}"))),
    };
    Ok(answer)
}

impl Answer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// What has arrived of the body and was not returned yet, at least a byte; `None` at its proper end.
    pub async fn piece(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            match self.framing {
                Framing::Length(0) => return Ok(None),
                Framing::Length(left) => {
                    let piece = self.incoming.up_to(left).await?;
                    self.framing = Framing::Length(left - piece.len());
                    return Ok(Some(piece));
                }
                Framing::ChunkSize => {
                    let line = self.incoming.line().await?;
                    self.framing = match usize::from_str_radix(&line, 16).map_err(|_| odd(&line))? {
                        0 => {
                            self.incoming.line().await?;
                            Framing::Length(0)
                        }
                        size => Framing::Chunk(size),
                    };
                }
                Framing::Chunk(left) => {
                    let piece = self.incoming.up_to(left).await?;
                    self.framing =
                        if piece.len() < left { Framing::Chunk(left - piece.len()) } else { Framing::ChunkEnd };
                    return Ok(Some(piece));
                }
                Framing::ChunkEnd => {
                    self.incoming.line().await?;
                    self.framing = Framing::ChunkSize;
                }
            }
        }
    }

    /// The whole body.
    pub async fn text(&mut self) -> io::Result<String> {
        let mut whole = Vec::new();
        while let Some(piece) = self.piece().await? {
            whole.extend(piece);
        }
        String::from_utf8(whole).map_err(|error| odd(&error.to_string()))
    }
}

impl Incoming {
    /// The next line, without its end.
    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.bytes.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.bytes.drain(..end + 2).take(end).collect();
                return String::from_utf8(line).map_err(|error| odd(&error.to_string()));
            }
            self.fill().await?;
        }
    }

    /// What is there, but no more than this.
    async fn up_to(&mut self, most: usize) -> io::Result<Vec<u8>> {
        if self.bytes.is_empty() {
            self.fill().await?;
        }
        Ok(self.bytes.drain(..most.min(self.bytes.len())).collect())
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.bytes).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// Something a server of HTTP/1.1 would not send, or not to this client.
fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
