//! One message while it arrives, of which no more is kept than a receiver can use.
//!
//! Texts in events are as long as a page makes them, above all `data:` URLs. So long ones are cut.
//!
//! Invariant: what is kept of an event is JSON. What is kept of a message is bounded.

use memchr::{memchr, memchr2};

use crate::message::leading_id;

/// A string in an event is cut to about this length, in bytes of JSON.
const MAX_STRING_BYTES: usize = 256 * 1024;
/// An escape sequence is not cut.
const MAX_ESCAPE_BYTES: usize = 6;
/// A string in an event that has at least this many bytes of JSON may have been cut.
pub const MIN_CUT_STRING_BYTES: usize = MAX_STRING_BYTES - MAX_ESCAPE_BYTES;
/// Many times as much as the largest ordinary event.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;
/// So many bytes of a message tell the id of a reply.
const HEAD_BYTES: usize = 32;
/// The beginnings of events that have no receiver, and of which a page can make any number: calls of its console, and its
/// execution contexts.
const UNWANTED: [&[u8; HEAD_BYTES]; 2] =
    [br#"{"method":"Runtime.consoleAPICal"#, br#"{"method":"Runtime.executionCont"#];

#[derive(Debug, Default)]
pub(crate) struct IncomingMessage {
    text: Vec<u8>,
    kind: Kind,
    is_too_large: bool,
}

#[derive(Debug, Default)]
enum Kind {
    /// Less than [`HEAD_BYTES`] have arrived.
    #[default]
    Unknown,
    Reply {
        id: u64,
        max_bytes: usize,
    },
    Event(Position),
    /// An event that is discarded.
    Unwanted,
}

/// The position in an event, with the number of bytes that are kept of the current string.
#[derive(Debug, Clone, Copy)]
enum Position {
    OutsideOfStrings,
    InString(usize),
    AfterBackslash(usize),
}
use Position::{AfterBackslash, InString, OutsideOfStrings};

#[derive(Debug)]
pub(crate) enum Arrived {
    Message(Vec<u8>),
    /// The reply to the command with this id.
    LargeReply(u64),
    LargeEvent,
    /// An event that has no receiver.
    Unwanted,
}

impl IncomingMessage {
    /// Adds the next part. `max_reply_bytes` is the limit of the reply to the command with an id.
    pub(crate) fn push(&mut self, mut part: &[u8], max_reply_bytes: impl FnOnce(u64) -> usize) {
        if let Kind::Unknown = self.kind {
            let (head, rest) = part.split_at(part.len().min(HEAD_BYTES - self.text.len()));
            self.text.extend_from_slice(head);
            part = rest;
            if self.text.len() < HEAD_BYTES {
                return;
            }
            if let Some(id) = leading_id(&self.text) {
                self.kind = Kind::Reply { id, max_bytes: max_reply_bytes(id) };
            } else if UNWANTED.iter().any(|head| head[..] == self.text) {
                (self.text, self.kind) = (Vec::new(), Kind::Unwanted);
            } else {
                let head = std::mem::take(&mut self.text);
                self.push_event(&head, OutsideOfStrings);
            }
        }
        match self.kind {
            Kind::Unknown | Kind::Unwanted => {}
            Kind::Reply { max_bytes, .. } => self.keep(part, max_bytes),
            Kind::Event(position) => self.push_event(part, position),
        }
    }

    pub(crate) fn finish(self) -> Arrived {
        match self.kind {
            Kind::Unwanted => Arrived::Unwanted,
            _ if !self.is_too_large => Arrived::Message(self.text),
            Kind::Reply { id, .. } => Arrived::LargeReply(id),
            _ => Arrived::LargeEvent,
        }
    }

    fn push_event(&mut self, mut part: &[u8], mut position: Position) {
        while let Some(&next) = part.first() {
            let (taken, kept);
            (taken, kept, position) = match (position, next) {
                (OutsideOfStrings, _) => match memchr(b'"', part) {
                    Some(quote) => (quote + 1, quote + 1, InString(0)),
                    None => (part.len(), part.len(), position),
                },
                (InString(_), b'"') => (1, 1, OutsideOfStrings),
                (InString(length), b'\\') if length + MAX_ESCAPE_BYTES <= MAX_STRING_BYTES => {
                    (1, 1, AfterBackslash(length + 1))
                }
                // The string is cut here.
                (InString(_), b'\\') => (1, 0, AfterBackslash(MAX_STRING_BYTES)),
                (InString(length), _) => {
                    let taken = memchr2(b'"', b'\\', part).unwrap_or(part.len());
                    let kept = taken.min(MAX_STRING_BYTES - length);
                    (taken, kept, InString(length + kept))
                }
                // Not the end of the string, whatever it is.
                (AfterBackslash(MAX_STRING_BYTES), _) => (1, 0, InString(MAX_STRING_BYTES)),
                (AfterBackslash(length), _) => (1, 1, InString(length + 1)),
            };
            self.keep(&part[..kept], MAX_EVENT_BYTES);
            part = &part[taken..];
        }
        self.kind = Kind::Event(position);
    }

    fn keep(&mut self, part: &[u8], max_bytes: usize) {
        if self.is_too_large || self.text.len() + part.len() > max_bytes {
            (self.text, self.is_too_large) = (Vec::new(), true);
        } else {
            self.text.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The message after it has arrived in parts of this many bytes.
    fn arrived(message: &str, part_bytes: usize) -> Arrived {
        let mut incoming = IncomingMessage::default();
        for part in message.as_bytes().chunks(part_bytes) {
            incoming.push(part, |id| if id == 1 { 1_000 } else { 4_000_000 });
        }
        incoming.finish()
    }

    fn json_of(message: &str, part_bytes: usize) -> Value {
        let Arrived::Message(text) = arrived(message, part_bytes) else { panic!("it is not too large") };
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn long_strings_of_events_are_cut() {
        for unit in ["x", "\"", "\u{1}", "x\\\""] {
            for offset in 0..MAX_ESCAPE_BYTES {
                let long = "-".repeat(offset) + &unit.repeat(MAX_STRING_BYTES / unit.len() + 1);
                let params = json!({ "a": [long, "\\", ""], "b": { "c": "\"d\"" } });
                let message = json!({ "method": "M", "params": params, "sessionId": "S" });
                let mut kept = json_of(&message.to_string(), 65_536);
                let cut = kept["params"]["a"][0].take();
                let bytes = cut.to_string().len() - 2;
                assert!((MIN_CUT_STRING_BYTES..=MAX_STRING_BYTES).contains(&bytes), "{unit}: {bytes}");
                assert!(long.starts_with(cut.as_str().unwrap()), "{unit}");
                kept["params"]["a"][0] = long.into();
                assert!(kept == message, "{unit}: the rest");
            }
        }
    }

    #[test]
    fn other_messages_are_kept_however_they_arrive() {
        let long = "x".repeat(MIN_CUT_STRING_BYTES - 1);
        for message in [
            json!({}),
            json!({ "id": 2, "result": {} }),
            json!({ "id": 2, "result": { "data": "x".repeat(300_000) } }),
            json!({ "method": "M", "params": { "url": long, "name\"": "\u{1}\\" }, "sessionId": "S" }),
        ] {
            let text = message.to_string();
            for part_bytes in [1, 7, 31, 33, 65_536] {
                assert!(json_of(&text, part_bytes) == message, "{part_bytes} {text:.50}");
            }
        }
    }

    #[test]
    fn events_without_a_receiver_are_discarded() {
        for (method, is_kept) in [
            ("Runtime.consoleAPICalled", false),
            ("Runtime.executionContextCreated", false),
            ("Runtime.executionContextsCleared", false),
            ("Runtime.exceptionThrown", true),
            ("Runtime.exceptionRevoked", true),
        ] {
            let message =
                json!({ "method": method, "params": { "text": "x\"".repeat(9) }, "sessionId": "S" });
            for part_bytes in [1, 31, 32, 33, 65_536] {
                let arrived = arrived(&message.to_string(), part_bytes);
                assert_eq!(matches!(arrived, Arrived::Message(_)), is_kept, "{method}");
                assert_eq!(matches!(arrived, Arrived::Unwanted), !is_kept, "{method}");
            }
        }
    }

    #[test]
    fn too_large_messages_are_not_kept() {
        let reply = |id: u64, bytes| json!({ "id": id, "result": { "data": "x".repeat(bytes) } }).to_string();
        for (id, bytes) in [(1, 1_000), (1, 1_000_000), (2, 4_000_000)] {
            assert!(matches!(arrived(&reply(id, bytes), 65_536), Arrived::LargeReply(it) if it == id));
        }
        let numbers = "1,".repeat(MAX_EVENT_BYTES / 2);
        let event = format!(r#"{{"method":"M","params":{{"a":[{numbers}1]}},"sessionId":"S"}}"#);
        assert!(matches!(arrived(&event, 65_536), Arrived::LargeEvent));
    }
}
