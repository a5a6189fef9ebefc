//! A connection whose bytes are counted.
//!
//! Invariant: a job's bytes are counted when they pass, in both directions, and the connection
//! breaks where the job's share ends.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use url::Host;

use super::job_egress::JobEgress;

/// A counted connection.
#[derive(Debug)]
pub(super) struct CountingStream {
    stream: TcpStream,
    traffic: Arc<JobEgress>,
    place: (Host<String>, u16),
}

impl CountingStream {
    pub(super) fn new(stream: TcpStream, traffic: Arc<JobEgress>, place: (Host<String>, u16)) -> Self {
        Self { stream, traffic, place }
    }

    fn count(&self, bytes: usize) -> io::Result<()> {
        if self.traffic.count(bytes, &self.place) { Ok(()) } else { Err(io::ErrorKind::QuotaExceeded.into()) }
    }
}

impl AsyncRead for CountingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        Poll::Ready(self.count(buffer.filled().len() - before))
    }
}

impl AsyncWrite for CountingStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        Poll::Ready(self.count(written).map(|()| written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices))?;
        Poll::Ready(self.count(written).map(|()| written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Connection for CountingStream {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}
