//! The settings of traces.

use std::{env, time::Duration};

use opentelemetry::KeyValue;
use opentelemetry_otlp::{SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchSpanProcessor, SdkTracerProvider},
};

use super::exporter::Client;

/// A setting of traces that is not supported. Does not show its value where that can be a secret.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// Another value than those that are supported.
    #[error("{name} is {value:?}, but must be {expected}")]
    Value {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// The exporter refuses its settings.
    #[error("traces cannot be exported with these OTEL_EXPORTER_OTLP variables: {0}")]
    Exporter(String),
}

const SAMPLERS: &[&str] = &[
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];
const SAMPLER_NAMES: &str = "always_on, always_off, traceidratio, or one of these after parentbased_";
const DEFAULT_TIMEOUT_MS: u64 = 10_000;

/// The provider of traces, if the environment has an endpoint.
pub(super) fn provider(service: &'static str) -> Result<Option<SdkTracerProvider>, TelemetryError> {
    let variable = |name: &'static str| env::var(name).ok().filter(|value| !value.is_empty());
    let is_disabled = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let exporter = variable("OTEL_TRACES_EXPORTER");
    let has_endpoint = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"]
        .iter()
        .any(|name| variable(name).is_some());
    if is_disabled || !has_endpoint || exporter.as_deref() == Some("none") {
        return Ok(None);
    }
    check("OTEL_TRACES_EXPORTER", exporter, &["otlp"], "otlp or none")?;
    for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
        check(
            name,
            variable(name),
            &["http/protobuf"],
            "http/protobuf: collectors listen for it on port 4318",
        )?;
    }
    check("OTEL_TRACES_SAMPLER", variable("OTEL_TRACES_SAMPLER"), SAMPLERS, SAMPLER_NAMES)?;
    let ratio = variable("OTEL_TRACES_SAMPLER_ARG");
    if let Some(value) = &ratio
        && !value.parse::<f64>().is_ok_and(|ratio| (0.0..=1.0).contains(&ratio))
    {
        let expected = "a number from 0 to 1";
        return Err(TelemetryError::Value {
            name: "OTEL_TRACES_SAMPLER_ARG",
            value: value.clone(),
            expected,
        });
    }
    let mut timeout = DEFAULT_TIMEOUT_MS;
    for name in ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"] {
        if let Some(value) = variable(name) {
            let expected = "a number of milliseconds";
            timeout = value.parse().map_err(|_| TelemetryError::Value { name, value, expected })?;
            break;
        }
    }

    let failed = |error: &dyn std::error::Error| TelemetryError::Exporter(error.to_string());
    let client = Client::new(Duration::from_millis(timeout)).map_err(|error| failed(&error))?;
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .build()
        .map_err(|error| failed(&error))?;
    let named_otherwise = variable("OTEL_SERVICE_NAME").is_some()
        || variable("OTEL_RESOURCE_ATTRIBUTES")
            .is_some_and(|attributes| attributes.contains("service.name="));
    let resource = Resource::builder()
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attribute(KeyValue::new("service.namespace", "platen"));
    let resource = if named_otherwise { resource } else { resource.with_service_name(service) };
    let provider = SdkTracerProvider::builder()
        .with_resource(resource.build())
        .with_span_processor(BatchSpanProcessor::builder(exporter).build())
        .build();
    Ok(Some(provider))
}

fn check(
    name: &'static str,
    value: Option<String>,
    supported: &[&str],
    expected: &'static str,
) -> Result<(), TelemetryError> {
    match value {
        Some(value) if !supported.contains(&value.as_str()) => {
            Err(TelemetryError::Value { name, value, expected })
        }
        _ => Ok(()),
    }
}
