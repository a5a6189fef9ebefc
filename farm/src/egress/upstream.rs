//! The operator's own proxy, where there is no other way out.
//!
//! Invariant: it is asked for addresses that were judged here, never for names; its password is
//! not shown. Left to others: the judgement.

use std::{io, net::SocketAddr};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use url::Url;

/// Largest head of an answer.
const HEAD_LIMIT: usize = 16 * 1024;

/// An HTTP proxy.
#[derive(Debug)]
pub(super) struct Upstream {
    host: String,
    port: u16,
    authorization: Option<SecretString>,
}

/// Why the setting is no proxy. Does not show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUpstream {
    /// Not a URL.
    #[error("it is not a URL such as http://proxy.example:3128")]
    NotUrl,
    /// Another kind of proxy.
    #[error("only HTTP proxies are known: the URL must begin with http://")]
    Scheme,
    /// More than a proxy has.
    #[error("it must have a host, and no path")]
    Path,
}

/// Why the proxy made no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpstreamError {
    /// It is not reached, or hangs up.
    #[error("the connection to it failed")]
    Connection(#[from] io::Error),
    /// It says no.
    #[error("it answered with status {0}")]
    Refused(u16),
    /// It does not talk HTTP.
    #[error("its answer is not understood")]
    Protocol,
}

impl Upstream {
    /// Reads the setting.
    pub(super) fn parse(setting: &SecretString) -> Result<Self, InvalidUpstream> {
        let url = Url::parse(setting.expose_secret()).map_err(|_| InvalidUpstream::NotUrl)?;
        if url.scheme() != "http" {
            return Err(InvalidUpstream::Scheme);
        }
        let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let host = url.host_str().filter(|_| plain).ok_or(InvalidUpstream::Path)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let authorization = (!url.username().is_empty() || url.password().is_some()).then(|| {
            let text =
                [unescaped(url.username()), b":".into(), unescaped(url.password().unwrap_or_default())];
            format!("Proxy-Authorization: Basic {}\r\n", BASE64_STANDARD.encode(text.concat())).into()
        });
        Ok(Self { host, port: url.port().unwrap_or(80), authorization })
    }

    /// A connection to an address, through the proxy.
    pub(super) async fn connect(&self, target: SocketAddr) -> Result<TcpStream, UpstreamError> {
        let mut stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        let authorization = self.authorization.as_ref().map_or("", |line| line.expose_secret());
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{authorization}\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            // Byte by byte, so that what follows the head stays in the connection. It is short.
            head.push(stream.read_u8().await?);
            if head.len() > HEAD_LIMIT {
                return Err(UpstreamError::Protocol);
            }
        }
        match status(&head) {
            Some(200..=299) => Ok(stream),
            Some(status) => Err(UpstreamError::Refused(status)),
            None => Err(UpstreamError::Protocol),
        }
    }
}

fn status(head: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(head.split(|byte| *byte == b'\r').next()?).ok()?;
    line.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()
}

/// Undoes what a URL does to the characters of a password.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = tail.get(..2).filter(|_| first == b'%');
        let value = escaped.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(value.unwrap_or(first));
        rest = if value.is_some() { &tail[2..] } else { tail };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_is_a_proxys_url_and_is_not_shown() {
        let parse = |text: &str| Upstream::parse(&text.into());
        let upstream = parse("http://us%40er:p%3Aw@proxy.example:3128").unwrap();
        assert_eq!((upstream.host.as_str(), upstream.port), ("proxy.example", 3128));
        let line = upstream.authorization.as_ref().unwrap().expose_secret();
        assert_eq!(line, format!("Proxy-Authorization: Basic {}\r\n", BASE64_STANDARD.encode("us@er:p:w")));
        assert!(!format!("{upstream:?}").contains("Basic"));
        assert!(parse("http://[::1]:8080/").unwrap().authorization.is_none());
        for (bad, reason) in [
            ("proxy.example:3128", InvalidUpstream::Scheme),
            ("", InvalidUpstream::NotUrl),
            ("https://proxy.example", InvalidUpstream::Scheme),
            ("socks5://proxy.example", InvalidUpstream::Scheme),
            ("http://proxy.example/path", InvalidUpstream::Path),
        ] {
            assert_eq!(parse(bad).unwrap_err(), reason, "{bad}");
        }
    }

    #[test]
    fn a_status_is_read() {
        assert_eq!(status(b"HTTP/1.1 200 Connection established\r\n\r\n"), Some(200));
        assert_eq!(status(b"HTTP/1.0 407\r\n\r\n"), Some(407));
        assert_eq!(status(b"SSH-2.0\r\n\r\n"), None);
    }
}
