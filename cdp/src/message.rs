//! The messages of the protocol: JSON, each followed by a NUL byte.
//!
//! Invariant: of a large reply only the beginning is read here; the caller, who has its type, parses it in
//! place.

use bytes::Bytes;
use chromiumoxide_cdp::cdp::browser_protocol::target::{EventAttachedToTarget, EventDetachedFromTarget};
use chromiumoxide_types::Command;
use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};

use crate::Event;

/// Follows each message on a debugging pipe.
pub(crate) const TERMINATOR: u8 = 0;

/// Far more than replies have, some of which contain texts of pages.
const MAX_REPLY_BYTES: usize = 16 * 1024 * 1024;
/// More than an image of 100 megapixels, in base64.
const MAX_FILE_REPLY_BYTES: usize = 1024 * 1024 * 1024;

pub(crate) fn max_reply_bytes(method: &str) -> usize {
    match method {
        "Page.printToPDF" | "Page.captureScreenshot" | "HeadlessExperimental.beginFrame" => {
            MAX_FILE_REPLY_BYTES
        }
        _ => MAX_REPLY_BYTES,
    }
}

/// A message by its receiver.
#[derive(Debug)]
pub(crate) enum Message {
    /// The reply to the command with this id, not parsed.
    Reply(u64, Bytes),
    /// An event of a session.
    Event(String, Event),
    /// A target of this browser context was attached to the browser itself.
    Attached(String, Event),
    /// A session that was attached to the browser itself has ended because its target is gone.
    Detached(String, Event),
    /// An event of the browser itself, which has no receiver.
    Other,
}

pub(crate) fn encode<C: Command>(
    id: u64,
    session: Option<&str>,
    command: &C,
) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Message<'a, C> {
        id: u64,
        method: &'a str,
        #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
        session: Option<&'a str>,
        params: &'a C,
    }
    let method = command.identifier();
    let mut text = serde_json::to_vec(&Message { id, method: &method, session, params: command })?;
    text.push(TERMINATOR);
    Ok(text)
}

/// Finds the receiver of a message without terminator.
pub(crate) fn classify(message: Bytes) -> Result<Message, serde_json::Error> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        id: Option<u64>,
        method: Option<String>,
        #[serde(rename = "sessionId")]
        session: Option<String>,
        #[serde(borrow)]
        params: Option<&'a RawValue>,
    }
    if let Some(id) = leading_id(&message) {
        return Ok(Message::Reply(id, message));
    }
    let parsed: Envelope<'_> = serde_json::from_slice(&message)?;
    let event = |method, params: Option<&RawValue>| {
        let params = params.map_or_else(Bytes::new, |params| message.slice_ref(params.get().as_bytes()));
        Event { method, params, sequence: 0, worker: None }
    };
    Ok(match parsed {
        Envelope { id: Some(id), .. } => Message::Reply(id, message),
        Envelope { method: Some(method), session: Some(session), params, .. } => {
            Message::Event(session, event(method, params))
        }
        Envelope { method: Some(method), session: None, params: Some(params), .. } => {
            let (path, receiver): (_, fn(String, Event) -> Message) = match method.as_str() {
                // A page, which the farm attaches itself, has one as well.
                EventAttachedToTarget::IDENTIFIER => ("/targetInfo/browserContextId", Message::Attached),
                EventDetachedFromTarget::IDENTIFIER => ("/sessionId", Message::Detached),
                _ => return Ok(Message::Other),
            };
            let fields: Value = serde_json::from_str(params.get())?;
            let id = fields.pointer(path).and_then(Value::as_str);
            id.map_or(Message::Other, |id| receiver(id.to_owned(), event(method, Some(params))))
        }
        Envelope { .. } => Message::Other,
    })
}

/// Chromium writes `id` first, so a screenshot of megabytes is not scanned to find it.
pub(crate) fn leading_id(message: &[u8]) -> Option<u64> {
    let digits = message.strip_prefix(br#"{"id":"#)?;
    let end = digits.iter().take(20).position(|byte| *byte == b',')?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// Parses a reply: the result, or the error of the browser.
pub(crate) fn decode_reply<'a, T: Deserialize<'a>>(
    message: &'a [u8],
) -> Result<Result<T, chromiumoxide_types::Error>, serde_json::Error> {
    #[derive(Deserialize)]
    #[serde(bound = "T: Deserialize<'de>")]
    struct Message<T> {
        result: Option<T>,
        error: Option<chromiumoxide_types::Error>,
    }
    let Message { result, error } = serde_json::from_slice(message)?;
    match (result, error) {
        (_, Some(error)) => Ok(Err(error)),
        (Some(result), None) => Ok(Ok(result)),
        (None, None) => Err(serde::de::Error::missing_field("result")),
    }
}

#[cfg(test)]
mod tests {
    use chromiumoxide_cdp::cdp::browser_protocol::browser::GetVersionReturns;

    use super::*;

    #[test]
    fn a_reply_is_recognised_wherever_its_id_is() {
        for text in [r#"{"id":12,"result":{}}"#, r#"{"result":{},"id":12}"#, r#"{ "id": 12, "result": {} }"#]
        {
            let incoming = classify(Bytes::from_static(text.as_bytes())).unwrap();
            assert!(matches!(incoming, Message::Reply(12, _)), "{text}");
        }
    }

    #[test]
    fn events_of_the_browser_and_invalid_json_are_told_apart() {
        let text = br#"{"method":"Target.targetCreated","params":{}}"#;
        assert!(matches!(classify(Bytes::from_static(text)).unwrap(), Message::Other));
        classify(Bytes::from_static(b"{")).unwrap_err();
    }

    #[test]
    fn a_reply_is_a_result_or_an_error() {
        #[derive(Debug, Deserialize)]
        struct Data<'a> {
            data: &'a str,
        }
        let error = decode_reply::<GetVersionReturns>(br#"{"id":1,"error":{"code":-32000,"message":"no"}}"#);
        assert_eq!(error.unwrap().unwrap_err().message, "no");
        decode_reply::<GetVersionReturns>(br#"{"id":1}"#).unwrap_err();
        let data: Data<'_> = decode_reply(br#"{"id":1,"result":{"data":"QUJD"}}"#).unwrap().unwrap();
        assert_eq!(data.data, "QUJD");
    }
}
