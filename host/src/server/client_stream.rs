//! The connection of a client as hyper reads and writes it: checked requests, minimum rates and a lingering close.
//!
//! Invariant: each phase has a limit, so a connection ends whatever its client does. Before a connection is closed,
//! what the client still sends is read: otherwise the kernel resets the connection, and a client that got its response
//! in the middle of its body may lose the response (RFC 9112, section 9.6).

use std::{
    future::Future as _,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};
use uuid::Uuid;

use super::{
    connections::{Activity, Connection},
    pace::{Pace, PaceLimits},
    request_reader::{RequestReader, Stop},
    server_error::{self, ServerError},
};
use crate::metrics::Metrics;

/// How long [`MIN_WRITE_BYTES`] of a response may wait for the client to read.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// 4 KiB/s. The kernel reports progress in steps of up to its buffer's size.
const MIN_WRITE_BYTES: usize = 128 * 1024;
/// Reading after the response to a request that has arrived: only the end of the connection is expected.
const LINGER_AFTER_REQUEST: PaceLimits = PaceLimits {
    total_timeout: Duration::from_secs(5),
    pause_timeout: Duration::from_secs(2),
    grace: Duration::from_secs(5),
    min_bytes_per_second: 1,
};
/// The same within a body that was refused.
const LINGER_WITHIN_BODY: PaceLimits = PaceLimits {
    total_timeout: Duration::from_secs(30),
    pause_timeout: Duration::from_secs(2),
    grace: Duration::from_secs(5),
    min_bytes_per_second: 64 * 1024,
};
/// More than the largest body.
const MAX_LINGER_BYTES: u64 = 64 * 1024 * 1024;

pub(super) struct ClientStream<S> {
    stream: S,
    reader: RequestReader,
    /// Reading a head, writing and lingering exclude each other.
    timer: Pin<Box<Sleep>>,
    write_window: WriteWindow,
    is_flushed: bool,
    /// The rest of the response to a head that hyper did not get.
    refusal: Bytes,
    closing: Closing,
    connection: Arc<Connection>,
    metrics: Arc<Metrics>,
}

/// How long writing has waited for the client.
#[derive(Default)]
struct WriteWindow {
    written: usize,
    waited: Duration,
    waiting_since: Option<Instant>,
}

impl WriteWindow {
    fn deadline(&mut self) -> Instant {
        *self.waiting_since.get_or_insert_with(Instant::now) + WRITE_TIMEOUT.saturating_sub(self.waited)
    }

    fn advance(&mut self, bytes: usize) {
        self.waited += self.waiting_since.take().map_or(Duration::ZERO, |since| since.elapsed());
        self.written += bytes;
        if self.written >= MIN_WRITE_BYTES {
            *self = Self::default();
        }
    }
}

enum Closing {
    Open,
    /// Nothing is expected from the client.
    AtOnce,
    /// This side is closed.
    Lingering(Pace),
}

impl<S> ClientStream<S> {
    pub(super) fn new(stream: S, connection: Arc<Connection>, metrics: Arc<Metrics>) -> Self {
        Self {
            stream,
            reader: RequestReader::new(Arc::clone(&connection)),
            timer: Box::pin(sleep(WRITE_TIMEOUT)),
            write_window: WriteWindow::default(),
            is_flushed: true,
            refusal: Bytes::new(),
            closing: Closing::Open,
            connection,
            metrics,
        }
    }

    /// Reads the next request if the last response has been sent.
    fn begin_request(&mut self) -> bool {
        let was_responding = self.reader.is_responding();
        let is_awaited = self.reader.flushed();
        if was_responding && !self.reader.is_responding() {
            self.write_window = WriteWindow::default();
        }
        is_awaited
    }

    fn refuse(&mut self, error: ServerError) {
        let (id, status) = (Uuid::now_v7().to_string(), error.status().as_u16());
        tracing::info!(request_id = id, status, ?error, "request refused by the server");
        self.refusal = server_error::response_without_request(error, &id);
        self.metrics.responded(super::NO_ROUTE, error.status(), Duration::ZERO);
    }

    /// Fails a write if the client has read too little for too long.
    fn limit_write(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        self.is_flushed = false;
        if let Poll::Ready(written) = written {
            self.write_window.advance(*written.as_ref().unwrap_or(&0));
            return Poll::Ready(written);
        }
        let deadline = self.write_window.deadline();
        if self.timer.deadline() != deadline {
            self.timer.as_mut().reset(deadline);
        }
        self.timer.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientStream<S> {
    fn poll_write_refusal(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.refusal.is_empty() {
            let written = Pin::new(&mut self.stream).poll_write(context, &self.refusal);
            let count = ready!(self.limit_write(context, written))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.refusal.advance(count);
        }
        Poll::Ready(Ok(()))
    }

    /// Reads what the client still sends, up to the end or a limit.
    fn linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Closing::Lingering(pace) = &mut self.closing else { return Poll::Ready(()) };
        let mut discarded = [0; 16 * 1024];
        loop {
            if self.connection.draining_since().is_some() || pace.bytes() > MAX_LINGER_BYTES {
                return Poll::Ready(());
            }
            let mut buffer = ReadBuf::new(&mut discarded);
            let read = Pin::new(&mut self.stream).poll_read(context, &mut buffer);
            match (read, buffer.filled().len()) {
                (Poll::Ready(Err(_)), _) | (Poll::Ready(Ok(())), 0) => return Poll::Ready(()),
                (Poll::Ready(Ok(())), count) => pace.advance(count),
                (Poll::Pending, _) => {
                    if self.timer.deadline() != pace.deadline() {
                        self.timer.as_mut().reset(pace.deadline());
                    }
                    return self.timer.as_mut().poll(context);
                }
            }
            // A client that sends without a pause ends here.
            if pace.deadline() <= Instant::now() {
                return Poll::Ready(());
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.is_flushed {
            this.begin_request();
        }
        let read = ready!(this.reader.poll_read(&mut this.stream, &mut this.timer, context, buffer));
        // hyper closes the connection after an error without writing, because it has no part of a head.
        Poll::Ready(read.map_err(|stop| match stop {
            Stop::Io(error) => error,
            Stop::Closed => {
                this.closing = Closing::AtOnce;
                io::ErrorKind::ConnectionAborted.into()
            }
            Stop::Refused(error) => {
                this.refuse(error);
                io::ErrorKind::InvalidData.into()
            }
        }))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limit_write(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.limit_write(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        // hyper flushes when it has written all that it has.
        self.is_flushed = true;
        if self.begin_request() {
            context.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(self.closing, Closing::Open) {
            ready!(self.poll_write_refusal(context))?;
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            let is_complete = self.reader.is_complete();
            let limits = if is_complete { &LINGER_AFTER_REQUEST } else { &LINGER_WITHIN_BODY };
            self.closing = Closing::Lingering(Pace::begin(limits));
            // An evicted connection is closed by its task.
            let _ = self.connection.begin(Activity::Idle);
        }
        self.linger(context).map(Ok)
    }
}

#[cfg(test)]
mod tests;
