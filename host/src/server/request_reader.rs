//! What hyper reads of a connection: heads that are complete and checked, bodies as they arrive.
//!
//! Invariant: hyper gets no byte of a request before the response to the last one has been written. So an error in a
//! head is found when no response is in progress, and its own response can follow on the connection.

use std::{
    future::Future as _,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf as _, BytesMut};
use tokio::{
    io::{AsyncRead, ReadBuf},
    time::{Instant, Sleep},
};

use super::{
    connections::{Activity, Connection},
    framing::Framing,
    head::{self, HeadSearch},
    server_error::ServerError,
};

/// From the first byte of a head to its last one.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// For the first byte of a connection.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two requests. Reverse proxies keep connections for 60 s.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(75);
/// The first two, once the server drains.
const DRAIN_FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(1);
const DRAIN_HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// Why no further request is read.
#[derive(Debug)]
pub(super) enum Stop {
    Refused(ServerError),
    /// Without a response.
    Closed,
    Io(io::Error),
}

enum Phase {
    Head(HeadSearch),
    Body(Framing),
    /// The whole request has been read, and its response has not been written.
    Responding,
    /// What follows cannot be read as a request.
    Unusable,
}

pub(super) struct RequestReader {
    phase: Phase,
    /// Bytes that were read and not passed to hyper.
    pending: BytesMut,
    /// How many of them may be passed on.
    passable: usize,
    /// When the connection was opened, or the last response was written.
    idle_since: Instant,
    /// When the first byte of a head arrived.
    head_since: Option<Instant>,
    is_first: bool,
    /// hyper waits for the next request.
    is_waiting: bool,
    connection: Arc<Connection>,
}

impl RequestReader {
    pub(super) fn new(connection: Arc<Connection>) -> Self {
        Self {
            phase: Phase::Head(HeadSearch::default()),
            pending: BytesMut::new(),
            passable: 0,
            idle_since: Instant::now(),
            head_since: None,
            is_first: true,
            is_waiting: false,
            connection,
        }
    }

    /// Whether a request has begun whose response has not been written.
    pub(super) fn is_responding(&self) -> bool {
        matches!(self.phase, Phase::Body(_) | Phase::Responding)
    }

    /// Whether the client has sent all of its request.
    pub(super) fn is_complete(&self) -> bool {
        match self.phase {
            Phase::Responding => true,
            Phase::Head(_) => self.pending.is_empty(),
            Phase::Body(_) | Phase::Unusable => false,
        }
    }

    /// Called when everything that hyper wrote has been sent: reads the next request if the response has ended.
    /// Returns whether hyper waits for that.
    pub(super) fn flushed(&mut self) -> bool {
        if !self.is_responding() || self.connection.has_request() {
            return false;
        }
        self.phase = match self.phase {
            Phase::Responding => Phase::Head(HeadSearch::default()),
            // The response was written before the end of the body.
            _ => Phase::Unusable,
        };
        self.idle_since = Instant::now();
        self.head_since = (!self.pending.is_empty()).then_some(self.idle_since);
        self.is_first = false;
        // An evicted connection is closed by its task.
        let _ = self.connection.begin(Activity::Idle);
        std::mem::take(&mut self.is_waiting)
    }

    pub(super) fn poll_read<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        timer: &mut Pin<Box<Sleep>>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), Stop>> {
        loop {
            if self.passable > 0 {
                let count = self.passable.min(buffer.remaining());
                buffer.put_slice(&self.pending[..count]);
                self.pending.advance(count);
                self.passable -= count;
                if self.pending.is_empty() {
                    // An idle connection needs no memory for a head.
                    self.pending = BytesMut::new();
                }
                return Poll::Ready(Ok(()));
            }
            match &mut self.phase {
                Phase::Head(_) => {
                    if !ready!(self.poll_head(stream, timer, context, buffer))? {
                        continue;
                    }
                    return Poll::Ready(Ok(()));
                }
                Phase::Body(framing) => {
                    if self.pending.is_empty() {
                        let (begin, read) = ready!(read(stream, context, buffer))?;
                        let passed = framing.advance(&buffer.filled()[begin..]);
                        self.keep_from(buffer, begin + passed);
                        if read > 0 {
                            self.end_body();
                        }
                        return Poll::Ready(Ok(()));
                    }
                    self.passable = framing.advance(&self.pending);
                    self.end_body();
                }
                Phase::Responding => {
                    self.connection.wake_when_responded(context);
                    // Without this read hyper would not notice that the client disconnects.
                    if self.pending.is_empty() && self.connection.has_request() {
                        let (begin, read) = ready!(read(stream, context, buffer))?;
                        if read == 0 {
                            return Poll::Ready(Ok(()));
                        }
                        self.keep_from(buffer, begin);
                    }
                    self.is_waiting = true;
                    return Poll::Pending;
                }
                Phase::Unusable => {
                    return Poll::Ready(Err(Stop::Io(io::ErrorKind::ConnectionAborted.into())));
                }
            }
        }
    }

    /// Whether `buffer` was filled. Otherwise a head was found in what was read before.
    fn poll_head<S: AsyncRead + Unpin>(
        &mut self,
        stream: &mut S,
        timer: &mut Pin<Box<Sleep>>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<bool, Stop>> {
        loop {
            self.skip_empty_lines();
            if !self.pending.is_empty() {
                let pending = self.pending.split();
                let found = self.find_head(&pending);
                self.pending = pending;
                if let Some(passable) = found? {
                    self.passable = passable;
                    return Poll::Ready(Ok(false));
                }
            }
            let Poll::Ready(read) = read(stream, context, buffer) else {
                return self.poll_deadline(timer, context).map(Err);
            };
            let (begin, read) = read?;
            if read == 0 {
                return Poll::Ready(Ok(true));
            }
            self.head_since.get_or_insert_with(Instant::now);
            if self.pending.is_empty() {
                let bytes = &buffer.filled()[begin..];
                // The usual case: one read has the whole head, and nothing is copied.
                if !bytes.starts_with(b"\r")
                    && let Some(passable) = self.find_head(bytes)?
                {
                    self.keep_from(buffer, begin + passable);
                    return Poll::Ready(Ok(true));
                }
            }
            self.keep_from(buffer, begin);
        }
    }

    /// A server ignores empty lines before a request (RFC 9112, section 2.2).
    fn skip_empty_lines(&mut self) {
        let Phase::Head(search) = &mut self.phase else { return };
        while self.pending.starts_with(b"\r\n") {
            self.pending.advance(2);
            *search = HeadSearch::default();
        }
    }

    /// If `bytes` begin with a complete head: checks it, and returns the size of the head and what there is of its
    /// body.
    fn find_head(&mut self, bytes: &[u8]) -> Result<Option<usize>, Stop> {
        let Phase::Head(search) = &mut self.phase else { return Ok(None) };
        let checked = search.find_end(bytes).and_then(|end| {
            let Some(end) = end else { return Ok(None) };
            Ok(Some((end, head::check(&bytes[..end])?)))
        });
        let Some((end, mut framing)) = checked.map_err(|error| self.refuse(error))? else { return Ok(None) };
        self.connection.begin(Activity::Responding).map_err(|_| Stop::Closed)?;
        self.connection.set_has_request(true);
        let body = framing.advance(&bytes[end..]);
        self.phase = Phase::Body(framing);
        self.end_body();
        Ok(Some(end + body))
    }

    fn end_body(&mut self) {
        match self.phase {
            Phase::Body(framing) if framing.is_complete() => self.phase = Phase::Responding,
            _ => {}
        }
    }

    /// Moves what follows the first `passed` bytes of `buffer` to the pending bytes.
    fn keep_from(&mut self, buffer: &mut ReadBuf<'_>, passed: usize) {
        self.pending.extend_from_slice(&buffer.filled()[passed..]);
        buffer.set_filled(passed);
    }

    fn refuse(&mut self, error: ServerError) -> Stop {
        self.phase = Phase::Unusable;
        Stop::Refused(error)
    }

    fn poll_deadline(&mut self, timer: &mut Pin<Box<Sleep>>, context: &mut Context<'_>) -> Poll<Stop> {
        let idle_timeout = if self.is_first { FIRST_BYTE_TIMEOUT } else { KEEP_ALIVE_TIMEOUT };
        let mut deadline =
            self.head_since.map_or(self.idle_since + idle_timeout, |since| since + HEAD_TIMEOUT);
        if let Some(since) = self.connection.draining_since() {
            deadline = deadline.min(match self.head_since {
                Some(_) => since + DRAIN_HEAD_TIMEOUT,
                None if self.is_first => since.max(self.idle_since) + DRAIN_FIRST_BYTE_TIMEOUT,
                None => since,
            });
        }
        if timer.deadline() != deadline {
            timer.as_mut().reset(deadline);
        }
        ready!(timer.as_mut().poll(context));
        let has_begun = !self.pending.is_empty();
        let stop = self.refuse(ServerError::HeadTimedOut);
        Poll::Ready(if has_begun { stop } else { Stop::Closed })
    }
}

/// Where in `buffer` what was read begins, and its size.
fn read<S: AsyncRead + Unpin>(
    stream: &mut S,
    context: &mut Context<'_>,
    buffer: &mut ReadBuf<'_>,
) -> Poll<Result<(usize, usize), Stop>> {
    let begin = buffer.filled().len();
    let read = ready!(Pin::new(stream).poll_read(context, buffer));
    Poll::Ready(read.map(|()| (begin, buffer.filled().len() - begin)).map_err(Stop::Io))
}
