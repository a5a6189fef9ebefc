//! Performance aims and whether a run meets them.
//!
//! Invariant: every line is computed from measurements of the same run.

use std::fmt::Write as _;

use super::{Comparison, Mixed, target::Kind};
use crate::statistics::number;

struct Aim {
    name: String,
    max: f64,
    measured: Option<f64>,
    unit: &'static str,
}

impl Aim {
    fn ratio(name: String, max: f64, measured: Option<f64>) -> Self {
        Self { name, max, measured, unit: "×" }
    }

    fn ms(name: impl Into<String>, max: f64, measured: Option<f64>) -> Self {
        Self { name: name.into(), max, measured, unit: "ms" }
    }
}

/// Writes the table of all aims that were measured.
pub(super) fn table(text: &mut String, comparison: &Comparison) {
    let aims: Vec<Aim> = all(comparison).into_iter().filter(|aim| aim.measured.is_some()).collect();
    if aims.is_empty() {
        return;
    }
    text.push_str("| aim | at most | measured | |\n| --- | --- | --- | --- |\n");
    for Aim { name, max, measured, unit } in aims {
        let met = if measured.is_some_and(|measured| measured <= max) { "met" } else { "missed" };
        let decimals = if unit == "×" { 3 } else { 1 };
        let (max, measured) = (number(Some(max), decimals), number(measured, decimals));
        let _ = writeln!(text, "| {name} | {max} {unit} | {measured} {unit} | {met} |");
    }
    text.push('\n');
}

fn cpu(comparison: &Comparison, page: &str, kind: Kind) -> Option<f64> {
    comparison.measurement(page, kind)?.cpu_ms()
}

fn p50(comparison: &Comparison, page: &str, kind: Kind) -> Option<f64> {
    comparison.measurement(page, kind)?.latency_ms(50)
}

fn divided(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? / other?)
}

fn all(comparison: &Comparison) -> Vec<Aim> {
    let mut aims = invoices(comparison);
    aims.extend(assets(comparison));
    aims.extend(mix(comparison));
    aims.extend(waits(comparison));
    aims.extend(heavy_pages(comparison));
    let idle = comparison.idle.iter().find(|(kind, _)| *kind == Kind::Farm);
    aims.push(Aim::ms("CPU time per second of a warm farm without jobs", 3.0, idle.map(|(_, spent)| *spent)));
    aims
}

/// The CPU time of the farm relative to another renderer on the same page.
fn relative(comparison: &Comparison, name: &str, page: &str, other: Kind, max: f64) -> Aim {
    let title = format!("{name}: CPU time of the farm relative to {}", other.title());
    Aim::ratio(title, max, divided(cpu(comparison, page, Kind::Farm), cpu(comparison, page, other)))
}

fn invoices(comparison: &Comparison) -> Vec<Aim> {
    let mut aims = Vec::new();
    // For each page the limits against raw CDP, puppeteer-cluster and browserless, and for new accounts
    // against puppeteer-cluster.
    for (page, name, raw, cluster, browserless, accounts) in
        [("invoice-pdf", "PDF", 1.5, 4.0, 25.0, 0.68), ("invoice-png", "PNG", 1.4, 3.0, 20.0, 0.95)]
    {
        for (other, max) in [
            (Kind::Raw, raw),
            (Kind::Cluster, 1.0 / cluster),
            (Kind::BrowserlessChromium, 1.0 / browserless),
            (Kind::Browserless, 1.0 / browserless),
        ] {
            aims.push(relative(comparison, name, page, other, max));
        }
        let cluster = Kind::Cluster;
        aims.push(Aim::ratio(
            format!(
                "{name}: CPU time of the farm with a new account per job relative to {}",
                cluster.title()
            ),
            accounts,
            divided(cpu(comparison, page, Kind::FarmAccounts), cpu(comparison, page, cluster)),
        ));
        let p95 = |kind| comparison.measurement(page, kind)?.latency_ms(95);
        aims.push(Aim::ratio(
            format!("{name}: p95 of the farm with a new account per job relative to {}", cluster.title()),
            1.0,
            divided(p95(Kind::FarmAccounts), p95(cluster)),
        ));
        let difference = |figure: fn(&Comparison, &str, Kind) -> Option<f64>| {
            Some(figure(comparison, page, Kind::Chain)? - figure(comparison, page, Kind::Farm)?)
        };
        aims.push(Aim::ms(
            format!("{name}: CPU time of `platen up` beyond the farm's"),
            4.0,
            difference(cpu),
        ));
        aims.push(Aim::ms(format!("{name}: p50 of `platen up` beyond the farm's"), 5.0, difference(p50)));
    }
    aims
}

fn assets(comparison: &Comparison) -> [Aim; 5] {
    let (pdf, png) = ("invoice-assets-pdf", "invoice-assets-png");
    [
        ("PDF with assets", pdf, Kind::Raw, 1.3),
        ("PDF with assets", pdf, Kind::Cluster, 0.35),
        ("PNG with assets", png, Kind::Raw, 1.3),
        ("PNG with assets", png, Kind::Cluster, 0.35),
        ("20 images and a font by URL", "images-png", Kind::Cluster, 0.6),
    ]
    .map(|(name, page, other, max)| relative(comparison, name, page, other, max))
}

fn mix(comparison: &Comparison) -> [Aim; 2] {
    let cpu_ms = |kind, memory| {
        let is_it = |one: &&Mixed| one.kind == kind && one.warm_memory_mib == memory;
        comparison.mix.iter().find(is_it)?.measurement.cpu_ms()
    };
    [(2_048, 0.55), (8_192, 0.45)].map(|(memory, max)| {
        let (gibibytes, cluster) = (memory >> 10, Kind::Cluster.title());
        Aim::ratio(
            format!("Mix: CPU time of the farm with {gibibytes} GiB for warm pages relative to {cluster}"),
            max,
            divided(cpu_ms(Kind::Farm, Some(memory)), cpu_ms(Kind::Cluster, None)),
        )
    })
}

fn waits(comparison: &Comparison) -> Vec<Aim> {
    let p50 = |page| p50(comparison, page, Kind::Farm);
    let beyond_load = |page| Some(p50(page)? - p50("invoice-png")?);
    vec![
        Aim::ms("p50 of `networkidle` beyond `load`, static page", 30.0, beyond_load("idle-png")),
        Aim::ms(
            "p50 of `waitForTimeout: 10000` beyond `load`, static page",
            150.0,
            beyond_load("wait-10000-png"),
        ),
        Aim::ratio(
            "p50 of an animated page of 1.2 s relative to real time".to_owned(),
            0.5,
            p50("chart-png").map(|ms| ms / 1_200.0),
        ),
    ]
}

fn heavy_pages(comparison: &Comparison) -> [Aim; 4] {
    [
        ("map", "map-png"),
        ("WebGL", "webgl-png"),
        ("20 MB of script", "scripts-png"),
        ("reference", "reference-pdf"),
    ]
    .map(|(name, page)| {
        let cluster = Kind::Cluster;
        Aim::ratio(
            format!("Heavy page alone, {name}: p50 of the farm relative to {}", cluster.title()),
            1.1,
            divided(p50(comparison, page, Kind::Farm), p50(comparison, page, cluster)),
        )
    })
}
