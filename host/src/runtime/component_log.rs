//! The lines that components write to their standard output and error, as events of the log.
//!
//! Components write one line per request: `key=value` pairs, or a JSON object. Known keys become fields;
//! other text becomes the message.

use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use platen_farm::RepeatedWarning;
use serde_json::{Map, Value};
use tokio::io::AsyncWrite;
use tracing::Level;
use wasmtime_wasi::{
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamResult},
};

use super::grants::Grants;

/// A longer line is split.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Codes of errors whose warnings are limited one by one.
const MAX_CODES: usize = 64;

const FIELDS: &[&str] = &[
    "level",
    "request_id",
    "endpoint",
    "section",
    "account",
    "status",
    "ms",
    "farm_ms",
    "error",
    "code",
    "cause",
    "refund_error",
    "attempt_lost",
];

/// One output stream of an instance; a handle.
#[derive(Clone)]
pub(super) struct ComponentLog(Arc<Mutex<LineBuffer>>);

impl ComponentLog {
    pub(super) fn new(component: Arc<Grants>) -> Self {
        Self(Arc::new(Mutex::new(LineBuffer { component, bytes: Vec::new() })))
    }

    fn push(&self, bytes: &[u8]) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(bytes);
    }
}

impl IsTerminal for ComponentLog {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for ComponentLog {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for ComponentLog {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_LINE_BYTES)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for ComponentLog {
    async fn ready(&mut self) {}
}

impl AsyncWrite for ComponentLog {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct LineBuffer {
    component: Arc<Grants>,
    bytes: Vec<u8>,
}

impl LineBuffer {
    fn push(&mut self, bytes: &[u8]) {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.bytes.extend_from_slice(part);
            if part.ends_with(b"\n") || self.bytes.len() >= MAX_LINE_BYTES {
                self.emit();
            }
        }
    }

    fn emit(&mut self) {
        let text = String::from_utf8_lossy(&self.bytes);
        if !text.trim().is_empty() {
            Line::parse(text.trim()).emit(&self.component.id);
        }
        self.bytes.clear();
    }
}

impl Drop for LineBuffer {
    fn drop(&mut self) {
        self.emit();
    }
}

#[derive(Debug, PartialEq)]
struct Line {
    level: Level,
    message: String,
    fields: BTreeMap<String, String>,
}

impl Line {
    fn parse(text: &str) -> Self {
        let (mut fields, message) = serde_json::from_str(text).map_or_else(|_| pairs(text), members);
        let level = fields.remove("level").and_then(|level| level.parse().ok()).unwrap_or_else(|| {
            if ["refund_error", "attempt_lost"].iter().any(|name| fields.contains_key(*name)) {
                Level::ERROR
            } else if fields.is_empty() || fields.contains_key("cause") {
                // Text without fields is that of a panic.
                Level::WARN
            } else {
                Level::INFO
            }
        });
        Self { level, message, fields }
    }

    /// A request is logged as a warning only once in a while for each code, because a fault that lasts would fill the
    /// log with warnings; the others are logged with the level of requests that succeed.
    fn limited_level(&self) -> Level {
        static WARNINGS: Mutex<BTreeMap<String, RepeatedWarning>> = Mutex::new(BTreeMap::new());
        let Some(code) = self.fields.get("code").filter(|_| self.level == Level::WARN) else {
            return self.level;
        };
        let mut warnings = WARNINGS.lock().unwrap_or_else(PoisonError::into_inner);
        if warnings.len() >= MAX_CODES && !warnings.contains_key(code) {
            warnings.clear();
        }
        let is_due = warnings.entry(code.clone()).or_default().record().is_some();
        if is_due { Level::WARN } else { Level::INFO }
    }

    fn emit(&self, component: &str) {
        let text = |name| self.fields.get(name).map(String::as_str);
        let number = |name| text(name).and_then(|value: &str| value.parse::<u64>().ok());
        macro_rules! emit {
            ($level:expr) => {
                tracing::event!(
                    $level,
                    component,
                    request_id = text("request_id"),
                    endpoint = text("endpoint"),
                    section = text("section"),
                    account = text("account"),
                    status = number("status"),
                    ms = number("ms"),
                    farm_ms = number("farm_ms"),
                    error = text("error"),
                    code = text("code"),
                    cause = text("cause"),
                    refund_error = text("refund_error"),
                    attempt_lost = text("attempt_lost"),
                    "{}",
                    self.message
                )
            };
        }
        match self.limited_level() {
            Level::ERROR => emit!(Level::ERROR),
            Level::WARN => emit!(Level::WARN),
            Level::INFO => emit!(Level::INFO),
            Level::DEBUG => emit!(Level::DEBUG),
            Level::TRACE => emit!(Level::TRACE),
        }
    }
}

/// The fields and the message of a JSON object. Members that are not known stay in the message.
fn members(mut object: Map<String, Value>) -> (BTreeMap<String, String>, String) {
    let plain = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let mut message: Vec<String> = object.remove("message").map(plain).into_iter().collect();
    let mut fields = BTreeMap::new();
    for (name, value) in object {
        if FIELDS.contains(&name.as_str()) {
            fields.insert(name, plain(value));
        } else {
            message.push(format!("{name}={value}"));
        }
    }
    (fields, message.join(" "))
}

/// The fields and the message of `key=value` pairs. Words that are not known pairs stay in the message.
fn pairs(text: &str) -> (BTreeMap<String, String>, String) {
    let (mut fields, mut message) = (BTreeMap::new(), Vec::new());
    let mut rest = text;
    while !rest.is_empty() {
        let (word, after) = rest.split_at(word_length(rest));
        match word.split_once('=') {
            Some((name, value)) if FIELDS.contains(&name) => {
                fields.insert(name.to_owned(), unquoted(value));
            }
            _ => message.push(word),
        }
        rest = after.trim_start();
    }
    if fields.is_empty() {
        return (fields, text.to_owned());
    }
    (fields, message.join(" "))
}

/// Up to the first space outside of quotes.
fn word_length(text: &str) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    text.find(|character: char| {
        let is_end = !quoted && character.is_whitespace();
        quoted ^= character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        is_end
    })
    .unwrap_or(text.len())
}

/// Rust's `Debug` writes most texts as JSON does.
fn unquoted(value: &str) -> String {
    serde_json::from_str(value).unwrap_or_else(|_| value.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_pairs_become_fields_and_other_text_the_message() {
        for (text, level, message, fields) in [
            (
                "platen-edge request_id=a-1 endpoint=render status=200 ms=12 account=\"acc_1\" new=1",
                Level::INFO,
                "platen-edge new=1",
                &[
                    ("request_id", "a-1"),
                    ("endpoint", "render"),
                    ("status", "200"),
                    ("ms", "12"),
                    ("account", "acc_1"),
                ][..],
            ),
            (
                r#"platen-edge request_id=a-1 code="farm_unreachable" cause="no \"farm\" at 1" status=503"#,
                Level::WARN,
                "platen-edge",
                &[
                    ("request_id", "a-1"),
                    ("code", "farm_unreachable"),
                    ("cause", "no \"farm\" at 1"),
                    ("status", "503"),
                ],
            ),
            (
                r#"{"level":"debug","message":"done","request_id":"a-1","ms":3,"other":[1]}"#,
                Level::DEBUG,
                "done other=[1]",
                &[("request_id", "a-1"), ("ms", "3")],
            ),
            (
                "platen-edge request_id=a-1 attempt_lost=\"it\\u{7f} is\"",
                Level::ERROR,
                "platen-edge",
                &[("request_id", "a-1"), ("attempt_lost", "it\\u{7f} is")],
            ),
            ("thread  'main' panicked at a=b \"", Level::WARN, "thread  'main' panicked at a=b \"", &[]),
            ("[1]", Level::WARN, "[1]", &[]),
        ] {
            let line = Line::parse(text);
            assert_eq!((line.level, line.message.as_str()), (level, message), "{text}");
            let expected = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            assert_eq!(line.fields, expected.collect(), "{text}");
        }
    }

    #[test]
    fn equal_failures_are_warnings_only_once_in_a_while() {
        let level = |text: &str| Line::parse(text).limited_level();
        let (first, second) = ("code=\"test_first\" cause=\"x\"", "code=\"test_second\" cause=\"x\"");
        assert_eq!([first, first, second].map(level), [Level::WARN, Level::INFO, Level::WARN]);
        // Lost rows are reported each time, and so are texts of a panic.
        for (text, expected) in [("attempt_lost=\"x\"", Level::ERROR), ("a panic", Level::WARN)] {
            assert_eq!([text, text].map(level), [expected, expected]);
        }
    }
}
