//! What Platen set out to show, and whether this run shows it.
//!
//! Invariant: every line is computed from figures of the same run; what was not measured is a dash.

use std::fmt::Write as _;

use super::{Outcome, figures::Figures, report::number, target::Kind};

/// One aim: what, at most, measured.
struct Aim {
    what: String,
    most: f64,
    measured: Option<f64>,
    unit: &'static str,
}

/// Writes the table of all aims of which something was measured.
pub(super) fn table(text: &mut String, outcome: &Outcome) {
    let aims: Vec<Aim> = all(outcome).into_iter().filter(|aim| aim.measured.is_some()).collect();
    if aims.is_empty() {
        return;
    }
    text.push_str("| aim | at most | measured | |\n| --- | --- | --- | --- |\n");
    for aim in aims {
        let met = if aim.measured.is_some_and(|measured| measured <= aim.most) { "met" } else { "missed" };
        let decimals = if aim.unit == "×" { 3 } else { 1 };
        let (most, measured) = (number(Some(aim.most), decimals), number(aim.measured, decimals));
        let _ =
            writeln!(text, "| {} | {most} {unit} | {measured} {unit} | {met} |", aim.what, unit = aim.unit);
    }
    text.push('\n');
}

fn all(outcome: &Outcome) -> Vec<Aim> {
    let cpu = |page, kind| outcome.of(page, kind).and_then(Figures::cpu_ms);
    let p50 = |page, kind| outcome.of(page, kind).and_then(|figures| figures.latency_ms(50));
    let ratio = |page, one, other| Some(cpu(page, one)? / cpu(page, other)?);
    let times = |what: String, most, measured| Aim { what, most, measured, unit: "×" };
    let mut aims = Vec::new();

    // By page: raw CDP, puppeteer-cluster, browserless, and puppeteer-cluster for new accounts.
    for (page, name, raw, cluster, browserless, accounts) in
        [("invoice-pdf", "PDF", 1.5, 4.0, 25.0, 1.4), ("invoice-png", "PNG", 1.4, 3.0, 20.0, 1.1)]
    {
        let against = |other: Kind| format!("{name}: CPU time of the farm against {}", other.title());
        aims.push(times(against(Kind::Raw), raw, ratio(page, Kind::Farm, Kind::Raw)));
        aims.push(times(against(Kind::Cluster), 1.0 / cluster, ratio(page, Kind::Farm, Kind::Cluster)));
        for other in [Kind::BrowserlessChromium, Kind::Browserless] {
            aims.push(times(against(other), 1.0 / browserless, ratio(page, Kind::Farm, other)));
        }
        aims.push(times(
            format!("{name}: a new account each job against {}", Kind::Cluster.title()),
            1.0 / accounts,
            ratio(page, Kind::FarmAccounts, Kind::Cluster),
        ));
        let more = |of: &dyn Fn(&'static str, Kind) -> Option<f64>| {
            Some(of(page, Kind::Chain)? - of(page, Kind::Farm)?)
        };
        aims.push(Aim {
            what: format!("{name}: CPU time of the whole chain beyond the farm"),
            most: 4.0,
            measured: more(&cpu),
            unit: "ms",
        });
        aims.push(Aim {
            what: format!("{name}: p50 of the whole chain beyond the farm"),
            most: 5.0,
            measured: more(&p50),
            unit: "ms",
        });
    }

    let beyond_load = |page| Some(p50(page, Kind::Farm)? - p50("invoice-png", Kind::Farm)?);
    for (what, page, most) in [
        ("`networkidle` of a static page beyond `load`", "idle-png", 30.0),
        ("`waitForTimeout: 10000` of a static page beyond `load`", "wait-10000-png", 150.0),
    ] {
        aims.push(Aim { what: what.to_owned(), most, measured: beyond_load(page), unit: "ms" });
    }
    aims.push(times(
        "an animated page of 1.2 s against real time".to_owned(),
        0.5,
        p50("chart-png", Kind::Farm).map(|ms| ms / 1_200.0),
    ));
    for one in outcome.half_load.iter().filter(|one| one.kind == Kind::Farm) {
        aims.push(times(format!("p99 over p50 at half load, {}", one.page), 3.0, one.tail()));
    }
    let idle = outcome.idle.iter().find(|(kind, _)| *kind == Kind::Farm);
    aims.push(Aim {
        what: "a warm farm with nothing to do, CPU time a second".to_owned(),
        most: 10.0,
        measured: idle.map(|(_, spent)| *spent),
        unit: "ms",
    });
    aims
}
