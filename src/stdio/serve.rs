//! Serves one stream: reads and writes in one task, until either side ends it.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, Sleep, sleep_until};

use super::connection::Connection;
use super::lines::Lines;
use super::output::Output;
use super::receive::Receiver;
use super::transport::ServeEnd;
use crate::error::Error;
use crate::exchange::lifecycle::{LAST_POLL, OpenStream};
use crate::limits::from_now;
use crate::observer::StreamKind;

/// Where the lines come from.
pub(super) type Reader = Pin<Box<dyn AsyncRead + Send>>;
/// Where they go.
pub(super) type Writer = Pin<Box<dyn AsyncWrite + Send>>;

/// Chunks that are read before other tasks get their turn.
const TURNS: usize = 4;

/// A stream being served, until dropped.
pub(super) struct Serving {
    _open: OpenStream,
    connection: Arc<Connection>,
    receiver: Receiver,
    reader: Reader,
    lines: Lines,
    output: Output,
}

/// What ends the reading.
enum Reading {
    EndOfInput,
    Failed(io::Error),
    Stopped(ServeEnd),
}

impl Serving {
    pub(super) fn new(connection: &Arc<Connection>, reader: Reader, writer: Writer) -> Self {
        Self {
            _open: OpenStream::of(&connection.server, StreamKind::Bytes),
            connection: Arc::clone(connection),
            receiver: Receiver::new(Arc::clone(connection)),
            reader,
            lines: Lines::new(connection.server.limits.body_bytes),
            output: Output::new(writer),
        }
    }

    pub(super) async fn run(mut self) -> Result<ServeEnd, Error> {
        match poll_fn(|cx| self.poll_reading(cx)).await {
            Reading::Stopped(end) => Ok(end),
            Reading::EndOfInput => Ok(self.wind_up().await),
            Reading::Failed(error) if is_gone(&error) => Ok(ServeEnd::PeerGone),
            Reading::Failed(error) => Err(Error::io("reading", error)),
        }
    }

    fn poll_reading(&mut self, cx: &mut Context<'_>) -> Poll<Reading> {
        self.connection.outbox.register(cx.waker());
        for _ in 0..TURNS {
            if let Some(end) = self.poll_stopped(cx) {
                return Poll::Ready(Reading::Stopped(end));
            }
            match self.poll_chunk(cx) {
                Poll::Pending => return self.poll_written(cx),
                Poll::Ready(Ok(0)) => {
                    self.lines.finish().into_iter().for_each(|line| self.receiver.take(line, cx));
                    return Poll::Ready(Reading::EndOfInput);
                }
                Poll::Ready(Ok(_)) => {
                    while let Some(line) = self.lines.next() {
                        self.receiver.take(line, cx);
                    }
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Reading::Failed(error)),
            }
        }
        cx.waker().wake_by_ref();
        self.poll_written(cx)
    }

    /// Writes what the last lines have brought about.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<Reading> {
        match self.poll_stopped(cx) {
            Some(end) => Poll::Ready(Reading::Stopped(end)),
            None => Poll::Pending,
        }
    }

    /// Writes, and says whether that was the last.
    fn poll_stopped(&mut self, cx: &mut Context<'_>) -> Option<ServeEnd> {
        // Looked at before the outbox: what is busy until now has queued its answer.
        let is_drained = self.connection.server.lifecycle.is_draining() && !self.connection.is_busy();
        match self.output.poll(&self.connection.outbox, cx) {
            Poll::Ready(Err(_)) => Some(ServeEnd::PeerGone),
            Poll::Ready(Ok(())) if is_drained => Some(ServeEnd::Drained),
            Poll::Ready(Ok(())) | Poll::Pending => self.connection.is_over().then_some(ServeEnd::Drained),
        }
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        // Stateless, so that it can be made anew for each poll.
        let mut read = std::pin::pin!(self.reader.read_buf(self.lines.buffer()));
        read.poll_unpin(cx)
    }

    /// After the end of the input: what is at work gets its time to answer.
    async fn wind_up(&mut self) -> ServeEnd {
        self.connection.end_of_input();
        let mut timer = Timer::new(from_now(self.connection.server.limits.drain_time));
        poll_fn(|cx| {
            self.connection.outbox.register(cx.waker());
            loop {
                let is_through = !self.connection.is_busy();
                match self.output.poll(&self.connection.outbox, cx) {
                    Poll::Ready(Err(_)) => return Poll::Ready(ServeEnd::PeerGone),
                    Poll::Ready(Ok(())) if is_through => return Poll::Ready(ServeEnd::EndOfInput),
                    Poll::Ready(Ok(())) | Poll::Pending => {}
                }
                match timer.poll(cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(Time::Cut) => self.connection.server.lifecycle.cut_all(),
                    Poll::Ready(Time::Over) => return Poll::Ready(ServeEnd::EndOfInput),
                }
            }
        })
        .await
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.connection.shut();
    }
}

/// The time that work gets after the end of the input.
struct Timer {
    sleep: Pin<Box<Sleep>>,
    next: Time,
}

#[derive(Clone, Copy)]
enum Time {
    /// What is still at work is cancelled.
    Cut,
    /// What has still not been written never will be.
    Over,
}

impl Timer {
    fn new(cut: Instant) -> Self {
        Self { sleep: Box::pin(sleep_until(cut)), next: Time::Cut }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Time> {
        self.sleep.poll_unpin(cx).map(|()| {
            self.sleep.as_mut().reset(Instant::now() + LAST_POLL);
            std::mem::replace(&mut self.next, Time::Over)
        })
    }
}

/// Whether an error says that nobody is at the other end.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | NotConnected | UnexpectedEof)
}
