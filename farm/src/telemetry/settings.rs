//! The settings of traces and metrics that are exported.

use std::{env, time::Duration};

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::KeyValue;
use opentelemetry_sdk::{
    Resource,
    trace::{IdGenerator as _, RandomIdGenerator},
};
use percent_encoding::percent_decode_str;
use url::Url;

/// A setting that is not supported. Does not show its value where that can be a secret.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// Another value than those that are supported.
    #[error("{name} is {value:?}, but must be {expected}")]
    Value {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A value that is not valid, and is not shown.
    #[error("{name} must be {expected}")]
    HiddenValue {
        /// The variable.
        name: String,
        /// What it must be.
        expected: &'static str,
    },
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
const DEFAULT_INTERVAL_MS: u64 = 60_000;

/// What is exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signal {
    Traces,
    Metrics,
}

impl Signal {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
        }
    }

    /// The variable of a setting of the exporter: the one of this signal if it is set, else the one of all signals.
    fn setting(self, setting: &str) -> Option<(String, String)> {
        let own = format!("OTEL_EXPORTER_OTLP_{}_{setting}", self.name().to_uppercase());
        [own, format!("OTEL_EXPORTER_OTLP_{setting}")]
            .into_iter()
            .find_map(|name| Some((variable(&name)?, name)))
            .map(|(value, name)| (name, value))
    }

    /// Whether the environment has an endpoint for it, and settings that are supported.
    pub(super) fn is_exported(self) -> Result<bool, TelemetryError> {
        let is_disabled =
            variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let (name, others, expected) = match self {
            Self::Traces => ("OTEL_TRACES_EXPORTER", &["none"][..], "otlp or none"),
            Self::Metrics => {
                ("OTEL_METRICS_EXPORTER", &["none", "prometheus"][..], "otlp, prometheus or none")
            }
        };
        let exporter = variable(name);
        let is_other = exporter.as_ref().is_some_and(|exporter| others.contains(&exporter.as_str()));
        if is_disabled || is_other || self.setting("ENDPOINT").is_none() {
            return Ok(false);
        }
        check(exporter.map(|value| (name.to_owned(), value)), &["otlp"], expected)?;
        let expected = "http/protobuf: collectors listen for it on port 4318";
        check(self.setting("PROTOCOL"), &["http/protobuf"], expected)?;
        check(self.setting("COMPRESSION"), &["none"], "none: exports are not compressed")?;
        for setting in ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"] {
            let expected = "left out: the certificates of the system are used, and none of a client";
            check(self.setting(setting), &[], expected)?;
        }
        match self {
            Self::Traces => check_sampler()?,
            Self::Metrics => check_aggregation()?,
        }
        Ok(true)
    }

    /// The time limit of one export.
    pub(super) fn timeout(self) -> Result<Duration, TelemetryError> {
        milliseconds(self.setting("TIMEOUT"), DEFAULT_TIMEOUT_MS)
    }

    /// Where requests go.
    pub(super) fn endpoint(self) -> Result<Option<Url>, TelemetryError> {
        let Some((name, value)) = self.setting("ENDPOINT") else { return Ok(None) };
        // It can contain a password.
        let invalid = |name| TelemetryError::HiddenValue { name, expected: "an http or https URL" };
        let Ok(mut url) = Url::parse(&value) else { return Err(invalid(name)) };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid(name));
        }
        if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
            let path = format!("{}/v1/{}", url.path().trim_end_matches('/'), self.name());
            url.set_path(&path);
        }
        Ok(Some(url))
    }

    /// Pairs as in `key=value,other=a%20value`, as in W3C Baggage.
    pub(super) fn headers(self) -> Result<HeaderMap, TelemetryError> {
        let Some((name, value)) = self.setting("HEADERS") else { return Ok(HeaderMap::new()) };
        let pairs = value.split(',').filter(|pair| !pair.trim().is_empty()).map(|pair| {
            let (header, value) = pair.split_once('=')?;
            let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
            let mut value = HeaderValue::try_from(value.as_ref()).ok()?;
            value.set_sensitive(true);
            Some((HeaderName::try_from(header.trim()).ok()?, value))
        });
        let expected = "pairs of the form name=value, separated by commas";
        pairs.collect::<Option<HeaderMap>>().ok_or(TelemetryError::HiddenValue { name, expected })
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn named(name: &str) -> Option<(String, String)> {
    Some((name.to_owned(), variable(name)?))
}

fn check_sampler() -> Result<(), TelemetryError> {
    check(named("OTEL_TRACES_SAMPLER"), SAMPLERS, SAMPLER_NAMES)?;
    match named("OTEL_TRACES_SAMPLER_ARG") {
        Some((name, value)) if !value.parse::<f64>().is_ok_and(|ratio| (0.0..=1.0).contains(&ratio)) => {
            Err(TelemetryError::Value { name, value, expected: "a number from 0 to 1" })
        }
        _ => Ok(()),
    }
}

fn check_aggregation() -> Result<(), TelemetryError> {
    check(
        named("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"),
        &["cumulative"],
        "cumulative: all values count from the start of the program",
    )?;
    check(
        named("OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION"),
        &["explicit_bucket_histogram"],
        "explicit_bucket_histogram",
    )
}

/// The time between two exports of metrics.
pub(super) fn metric_interval() -> Result<Duration, TelemetryError> {
    milliseconds(named("OTEL_METRIC_EXPORT_INTERVAL"), DEFAULT_INTERVAL_MS)
}

fn milliseconds(setting: Option<(String, String)>, default: u64) -> Result<Duration, TelemetryError> {
    let Some((name, value)) = setting else { return Ok(Duration::from_millis(default)) };
    match value.parse() {
        Ok(milliseconds) if milliseconds > 0 => Ok(Duration::from_millis(milliseconds)),
        _ => Err(TelemetryError::Value { name, value, expected: "a number of milliseconds" }),
    }
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

/// The attributes of this process; those of the environment take precedence.
pub(super) fn resource(service: &'static str) -> Resource {
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
