//! What the farm counts.
//!
//! Invariant: label values come from closed sets of this crate, never from callers or pages.

use std::{fmt, time::Duration};

use platen_shared::refusal::Refusal;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::Counter, family::Family, gauge::ConstGauge, histogram::Histogram},
    registry::{Metric, Registry},
};
use strum::{EnumIter, IntoEnumIterator as _, IntoStaticStr, VariantNames as _};

use crate::job_progress::{Phase, Phases};

pub(crate) const PREFIX: &str = "platen_farm";

/// Upper bounds of the histograms' buckets, from a small PDF to the deadline.
const SECONDS: [f64; 13] = [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0];

pub(crate) const RENDERED: &str = "rendered";
/// The outcome of a job whose client disconnected before its end.
pub(crate) const CLIENT_DISCONNECTED: &str = "client_disconnected";

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
    /// Passed in real time: the page had an open request, socket or worker, or the browser does not draw on
    /// command.
    #[strum(serialize = "real")]
    RealTime,
}

type Label = [(&'static str, &'static str); 1];

/// A metric for each value of its label.
#[derive(Debug)]
pub(crate) struct Labelled<M> {
    label: &'static str,
    family: Family<Label, M, fn() -> M>,
}

impl<M: Clone> Labelled<M> {
    pub(crate) fn of(&self, value: impl Into<&'static str>) -> M {
        self.family.get_or_create_owned(&[(self.label, value.into())])
    }

    /// Creates the series of values that few jobs have: the rate of a series whose first value is 1 does not contain that 1.
    fn create(&self, values: impl IntoIterator<Item: Into<&'static str>>) {
        values.into_iter().for_each(|value| drop(self.of(value)));
    }
}

#[derive(Debug)]
pub(crate) struct Metrics {
    /// Counted by [`RENDERED`], [`CLIENT_DISCONNECTED`] or the code of a refusal.
    pub(crate) jobs: Labelled<Counter>,
    /// Measured by the extension of the format.
    pub(crate) render_seconds: Labelled<Histogram>,
    pub(crate) wait_seconds: Histogram,
    pub(crate) retries: Counter,
    pub(crate) real_time_retries: Counter,
    pub(crate) phase_seconds: Labelled<Histogram>,
    pub(crate) pages: Labelled<Counter>,
    pub(crate) pages_opened: Counter,
    pub(crate) pages_closed: Counter,
    pub(crate) waits: Labelled<Counter>,
    pub(crate) browser_starts: Counter,
    pub(crate) browser_ends: Labelled<Counter>,
    /// Counted by the name of a verdict.
    pub(crate) egress: Labelled<Counter>,
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
        let seconds = || Histogram::new(SECONDS);
        let metrics = Self {
            phase_seconds: labelled(
                registry,
                "phase_duration_seconds",
                "Time of the phases of jobs, by phase",
                "phase",
                seconds,
            ),
            render_seconds: labelled(
                registry,
                "render_seconds",
                "Time from the job's slot to its file, of jobs with a file",
                "format",
                seconds,
            ),
            wait_seconds: add(registry, "wait_seconds", "Time from the job's arrival to its slot", seconds()),
            jobs: labelled(registry, "jobs", "Jobs, by outcome", "outcome", Counter::default),
            retries: counter(registry, "retries", "Jobs that were tried again on another browser"),
            real_time_retries: counter(
                registry,
                "real_time_retries",
                "Jobs rendered again in real time because their page did not get through its virtual time",
            ),
            pages: labelled(registry, "pages", "Pages given to jobs, by source", "source", Counter::default),
            pages_opened: counter(registry, "pages_opened", "Pages opened"),
            pages_closed: counter(
                registry,
                "pages_closed",
                "Pages closed, those that ended with their browser not counted",
            ),
            waits: labelled(
                registry,
                "waits",
                "Waits of jobs for an idle network or a time, by kind of time",
                "time",
                Counter::default,
            ),
            browser_starts: counter(registry, "browser_starts", "Browsers started"),
            browser_ends: labelled(
                registry,
                "browser_ends",
                "Browsers that ended, by reason",
                "reason",
                Counter::default,
            ),
            egress: labelled(
                registry,
                "egress",
                "Connections that pages requested, by verdict",
                "verdict",
                Counter::default,
            ),
            egress_bytes: counter(registry, "egress_bytes", "Bytes that pages sent and received"),
        };
        metrics.phase_seconds.create(Phase::iter());
        metrics.jobs.create(Refusal::VARIANTS.iter().copied().chain([RENDERED, CLIENT_DISCONNECTED]));
        metrics.browser_ends.create(BrowserEnd::iter());
        metrics.pages.create(PageSource::iter());
        metrics.waits.create(Waiting::iter());
        // Those that most connections get.
        metrics.egress.create(["public", "private", "not_found"]);
        metrics
    }
}

fn add<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}

fn counter(registry: &mut Registry, name: &str, help: &str) -> Counter {
    add(registry, name, help, Counter::default())
}

fn labelled<M>(
    registry: &mut Registry,
    name: &str,
    help: &str,
    label: &'static str,
    new: fn() -> M,
) -> Labelled<M>
where
    Family<Label, M, fn() -> M>: Metric,
{
    Labelled { label, family: add(registry, name, help, Family::new_with_constructor(new)) }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolState {
    pub(crate) occupancy: Occupancy,
    /// The time of the job that waits longest; zero if none waits.
    pub(crate) longest_wait: Duration,
    pub(crate) ready: usize,
    /// Idle pages of accounts.
    pub(crate) warm_pages: usize,
    /// Idle pages that no account has used.
    pub(crate) spare_pages: usize,
    pub(crate) memory_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Occupancy {
    /// Jobs that may run at once; long jobs allow up to as many in addition.
    pub(crate) slots: usize,
    pub(crate) busy: usize,
    pub(crate) waiting: usize,
}

impl PoolState {
    /// Writes the gauges, whose names begin with [`PREFIX`].
    pub(crate) fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut gauge = |name: &str, help: &str, gauge: &dyn EncodeMetric| {
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        for (name, help, value) in [
            ("slots", "Jobs that can render at the same time.", self.occupancy.slots as u64),
            ("slots_busy", "Slots in use.", self.occupancy.busy as u64),
            ("queue_length", "Jobs that wait for a slot.", self.occupancy.waiting as u64),
            ("browsers", "Browsers that are ready.", self.ready as u64),
            (
                "pages_warm",
                "Idle pages that are kept for the accounts that have used them.",
                self.warm_pages as u64,
            ),
            ("pages_spare", "Idle pages that no account has used.", self.spare_pages as u64),
            ("browser_memory_bytes", "Private memory of the processes of browsers.", self.memory_bytes),
        ] {
            gauge(name, help, &ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)))?;
        }
        let help = "Time for which the job has waited that waits longest; 0 if none waits.";
        gauge("queue_age_seconds", help, &ConstGauge::new(self.longest_wait.as_secs_f64()))
    }
}

/// Counts a job when it ends, also when its future is dropped because the client disconnected.
pub(crate) struct OutcomeGuard<'a> {
    pub(crate) metrics: &'a Metrics,
    pub(crate) outcome: &'static str,
    pub(crate) phases: &'a Phases,
}

impl Drop for OutcomeGuard<'_> {
    fn drop(&mut self) {
        self.metrics.jobs.of(self.outcome).inc();
        for (phase, time) in self.phases.times() {
            self.metrics.phase_seconds.of(phase).observe(time.as_secs_f64());
        }
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
        metrics.phase_seconds.of(Phase::Settle).observe(0.04);
        metrics.jobs.of("rendered").inc();
        metrics.render_seconds.of("pdf").observe(0.04);
        metrics.browser_ends.of(BrowserEnd::Died).inc();
        let text = registry.encode();
        for line in [
            r#"platen_farm_jobs_total{outcome="rendered"} 1"#,
            r#"platen_farm_render_seconds_bucket{le="0.05",format="pdf"} 1"#,
            r#"platen_farm_browser_ends_total{reason="died"} 1"#,
            r#"platen_farm_waits_total{time="virtual"} 0"#,
            r#"platen_farm_phase_duration_seconds_bucket{le="0.05",phase="settle"} 1"#,
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
