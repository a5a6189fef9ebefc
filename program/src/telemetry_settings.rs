//! The settings of the export of traces.

use std::{env, time::Duration};

use http::{HeaderName, HeaderValue};
use opentelemetry::KeyValue;
use opentelemetry_sdk::{
    Resource,
    trace::{IdGenerator as _, RandomIdGenerator},
};
use percent_encoding::percent_decode_str;
use url::Url;

/// A setting that is not supported. Does not show its value where that can be a secret.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages show the fields")]
pub enum TelemetryError {
    /// Another value than those that are supported.
    #[error("{name} is {value:?}, but must be {expected}")]
    Value { name: String, value: String, expected: &'static str },
    /// A value that is not valid, and is not shown.
    #[error("{name} must be {expected}")]
    HiddenValue { name: String, expected: &'static str },
    /// The exporter refuses its settings.
    #[error("nothing can be exported with these OTEL_EXPORTER_OTLP variables: {0}")]
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

/// Whether the environment has an endpoint for traces, and settings that are supported.
pub(crate) fn is_exported() -> Result<bool, TelemetryError> {
    let is_disabled = variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let exporter = named("OTEL_TRACES_EXPORTER");
    let is_none = exporter.as_ref().is_some_and(|(_, exporter)| exporter == "none");
    let Some(endpoint) = setting("ENDPOINT").filter(|_| !is_disabled && !is_none) else { return Ok(false) };
    check(exporter, &["otlp"], "otlp or none")?;
    check(setting("PROTOCOL"), &["http/protobuf"], "http/protobuf: collectors listen for it on port 4318")?;
    check(setting("COMPRESSION"), &["none"], "none: exports are not compressed")?;
    for name in ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"] {
        let expected = "left out: the certificates of the system are used, and none of a client";
        check(setting(name), &[], expected)?;
    }
    check(named("OTEL_TRACES_SAMPLER"), SAMPLERS, SAMPLER_NAMES)?;
    match named("OTEL_TRACES_SAMPLER_ARG") {
        Some((name, value)) if !value.parse::<f64>().is_ok_and(|ratio| (0.0..=1.0).contains(&ratio)) => {
            return Err(TelemetryError::Value { name, value, expected: "a number from 0 to 1" });
        }
        _ => {}
    }
    // The exporter's message would have the address, which can contain a password.
    let is_url = Url::parse(&endpoint.1).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    check_hidden(endpoint, is_url, "an http or https URL")?;
    // The exporter ignores pairs that are not valid.
    let Some(headers) = setting("HEADERS") else { return Ok(true) };
    let are_pairs = headers.1.split(',').filter(|pair| !pair.trim().is_empty()).all(|pair| {
        let Some((name, value)) = pair.split_once('=') else { return false };
        let value = percent_decode_str(value.trim()).decode_utf8();
        HeaderName::try_from(name.trim()).is_ok()
            && value.is_ok_and(|value| HeaderValue::try_from(value.as_ref()).is_ok())
    });
    check_hidden(headers, are_pairs, "pairs of the form name=value, separated by commas")?;
    Ok(true)
}

pub(crate) fn timeout() -> Result<Duration, TelemetryError> {
    let Some((name, value)) = setting("TIMEOUT") else {
        return Ok(Duration::from_millis(DEFAULT_TIMEOUT_MS));
    };
    match value.parse() {
        Ok(milliseconds) if milliseconds > 0 => Ok(Duration::from_millis(milliseconds)),
        _ => Err(TelemetryError::Value { name, value, expected: "a number of milliseconds" }),
    }
}

/// The variable of a setting of the exporter: the one of traces if it is set, else the one of all signals.
fn setting(setting: &str) -> Option<(String, String)> {
    let names =
        ["OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"].map(|prefix| [prefix, setting].concat());
    names.iter().find_map(|name| named(name))
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn named(name: &str) -> Option<(String, String)> {
    Some((name.to_owned(), variable(name)?))
}

fn check(
    setting: Option<(String, String)>,
    supported: &[&str],
    expected: &'static str,
) -> Result<(), TelemetryError> {
    match setting {
        Some((name, value)) if !supported.contains(&value.as_str()) => {
            Err(TelemetryError::Value { name, value, expected })
        }
        _ => Ok(()),
    }
}

fn check_hidden(
    (name, _): (String, String),
    is_valid: bool,
    expected: &'static str,
) -> Result<(), TelemetryError> {
    if is_valid { Ok(()) } else { Err(TelemetryError::HiddenValue { name, expected }) }
}

/// The attributes of this process; those of the environment take precedence.
pub(crate) fn resource(service: &'static str) -> Resource {
    let attributes = variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let is_set = |name: &str| attributes.split(',').any(|pair| pair.trim().starts_with(&format!("{name}=")));
    let mut resource = Resource::builder();
    if variable("OTEL_SERVICE_NAME").is_none() && !is_set("service.name") {
        resource = resource.with_service_name(service);
    }
    let instance = RandomIdGenerator::default().new_trace_id().to_string();
    for (name, value) in [
        ("service.version", env!("CARGO_PKG_VERSION")),
        ("service.namespace", "platen"),
        ("service.instance.id", &instance),
    ] {
        if !is_set(name) {
            resource = resource.with_attribute(KeyValue::new(name, value.to_owned()));
        }
    }
    resource.build()
}
