//! `/metrics`, on an address that the public does not reach.

use axum::{Router, http::header::CONTENT_TYPE, routing::get};
use platen_farm::{MetricsRegistry, error_chain};
use tokio::net::TcpListener;

/// Serves the metrics of this process until it exits.
pub(crate) async fn serve_metrics(listener: TcpListener, registry: MetricsRegistry) {
    let metrics = async move || ([(CONTENT_TYPE, MetricsRegistry::CONTENT_TYPE)], registry.encode());
    if let Err(error) = axum::serve(listener, Router::new().route("/metrics", get(metrics))).await {
        tracing::error!(error = error_chain(&error), "cannot serve the metrics");
    }
}
