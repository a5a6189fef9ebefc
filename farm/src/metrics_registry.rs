//! The metrics of one process: a registry that its parts register with, and its text for Prometheus.

mod family_text;

use std::{
    fmt::{self, Write as _},
    fs,
    sync::Arc,
    time::{Duration, SystemTime},
};

use nix::sys::{
    resource::{Resource, UsageWho, getrlimit, getrusage},
    time::TimeValLike as _,
};
use parking_lot::Mutex;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, text},
    metrics::{counter::ConstCounter, family::Family, gauge::ConstGauge, gauge::Gauge},
    registry::Registry,
};

pub(crate) use self::family_text::{FamilyText, Sample};

/// The registry of a process: a cheap handle. A new one holds `platen_build_info` and the `process_*`
/// metrics.
#[derive(Debug, Clone)]
pub struct MetricsRegistry(Arc<Mutex<Registry>>);

impl Default for MetricsRegistry {
    fn default() -> Self {
        let mut registry = Registry::default();
        let build = Family::<[(&str, &str); 1], Gauge>::default();
        build.get_or_create(&[("version", env!("CARGO_PKG_VERSION"))]).set(1);
        registry.register("platen_build_info", "Version of this program", build);
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let collector = ProcessCollector { start_time_seconds: since_epoch.as_secs().cast_signed() };
        registry.register_collector(Box::new(collector));
        Self(Arc::new(Mutex::new(registry)))
    }
}

impl MetricsRegistry {
    /// The media type of [`Self::encode`]'s text.
    pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

    /// Passes the registry to `register`, which adds metrics to it.
    pub fn register<T>(&self, register: impl FnOnce(&mut Registry) -> T) -> T {
        register(&mut self.0.lock())
    }

    /// All metrics in Prometheus' text format, version 0.0.4.
    #[must_use]
    pub fn encode(&self) -> String {
        let open_metrics = self.open_metrics();
        let mut text = String::with_capacity(open_metrics.len() + 1024);
        for family in FamilyText::all(&open_metrics) {
            // In the format of `prometheus-client` this name of a counter has no `_total`; in this format, which
            // `promtool` reads, it has.
            let (name, FamilyText { help, kind, samples, .. }) = (family.full_name(), family);
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{samples}");
        }
        text
    }

    /// All metrics in the format of `prometheus-client`.
    pub(crate) fn open_metrics(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.register(|registry| text::encode_registry(&mut text, registry));
        text
    }
}

/// What the kernel accounts to this process, under the names that all Prometheus clients use.
#[derive(Debug)]
struct ProcessCollector {
    start_time_seconds: i64,
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut add = |name: &str, help: &str, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) {
            let micros = (usage.user_time() + usage.system_time()).num_microseconds();
            let time = Duration::from_micros(micros.unsigned_abs());
            add(
                "process_cpu_seconds",
                "User and system CPU time spent, in seconds.",
                &ConstCounter::new(time.as_secs_f64()),
            )?;
        }
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let limit = getrlimit(Resource::RLIMIT_NOFILE).ok().and_then(|(soft, _)| i64::try_from(soft).ok());
        for (name, help, value) in [
            ("process_resident_memory_bytes", "Resident memory, in bytes.", status_bytes(&status, "VmRSS:")),
            ("process_virtual_memory_bytes", "Virtual memory, in bytes.", status_bytes(&status, "VmSize:")),
            ("process_open_fds", "Open file descriptors.", open_files()),
            ("process_max_fds", "Limit of open file descriptors.", limit),
            (
                "process_start_time_seconds",
                "Start of the process, in seconds since the Unix epoch.",
                Some(self.start_time_seconds),
            ),
        ] {
            if let Some(value) = value {
                add(name, help, &ConstGauge::new(value))?;
            }
        }
        Ok(())
    }
}

/// A line of `/proc/self/status`, such as `VmRSS:     1234 kB`.
fn status_bytes(status: &str, name: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<i64>().ok()? * 1024)
}

fn open_files() -> Option<i64> {
    // One of them is the directory that is being read.
    i64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).ok().map(|count| count - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{BrowserEnd, Metrics, RENDERED};

    #[test]
    fn a_registry_has_build_and_process_metrics() {
        let text = MetricsRegistry::default().encode();
        assert!(
            text.contains(&format!("platen_build_info{{version=\"{}\"}} 1\n", env!("CARGO_PKG_VERSION")))
        );
        for name in [
            "process_cpu_seconds_total",
            "process_resident_memory_bytes",
            "process_virtual_memory_bytes",
            "process_open_fds",
            "process_max_fds",
            "process_start_time_seconds",
        ] {
            let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
            let value: f64 = line.unwrap().rsplit_once(' ').unwrap().1.parse().unwrap();
            assert!(value > 0.0, "{line:?}");
        }
    }

    /// What `promtool check metrics` requires.
    #[test]
    fn every_metric_keeps_prometheus_naming_rules() {
        let registry = MetricsRegistry::default();
        let metrics = registry.register(Metrics::register);
        metrics.job_ended(RENDERED);
        metrics.browser_ended(BrowserEnd::Died);
        metrics.wait_seconds.observe(0.005);
        let text = registry.encode();
        let mut family = ("", "");
        for line in text.lines() {
            if let Some(metadata) = line.strip_prefix("# HELP ") {
                let (name, help) = metadata.split_once(' ').unwrap();
                assert!(!help.is_empty() && !name.contains(':'), "{line}");
                family = (name, "");
            } else if let Some(metadata) = line.strip_prefix("# TYPE ") {
                let (name, kind) = metadata.split_once(' ').unwrap();
                assert_eq!(name, family.0, "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                for unit in ["_milliseconds", "_ms", "_kilobytes", "_mib", "_minutes"] {
                    assert!(!name.trim_end_matches("_total").ends_with(unit), "{line}");
                }
                family = (name, kind);
            } else {
                let name = line.split(['{', ' ']).next().unwrap();
                let suffix = name.strip_prefix(family.0);
                let is_sample = match family.1 {
                    "histogram" => matches!(suffix, Some("_bucket" | "_sum" | "_count")),
                    _ => suffix == Some(""),
                };
                assert!(is_sample, "{line} below {family:?}");
            }
        }
        assert!(text.contains("# TYPE platen_farm_jobs_total counter\nplaten_farm_jobs_total{outcome"));
    }
}
