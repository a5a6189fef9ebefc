//! The connection of a client, with a limit for writing and a lingering close.
//!
//! Invariant: a write waits at most [`WRITE_TIMEOUT`] for the client to read some of it, so that a response and
//! its upstream connection end. When a connection is closed, what the client still sends is read first,
//! within limits: otherwise the kernel resets the connection, and a client that got its response in the
//! middle of its body may lose the response (RFC 9112, section 9.6).

use std::{
    future::Future as _,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep},
};

const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may send nothing, without closing its side, after this side was closed.
const LINGER_TIMEOUT: Duration = Duration::from_secs(2);
/// More than the largest body.
const MAX_LINGER_BYTES: usize = 64 * 1024 * 1024;

pub(super) struct ClientStream<S> {
    stream: S,
    deadline: Pin<Box<Sleep>>,
    waiting: bool,
    /// Bytes read and discarded since this side was closed; `None` before that.
    lingered: Option<usize>,
}

impl<S> ClientStream<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, deadline: Box::pin(sleep(WRITE_TIMEOUT)), waiting: false, lingered: None }
    }

    fn guard<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = false;
            return written;
        }
        if !self.waiting {
            self.waiting = true;
            self.deadline.as_mut().reset(Instant::now() + WRITE_TIMEOUT);
        }
        self.deadline.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> ClientStream<S> {
    /// Reads what the client still sends, up to the end or a limit.
    fn linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut discarded = [0; 16 * 1024];
        loop {
            let mut buffer = ReadBuf::new(&mut discarded);
            let read = Pin::new(&mut self.stream).poll_read(context, &mut buffer);
            match (read, buffer.filled().len()) {
                (Poll::Ready(Err(_)), _) | (Poll::Ready(Ok(())), 0) => return Poll::Ready(()),
                (Poll::Pending, _) => return self.deadline.as_mut().poll(context),
                (Poll::Ready(Ok(())), count) => {
                    let lingered = self.lingered.get_or_insert(0);
                    *lingered += count;
                    if *lingered > MAX_LINGER_BYTES {
                        return Poll::Ready(());
                    }
                    self.deadline.as_mut().reset(Instant::now() + LINGER_TIMEOUT);
                }
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
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.guard(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.guard(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.guard(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingered.is_none() {
            let closed = Pin::new(&mut self.stream).poll_shutdown(context);
            ready!(self.guard(context, closed))?;
            self.lingered = Some(0);
            self.deadline.as_mut().reset(Instant::now() + LINGER_TIMEOUT);
        }
        self.linger(context).map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_write_to_a_client_that_reads_nothing_times_out() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let began = Instant::now();
        let error = ClientStream::new(ours).write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed().as_secs(), WRITE_TIMEOUT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_client_still_sends_is_read_before_closing() {
        let (ours, mut theirs) = tokio::io::duplex(16);
        let sending = tokio::spawn(async move {
            let sent = theirs.write_all(&[0; 4096]).await;
            (sent, theirs)
        });
        let began = Instant::now();
        let mut guarded = ClientStream::new(ours);
        guarded.shutdown().await.unwrap();
        sending.await.unwrap().0.unwrap();
        // The client did not close its side.
        assert_eq!(began.elapsed().as_secs(), LINGER_TIMEOUT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_the_client_closed_is_closed_at_once() {
        let (ours, theirs) = tokio::io::duplex(16);
        drop(theirs);
        let began = Instant::now();
        ClientStream::new(ours).shutdown().await.unwrap();
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
