//! Files in replies: base64, decoded in place.
//!
//! Invariant: a file is held once, in the memory in which its reply was received.

use base64::{DecodeSliceError, Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::Deserialize;

use crate::{CdpError, Reply};

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
