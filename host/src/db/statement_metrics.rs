//! What is measured of the statements of components.

use std::time::Instant;

use prometheus_client::{
    metrics::{counter::Counter, histogram::Histogram},
    registry::Registry,
};

/// Upper bounds of the histogram's buckets: from a statement on a file to the time after which one is refused.
const SECONDS: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 2.0, 5.0];

/// A cheap handle.
#[derive(Debug, Clone)]
pub(crate) struct StatementMetrics {
    started: Counter,
    failed: Counter,
    seconds: Histogram,
}

impl Default for StatementMetrics {
    fn default() -> Self {
        Self { started: Counter::default(), failed: Counter::default(), seconds: Histogram::new(SECONDS) }
    }
}

impl StatementMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let db = registry.sub_registry_with_prefix("platen_db");
        db.register("statements", "Statements executed for components", self.started.clone());
        let help = "Statements of components that failed or were refused";
        db.register("statements_failed", help, self.failed.clone());
        let help = "Time of a statement of a component, with its wait for its turn";
        db.register("statement_duration_seconds", help, self.seconds.clone());
    }

    /// Runs a statement.
    pub(super) async fn measure<T, E>(&self, statement: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.started.inc();
        let began = Instant::now();
        let result = statement.await;
        self.seconds.observe(began.elapsed().as_secs_f64());
        if result.is_err() {
            self.failed.inc();
        }
        result
    }

    #[cfg(test)]
    pub(crate) fn started(&self) -> u64 {
        self.started.get()
    }
}
