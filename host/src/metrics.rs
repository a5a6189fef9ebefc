//! What the server counts, and `/metrics`.
//!
//! Invariant: label values are statuses and the routes of the components, never text of clients.

use std::{sync::Arc, time::Duration};

use axum::{Router, routing::get};
use http::{StatusCode, header::CONTENT_TYPE};
use platen_program::{MetricsRegistry, error_chain};
use platen_statements::accounts::NEAR_QUOTA;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Metric, Registry},
};
use tokio::{net::TcpListener, time::sleep};

use crate::db::{Database, StatementMetrics, Value};

/// Upper bounds of the histogram's buckets: from a request that is refused to a render's deadline.
const SECONDS: [f64; 14] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0];

const RESPONSE: &str = "response";
const ERROR: &str = "error";

/// The time between two counts of the accounts near their quota.
const QUOTA_INTERVAL: Duration = Duration::from_secs(30);

type ByResult = [(&'static str, &'static str); 1];
type RouteAndClass = [(&'static str, &'static str); 2];

#[derive(Debug)]
pub(crate) struct Metrics {
    accounts_near_quota: Family<[(&'static str, u16); 1], Gauge>,
    requests: Family<[(&'static str, u16); 1], Counter>,
    durations: Family<RouteAndClass, Histogram, fn() -> Histogram>,
    /// Requests from their arrival to the end of their response.
    pub(crate) in_flight: Gauge,
    /// Requests beyond the concurrency limit.
    pub(crate) rejected: Counter,
    pub(crate) client_disconnects: Counter,
    pub(crate) connections: Gauge,
    /// Connections closed because of their address's limit.
    pub(crate) connections_refused: Counter,
    pub(crate) instances: Counter,
    outgoing: Family<ByResult, Histogram, fn() -> Histogram>,
}

impl Metrics {
    /// `statements` are those of the components.
    pub(crate) fn register(registry: &mut Registry, statements: &StatementMetrics) -> Self {
        statements.register(registry);
        let outgoing = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        let help = "Time from a component's request to the farm until the head of its response, by result";
        registry.register("platen_farm_request_duration_seconds", help, outgoing.clone());
        // The rate of a series whose first value is 1 does not contain that 1.
        for result in [RESPONSE, ERROR] {
            drop(outgoing.get_or_create(&[("result", result)]));
        }
        let instances = registered(registry, "platen_component_instances", "Component instances created");
        let help = "Enabled accounts that have used 80 % of their month's quota, or all of it, by percent";
        let accounts_near_quota = registered(registry, "platen_accounts_near_quota", help);
        let http = registry.sub_registry_with_prefix("platen_http");
        let requests: Family<_, _> = registered(http, "requests", "Requests answered, by status");
        for status in [200, 303, 400, 401, 404, 413, 422, 429, 500, 502, 503, 504] {
            drop(requests.get_or_create(&[("status", status)]));
        }
        let durations = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        let help =
            "Time from the request's arrival to the head of its response, by route and class of status";
        http.register("request_duration_seconds", help, durations.clone());
        Self {
            accounts_near_quota,
            requests,
            durations,
            instances,
            outgoing,
            in_flight: registered(http, "requests_in_flight", "Requests being answered"),
            rejected: registered(
                http,
                "requests_rejected",
                "Requests refused because of the limit of concurrent requests",
            ),
            client_disconnects: registered(
                http,
                "requests_cancelled",
                "Clients that disconnected before the end of their response",
            ),
            connections: registered(http, "connections", "Open connections of clients"),
            connections_refused: registered(
                http,
                "connections_refused",
                "Connections refused because of the limit of connections from one address",
            ),
        }
    }

    /// Counts the accounts that are near their quota, again and again. Servers of one database give the same numbers.
    pub(crate) async fn watch_quotas(self: Arc<Self>, database: Database) {
        loop {
            let rows = database.query(NEAR_QUOTA, Vec::new()).await.unwrap_or_else(|error| {
                tracing::warn!(error = error_chain(&error), "cannot count accounts near their quota");
                Vec::new()
            });
            for (percent, accounts) in [80, 100].into_iter().zip(rows.into_iter().flatten()) {
                if let Value::Integer(accounts) = accounts {
                    self.accounts_near_quota.get_or_create(&[("percent", percent)]).set(accounts);
                }
            }
            sleep(QUOTA_INTERVAL).await;
        }
    }

    /// A component's request to the farm got a response or an error.
    pub(crate) fn requested(&self, responded: bool, elapsed: Duration) {
        let labels = [("result", if responded { RESPONSE } else { ERROR })];
        self.outgoing.get_or_create(&labels).observe(elapsed.as_secs_f64());
    }

    /// Counts a response whose head goes to the client.
    pub(crate) fn responded(&self, route: &'static str, status: StatusCode, elapsed: Duration) {
        self.requests.get_or_create(&[("status", status.as_u16())]).inc();
        let class = match status.as_u16() {
            100..200 => "1xx",
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            _ => "5xx",
        };
        let labels = [("route", route), ("status", class)];
        self.durations.get_or_create(&labels).observe(elapsed.as_secs_f64());
    }
}

fn registered<M: Metric + Default + Clone>(registry: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    registry.register(name, help, metric.clone());
    metric
}

/// Serves the metrics of this process until it exits, on an address that the public does not reach.
pub(crate) async fn serve(listener: TcpListener, registry: MetricsRegistry) {
    let metrics = async move || ([(CONTENT_TYPE, MetricsRegistry::CONTENT_TYPE)], registry.encode());
    if let Err(error) = axum::serve(listener, Router::new().route("/metrics", get(metrics))).await {
        tracing::error!(error = error_chain(&error), "cannot serve the metrics");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_counted_by_status_and_timed_by_route() {
        let registry = MetricsRegistry::default();
        let statements = StatementMetrics::default();
        let metrics = registry.register(|registry| Metrics::register(registry, &statements));
        metrics.requested(true, Duration::from_millis(3));
        metrics.requested(false, Duration::ZERO);
        metrics.responded("/...", StatusCode::OK, Duration::from_millis(3));
        metrics.responded("/...", StatusCode::OK, Duration::from_millis(30));
        metrics.responded("none", StatusCode::from_u16(999).unwrap(), Duration::ZERO);
        metrics.in_flight.inc();
        let text = registry.encode();
        for line in [
            "# TYPE platen_db_statements counter",
            "platen_db_statements_total 0",
            "platen_farm_request_duration_seconds_bucket{le=\"0.005\",result=\"response\"} 1",
            "platen_farm_request_duration_seconds_count{result=\"error\"} 1",
            "platen_http_requests_in_flight 1",
            "platen_http_requests_total{status=\"200\"} 2",
            "platen_http_requests_total{status=\"999\"} 1",
            "# TYPE platen_http_request_duration_seconds histogram",
            "platen_http_request_duration_seconds_bucket{le=\"0.005\",route=\"/...\",status=\"2xx\"} 1",
            "platen_http_request_duration_seconds_count{route=\"/...\",status=\"2xx\"} 2",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
