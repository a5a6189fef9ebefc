//! A bar chart of the CPU time per job, for PDF and PNG of the invoice.
//!
//! Invariant: within each half all bars have the same linear scale, which begins at zero.

use std::fmt::Write as _;

use super::{Comparison, measure::Measurement, target::Kind};

const WIDTH: f64 = 900.0;
const LEFT: f64 = 290.0;
const BAR_HEIGHT: f64 = 20.0;
const BAR_INTERVAL: f64 = 28.0;
const MAX_BAR_LENGTH: f64 = WIDTH - LEFT - 90.0;

/// The chart as SVG.
pub(super) fn svg(comparison: &Comparison) -> String {
    let mut body = String::new();
    let mut top = 20.0;
    for (page, title) in
        [("invoice-pdf", "PDF A4 of an invoice"), ("invoice-png", "PNG 1280×720 of an invoice")]
    {
        let cost =
            |kind: &Kind| Some((*kind, comparison.measurement(page, *kind).and_then(Measurement::cpu_ms)?));
        let costs: Vec<(Kind, f64)> = comparison.kinds.iter().filter_map(cost).collect();
        if costs.is_empty() {
            continue;
        }
        let highest = costs.iter().map(|(_, cost)| *cost).fold(0.0, f64::max);
        let _ = writeln!(
            body,
            "<text x=\"20\" y=\"{}\" class=\"title\">{title}: CPU milliseconds per job, lower is better</text>",
            top + 14.0
        );
        top += 30.0;
        for (kind, cost) in costs {
            bar(&mut body, kind, cost, cost / highest * MAX_BAR_LENGTH, top);
            top += BAR_INTERVAL;
        }
        top += 24.0;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {top}\" font-family=\"sans-serif\" \
         font-size=\"13\" role=\"img\">\n\
         <style>.title{{font-size:15px;font-weight:bold}}.platen{{fill:#1d4ed8}}.raw{{fill:#94a3b8}}\
         .peer{{fill:#d97706}}text{{fill:#1f2937}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n"
    )
}

fn bar(body: &mut String, kind: Kind, cost: f64, length: f64, top: f64) {
    let class = match kind {
        Kind::Raw => "raw",
        Kind::Farm | Kind::FarmAccounts | Kind::Chain => "platen",
        _ => "peer",
    };
    let middle = top + BAR_HEIGHT * 0.72;
    let (name, length) = (kind.title().replace('*', ""), length.max(1.0));
    let _ = writeln!(body, "<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{name}</text>", LEFT - 10.0);
    let _ = writeln!(
        body,
        "<rect class=\"{class}\" x=\"{LEFT}\" y=\"{top:.1}\" width=\"{length:.1}\" height=\"{BAR_HEIGHT}\" rx=\"3\"/>\
         <text x=\"{:.1}\" y=\"{middle:.1}\">{cost:.0}</text>",
        LEFT + length + 8.0
    );
}
