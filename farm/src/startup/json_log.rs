//! Log lines as flat JSON objects.
//!
//! The JSON format of `tracing-subscriber` is not used because it drops the causes of errors.

use std::{error::Error, fmt, iter};

use serde_json::{Map, Value};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::Writer,
        time::{FormatTime as _, SystemTime},
    },
    registry::LookupSpan,
};

/// One line: `timestamp`, `level` and `message`, and the fields of an event.
pub(super) struct JsonLine(Map<String, Value>);

impl JsonLine {
    pub(super) fn new(level: Level, message: &str) -> Self {
        let mut timestamp = String::new();
        // Writing to a string cannot fail.
        let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
        let members = [("timestamp", timestamp.as_str()), ("level", level.as_str()), ("message", message)];
        Self(members.map(|(name, text)| (name.to_owned(), text.into())).into_iter().collect())
    }

    fn insert(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl fmt::Display for JsonLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(&self.0).map_err(|_| fmt::Error)?)
    }
}

impl Visit for JsonLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.insert(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.insert(field, value);
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let causes = iter::successors(Some(value), |&error| error.source());
        self.insert(field, causes.map(ToString::to_string).collect::<Vec<_>>().join(": "));
    }
}

/// Writes each event as a [`JsonLine`].
pub(super) struct JsonFormat;

impl<S, N> FormatEvent<S, N> for JsonFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = JsonLine::new(*event.metadata().level(), "");
        line.0.insert("target".to_owned(), event.metadata().target().into());
        event.record(&mut line);
        writeln!(writer, "{line}")
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{self, Write},
        sync::{Arc, Mutex},
    };

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);

    #[test]
    fn a_line_has_the_fields_and_the_causes_of_an_error() {
        let written = Written::default();
        let writer = written.clone();
        let log = tracing_subscriber::fmt().event_format(JsonFormat).with_writer(move || writer.clone());
        tracing::subscriber::with_default(log.finish(), || {
            let error = Outer(io::Error::other("inner"));
            let absent: Option<&str> = None;
            tracing::warn!(
                error = &error as &dyn Error,
                text = "a\nb",
                number = 3_u64,
                absent,
                "it {}",
                "failed"
            );
        });
        let bytes = written.0.lock().unwrap();
        let line: Value = serde_json::from_slice(bytes.strip_suffix(b"\n").unwrap()).unwrap();
        assert_eq!(line["timestamp"].as_str().unwrap().len(), "2026-01-01T00:00:00.000000Z".len());
        let expected = serde_json::json!({
            "timestamp": line["timestamp"],
            "level": "WARN",
            "target": module_path!(),
            "message": "it failed",
            "error": "outer: inner",
            "text": "a\nb",
            "number": 3,
        });
        assert_eq!(line, expected);
    }
}
