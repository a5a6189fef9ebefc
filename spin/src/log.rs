//! Lines of the log, on standard error.

use std::{error::Error, io::Write as _};

use platen_shared::log_line::LogLine;

/// Writes a line in one call, so that lines of concurrent requests do not mix. There is no place to report a
/// failure.
pub fn write(line: &LogLine) {
    if let Ok(mut text) = serde_json::to_vec(line) {
        text.push(b'\n');
        let _ = std::io::stderr().write_all(&text);
    }
}

/// An error with the chain of its causes.
#[must_use]
pub fn with_causes(mut error: &dyn Error) -> String {
    let mut text = error.to_string();
    while let Some(source) = error.source() {
        text = format!("{text}: {source}");
        error = source;
    }
    text
}
