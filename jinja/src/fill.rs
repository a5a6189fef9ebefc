//! Fills the texts of one job.

use std::{io, sync::LazyLock, thread};

use jiff::tz::{TimeZone, TimeZoneDatabase};
use minijinja::Value;

use crate::{
    environment::environment,
    error::{FillError, Limit},
    filters, syntax,
    values::Values,
};

/// Steps of all texts of a job: instructions, and 64 bytes of what they make. A row of an invoice takes some hundred.
pub const MAX_STEPS: u64 = 1_000_000;
/// The values of a job, and what its texts have left of the limits.
#[derive(Debug)]
pub struct Filler {
    values: Value,
    zone: TimeZone,
    steps: u64,
}

impl Filler {
    /// A filler for the texts of one job. Times are shown in a zone of the IANA database, or else in UTC.
    ///
    /// # Errors
    /// A name that two values have, as [`InvalidData::Repeated`](crate::InvalidData::Repeated).
    pub fn new(values: Values, zone: &str) -> Result<Self, crate::InvalidData> {
        static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
        let zone = ZONES.get(zone).unwrap_or(TimeZone::UTC);
        Ok(Self { values: values.into_value()?, zone, steps: MAX_STEPS })
    }

    /// Fills a template.
    ///
    /// # Errors
    /// The first error of the template with these values, or a limit: of its text, `max_bytes`.
    pub fn fill(&mut self, template: &str, max_bytes: usize) -> Result<String, FillError> {
        syntax::limit_tokens(template)
            .map_err(|error| FillError::Failed { line: error.line, message: error.message })?;
        let mut environment = environment();
        filters::add(&mut environment, &self.zone);
        environment.set_fuel(Some(self.steps));
        let template = environment.template_from_str(template).map_err(|error| FillError::of(&error))?;
        let mut text = BoundedText { bytes: Vec::new(), max_bytes };
        let captured = template
            .render_captured_to(self.values.clone(), &mut text)
            .map_err(|error| FillError::of(&error))?;
        self.steps = captured.state().fuel_levels().map_or(0, |(_, left)| left);
        if self.steps == 0 {
            return Err(FillError::Exceeded(Limit::Work));
        }
        drop(captured);
        String::from_utf8(text.bytes).map_err(|_| FillError::Exceeded(Limit::Text))
    }
}

/// Runs what fills the texts of a job. Values that a template has nested by its steps are dropped, compared and printed by
/// recursion, which a stack of the usual size would not suffice for.
///
/// # Errors
/// If no thread can be started.
pub fn fill_all<T: Send + 'static>(fill: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let thread = thread::Builder::new().name("fill".to_owned()).stack_size(STACK_BYTES).spawn(fill)?;
    thread.join().map_err(|_| io::Error::other("the thread has panicked"))
}

/// Pages of it take memory once they are used.
const STACK_BYTES: usize = 256 * 1024 * 1024;

struct BoundedText {
    bytes: Vec<u8>,
    max_bytes: usize,
}

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.max_bytes {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
