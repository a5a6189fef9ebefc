//! Finds and checks the head of a request before hyper reads it.
//!
//! hyper responds to a head that it cannot parse without a body, repairs ambiguous lengths instead of refusing
//! them, and checks the size of a head only between reads. Invariant: hyper accepts every head that passes.

use http::{Method, Uri, uri::Authority};
use httparse::Status;

use super::{framing::Framing, server_error::ServerError};

pub(super) const MAX_HEAD_BYTES: usize = 64 * 1024;
pub(super) const MAX_REQUEST_LINE_BYTES: usize = 8 * 1024;
/// The default of hyper.
const MAX_HEADERS: usize = 100;

/// Searches the end of a head in bytes that grow.
#[derive(Debug, Default)]
pub(super) struct HeadSearch {
    scanned: usize,
    has_request_line: bool,
}

impl HeadSearch {
    /// The size of the head that begins `bytes`, once it is complete. `bytes` are those of the last call and what
    /// was read since.
    pub(super) fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, ServerError> {
        while let Some(position) = bytes[self.scanned..].iter().position(|byte| *byte == b'\n') {
            let end = self.scanned + position + 1;
            let line = &bytes[..end];
            if !line.ends_with(b"\r\n") {
                return Err(ServerError::MalformedHead);
            }
            if !self.has_request_line && end > MAX_REQUEST_LINE_BYTES {
                return Err(ServerError::RequestLineTooLong);
            }
            if end > MAX_HEAD_BYTES {
                return Err(ServerError::HeadTooLarge);
            }
            if line.ends_with(b"\r\n\r\n") {
                return Ok(Some(end));
            }
            (self.scanned, self.has_request_line) = (end, true);
        }
        self.scanned = bytes.len();
        if !self.has_request_line && bytes.len() > MAX_REQUEST_LINE_BYTES {
            return Err(ServerError::RequestLineTooLong);
        }
        if bytes.len() >= MAX_HEAD_BYTES { Err(ServerError::HeadTooLarge) } else { Ok(None) }
    }
}

/// Checks a head, which ends with an empty line, and returns the length of the body that follows it.
pub(super) fn check(head: &[u8]) -> Result<Framing, ServerError> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(Status::Complete(size)) if size == head.len() => {}
        Err(httparse::Error::TooManyHeaders) => return Err(ServerError::HeadTooLarge),
        _ => return Err(ServerError::MalformedHead),
    }
    let is_valid = request.method.is_some_and(|method| Method::from_bytes(method.as_bytes()).is_ok())
        && request.path.is_some_and(|path| Uri::try_from(path).is_ok());
    if !is_valid {
        return Err(ServerError::MalformedHead);
    }
    let (mut host, mut length, mut is_chunked) = (None, None, false);
    for header in request.headers.iter() {
        let value = header.value.trim_ascii();
        if header.name.eq_ignore_ascii_case("host") {
            if host.replace(value).is_some() {
                return Err(ServerError::NoHost);
            }
        } else if header.name.eq_ignore_ascii_case("content-length") {
            let parsed = content_length(value).ok_or(ServerError::AmbiguousLength)?;
            if length.replace(parsed).is_some() {
                return Err(ServerError::AmbiguousLength);
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            if is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                // Of two errors, the one that may be an attack is reported.
                let has_length =
                    request.headers.iter().any(|header| header.name.eq_ignore_ascii_case("content-length"));
                return Err(if has_length {
                    ServerError::AmbiguousLength
                } else {
                    ServerError::UnknownTransferCoding
                });
            }
            is_chunked = true;
        }
    }
    let is_http_11 = request.version == Some(1);
    match host {
        Some(host) if !is_host(host) => return Err(ServerError::NoHost),
        None if is_http_11 => return Err(ServerError::NoHost),
        _ => {}
    }
    match (is_chunked, length) {
        (true, Some(_)) => Err(ServerError::AmbiguousLength),
        // HTTP/1.0 has no transfer codings (RFC 9112, section 6.1).
        (true, None) if !is_http_11 => Err(ServerError::AmbiguousLength),
        (true, None) => Ok(Framing::CHUNKED),
        (false, length) => Ok(Framing::Length(length.unwrap_or(0))),
    }
}

fn content_length(value: &[u8]) -> Option<u64> {
    // The largest values have a meaning in hyper.
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let length = std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()?;
    (length < u64::MAX - 2).then_some(length)
}

/// Whether this is a host with an optional port (RFC 9110, section 7.2).
fn is_host(value: &[u8]) -> bool {
    let Ok(authority) = Authority::try_from(value) else { return false };
    let (text, host) = (authority.as_str(), authority.host());
    let Some(port) = text.strip_prefix(host) else { return false };
    let is_address = host.strip_prefix('[').is_none_or(|address| {
        address.strip_suffix(']').is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok())
    });
    let is_port = port.strip_prefix(':').map_or(port.is_empty(), |port| {
        port.is_empty() || (port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok())
    });
    !host.is_empty() && !text.contains('@') && is_address && is_port
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests {
    use super::*;

    fn checked(headers: &str) -> Result<Framing, ServerError> {
        check(format!("POST /v1/render HTTP/1.1\r\n{headers}\r\n").as_bytes())
    }

    #[test]
    fn a_valid_head_has_the_length_of_its_body() {
        for (headers, framing) in [
            ("host: a\r\n", Framing::Length(0)),
            ("Host: a:80\r\nContent-Length: 12\r\n", Framing::Length(12)),
            ("host: [::1]:80\r\ncontent-length:0\r\n", Framing::Length(0)),
            ("host: a.b:\r\ntransfer-encoding: Chunked\r\n", Framing::CHUNKED),
        ] {
            assert_eq!(checked(headers), Ok(framing), "{headers}");
        }
        assert_eq!(check(b"GET / HTTP/1.0\r\n\r\n"), Ok(Framing::Length(0)));
    }

    #[test]
    fn an_invalid_head_has_its_error() {
        use ServerError as E;
        for (headers, error) in [
            ("", E::NoHost),
            ("host: a\r\nhost: a\r\n", E::NoHost),
            ("host: a b\r\n", E::NoHost),
            ("host: a:99999\r\n", E::NoHost),
            ("host: a:+1\r\n", E::NoHost),
            ("host: user@a\r\n", E::NoHost),
            ("host: [::x]\r\n", E::NoHost),
            ("host: [::1\r\n", E::NoHost),
            ("host: a/b\r\n", E::NoHost),
            ("host:\r\n", E::NoHost),
            ("host: a\r\ntransfer-encoding: gzip, chunked\r\n", E::UnknownTransferCoding),
            ("host: a\r\ntransfer-encoding: identity\r\n", E::UnknownTransferCoding),
            (
                "host: a\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
                E::UnknownTransferCoding,
            ),
            ("host: a\r\ntransfer-encoding: xchunked\r\ncontent-length: 1\r\n", E::AmbiguousLength),
            ("host: a\r\ntransfer-encoding: chunked\r\ncontent-length: 1\r\n", E::AmbiguousLength),
            ("host: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n", E::AmbiguousLength),
            ("host: a\r\ncontent-length: 1\r\ncontent-length: 1\r\n", E::AmbiguousLength),
            ("host: a\r\ncontent-length: 1, 1\r\n", E::AmbiguousLength),
            ("host: a\r\ncontent-length: +1\r\n", E::AmbiguousLength),
            ("host: a\r\ncontent-length:\r\n", E::AmbiguousLength),
            ("host: a\r\ncontent-length: 99999999999999999999\r\n", E::AmbiguousLength),
            ("host: a\r\nx y: z\r\n", E::MalformedHead),
            ("host: a\r\n x: folded\r\n", E::MalformedHead),
            ("host : a\r\n", E::MalformedHead),
        ] {
            assert_eq!(checked(headers), Err(error), "{headers}");
        }
        assert_eq!(checked(&format!("host: a\r\n{}", "x: y\r\n".repeat(100))), Err(E::HeadTooLarge));
        let chunked = b"POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
        assert_eq!(check(chunked), Err(E::AmbiguousLength));
        for line in ["GET  / HTTP/1.1", "GET / HTTP/2.0", "GET /\u{7f} HTTP/1.1", "PRI * HTTP/2.0", "x"] {
            assert_eq!(
                check(format!("{line}\r\nhost: a\r\n\r\n").as_bytes()),
                Err(E::MalformedHead),
                "{line}"
            );
        }
    }

    #[test]
    fn the_end_of_a_head_is_found_however_it_is_split() {
        let head = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        let input = [head.as_slice(), b"rest"].concat();
        for step in 1..input.len() {
            let mut search = HeadSearch::default();
            let mut ends = (0..=input.len()).step_by(step).chain([input.len()]);
            let found = ends.find_map(|end| search.find_end(&input[..end]).unwrap());
            assert_eq!(found, Some(head.len()), "in steps of {step}");
        }
    }

    #[test]
    fn a_head_has_limits_of_size_and_no_bare_line_feed() {
        let found = |bytes: &[u8]| HeadSearch::default().find_end(bytes);
        let of_size = |size: usize| {
            let line = "GET / HTTP/1.1\r\nx: ";
            format!("{line}{}\r\n\r\n", "y".repeat(size - line.len() - 4)).into_bytes()
        };
        assert_eq!(found(&of_size(MAX_HEAD_BYTES)), Ok(Some(MAX_HEAD_BYTES)));
        assert_eq!(found(&of_size(MAX_HEAD_BYTES + 1)), Err(ServerError::HeadTooLarge));
        assert_eq!(found(&of_size(MAX_HEAD_BYTES + 1)[..MAX_HEAD_BYTES]), Err(ServerError::HeadTooLarge));
        assert_eq!(found(&of_size(MAX_HEAD_BYTES)[..MAX_HEAD_BYTES - 1]), Ok(None));
        assert_eq!(found(&vec![b'a'; MAX_REQUEST_LINE_BYTES]), Ok(None));
        assert_eq!(found(&vec![b'a'; MAX_REQUEST_LINE_BYTES + 1]), Err(ServerError::RequestLineTooLong));
        let line = [vec![b'a'; MAX_REQUEST_LINE_BYTES - 1], b"\r\n\r\n".to_vec()].concat();
        assert_eq!(found(&line), Err(ServerError::RequestLineTooLong));
        for bare in ["GET / HTTP/1.1\nhost: a\r\n\r\n", "\nGET", "GET / HTTP/1.1\r\nhost: a\n\r\n"] {
            assert_eq!(found(bare.as_bytes()), Err(ServerError::MalformedHead), "{bare:?}");
        }
    }
}
