//! Metrics as OTLP: <https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/>.
//!
//! Names are those of Prometheus with their suffixes, so that queries are the same in both ways.

use std::{
    collections::BTreeMap,
    time::{SystemTime, UNIX_EPOCH},
};

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, KeyValue, any_value},
    metrics::v1::{
        AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum, metric,
        number_data_point,
    },
};

use crate::metrics_registry::{FamilyText, Sample};

/// The time of cumulative values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Period {
    pub(super) start: SystemTime,
    pub(super) end: SystemTime,
}

pub(super) fn metrics(text: &str, period: Period) -> Vec<Metric> {
    let (start, end) = (nanoseconds(period.start), nanoseconds(period.end));
    FamilyText::all(text)
        .map(|family| Metric {
            name: family.full_name(),
            description: family.help.trim_end_matches('.').to_owned(),
            unit: unit(family.name).to_owned(),
            data: Some(data(&family, start, end)),
            ..Metric::default()
        })
        .collect()
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// <https://ucum.org/ucum>
fn unit(name: &str) -> &'static str {
    if name.ends_with("_seconds") {
        "s"
    } else if name.ends_with("_bytes") {
        "By"
    } else {
        ""
    }
}

fn data(family: &FamilyText<'_>, start: u64, end: u64) -> metric::Data {
    let aggregation_temporality = AggregationTemporality::Cumulative.into();
    let numbers = || {
        let point = |Sample { labels, value, .. }| NumberDataPoint {
            attributes: attributes(labels),
            start_time_unix_nano: start,
            time_unix_nano: end,
            value: Some(number_data_point::Value::AsDouble(value)),
            ..NumberDataPoint::default()
        };
        family.samples().map(point).collect()
    };
    match family.kind {
        "counter" => {
            metric::Data::Sum(Sum { data_points: numbers(), aggregation_temporality, is_monotonic: true })
        }
        "histogram" => metric::Data::Histogram(Histogram {
            data_points: histograms(family, start, end),
            aggregation_temporality,
        }),
        _ => metric::Data::Gauge(Gauge { data_points: numbers() }),
    }
}

fn attributes(labels: impl IntoIterator<Item = (String, String)>) -> Vec<KeyValue> {
    let attribute = |(key, value)| {
        let value = Some(AnyValue { value: Some(any_value::Value::StringValue(value)) });
        KeyValue { key, value, ..KeyValue::default() }
    };
    labels.into_iter().map(attribute).collect()
}

/// The buckets of the text count all observations up to their bound, those of OTLP only those above the bound before.
fn histograms(family: &FamilyText<'_>, start: u64, end: u64) -> Vec<HistogramDataPoint> {
    let mut points: BTreeMap<Vec<(String, String)>, HistogramDataPoint> = BTreeMap::new();
    for Sample { name, mut labels, value } in family.samples() {
        let bound = labels.iter().position(|(name, _)| name == "le").map(|index| labels.remove(index).1);
        let point = points.entry(labels).or_insert_with_key(|labels| HistogramDataPoint {
            attributes: attributes(labels.clone()),
            start_time_unix_nano: start,
            time_unix_nano: end,
            ..HistogramDataPoint::default()
        });
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "counts are whole numbers"
        )]
        let count = value as u64;
        match (bound, name.strip_prefix(family.name)) {
            (Some(bound), _) => {
                let below: u64 = point.bucket_counts.iter().sum();
                point.bucket_counts.push(count.saturating_sub(below));
                point.explicit_bounds.extend(bound.parse::<f64>().ok().filter(|bound| bound.is_finite()));
            }
            (None, Some("_sum")) => point.sum = Some(value),
            (None, _) => point.count = count,
        }
    }
    points.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{MetricsRegistry, metrics::Metrics, phases::Phase};

    #[test]
    fn values_are_those_of_the_registry() {
        let registry = MetricsRegistry::default();
        let counted = registry.register(Metrics::register);
        counted.job_ended("rendered");
        counted.job_ended("rendered");
        for milliseconds in [5, 20, 20, 700, 60_000] {
            counted.phase_ended(Phase::Load, Duration::from_millis(milliseconds));
        }
        let end = SystemTime::now();
        let period = Period { start: end - Duration::from_mins(1), end };
        let metrics = metrics(&registry.open_metrics(), period);
        let found = |name: &str| {
            metrics.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("{name}"))
        };
        let attribute = |point: &[KeyValue]| format!("{point:?}");

        let Some(metric::Data::Sum(jobs)) = &found("platen_farm_jobs_total").data else { panic!("a sum") };
        assert!(jobs.is_monotonic);
        let rendered = jobs
            .data_points
            .iter()
            .find(|point| attribute(&point.attributes).contains("\"rendered\""))
            .unwrap();
        assert_eq!(rendered.value, Some(number_data_point::Value::AsDouble(2.0)));
        assert_eq!(rendered.time_unix_nano - rendered.start_time_unix_nano, 60_000_000_000);

        let phases = found("platen_farm_phase_duration_seconds");
        assert_eq!(phases.unit, "s");
        let Some(metric::Data::Histogram(phases)) = &phases.data else { panic!("a histogram") };
        assert_eq!(phases.data_points.len(), 5);
        let load = phases
            .data_points
            .iter()
            .find(|point| attribute(&point.attributes).contains("\"load\""))
            .unwrap();
        assert_eq!((load.count, load.sum), (5, Some(60.745)));
        assert_eq!(load.explicit_bounds.len() + 1, load.bucket_counts.len());
        let buckets: Vec<(f64, u64)> = load
            .explicit_bounds
            .iter()
            .copied()
            .chain([f64::INFINITY])
            .zip(load.bucket_counts.iter().copied())
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(buckets, [(0.01, 1), (0.025, 2), (1.0, 1), (f64::INFINITY, 1)]);

        let Some(metric::Data::Gauge(memory)) = &found("process_resident_memory_bytes").data else {
            panic!("a gauge")
        };
        assert!(
            matches!(memory.data_points[0].value, Some(number_data_point::Value::AsDouble(bytes)) if bytes > 1e6)
        );
        assert_eq!(found("process_cpu_seconds_total").unit, "s");
        assert_eq!(found("platen_farm_egress_bytes_total").unit, "By");
        let text = registry.encode();
        let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        assert!(families.eq(metrics.iter().map(|metric| metric.name.as_str())));
    }
}
