//! The metrics of one process: a registry that its parts register with, and its text for Prometheus.

use std::{
    fmt, fs,
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

use crate::proc_field;

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
    pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// Passes the registry to `register`, which adds metrics to it.
    pub fn register<T>(&self, register: impl FnOnce(&mut Registry) -> T) -> T {
        register(&mut self.0.lock())
    }

    /// All metrics as `OpenMetrics` text.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.register(|registry| text::encode(&mut text, registry));
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
        let status_bytes = |name: &str| Some(proc_field(&status, name)?.parse::<i64>().ok()? * 1024);
        let limit = getrlimit(Resource::RLIMIT_NOFILE).ok().and_then(|(soft, _)| i64::try_from(soft).ok());
        for (name, help, value) in [
            ("process_resident_memory_bytes", "Resident memory, in bytes.", status_bytes("VmRSS:")),
            ("process_virtual_memory_bytes", "Virtual memory, in bytes.", status_bytes("VmSize:")),
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

fn open_files() -> Option<i64> {
    // One of them is the directory that is being read.
    i64::try_from(fs::read_dir("/proc/self/fd").ok()?.count()).ok().map(|count| count - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
