//! What the farm counts, for Prometheus.
//!
//! Invariant: label values come from closed sets of this crate; no host name, account or other
//! text of a caller's becomes one.

use std::{fmt::Write as _, time::Duration};

use platen_shared::format::OutputFormat;
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::admission::Occupancy;

/// The media type of [`Metrics::render`]'s text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// From a tiny PDF to the deadline.
const SECONDS: [f64; 13] = [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0];

/// The outcome of a job that gave its file.
pub(crate) const RENDERED: &str = "rendered";
/// The outcome of a job whose caller disconnected before its end.
pub(crate) const CLIENT_DISCONNECTED: &str = "client_disconnected";

/// Why there is a browser less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BrowserEnd {
    /// By itself, or killed by somebody else.
    Died,
    /// Killed by the farm because it hung.
    Killed,
    /// After its number of jobs.
    Recycled,
    /// It never came up.
    StartFailed,
}

/// Where a job's page comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageSource {
    /// Its account has used it before.
    Warm,
    /// It was opened ahead.
    Spare,
    /// It was opened while the job waited.
    Opened,
}

/// How a job has waited for its page after it had loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Not at all: the page was proven to stand still.
    Skipped,
    /// In virtual time.
    VirtualTime,
    /// In real time: the page held a request or a socket open, had workers, or the browser draws by
    /// itself.
    RealTime,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByTime {
    time: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BySource {
    source: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByVerdict {
    verdict: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByFormat {
    format: &'static str,
}

/// The farm's counters.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    jobs: Family<ByOutcome, Counter>,
    render_seconds: Family<ByFormat, Histogram, fn() -> Histogram>,
    wait_seconds: Histogram,
    retries: Counter,
    real_time_retries: Counter,
    pages: Family<BySource, Counter>,
    waits: Family<ByTime, Counter>,
    slots: Gauge,
    slots_busy: Gauge,
    waiting: Gauge,
    browsers: Gauge,
    browser_starts: Counter,
    browser_ends: Family<ByReason, Counter>,
    background_pauses: Counter,
    egress: Family<ByVerdict, Counter>,
    egress_bytes: Counter,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        let mut metrics = Self {
            registry: Registry::with_prefix("platen_farm"),
            jobs: Family::default(),
            render_seconds: Family::new_with_constructor(histogram),
            wait_seconds: histogram(),
            retries: Counter::default(),
            real_time_retries: Counter::default(),
            pages: Family::default(),
            waits: Family::default(),
            slots: Gauge::default(),
            slots_busy: Gauge::default(),
            waiting: Gauge::default(),
            browsers: Gauge::default(),
            browser_starts: Counter::default(),
            browser_ends: Family::default(),
            background_pauses: Counter::default(),
            egress: Family::default(),
            egress_bytes: Counter::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("jobs", "Jobs by how they ended", metrics.jobs.clone());
        registry.register(
            "render_seconds",
            "From slot to file, of jobs that gave one",
            metrics.render_seconds.clone(),
        );
        registry.register("wait_seconds", "From arrival to slot", metrics.wait_seconds.clone());
        registry.register("retries", "Jobs tried again on another page", metrics.retries.clone());
        registry.register(
            "real_time_retries",
            "Jobs rendered again in real time because their page did not get through its virtual time",
            metrics.real_time_retries.clone(),
        );
        registry.register("pages", "Pages given to jobs, by where they came from", metrics.pages.clone());
        registry.register(
            "waits",
            "Jobs that waited for an idle network or a time, by the time that passed",
            metrics.waits.clone(),
        );
        registry.register("slots", "Jobs that can render at once", metrics.slots.clone());
        registry.register("slots_busy", "Slots in use", metrics.slots_busy.clone());
        registry.register("queue_length", "Jobs that wait for a slot", metrics.waiting.clone());
        registry.register("browsers", "Browsers that are ready", metrics.browsers.clone());
        registry.register("browser_starts", "Browsers started", metrics.browser_starts.clone());
        registry.register("browser_ends", "Browsers gone, by reason", metrics.browser_ends.clone());
        registry.register(
            "background_pauses",
            "Pauses of background browsers while other jobs began",
            metrics.background_pauses.clone(),
        );
        registry.register("egress", "Connections that pages asked for, by verdict", metrics.egress.clone());
        registry.register("egress_bytes", "Bytes that pages sent and received", metrics.egress_bytes.clone());
        metrics
    }

    /// A job ended: [`RENDERED`], [`CLIENT_DISCONNECTED`] or the code of its refusal.
    pub(crate) fn job_ended(&self, outcome: &'static str) {
        self.jobs.get_or_create(&ByOutcome { outcome }).inc();
    }

    /// A job got its slot.
    pub(crate) fn job_admitted(&self, waited: Duration) {
        self.wait_seconds.observe(waited.as_secs_f64());
    }

    /// A job gave a file.
    pub(crate) fn job_rendered(&self, format: OutputFormat, took: Duration) {
        self.render_seconds
            .get_or_create(&ByFormat { format: format.extension() })
            .observe(took.as_secs_f64());
    }

    /// A job is tried again.
    pub(crate) fn job_retried(&self) {
        self.retries.inc();
    }

    /// A job is rendered again in real time.
    pub(crate) fn job_needs_real_time(&self) {
        self.real_time_retries.inc();
    }

    /// A job got a page.
    pub(crate) fn page_given(&self, source: PageSource) {
        let source = match source {
            PageSource::Warm => "warm",
            PageSource::Spare => "spare",
            PageSource::Opened => "opened",
        };
        self.pages.get_or_create(&BySource { source }).inc();
    }

    /// A job has waited.
    pub(crate) fn job_waited(&self, waiting: Waiting) {
        let time = match waiting {
            Waiting::Skipped => "skipped",
            Waiting::VirtualTime => "virtual",
            Waiting::RealTime => "real",
        };
        self.waits.get_or_create(&ByTime { time }).inc();
    }

    pub(crate) fn browser_started(&self) {
        self.browser_starts.inc();
    }

    pub(crate) fn background_paused(&self) {
        self.background_pauses.inc();
    }

    pub(crate) fn browser_ended(&self, reason: BrowserEnd) {
        let reason = match reason {
            BrowserEnd::Died => "died",
            BrowserEnd::Killed => "killed",
            BrowserEnd::Recycled => "recycled",
            BrowserEnd::StartFailed => "start_failed",
        };
        self.browser_ends.get_or_create(&ByReason { reason }).inc();
    }

    /// A connection was decided on.
    pub(crate) fn egress_decided(&self, verdict: &'static str) {
        self.egress.get_or_create(&ByVerdict { verdict }).inc();
    }

    /// A page sent or received something.
    pub(crate) fn egress_bytes(&self, bytes: u64) {
        self.egress_bytes.inc_by(bytes);
    }

    /// The text that Prometheus reads.
    pub(crate) fn render(&self, occupancy: Occupancy, browsers: usize) -> String {
        let set = |gauge: &Gauge, value: usize| gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        set(&self.slots, occupancy.slots);
        set(&self.slots_busy, occupancy.busy);
        set(&self.waiting, occupancy.waiting);
        set(&self.browsers, browsers);
        let mut text = String::new();
        if let Err(error) = text::encode(&mut text, &self.registry) {
            let _ = writeln!(text, "# {error}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_what_was_counted() {
        let metrics = Metrics::new();
        metrics.job_ended("rendered");
        metrics.job_rendered(OutputFormat::Pdf, Duration::from_millis(40));
        metrics.browser_ended(BrowserEnd::Died);
        metrics.job_waited(Waiting::VirtualTime);
        let text = metrics.render(Occupancy { slots: 4, busy: 1, waiting: 2 }, 2);
        for line in [
            r#"platen_farm_jobs_total{outcome="rendered"} 1"#,
            r#"platen_farm_render_seconds_bucket{le="0.05",format="pdf"} 1"#,
            r#"platen_farm_browser_ends_total{reason="died"} 1"#,
            r#"platen_farm_waits_total{time="virtual"} 1"#,
            "platen_farm_slots 4",
            "platen_farm_queue_length 2",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
