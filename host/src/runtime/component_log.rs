//! The lines that components write to their standard output and error, as events of the log.

use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use parking_lot::Mutex;
use platen_program::RepeatedWarning;
use platen_shared::log_line::{LogLevel, LogLine};
use tokio::io::AsyncWrite;
use wasmtime_wasi::{
    cli::{IsTerminal, StdoutStream},
    p2::{OutputStream, Pollable, StreamResult},
};

use super::Grants;

/// A longer line is split.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// One output stream of an instance; a handle.
#[derive(Clone)]
pub(super) struct ComponentLog(Arc<Mutex<LineBuffer>>);

impl ComponentLog {
    pub(super) fn new(component: Arc<Grants>) -> Self {
        Self(Arc::new(Mutex::new(LineBuffer { component, bytes: Vec::new() })))
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
        self.0.lock().push(&bytes);
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
        self.0.lock().push(bytes);
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
            emit(self.component.id, &line(text.trim()));
        }
        self.bytes.clear();
    }
}

impl Drop for LineBuffer {
    fn drop(&mut self) {
        self.emit();
    }
}

/// What is no line of a component's log is that of a panic.
fn line(text: &str) -> LogLine {
    serde_json::from_str(text).unwrap_or_else(|_| LogLine {
        level: LogLevel::Warn,
        message: text.to_owned(),
        ..LogLine::default()
    })
}

/// A request is logged as a warning only once in a while for each code, because a fault that lasts would fill the
/// log with warnings; the others are logged with the level of requests that succeed.
fn limited_level(line: &LogLine) -> LogLevel {
    static WARNINGS: Mutex<BTreeMap<String, RepeatedWarning>> = Mutex::new(BTreeMap::new());
    let Some(code) = line.code.as_ref().filter(|_| line.level == LogLevel::Warn) else { return line.level };
    let is_due = WARNINGS.lock().entry(code.clone()).or_default().record().is_some();
    if is_due { LogLevel::Warn } else { LogLevel::Info }
}

fn emit(component: &str, line: &LogLine) {
    macro_rules! event {
        ($level:ident) => {
            tracing::event!(
                tracing::Level::$level,
                component,
                request_id = line.request_id,
                endpoint = line.endpoint,
                section = line.section,
                account = line.account,
                status = line.status,
                ms = line.ms,
                farm_ms = line.farm_ms,
                code = line.code,
                error = line.error,
                cause = line.cause,
                attempts = line.attempts,
                attempts_in_all = line.attempts_in_all,
                "{}",
                line.message
            )
        };
    }
    match limited_level(line) {
        LogLevel::Error => event!(ERROR),
        LogLevel::Warn => event!(WARN),
        LogLevel::Info => event!(INFO),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_no_line_is_a_warning() {
        let expected = LogLine { request_id: Some("a".to_owned()), ms: Some(3), ..LogLine::default() };
        assert_eq!(line(r#"{"level":"info","message":"","request_id":"a","ms":3,"other":[1]}"#), expected);
        for text in ["thread  'main' panicked at a=b \"", "[1]", r#"{"ms":"x"}"#] {
            let expected = LogLine { level: LogLevel::Warn, message: text.to_owned(), ..LogLine::default() };
            assert_eq!(line(text), expected);
        }
    }

    #[test]
    fn equal_failures_are_warnings_only_once_in_a_while() {
        let warning = |code: Option<&str>| {
            let line = LogLine { level: LogLevel::Warn, code: code.map(str::to_owned), ..LogLine::default() };
            limited_level(&line)
        };
        let codes = ["test_first", "test_first", "test_second"];
        let expected = [LogLevel::Warn, LogLevel::Info, LogLevel::Warn];
        assert_eq!(codes.map(|code| warning(Some(code))), expected);
        // Texts of a panic are reported each time, and so are lost rows.
        assert_eq!([None, None].map(warning), [LogLevel::Warn, LogLevel::Warn]);
        let lost = LogLine { level: LogLevel::Error, ..LogLine::default() };
        assert_eq!([&lost, &lost].map(limited_level), [LogLevel::Error, LogLevel::Error]);
    }
}
