//! Where the body of a request ends on its connection.
//!
//! Invariant: this finds the same end as hyper's decoder, or reports [`Framing::Invalid`]. After such a body the
//! connection is not used for another request.

/// The rest of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// Bytes that remain.
    Length(u64),
    Chunked(Chunked),
    /// Not a chunked body. hyper reports it as an error of the body.
    Invalid,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunked {
    Start,
    Size(u64),
    /// After the size in its line.
    Extension(u64),
    SizeEnd(u64),
    Data(u64),
    DataLineEnd,
    /// At the start of a line after the last chunk.
    Trailer,
    TrailerLine,
    TrailerLineEnd,
    End,
    Complete,
}

impl Framing {
    pub(super) const CHUNKED: Self = Self::Chunked(Chunked::Start);

    pub(super) fn is_complete(self) -> bool {
        matches!(self, Self::Length(0) | Self::Chunked(Chunked::Complete))
    }

    /// Consumes what belongs to the body, and returns its size.
    pub(super) fn advance(&mut self, bytes: &[u8]) -> usize {
        let mut consumed = 0;
        while consumed < bytes.len() && !self.is_complete() {
            match self {
                Self::Length(remaining) | Self::Chunked(Chunked::Data(remaining)) if *remaining > 0 => {
                    let available = bytes.len() - consumed;
                    let count = usize::try_from(*remaining).unwrap_or(usize::MAX).min(available);
                    *remaining -= count as u64;
                    consumed += count;
                }
                Self::Chunked(state) => {
                    match state.next(bytes[consumed]) {
                        Some(next) => *state = next,
                        None => *self = Self::Invalid,
                    }
                    consumed += 1;
                }
                Self::Length(_) | Self::Invalid => return bytes.len(),
            }
        }
        consumed
    }
}

impl Chunked {
    /// The state after a byte that is no data; `None` if it cannot be there.
    fn next(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Start, byte) => Self::Size(digit(byte)?),
            (Self::Size(size) | Self::Extension(size), b'\r') => Self::SizeEnd(size),
            (Self::Size(size), b' ' | b'\t' | b';') => Self::Extension(size),
            (Self::Size(size), byte) => Self::Size(size.checked_mul(16)?.checked_add(digit(byte)?)?),
            (Self::Extension(size), byte) if byte != b'\n' => Self::Extension(size),
            (Self::SizeEnd(0) | Self::TrailerLineEnd, b'\n') => Self::Trailer,
            (Self::SizeEnd(size), b'\n') => Self::Data(size),
            // All data of the chunk has been read.
            (Self::Data(0), b'\r') => Self::DataLineEnd,
            (Self::DataLineEnd, b'\n') => Self::Start,
            (Self::Trailer, b'\r') => Self::End,
            (Self::TrailerLine, b'\r') => Self::TrailerLineEnd,
            (Self::Trailer | Self::TrailerLine, byte) if byte != b'\n' => Self::TrailerLine,
            (Self::End, b'\n') => Self::Complete,
            _ => return None,
        })
    }
}

fn digit(byte: u8) -> Option<u64> {
    char::from(byte).to_digit(16).map(u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_body_is_found_however_it_is_split() {
        let chunked = b"5;a=b\r\nhello\r\n1A \r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nx: y\r\n\r\n";
        for (framing, body) in [(Framing::Length(5), b"hello".as_slice()), (Framing::CHUNKED, chunked)] {
            let input = [body, b"GET / HTTP/1.1\r\n"].concat();
            for step in 1..=input.len() {
                let (mut framing, mut consumed) = (framing, 0);
                for piece in input.chunks(step) {
                    consumed += framing.advance(piece);
                    if framing.is_complete() {
                        break;
                    }
                }
                assert_eq!(consumed, body.len(), "in steps of {step}");
                assert_eq!(framing.advance(b"x"), 0);
            }
        }
    }

    #[test]
    fn a_body_that_is_not_chunked_has_no_end() {
        for body in ["x\r\n", "\r\n", "5\nhello", "1\r\nab", "0\r\n\n", "1;x\ny\r\n", "fffffffffffffffff\r\n"]
        {
            let mut framing = Framing::CHUNKED;
            assert_eq!(framing.advance(body.as_bytes()), body.len(), "{body:?}");
            assert_eq!(framing, Framing::Invalid, "{body:?}");
            assert!(!framing.is_complete());
        }
    }
}
