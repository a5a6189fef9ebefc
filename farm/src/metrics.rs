//! What the farm counts.
//!
//! Invariant: label values come from closed sets of this crate, never from callers or pages.

use std::{fmt, time::Duration};

use platen_shared::{format::OutputFormat, refusal::Refusal};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{counter::Counter, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::{Metric, Registry},
};
use strum::{EnumIter, IntoEnumIterator as _, IntoStaticStr, VariantNames as _};

use crate::job_progress::Phase;

const PREFIX: &str = "platen_farm";

/// Upper bounds of the histograms' buckets, from a small PDF to the deadline.
const SECONDS: [f64; 13] = [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0];

/// The outcome of a job that produced its file.
pub(crate) const RENDERED: &str = "rendered";
/// The outcome of a job whose client disconnected before its end.
pub(crate) const CLIENT_DISCONNECTED: &str = "client_disconnected";

/// Why a browser ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum BrowserEnd {
    /// It exited, or was killed by another program.
    Died,
    /// The farm killed it because it did not respond.
    Killed,
    /// It had rendered its maximum number of jobs.
    Recycled,
    /// It had no job for some minutes.
    Idle,
    /// It exited before it was ready.
    StartFailed,
}

/// Where a job's page comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum PageSource {
    /// Its account has used it before.
    Warm,
    /// It was opened in advance.
    Spare,
    /// It was opened while the job waited.
    Opened,
}

/// How a job waited after its page had loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Waiting {
    /// It did not, because nothing on the page could change.
    Skipped,
    #[strum(serialize = "virtual")]
    VirtualTime,
    /// In real time: the page had an open request, socket or worker, or the browser does not draw on
    /// command.
    #[strum(serialize = "real")]
    RealTime,
}

type Label = [(&'static str, &'static str); 1];
type LabelledCounter = Family<Label, Counter>;

/// The farm's counters and histograms.
#[derive(Debug)]
pub(crate) struct Metrics {
    jobs: LabelledCounter,
    render_seconds: Family<Label, Histogram, fn() -> Histogram>,
    pub(crate) wait_seconds: Histogram,
    pub(crate) retries: Counter,
    pub(crate) real_time_retries: Counter,
    phase_seconds: Family<Label, Histogram, fn() -> Histogram>,
    pages: LabelledCounter,
    pub(crate) pages_opened: Counter,
    pub(crate) pages_closed: Counter,
    waits: LabelledCounter,
    pub(crate) browser_starts: Counter,
    browser_ends: LabelledCounter,
    egress: LabelledCounter,
    pub(crate) egress_bytes: Counter,
}

impl Metrics {
    /// Metrics in a registry that is not read.
    #[cfg(test)]
    pub(crate) fn new() -> Self {
        Self::register(&mut Registry::default())
    }

    pub(crate) fn register(registry: &mut Registry) -> Self {
        let registry = registry.sub_registry_with_prefix(PREFIX);
        let render_seconds = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        let wait_seconds = Histogram::new(SECONDS);
        let phase_seconds = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        for phase in Phase::iter() {
            drop(phase_seconds.get_or_create(&[("phase", phase.into())]));
        }
        registry.register(
            "phase_duration_seconds",
            "Time of the phases of jobs, by phase",
            phase_seconds.clone(),
        );
        let help = "Time from the job's slot to its file, of jobs with a file";
        registry.register("render_seconds", help, render_seconds.clone());
        registry.register("wait_seconds", "Time from the job's arrival to its slot", wait_seconds.clone());
        let metrics = Self {
            render_seconds,
            wait_seconds,
            phase_seconds,
            jobs: counter(registry, "jobs", "Jobs, by outcome"),
            retries: counter(registry, "retries", "Jobs that were tried again on another browser"),
            real_time_retries: counter(
                registry,
                "real_time_retries",
                "Jobs rendered again in real time because their page did not get through its virtual time",
            ),
            pages: counter(registry, "pages", "Pages given to jobs, by source"),
            pages_opened: counter(registry, "pages_opened", "Pages opened"),
            pages_closed: counter(
                registry,
                "pages_closed",
                "Pages closed, those that ended with their browser not counted",
            ),
            waits: counter(registry, "waits", "Waits of jobs for an idle network or a time, by kind of time"),
            browser_starts: counter(registry, "browser_starts", "Browsers started"),
            browser_ends: counter(registry, "browser_ends", "Browsers that ended, by reason"),
            egress: counter(registry, "egress", "Connections that pages requested, by verdict"),
            egress_bytes: counter(registry, "egress_bytes", "Bytes that pages sent and received"),
        };
        metrics.create_series();
        metrics
    }

    /// Creates the series of all values of labels that few jobs have: the rate of a series whose first value is 1 does
    /// not contain that 1.
    fn create_series(&self) {
        for outcome in Refusal::VARIANTS.iter().chain(&[RENDERED, CLIENT_DISCONNECTED]) {
            drop(self.jobs.get_or_create(&[("outcome", outcome)]));
        }
        for reason in BrowserEnd::iter() {
            drop(self.browser_ends.get_or_create(&[("reason", reason.into())]));
        }
        for source in PageSource::iter() {
            drop(self.pages.get_or_create(&[("source", source.into())]));
        }
        for waiting in Waiting::iter() {
            drop(self.waits.get_or_create(&[("time", waiting.into())]));
        }
        // Of the verdicts, those that most connections get.
        for verdict in ["public", "private", "not_found"] {
            drop(self.egress.get_or_create(&[("verdict", verdict)]));
        }
    }

    /// A job ended: [`RENDERED`], [`CLIENT_DISCONNECTED`] or the code of its refusal.
    pub(crate) fn job_ended(&self, outcome: &'static str) {
        self.jobs.get_or_create(&[("outcome", outcome)]).inc();
    }

    pub(crate) fn job_rendered(&self, format: OutputFormat, took: Duration) {
        self.render_seconds.get_or_create(&[("format", format.extension())]).observe(took.as_secs_f64());
    }

    pub(crate) fn phase_ended(&self, phase: Phase, took: Duration) {
        self.phase_seconds.get_or_create(&[("phase", phase.into())]).observe(took.as_secs_f64());
    }

    pub(crate) fn page_given(&self, source: PageSource) {
        self.pages.get_or_create(&[("source", source.into())]).inc();
    }

    pub(crate) fn job_waited(&self, waiting: Waiting) {
        self.waits.get_or_create(&[("time", waiting.into())]).inc();
    }

    pub(crate) fn browser_ended(&self, reason: BrowserEnd) {
        self.browser_ends.get_or_create(&[("reason", reason.into())]).inc();
    }

    pub(crate) fn egress_decided(&self, verdict: &'static str) {
        self.egress.get_or_create(&[("verdict", verdict)]).inc();
    }
}

fn counter<M: Metric + Default + Clone>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// What the gauges show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolState {
    pub(crate) occupancy: Occupancy,
    /// Of the job that waits longest; zero if none waits.
    pub(crate) longest_wait: Duration,
    /// Browsers that can take jobs.
    pub(crate) ready: usize,
    /// Idle pages of accounts.
    pub(crate) warm_pages: usize,
    /// Idle pages that no account has used.
    pub(crate) spare_pages: usize,
    pub(crate) memory_bytes: u64,
}

/// The use of slots and queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Occupancy {
    /// Jobs that may run at once; long jobs allow up to as many in addition.
    pub(crate) slots: usize,
    /// Jobs that have a browser.
    pub(crate) busy: usize,
    /// Jobs in the queue.
    pub(crate) waiting: usize,
}

/// Registers the gauges, which `sample` reads when the metrics are read. `None` leaves them out.
pub(crate) fn register_gauges(
    registry: &mut Registry,
    sample: impl Fn() -> Option<PoolState> + Send + Sync + 'static,
) {
    registry.sub_registry_with_prefix(PREFIX).register_collector(Box::new(Gauges(sample)));
}

struct Gauges<F>(F);

impl<F> fmt::Debug for Gauges<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gauges")
    }
}

impl<F: Fn() -> Option<PoolState> + Send + Sync + 'static> Collector for Gauges<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Some(pool) = self.0() else { return Ok(()) };
        for (name, help, value) in [
            ("slots", "Jobs that can render at the same time.", pool.occupancy.slots),
            ("slots_busy", "Slots in use.", pool.occupancy.busy),
            ("queue_length", "Jobs that wait for a slot.", pool.occupancy.waiting),
            ("browsers", "Browsers that are ready.", pool.ready),
            ("pages_warm", "Idle pages that are kept for the accounts that have used them.", pool.warm_pages),
            ("pages_spare", "Idle pages that no account has used.", pool.spare_pages),
        ] {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let age = ConstGauge::new(pool.longest_wait.as_secs_f64());
        let help = "Time for which the job has waited that waits longest; 0 if none waits.";
        age.encode(encoder.encode_descriptor("queue_age_seconds", help, None, age.metric_type())?)?;
        let memory = ConstGauge::new(i64::try_from(pool.memory_bytes).unwrap_or(i64::MAX));
        let help = "Private memory of the processes of browsers.";
        memory.encode(encoder.encode_descriptor("browser_memory_bytes", help, None, memory.metric_type())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use platen_program::MetricsRegistry;

    #[test]
    fn the_text_has_what_was_counted() {
        let registry = MetricsRegistry::default();
        let metrics = registry.register(Metrics::register);
        let longest_wait = Duration::from_millis(1500);
        let occupancy = Occupancy { slots: 4, busy: 1, waiting: 2 };
        let state =
            PoolState { occupancy, longest_wait, ready: 2, warm_pages: 3, spare_pages: 2, memory_bytes: 5 };
        registry.register(|registry| register_gauges(registry, move || Some(state)));
        metrics.phase_ended(Phase::Settle, Duration::from_millis(40));
        metrics.job_ended("rendered");
        metrics.job_rendered(OutputFormat::Pdf, Duration::from_millis(40));
        metrics.browser_ended(BrowserEnd::Died);
        metrics.job_waited(Waiting::VirtualTime);
        let text = registry.encode();
        for line in [
            r#"platen_farm_jobs_total{outcome="rendered"} 1"#,
            r#"platen_farm_render_seconds_bucket{le="0.05",format="pdf"} 1"#,
            r#"platen_farm_browser_ends_total{reason="died"} 1"#,
            r#"platen_farm_waits_total{time="virtual"} 1"#,
            "platen_farm_slots 4",
            "platen_farm_queue_length 2",
            "platen_farm_queue_age_seconds 1.5",
            "platen_farm_pages_warm 3",
            "platen_farm_browser_memory_bytes 5",
            r#"platen_farm_phase_duration_seconds_bucket{le="0.05",phase="settle"} 1"#,
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
