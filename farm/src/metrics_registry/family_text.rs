//! Reads the text that `prometheus-client` writes, which has no other way to its values.

use std::iter;

/// The text of one metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FamilyText<'a> {
    /// Without `_total`.
    pub(crate) name: &'a str,
    pub(crate) help: &'a str,
    /// `counter`, `gauge` or `histogram`.
    pub(crate) kind: &'a str,
    /// Lines.
    pub(super) samples: &'a str,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample<'a> {
    pub(crate) name: &'a str,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

impl<'a> FamilyText<'a> {
    /// All of a text in the `OpenMetrics` format.
    pub(crate) fn all(open_metrics: &'a str) -> impl Iterator<Item = Self> {
        open_metrics.split("# HELP ").skip(1).filter_map(|family| {
            let (head, family) = family.split_once('\n')?;
            let (name, help) = head.split_once(' ')?;
            let (kind, samples) = family.split_once('\n')?;
            Some(Self {
                name,
                help,
                kind: kind.rsplit_once(' ')?.1,
                samples: samples.trim_end_matches("# EOF\n"),
            })
        })
    }

    /// The name that Prometheus gives it.
    pub(crate) fn full_name(&self) -> String {
        let suffix = if self.kind == "counter" { "_total" } else { "" };
        [self.name, suffix].concat()
    }

    pub(crate) fn samples(&self) -> impl Iterator<Item = Sample<'a>> {
        self.samples.lines().filter_map(Sample::parse)
    }
}

impl<'a> Sample<'a> {
    /// A line such as `name{label="value"} 1.5`.
    fn parse(line: &'a str) -> Option<Self> {
        let (series, value) = line.rsplit_once(' ')?;
        let (name, mut rest) = series.split_once('{').unwrap_or((series, ""));
        let labels = iter::from_fn(|| {
            let (label, quoted) = rest.trim_start_matches(',').split_once("=\"")?;
            // `prometheus-client` 0.24 writes no escapes: labels are of closed sets.
            let (value, after) = quoted.split_once('"')?;
            rest = after;
            Some((label.to_owned(), value.to_owned()))
        });
        Some(Self { name, labels: labels.collect(), value: value.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::{
        encoding::text,
        metrics::{counter::Counter, family, gauge::Gauge},
        registry::Registry,
    };

    use super::*;

    #[test]
    fn what_was_registered_is_read() {
        let mut registry = Registry::default();
        let counters = family::Family::<Vec<(String, String)>, Counter>::default();
        let labels =
            vec![("route".to_owned(), "/..., {a=b} c".to_owned()), ("status".to_owned(), String::new())];
        counters.get_or_create(&labels).inc_by(3);
        registry.register("requests", "All requests", counters);
        registry.register("open", "Connections", Gauge::<i64>::default());
        let mut text = String::new();
        text::encode(&mut text, &registry).unwrap();
        let families: Vec<_> = FamilyText::all(&text).collect();
        assert_eq!(
            families.iter().map(|family| (family.full_name(), family.help, family.kind)).collect::<Vec<_>>(),
            [
                ("requests_total".to_owned(), "All requests.", "counter"),
                ("open".to_owned(), "Connections.", "gauge")
            ]
        );
        let samples: Vec<_> = families[0].samples().collect();
        assert_eq!(samples, [Sample { name: "requests_total", labels, value: 3.0 }]);
        assert_eq!(
            families[1].samples().collect::<Vec<_>>(),
            [Sample { name: "open", labels: vec![], value: 0.0 }]
        );
    }
}
