//! Messages of the protocol as text: JSON, each closed by a NUL byte.
//!
//! Invariant: a large reply is looked at from its front only, until the caller who knows its shape
//! reads it in place.

use bytes::Bytes;
use chromiumoxide_cdp::cdp::browser_protocol::target::EventDetachedFromTarget;
use chromiumoxide_types::{Command, MethodType as _};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Event;

/// Closes a message on a debugging pipe.
pub(super) const END: u8 = 0;

/// What a message is and whom it is for.
#[derive(Debug)]
pub(super) enum Message {
    /// The answer to a call, unread.
    Reply(u64, Bytes),
    /// An event of a session.
    Event(String, Event),
    /// A session is no more: its page has closed itself.
    Detached(String),
    /// Something nobody can have asked for.
    Other,
}

/// Writes a command down, closing byte included.
pub(super) fn encode<C: Command>(
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
    text.push(END);
    Ok(text)
}

/// Tells what a message is. `message` is without its closing byte.
pub(super) fn classify(message: Bytes) -> Result<Message, serde_json::Error> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        id: Option<u64>,
        method: Option<String>,
        #[serde(rename = "sessionId")]
        session: Option<String>,
        #[serde(borrow)]
        params: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Detached {
        #[serde(rename = "sessionId")]
        session: String,
    }
    if let Some(id) = leading_id(&message) {
        return Ok(Message::Reply(id, message));
    }
    let parsed: Envelope<'_> = serde_json::from_slice(&message)?;
    Ok(match parsed {
        Envelope { id: Some(id), .. } => Message::Reply(id, message),
        Envelope { method: Some(method), session: Some(session), params, .. } => {
            let params = params.map_or_else(|| RawValue::NULL.to_owned(), ToOwned::to_owned);
            Message::Event(session, Event { method, params, sequence: 0, worker: None })
        }
        Envelope { method: Some(method), session: None, params: Some(params), .. }
            if method == EventDetachedFromTarget::method_id() =>
        {
            Message::Detached(serde_json::from_str::<Detached>(params.get())?.session)
        }
        Envelope { .. } => Message::Other,
    })
}

/// Chromium writes `id` first: a screenshot of megabytes need not be scanned to find it.
fn leading_id(message: &[u8]) -> Option<u64> {
    let digits = message.strip_prefix(br#"{"id":"#)?;
    let end = digits.iter().take(20).position(|byte| *byte == b',')?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// Reads an answer: the result, or the error the browser reports.
pub(super) fn decode_reply<'a, T: Deserialize<'a>>(
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
    use chromiumoxide_cdp::cdp::browser_protocol::{
        browser::{GetVersionParams, GetVersionReturns},
        page::EventLoadEventFired,
    };

    use super::*;

    #[test]
    fn a_command_is_one_message() {
        let text = encode(7, Some("S"), &GetVersionParams {}).unwrap();
        assert_eq!(text, b"{\"id\":7,\"method\":\"Browser.getVersion\",\"sessionId\":\"S\",\"params\":{}}\0");
        let text = encode(8, None, &GetVersionParams {}).unwrap();
        assert_eq!(text, b"{\"id\":8,\"method\":\"Browser.getVersion\",\"params\":{}}\0");
    }

    #[test]
    fn replies_are_found_wherever_the_id_stands() {
        for text in [r#"{"id":12,"result":{}}"#, r#"{"result":{},"id":12}"#, r#"{ "id": 12, "result": {} }"#]
        {
            let incoming = classify(Bytes::from_static(text.as_bytes())).unwrap();
            assert!(matches!(incoming, Message::Reply(12, _)), "{text}");
        }
    }

    #[test]
    fn an_event_goes_to_its_session() {
        let text = r#"{"method":"Page.loadEventFired","params":{"timestamp":1.5},"sessionId":"S"}"#;
        let Message::Event(session, event) = classify(Bytes::from_static(text.as_bytes())).unwrap() else {
            panic!("an event");
        };
        assert_eq!(session, "S");
        assert!(event.is::<EventLoadEventFired>());
        event.parse::<EventLoadEventFired>().unwrap();
    }

    #[test]
    fn events_of_the_browser_itself_and_rubbish() {
        let text = br#"{"method":"Target.targetCreated","params":{}}"#;
        assert!(matches!(classify(Bytes::from_static(text)).unwrap(), Message::Other));
        classify(Bytes::from_static(b"{")).unwrap_err();
    }

    #[test]
    fn an_answer_is_a_result_or_an_error() {
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
