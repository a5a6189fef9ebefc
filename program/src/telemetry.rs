//! Traces by OpenTelemetry, and their export by OTLP over HTTP, for both programs. The standard variables of the
//! environment configure it:
//! <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>.
//!
//! Spans of `tracing` with the target [`TARGET`] are exported, and only these. The log does not have them.
//!
//! Invariant: without an endpoint these spans are disabled. Exporting happens on a thread of its own with a bounded queue,
//! so a collector that is absent or hangs delays neither jobs nor, for longer than 3 s, the end of the program.
//! Attributes never have keys, bodies, markup, values of variables or addresses of pages.

use std::{env, sync::OnceLock, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use opentelemetry::{
    KeyValue,
    propagation::{Extractor, TextMapPropagator as _},
    trace::TracerProvider as _,
};
use opentelemetry_http::{HeaderInjector, HttpClient, HttpError};
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_EXPORTER_OTLP_TIMEOUT_DEFAULT,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_TIMEOUT, SpanExporter, WithHttpConfig as _,
};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    resource::{EnvResourceDetector, SdkProvidedResourceDetector, TelemetryResourceDetector},
    trace::{BatchSpanProcessor, IdGenerator as _, RandomIdGenerator, SdkTracerProvider},
};
use platen_shared::wire;
use tokio::runtime::{Builder, Runtime};
use tracing::{Level, Span};
use tracing_subscriber::{Layer, Registry, filter::Targets};

use crate::{RepeatedWarning, http_client};
pub use opentelemetry::{Context, trace::Status};
pub use tracing_opentelemetry::OpenTelemetrySpanExt;

/// The target of spans that are exported.
pub const TARGET: &str = "platen::trace";

/// What ends a program waits for at most.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// Nothing can be exported.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The exporter refuses its settings. Its message would show them, and they can contain a password.
    #[error("the OTEL_EXPORTER_OTLP variables have an endpoint that is not a URL")]
    Endpoint,
    /// The client of the exporter.
    #[error("the client that exports traces cannot be started")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What exports spans, if the environment has an endpoint for them. `service` is their `service.name` unless the environment
/// has one. To be called once in a process.
pub(crate) fn layer(
    service: &'static str,
) -> Result<Option<Box<dyn Layer<Registry> + Send + Sync>>, TelemetryError> {
    let endpoints = [OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, OTEL_EXPORTER_OTLP_ENDPOINT];
    if endpoints.into_iter().find_map(variable).is_none() {
        return Ok(None);
    }
    let exporter = SpanExporter::builder().with_http().with_http_client(Client::new()?);
    let exporter = exporter.build().map_err(|_| TelemetryError::Endpoint)?;
    let provider = SdkTracerProvider::builder()
        .with_resource(resource(service))
        .with_span_processor(BatchSpanProcessor::builder(exporter).build())
        .build();
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("platen"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_context_activation(false);
    let _ = PROVIDER.set(provider);
    Ok(Some(layer.with_filter(Targets::new().with_target(TARGET, Level::INFO)).boxed()))
}

/// The attributes of this process; those of the environment take precedence.
fn resource(service: &'static str) -> Resource {
    let instance = RandomIdGenerator::default().new_trace_id().to_string();
    let resource = Resource::builder_empty()
        .with_service_name(service)
        .with_attributes([
            KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
            KeyValue::new("service.namespace", "platen"),
            KeyValue::new("service.instance.id", instance),
        ])
        .with_detectors(&[Box::new(TelemetryResourceDetector), Box::new(EnvResourceDetector::new())]);
    // Without the variable, the detector would name an unknown service.
    match variable("OTEL_SERVICE_NAME") {
        Some(_) => resource.with_detector(Box::new(SdkProvidedResourceDetector)).build(),
        None => resource.build(),
    }
}

/// The time limit of an export, which the exporter does not pass to its client.
fn timeout() -> Duration {
    let variables = [OTEL_EXPORTER_OTLP_TRACES_TIMEOUT, OTEL_EXPORTER_OTLP_TIMEOUT];
    let timeout = variables.into_iter().find_map(|name| variable(name)?.parse().ok());
    timeout.map_or(OTEL_EXPORTER_OTLP_TIMEOUT_DEFAULT, Duration::from_millis)
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// Exports what has not been exported, for at most 3 s.
pub async fn stop() {
    let Some(provider) = PROVIDER.get() else { return };
    let flushed = tokio::task::spawn_blocking(|| provider.shutdown_with_timeout(FLUSH_TIMEOUT)).await;
    if !matches!(flushed, Ok(Ok(()))) {
        tracing::warn!("not all traces were exported");
    }
}

/// Makes a new span a part of what a request or a job belongs to; the first one of a trace if it has no valid W3C Trace
/// Context.
#[must_use]
pub fn continued(span: Span, headers: &HeaderMap) -> Span {
    if span.is_disabled() {
        return span;
    }
    let trace = TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(headers));
    part_of(&trace, span)
}

/// Makes a new span a part of another one.
#[must_use]
pub fn part_of(trace: &Context, span: Span) -> Span {
    // There is no error that matters: a disabled span has no parent.
    let _ = span.set_parent(trace.clone());
    span
}

/// What further spans are [parts of](part_of); `None` if the span is disabled.
#[must_use]
pub fn context(span: &Span) -> Option<Context> {
    (!span.is_disabled()).then(|| span.context())
}

/// Sets the W3C Trace Context of a request that is a part of this.
pub fn inject(trace: &Context, headers: &mut HeaderMap) {
    TraceContextPropagator::new().inject_context(trace, &mut HeaderInjector(headers));
}

/// The `traceparent` of a request or a job; empty if there is none.
#[must_use]
pub fn traceparent(headers: &HeaderMap) -> &str {
    let header = headers.get(wire::JOB_TRACEPARENT).or_else(|| headers.get(wire::TRACEPARENT));
    header.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        if name == wire::TRACEPARENT { Some(traceparent(self.0)) } else { self.0.get(name)?.to_str().ok() }
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

/// The HTTP client of the exporter, which sends on the exporter's thread.
#[derive(Debug)]
struct Client {
    inner: reqwest::Client,
    runtime: Runtime,
    failed: RepeatedWarning,
}

impl Client {
    fn new() -> Result<Self, TelemetryError> {
        // Nothing runs between two exports, so a connection that the collector closes would not be noticed.
        let inner = http_client().timeout(timeout()).pool_max_idle_per_host(0).build();
        let inner = inner.map_err(|error| TelemetryError::Client(error.into()))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| TelemetryError::Client(error.into()))?;
        Ok(Self { inner, runtime, failed: RepeatedWarning::new() })
    }

    async fn send(&self, request: Request<Bytes>) -> reqwest::Result<(StatusCode, Bytes)> {
        let sent = async {
            let response = self.inner.execute(request.try_into()?).await?;
            Ok((response.status(), response.bytes().await?))
        };
        // The message would have the address, which can contain a password.
        let response = sent.await.map_err(reqwest::Error::without_url);
        let problem = match &response {
            Ok((status, _)) if status.is_success() => None,
            Ok((status, _)) => Some(format!("the collector answered with status {status}")),
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem
            && let Some(count) = self.failed.record()
        {
            tracing::warn!(problem, count, "traces were not exported");
        }
        response
    }
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (status, body) = self.runtime.block_on(self.send(request))?;
        let mut response = Response::new(body);
        *response.status_mut() = status;
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use opentelemetry::trace::TraceContextExt as _;

    use super::*;

    #[test]
    fn the_context_of_a_job_takes_precedence_over_that_of_its_request() {
        let traceparent = |digit: &str| format!("00-{}-{}-01", digit.repeat(32), digit.repeat(16));
        let mut headers = HeaderMap::new();
        for (name, digit) in [(wire::TRACEPARENT, "1"), (wire::JOB_TRACEPARENT, "2")] {
            headers.insert(name, HeaderValue::try_from(traceparent(digit)).unwrap());
            let trace =
                TraceContextPropagator::new().extract_with_context(&Context::new(), &Headers(&headers));
            assert_eq!(trace.span().span_context().trace_id().to_string(), digit.repeat(32));
        }
    }
}
