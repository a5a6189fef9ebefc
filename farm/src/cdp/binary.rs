//! Files in answers: base64, decoded where it stands.
//!
//! Invariant: a file is held once, in the memory in which its answer came.

use base64::{DecodeSliceError, Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::Deserialize;

use super::{CdpError, Reply};

/// Characters decoded at once: whole groups of four, few enough for the processor's nearest cache.
const CHUNK: usize = 8 * 1024;

/// Why an answer's file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BinaryError {
    /// The answer is none.
    #[error("there is no answer")]
    Cdp(#[from] CdpError),
    /// It is not base64.
    #[error("the file is not base64")]
    Base64(#[source] DecodeSliceError),
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(alias = "screenshotData", borrow)]
    data: Option<&'a str>,
}

impl Reply {
    /// The file in an answer of `printToPDF`, `captureScreenshot` or `beginFrame`; `None` if there is
    /// none, or an empty one.
    pub(crate) fn into_file(self) -> Result<Option<Bytes>, BinaryError> {
        let Some(data) = self.parse::<File<'_>>()?.data.filter(|data| !data.is_empty()) else {
            return Ok(None);
        };
        let start = data.as_ptr().addr() - self.message.as_ptr().addr();
        let end = start + data.len();
        // Nobody else has it, so this copies nothing.
        let mut message = Vec::from(self.message);
        let length = decode_in_place(&mut message[start..end]).map_err(BinaryError::Base64)?;
        Ok(Some(Bytes::from(message).slice(start..start + length)))
    }
}

/// Decodes base64 into its own beginning and returns the length of the outcome, which is three quarters
/// of what it was.
fn decode_in_place(text: &mut [u8]) -> Result<usize, DecodeSliceError> {
    let mut decoded = [0; CHUNK / 4 * 3];
    let (mut read, mut written) = (0, 0);
    while read < text.len() {
        let end = text.len().min(read + CHUNK);
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
    fn a_file_is_what_was_encoded() {
        for length in [1, 2, 3, CHUNK / 4 * 3 - 1, CHUNK / 4 * 3, CHUNK / 4 * 3 + 1, 100_000] {
            let file: Vec<u8> = (0..length).map(|index| u8::try_from(index * 7 % 251).unwrap()).collect();
            let text = BASE64_STANDARD.encode(&file);
            for name in ["data", "screenshotData"] {
                let reply = reply(&format!(r#"{{"hasDamage":true,"{name}":"{text}"}}"#));
                assert_eq!(reply.into_file().unwrap().unwrap(), file, "{name} of {length}");
            }
        }
    }

    #[test]
    fn what_is_no_file_is_said_to_be_none() {
        assert!(reply(r#"{"hasDamage":false}"#).into_file().unwrap().is_none());
        assert!(reply(r#"{"data":""}"#).into_file().unwrap().is_none());
        assert!(matches!(reply(r#"{"data":"a%"}"#).into_file(), Err(BinaryError::Base64(_))));
        let refused = Reply {
            message: r#"{"id":1,"error":{"code":-1,"message":"no"}}"#.into(),
            sequence: 0,
            method: String::new(),
        };
        assert!(matches!(refused.into_file(), Err(BinaryError::Cdp(CdpError::Refused { .. }))));
    }
}
