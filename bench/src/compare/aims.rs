//! Performance aims and whether a run meets them.
//!
//! Invariant: every line is computed from measurements of the same run.

use std::fmt::Write as _;

use super::{Comparison, markdown::number, measurement::Measurement, target::Kind};

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

fn all(comparison: &Comparison) -> Vec<Aim> {
    let cpu = |page, kind| comparison.measurement(page, kind).and_then(Measurement::cpu_ms);
    let p50 = |page, kind| comparison.measurement(page, kind)?.latency_ms(50);
    let ratio = |page, one, other| Some(cpu(page, one)? / cpu(page, other)?);
    let mut aims = Vec::new();

    // For each page the limits against raw CDP, puppeteer-cluster and browserless, and for new accounts
    // against puppeteer-cluster.
    for (page, name, raw, cluster, browserless, accounts) in
        [("invoice-pdf", "PDF", 1.5, 4.0, 25.0, 1.4), ("invoice-png", "PNG", 1.4, 3.0, 20.0, 1.1)]
    {
        for (other, max) in [
            (Kind::Raw, raw),
            (Kind::Cluster, 1.0 / cluster),
            (Kind::BrowserlessChromium, 1.0 / browserless),
            (Kind::Browserless, 1.0 / browserless),
        ] {
            let title = format!("{name}: CPU time of the farm relative to {}", other.title());
            aims.push(Aim::ratio(title, max, ratio(page, Kind::Farm, other)));
        }
        aims.push(Aim::ratio(
            format!(
                "{name}: CPU time of the farm with a new account per job relative to {}",
                Kind::Cluster.title()
            ),
            1.0 / accounts,
            ratio(page, Kind::FarmAccounts, Kind::Cluster),
        ));
        let difference = |figure: &dyn Fn(&'static str, Kind) -> Option<f64>| {
            Some(figure(page, Kind::Chain)? - figure(page, Kind::Farm)?)
        };
        aims.push(Aim::ms(
            format!("{name}: CPU time of `platen up` beyond the farm's"),
            4.0,
            difference(&cpu),
        ));
        aims.push(Aim::ms(format!("{name}: p50 of `platen up` beyond the farm's"), 5.0, difference(&p50)));
    }

    let beyond_load = |page| Some(p50(page, Kind::Farm)? - p50("invoice-png", Kind::Farm)?);
    for (name, page, max) in [
        ("p50 of `networkidle` beyond `load`, static page", "idle-png", 30.0),
        ("p50 of `waitForTimeout: 10000` beyond `load`, static page", "wait-10000-png", 150.0),
    ] {
        aims.push(Aim::ms(name, max, beyond_load(page)));
    }
    aims.push(Aim::ratio(
        "p50 of an animated page of 1.2 s relative to real time".to_owned(),
        0.5,
        p50("chart-png", Kind::Farm).map(|ms| ms / 1_200.0),
    ));
    for one in comparison.half_load.iter().filter(|one| one.kind == Kind::Farm) {
        aims.push(Aim::ratio(format!("p99 / p50 at half load, {}", one.page), 3.0, one.tail()));
    }
    let idle = comparison.idle.iter().find(|(kind, _)| *kind == Kind::Farm);
    aims.push(Aim::ms(
        "CPU time per second of a warm farm without jobs",
        10.0,
        idle.map(|(_, spent)| *spent),
    ));
    aims
}
