//! The writing side of a byte stream.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use tokio::io::AsyncWrite;

use crate::exchange::outbox::{Outbox, Parcel};

/// Writes what the outbox holds: what is ready together in one write.
pub(super) struct Output {
    writer: Pin<Box<dyn AsyncWrite + Send>>,
    buffer: BytesMut,
    /// What is being written. Gone once it is flushed.
    parcel: Option<Parcel>,
}

impl Output {
    pub(super) fn new(writer: Pin<Box<dyn AsyncWrite + Send>>) -> Self {
        Self { writer, buffer: BytesMut::new(), parcel: None }
    }

    /// Ready once all there is has been written and flushed.
    pub(super) fn poll(&mut self, outbox: &Outbox, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if let Some(parcel) = &mut self.parcel {
                while !parcel.bytes.is_empty() {
                    let written = ready!(self.writer.as_mut().poll_write(cx, &parcel.bytes))?;
                    if written == 0 {
                        return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                    }
                    parcel.bytes.advance(written);
                }
                ready!(self.writer.as_mut().poll_flush(cx))?;
                outbox.written(parcel);
            }
            self.parcel = outbox.take(&mut self.buffer);
            if self.parcel.is_none() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
