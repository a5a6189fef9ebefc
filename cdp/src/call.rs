//! Commands in progress and their replies, with files in base64.
//!
//! Invariant: a file is held once, in the memory in which its reply was received.

use std::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use base64::{DecodeSliceError, Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use tokio::sync::oneshot;

use crate::{
    CdpError, message,
    pipe::{Incoming, Shared},
};

/// Errors of commands for a page that has closed itself, before or during the command.
const PAGE_GONE: [&str; 2] = ["Inspected target navigated or closed", "Session with given id not found."];

/// A command in progress, as a future of its result. Dropping it discards the reply; the browser may still
/// run the command.
#[derive(Debug)]
pub struct Call<R> {
    pub(crate) id: u64,
    pub(crate) method: String,
    pub(crate) reply: oneshot::Receiver<Incoming>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) result: PhantomData<fn() -> R>,
}

impl<R> Call<R> {
    /// Waits for the reply without parsing it, so that a large one can be read in place. Safe to cancel and
    /// to call again until it has returned.
    ///
    /// # Errors
    /// [`CdpError::Closed`] or [`CdpError::TooLarge`].
    pub async fn reply(&mut self) -> Result<Reply, CdpError> {
        let received = (&mut self.reply).await;
        self.received(received)
    }

    fn received(&mut self, received: Result<Incoming, oneshot::error::RecvError>) -> Result<Reply, CdpError> {
        let Incoming { message, sequence } = received.map_err(|_| CdpError::Closed)?;
        let method = std::mem::take(&mut self.method);
        match message {
            Some(message) => Ok(Reply { message, sequence, method }),
            None => Err(CdpError::TooLarge { method }),
        }
    }
}

impl<R: DeserializeOwned> Future for Call<R> {
    type Output = Result<R, CdpError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let received = ready!(Pin::new(&mut self.reply).poll(context));
        Poll::Ready(self.received(received).and_then(|reply| reply.parse()))
    }
}

impl<R> Drop for Call<R> {
    fn drop(&mut self) {
        self.shared.routes().calls.remove(&self.id);
    }
}

/// The unparsed reply to a command.
#[derive(Debug)]
pub struct Reply {
    pub(crate) message: Bytes,
    /// The number of this message among all messages of the browser, comparable with
    /// [`Event::sequence`](crate::Event::sequence).
    pub sequence: u64,
    pub(crate) method: String,
}

impl Reply {
    /// Parses the result. `T` may borrow from the reply.
    ///
    /// # Errors
    /// [`CdpError::Refused`] or [`CdpError::PageGone`] if the browser replied with an error,
    /// [`CdpError::Decode`] if the result is not a `T`.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, CdpError> {
        match message::decode_reply(&self.message) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(source)) if PAGE_GONE.contains(&source.message.as_str()) => Err(CdpError::PageGone),
            Ok(Err(source)) => Err(CdpError::Refused { method: self.method.clone(), source }),
            Err(error) => Err(CdpError::Decode { method: self.method.clone(), error }),
        }
    }
}

/// Base64 characters decoded at once: a multiple of four that fits into the L1 cache.
const CHUNK_BYTES: usize = 8 * 1024;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(alias = "screenshotData", borrow)]
    data: Option<&'a str>,
}

impl Reply {
    /// The file in the reply to `printToPDF`, `captureScreenshot` or `beginFrame`; `None` if it is missing
    /// or empty.
    ///
    /// # Errors
    /// [`CdpError::File`] if it is not base64, and those of [`Reply::parse`].
    pub fn into_file(self) -> Result<Option<Bytes>, CdpError> {
        let Some(data) = self.parse::<File<'_>>()?.data.filter(|data| !data.is_empty()) else {
            return Ok(None);
        };
        let start = data.as_ptr().addr() - self.message.as_ptr().addr();
        let end = start + data.len();
        // This is the only handle of the buffer, so nothing is copied.
        let mut message = Vec::from(self.message);
        let length = decode_in_place(&mut message[start..end])
            .map_err(|source| CdpError::File { method: self.method, source })?;
        Ok(Some(Bytes::from(message).slice(start..start + length)))
    }
}

/// Decodes base64 to the beginning of `text` and returns the decoded length, three quarters of the
/// encoded one.
fn decode_in_place(text: &mut [u8]) -> Result<usize, DecodeSliceError> {
    let mut decoded = [0; CHUNK_BYTES / 4 * 3];
    let (mut read, mut written) = (0, 0);
    while read < text.len() {
        let end = text.len().min(read + CHUNK_BYTES);
        let length = BASE64_STANDARD.decode_slice(&text[read..end], &mut decoded)?;
        text[written..written + length].copy_from_slice(&decoded[..length]);
        (read, written) = (end, written + length);
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(result: &str) -> Reply {
        Reply {
            message: format!(r#"{{"id":1,"result":{result}}}"#).into(),
            sequence: 0,
            method: String::new(),
        }
    }

    #[test]
    fn a_file_is_decoded_in_place() {
        for length in
            [1, 2, 3, CHUNK_BYTES / 4 * 3 - 1, CHUNK_BYTES / 4 * 3, CHUNK_BYTES / 4 * 3 + 1, 100_000]
        {
            let file: Vec<u8> = (0..length).map(|index| u8::try_from(index * 7 % 251).unwrap()).collect();
            let text = BASE64_STANDARD.encode(&file);
            for name in ["data", "screenshotData"] {
                let reply = reply(&format!(r#"{{"hasDamage":true,"{name}":"{text}"}}"#));
                assert_eq!(reply.into_file().unwrap().unwrap(), file, "{name} of {length}");
            }
        }
    }

    #[test]
    fn a_missing_file_is_none_and_an_invalid_one_an_error() {
        assert!(reply(r#"{"hasDamage":false}"#).into_file().unwrap().is_none());
        assert!(reply(r#"{"data":""}"#).into_file().unwrap().is_none());
        assert!(matches!(reply(r#"{"data":"a%"}"#).into_file(), Err(CdpError::File { .. })));
        let refused = Reply {
            message: r#"{"id":1,"error":{"code":-1,"message":"no"}}"#.into(),
            sequence: 0,
            method: String::new(),
        };
        assert!(matches!(refused.into_file(), Err(CdpError::Refused { .. })));
    }
}
