//! Fills the texts of one job.

use std::{collections::BTreeMap, io, sync::LazyLock};

use jiff::tz::{TimeZone, TimeZoneDatabase};
use minijinja::Value;
use platen_shared::{job::Variable, refusal::TemplateLimit};

use crate::{environment::environment, error::FillError, filters, syntax, values::values};

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
    /// A filler for the texts of one job. `data` is the JSON of a [`TemplateData`](platen_shared::job::TemplateData), `time_zone` the
    /// name of a [`TimeZone`](platen_shared::locale::TimeZone) in which times are shown; with others this panics.
    #[must_use]
    pub fn new(data: &str, variables: &BTreeMap<String, Variable>, time_zone: &str) -> Self {
        Self { values: values(data, variables), zone: zone(time_zone), steps: MAX_STEPS }
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
            return Err(FillError::Exceeded(TemplateLimit::Work));
        }
        drop(captured);
        String::from_utf8(text.bytes).map_err(|_| FillError::Exceeded(TemplateLimit::Text))
    }
}

fn zone(name: &str) -> TimeZone {
    static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    ZONES.get(name).expect("the database has all names that a job can have")
}

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

#[cfg(test)]
mod tests {
    use platen_shared::locale;

    use super::*;

    #[test]
    fn the_time_zones_of_jobs_are_known() {
        assert!(locale::TimeZone::names().count() > 400);
        locale::TimeZone::names().chain(["UTC"]).for_each(|name| drop(zone(name)));
    }
}
