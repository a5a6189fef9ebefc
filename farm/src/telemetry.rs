//! Traces by OpenTelemetry, and their export by OTLP over HTTP, for both programs. The standard variables of the
//! environment configure it:
//! <https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/>.
//!
//! Invariant: without an endpoint nothing is created. Exporting happens on a thread of its own with a bounded queue, so a
//! collector that is absent or hangs delays neither jobs nor, for longer than 3 s, the end of the program.
//! Attributes never have keys, bodies, markup, values of variables or addresses of pages.

mod exporter;
mod settings;

use std::{
    sync::OnceLock,
    time::{Duration, Instant, SystemTime},
};

use axum::http::{HeaderMap, HeaderValue};
use opentelemetry::{
    Context, KeyValue,
    trace::{
        Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags,
        TraceId, TraceState, Tracer as _, TracerProvider as _,
    },
};
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracer, SdkTracerProvider};
use platen_shared::wire;

use self::exporter::Client;
pub use self::settings::TelemetryError;

/// What ends a program waits for at most.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

static ACTIVE: OnceLock<Active> = OnceLock::new();

#[derive(Debug)]
struct Active {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    /// The same time by both clocks.
    start: (Instant, SystemTime),
}

/// Starts traces if the environment has an endpoint for them. `service` is their `service.name` unless the environment has
/// one. Must be called in a Tokio runtime, once in a process.
///
/// # Errors
/// [`TelemetryError`] for a setting that is not supported.
pub fn start(service: &'static str) -> Result<(), TelemetryError> {
    if !settings::is_exported()? {
        return Ok(());
    }
    let exporter = SpanExporter::builder().with_http().with_http_client(Client::new()?);
    let exporter = exporter.build().map_err(|error| TelemetryError::Exporter(error.to_string()))?;
    let provider = SdkTracerProvider::builder()
        .with_resource(settings::resource(service))
        .with_span_processor(BatchSpanProcessor::builder(exporter).build())
        .build();
    let tracer = provider.tracer("platen");
    let _ = ACTIVE.set(Active { provider, tracer, start: (Instant::now(), SystemTime::now()) });
    Ok(())
}

/// Exports what has not been exported, for at most 3 s.
pub async fn stop() {
    let Some(active) = ACTIVE.get() else { return };
    let flushed = tokio::task::spawn_blocking(|| active.provider.shutdown_with_timeout(FLUSH_TIMEOUT)).await;
    if !matches!(flushed, Ok(Ok(()))) {
        tracing::warn!("not all traces were exported");
    }
}

impl Active {
    fn time(&self, instant: Instant) -> SystemTime {
        self.start.1 + instant.saturating_duration_since(self.start.0)
    }

    fn builder(&self, name: String, kind: SpanKind, began: Instant) -> SpanBuilder {
        self.tracer.span_builder(name).with_kind(kind).with_start_time(self.time(began))
    }

    fn begin(&self, builder: SpanBuilder, parent: Option<&SpanContext>) -> opentelemetry_sdk::trace::Span {
        let context = match parent {
            Some(parent) => Context::new().with_remote_span_context(parent.clone()),
            None => Context::new(),
        };
        self.tracer.build_with_context(builder, &context)
    }
}

/// Whose part a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The answer to a request of another program.
    Server,
    /// A request to another program.
    Client,
}

/// A place in a trace: the parent of further spans.
#[derive(Debug, Clone)]
pub struct Parent(SpanContext);

impl Parent {
    /// From the W3C Trace Context of a request; `None` if it has none or an invalid one, and without traces.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        ACTIVE.get()?;
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        parse(traceparent(headers), text(wire::TRACESTATE)).map(Self)
    }
}

/// The `traceparent` of a request or a job; empty if there is none.
pub(crate) fn traceparent(headers: &HeaderMap) -> &str {
    let header = headers.get(wire::JOB_TRACEPARENT).or_else(|| headers.get(wire::TRACEPARENT));
    header.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// <https://www.w3.org/TR/trace-context/#traceparent-header>
fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<SpanContext> {
    let mut parts = traceparent.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length| {
        text.len() == length
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_valid = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    // A later version may have more parts.
    if !is_valid || version == "ff" || (version == "00" && parts.next().is_some()) {
        return None;
    }
    let context = SpanContext::new(
        TraceId::from_hex(trace).ok()?,
        SpanId::from_hex(span).ok()?,
        TraceFlags::new(u8::from_str_radix(flags, 16).ok()?) & TraceFlags::SAMPLED,
        true,
        tracestate.and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default(),
    );
    context.is_valid().then_some(context)
}

/// A span that has not ended; it ends when it is dropped.
#[derive(Debug)]
pub struct Span(opentelemetry_sdk::trace::Span);

impl Span {
    /// Begins a span now; `None` without traces, for which `name` is not called. A span without a parent is the first one
    /// of a trace.
    #[must_use]
    pub fn begin(name: impl FnOnce() -> String, kind: Kind, parent: Option<&Parent>) -> Option<Self> {
        let active = ACTIVE.get()?;
        let kind = match kind {
            Kind::Server => SpanKind::Server,
            Kind::Client => SpanKind::Client,
        };
        let builder = active.builder(name(), kind, Instant::now());
        Some(Self(active.begin(builder, parent.map(|parent| &parent.0))))
    }

    /// The parent of the parts of this span.
    #[must_use]
    pub fn parent(&self) -> Parent {
        Parent(self.0.span_context().clone())
    }

    /// The `traceparent` of requests that are part of this span.
    #[must_use]
    pub fn traceparent(&self) -> HeaderValue {
        let context = self.0.span_context();
        let flags = context.trace_flags().to_u8();
        let text = format!("00-{}-{}-{flags:02x}", context.trace_id(), context.span_id());
        HeaderValue::try_from(text).expect("it is hexadecimal")
    }

    /// Sets a text attribute.
    pub fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.0.set_attribute(KeyValue::new(name, value.into()));
    }

    /// Sets a number.
    pub fn set_number(&mut self, name: &'static str, value: i64) {
        self.0.set_attribute(KeyValue::new(name, value));
    }

    /// Marks the span as failed.
    pub fn fail(&mut self, reason: impl Into<String>) {
        self.0.set_status(Status::error(reason.into()));
    }
}

/// Records a part of a span that has ended. Does nothing without traces.
pub fn record(
    name: &str,
    parent: &Parent,
    began: Instant,
    ended: Instant,
    attributes: &[(&'static str, &str)],
) {
    let Some(active) = ACTIVE.get() else { return };
    let attributes = attributes.iter().map(|(name, value)| KeyValue::new(*name, (*value).to_owned()));
    let builder = active
        .builder(name.to_owned(), SpanKind::Internal, began)
        .with_attributes(attributes.collect::<Vec<_>>());
    active.begin(builder, Some(&parent.0)).end_with_timestamp(active.time(ended));
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_valid_context_is_taken() {
        let context = parse(TRACEPARENT, Some("a=1")).unwrap();
        assert_eq!(context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert!(context.is_sampled() && context.is_remote());
        assert_eq!(context.trace_state().header(), "a=1");
        assert!(!parse(&TRACEPARENT.replace("-01", "-00"), None).unwrap().is_sampled());
        parse(&format!("{}-x", TRACEPARENT.replace("00-0a", "01-0a")), None).unwrap();
    }

    #[test]
    fn an_invalid_context_is_ignored() {
        for bad in [
            "",
            &TRACEPARENT.to_uppercase(),
            &TRACEPARENT.replace("00-0a", "ff-0a"),
            &format!("{TRACEPARENT}-x"),
            &TRACEPARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &TRACEPARENT.replace("b7ad6b7169203331", &"0".repeat(16)),
            &TRACEPARENT[1..],
        ] {
            assert!(parse(bad, None).is_none(), "{bad}");
        }
    }
}
