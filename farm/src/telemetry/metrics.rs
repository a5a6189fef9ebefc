//! The export of metrics: all values of the registry at an interval, and once more at the end.

use std::{
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use axum::http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    metrics::v1::{ResourceMetrics, ScopeMetrics},
    resource::v1::Resource,
};
use prost::Message as _;
use tokio::time::{MissedTickBehavior, interval};
use url::Url;

use super::{
    exporter::Client,
    otlp::{self, Period},
    settings::{self, Signal, TelemetryError},
};
use crate::MetricsRegistry;

static ACTIVE: OnceLock<Exporter> = OnceLock::new();

/// Exports the metrics of a registry.
#[derive(Debug)]
pub(super) struct Exporter {
    client: Client,
    endpoint: Url,
    headers: HeaderMap,
    period: Duration,
    resource: Resource,
    registry: MetricsRegistry,
    start: SystemTime,
}

/// Exports the last values.
pub(super) async fn stop() {
    if let Some(exporter) = ACTIVE.get() {
        exporter.export().await;
    }
}

impl Exporter {
    /// `None` if the environment has no endpoint for metrics.
    pub(super) fn new(
        resource: &opentelemetry_sdk::Resource,
        registry: &MetricsRegistry,
    ) -> Result<Option<Self>, TelemetryError> {
        let signal = Signal::Metrics;
        if !signal.is_exported()? {
            return Ok(None);
        }
        let Some(endpoint) = signal.endpoint()? else { return Ok(None) };
        Ok(Some(Self {
            client: Client::new(signal)?,
            endpoint,
            headers: signal.headers()?,
            period: settings::metric_interval()?,
            resource: resource.into(),
            registry: registry.clone(),
            start: SystemTime::now(),
        }))
    }

    pub(super) fn start(self) {
        tokio::spawn(ACTIVE.get_or_init(|| self).export_at_intervals());
    }

    async fn export_at_intervals(&self) {
        let mut interval = interval(self.period);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is at once, when nothing has been counted.
        interval.tick().await;
        loop {
            interval.tick().await;
            self.export().await;
        }
    }

    /// A failed export is not repeated: the next one has the same values and later ones.
    async fn export(&self) {
        let period = Period { start: self.start, end: SystemTime::now() };
        let metrics = otlp::metrics(&self.registry.open_metrics(), period);
        let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
        let resource = Some(self.resource.clone());
        let resource_metrics =
            vec![ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() }];
        let body = ExportMetricsServiceRequest { resource_metrics }.encode_to_vec();
        let mut request = reqwest::Request::new(reqwest::Method::POST, self.endpoint.clone());
        request.headers_mut().clone_from(&self.headers);
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        *request.body_mut() = Some(body.into());
        // The client warns of an error.
        let _ = self.client.send(request).await;
    }
}
