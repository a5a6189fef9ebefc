//! Counters of the server, and their text for Prometheus.
//!
//! Invariant: counting never waits. Left to others: statements (counted by [`crate::db`]), the
//! farm's own figures (the farm).

use std::{
    fmt::Write as _,
    sync::atomic::{AtomicU64, Ordering},
};

use http::StatusCode;

const FIRST_STATUS: u16 = 100;
const STATUSES: usize = 900;

/// The counters.
pub(crate) struct Metrics {
    requests: [AtomicU64; STATUSES],
    in_flight: AtomicU64,
    turned_away: AtomicU64,
    hung_up: AtomicU64,
    instances: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: [const { AtomicU64::new(0) }; STATUSES],
            in_flight: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            hung_up: AtomicU64::new(0),
            instances: AtomicU64::new(0),
        }
    }
}

impl Metrics {
    /// An answer's head was handed to the client's connection.
    pub(crate) fn answered(&self, status: StatusCode) {
        if let Some(counter) = self.requests.get(usize::from(status.as_u16() - FIRST_STATUS)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A request came in.
    pub(crate) fn began(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// A request's answer was sent, or its client is gone.
    pub(crate) fn ended(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    /// A request was refused because too many were there.
    pub(crate) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// A client was gone before its answer was complete.
    pub(crate) fn hung_up(&self) {
        self.hung_up.fetch_add(1, Ordering::Relaxed);
    }

    /// A component was instantiated.
    pub(crate) fn instantiated(&self) {
        self.instances.fetch_add(1, Ordering::Relaxed);
    }

    /// Prometheus' text format, version 0.0.4.
    pub(crate) fn render(&self, db_statements: u64) -> String {
        let mut text = String::new();
        let mut single = |name: &str, kind: &str, help: &str, value: u64| {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        };
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        single(
            "platen_db_statements_total",
            "counter",
            "Statements executed on behalf of components.",
            db_statements,
        );
        single("platen_http_requests_in_flight", "gauge", "Requests being answered.", load(&self.in_flight));
        single(
            "platen_http_requests_turned_away_total",
            "counter",
            "Requests refused because too many were there.",
            load(&self.turned_away),
        );
        single(
            "platen_http_clients_hung_up_total",
            "counter",
            "Clients gone before their answer was complete.",
            load(&self.hung_up),
        );
        single(
            "platen_component_instances_total",
            "counter",
            "Component instances made.",
            load(&self.instances),
        );
        text.push_str("# HELP platen_http_requests_total Requests answered, by status.\n");
        text.push_str("# TYPE platen_http_requests_total counter\n");
        for (status, counter) in (FIRST_STATUS..).zip(&self.requests) {
            let count = load(counter);
            if count > 0 {
                let _ = writeln!(text, "platen_http_requests_total{{status=\"{status}\"}} {count}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_status() {
        let metrics = Metrics::default();
        metrics.answered(StatusCode::OK);
        metrics.answered(StatusCode::OK);
        metrics.answered(StatusCode::from_u16(999).unwrap());
        metrics.began();
        let text = metrics.render(7);
        for line in [
            "platen_db_statements_total 7",
            "platen_http_requests_in_flight 1",
            "platen_http_requests_total{status=\"200\"} 2",
            "platen_http_requests_total{status=\"999\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
