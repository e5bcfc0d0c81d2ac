//! The standard input and output of the process, read and written by two threads.
//!
//! A blocking read cannot be broken off. In a thread that nobody waits for it keeps no process alive, and a hop for
//! each chunk is cheap where chunks are large.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::thread;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use crate::sync::lock;

/// Bytes read at once, and about as many written.
const CHUNK: usize = 64 << 10;

/// Bytes that wait for the writing thread.
const MOST_WAITING: usize = 256 << 10;

/// Takes standard input and output, which can be had once.
pub(super) fn take() -> io::Result<(Stdin, Stdout)> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    if TAKEN.swap(true, Ordering::SeqCst) {
        return Err(io::Error::other("another transport has the process's standard input and output"));
    }
    let (input, output) = files::take()?;
    Ok((Stdin::new(Box::new(input)), Stdout::new(Box::new(output))))
}

#[cfg(unix)]
mod files {
    //! The descriptors themselves, past the buffers of the standard library.

    use std::fs::File;
    use std::io;
    use std::os::fd::AsFd;

    pub(super) fn take() -> io::Result<(File, File)> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        guard()?;
        Ok((input.into(), output.into()))
    }

    /// Puts something harmless in the place of both, for whoever else uses them.
    #[cfg(feature = "stdio-guard")]
    fn guard() -> io::Result<()> {
        rustix::stdio::dup2_stdout(io::stderr())?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(())
    }

    #[cfg(not(feature = "stdio-guard"))]
    #[allow(clippy::unnecessary_wraps)] // the guarded one can fail
    fn guard() -> io::Result<()> {
        Ok(())
    }
}

#[cfg(not(unix))]
mod files {
    use std::io;

    #[allow(clippy::unnecessary_wraps)] // elsewhere it can fail
    pub(super) fn take() -> io::Result<(io::Stdin, io::Stdout)> {
        Ok((io::stdin(), io::stdout()))
    }
}

/// Standard input, read by a thread that starts with the first poll.
pub(super) struct Stdin {
    state: Reading,
    rest: Bytes,
}

enum Reading {
    NotBegun(Box<dyn Read + Send>),
    Begun(mpsc::Receiver<io::Result<Bytes>>),
    Ended,
}

impl Stdin {
    fn new(input: Box<dyn Read + Send>) -> Self {
        Self { state: Reading::NotBegun(input), rest: Bytes::new() }
    }

    /// The next chunk; empty at the end of the input.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        if let Reading::NotBegun(_) = self.state {
            if let Reading::NotBegun(input) = std::mem::replace(&mut self.state, Reading::Ended) {
                self.state = Reading::Begun(read_in_thread(input)?);
            }
        }
        let Reading::Begun(chunks) = &mut self.state else {
            return Poll::Ready(Ok(Bytes::new()));
        };
        let chunk = ready!(chunks.poll_recv(cx));
        if !matches!(chunk, Some(Ok(_))) {
            self.state = Reading::Ended;
        }
        Poll::Ready(chunk.unwrap_or_else(|| Ok(Bytes::new())))
    }
}

fn read_in_thread(mut input: Box<dyn Read + Send>) -> io::Result<mpsc::Receiver<io::Result<Bytes>>> {
    let (chunks, receiver) = mpsc::channel(2);
    thread::Builder::new().name("mcp-stdin".to_owned()).spawn(move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            let chunk = match input.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => Ok(Bytes::copy_from_slice(buffer.get(..read).unwrap_or_default())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_last = chunk.is_err();
            if chunks.blocking_send(chunk).is_err() || is_last {
                return;
            }
        }
    })?;
    Ok(receiver)
}

impl AsyncRead for Stdin {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            self.rest = ready!(self.poll_chunk(cx))?;
        }
        let length = self.rest.len().min(buf.remaining());
        buf.put_slice(self.rest.get(..length).unwrap_or_default());
        self.rest.advance(length);
        Poll::Ready(Ok(()))
    }
}

/// Standard output, written by a thread that starts with the first write.
pub(super) struct Stdout {
    /// Gone once the thread has it.
    output: Option<Box<dyn Write + Send>>,
    writing: Arc<Writing>,
}

/// What the thread and the stream share.
#[derive(Default)]
struct Writing {
    state: Mutex<State>,
    /// There is something for the thread to do.
    more: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    /// The thread is writing what it took.
    busy: bool,
    closed: bool,
    failed: Option<io::ErrorKind>,
    waker: Option<Waker>,
}

impl Stdout {
    fn new(output: Box<dyn Write + Send>) -> Self {
        Self { output: Some(output), writing: Arc::default() }
    }

    fn begin(&mut self) -> io::Result<()> {
        if let Some(output) = self.output.take() {
            let writing = Arc::clone(&self.writing);
            thread::Builder::new().name("mcp-stdout".to_owned()).spawn(move || writing.run(output))?;
        }
        Ok(())
    }
}

impl Writing {
    fn run(&self, mut output: Box<dyn Write + Send>) {
        let mut taken = Vec::new();
        loop {
            let mut state = self.state();
            while state.waiting.is_empty() && !state.closed {
                state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.waiting.is_empty() {
                return;
            }
            std::mem::swap(&mut taken, &mut state.waiting);
            state.busy = true;
            drop(state);
            let written = output.write_all(&taken).and_then(|()| output.flush());
            taken.clear();
            let mut state = self.state();
            state.busy = false;
            state.failed = written.err().map(|error| error.kind());
            let (failed, waker) = (state.failed.is_some(), state.waker.take());
            drop(state);
            if let Some(waker) = waker {
                waker.wake();
            }
            if failed {
                return;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// Ready once there is room: none while nothing is allowed to wait but this many bytes.
    fn poll_room(&mut self, most: usize, cx: &Context<'_>) -> Poll<io::Result<()>> {
        if let Some(kind) = self.failed {
            return Poll::Ready(Err(kind.into()));
        }
        if self.waiting.len() <= most && (most > 0 || !self.busy) {
            return Poll::Ready(Ok(()));
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for Stdout {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.begin()?;
        let mut state = self.writing.state();
        ready!(state.poll_room(MOST_WAITING, cx))?;
        let taken = buf.get(..buf.len().min(MOST_WAITING)).unwrap_or_default();
        state.waiting.extend_from_slice(taken);
        drop(state);
        self.writing.more.notify_one();
        Poll::Ready(Ok(taken.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writing.state().poll_room(0, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl Drop for Stdout {
    fn drop(&mut self) {
        self.writing.state().closed = true;
        self.writing.more.notify_one();
    }
}
