//! A body in memory, in pieces as they arrived.
//!
//! Invariant: its bytes are counted in a budget while it exists, and small pieces are joined: a client that sends single
//! bytes takes no more memory than another one.

use std::{
    collections::VecDeque,
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};

use super::{client_address::ClientAddress, connections::Full, shared_budget::BudgetPart};

/// Smaller pieces are copied into one of this size.
const PIECE_BYTES: usize = 16 * 1024;

pub(super) struct BufferedBody {
    pieces: VecDeque<Bytes>,
    /// Small pieces since the last of `pieces`.
    joined: BytesMut,
    bytes: u64,
    budget: BudgetPart<ClientAddress>,
}

impl BufferedBody {
    pub(super) fn new(budget: BudgetPart<ClientAddress>) -> Self {
        Self { pieces: VecDeque::new(), joined: BytesMut::new(), bytes: 0, budget }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends a piece. The error is that of the budget.
    pub(super) fn push(&mut self, data: Bytes) -> Result<(), Full> {
        self.budget.grow(data.len() as u64)?;
        self.bytes += data.len() as u64;
        // Most bodies are one piece.
        if data.len() >= PIECE_BYTES || (self.pieces.is_empty() && self.joined.is_empty()) {
            self.end_joined();
            self.pieces.push_back(data);
            return Ok(());
        }
        self.joined.extend_from_slice(&data);
        if self.joined.len() >= PIECE_BYTES {
            self.end_joined();
        }
        Ok(())
    }

    /// The body, to which nothing is appended any more.
    pub(super) fn completed(mut self) -> Self {
        self.end_joined();
        self
    }

    /// Removes the first piece.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let data = self.pieces.pop_front()?;
        self.bytes -= data.len() as u64;
        Some(data)
    }

    fn end_joined(&mut self) {
        if !self.joined.is_empty() {
            self.pieces.push_back(std::mem::take(&mut self.joined).freeze());
        }
    }
}

impl Body for BufferedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.pop().map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use http_body_util::BodyExt as _;

    use super::*;
    use crate::server::shared_budget::SharedBudget;

    fn body(max: u64) -> BufferedBody {
        BufferedBody::new(SharedBudget::new(max, None).part(IpAddr::from([127, 0, 0, 1]).into()))
    }

    #[tokio::test]
    async fn pieces_keep_their_order_and_small_ones_are_joined() {
        let mut body = body(1 << 20);
        let mut expected = Vec::new();
        for index in 0..100_u8 {
            let size = if index % 40 == 20 { PIECE_BYTES } else { 1 };
            expected.extend(std::iter::repeat_n(index, size));
            body.push(vec![index; size].into()).unwrap();
        }
        let body = body.completed();
        assert_eq!(body.pieces.len(), 6);
        assert_eq!(body.size_hint().exact(), Some(expected.len() as u64));
        assert_eq!(body.collect().await.unwrap().to_bytes(), expected);
    }

    #[test]
    fn a_body_does_not_exceed_its_budget() {
        let mut body = body(10);
        body.push(Bytes::from_static(&[0; 10])).unwrap();
        assert_eq!(body.push(Bytes::from_static(&[0])), Err(Full::Total));
        assert_eq!(body.bytes(), 10);
    }
}
