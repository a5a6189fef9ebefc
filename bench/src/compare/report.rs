//! The comparison as Markdown.
//!
//! Invariant: a section is replaced between its markers, and the rest of the file is unchanged.

use std::{fmt::Write as _, fs, path::Path, process::Command};

use anyhow::{Context as _, Result};
use platen_harness::settings;

use super::{
    CONCURRENCY, Comparison, MIX_ACCOUNTS, aims,
    measure::Measurement,
    mix::{TURN_JOBS, WARM_UP_TURNS},
    page::Page,
    target::{Environment, Kind},
};
use crate::statistics::{count, mebibytes, number};

/// The section of `RESULTS.md`.
pub(super) fn section(comparison: &Comparison) -> String {
    let mut text = String::from("## Comparison with other renderers\n\n");
    introduction(&mut text, comparison);
    aims::table(&mut text, comparison);
    figures(&mut text, comparison);
    mix(&mut text, comparison);
    text
}

fn introduction(text: &mut String, comparison: &Comparison) {
    let _ = writeln!(
        text,
        "`bench/run`: {} concurrent jobs, {} rounds on the invoice pages and one fewer on the others. In each round \
         every renderer has one turn, after the same warm-up, with the same page and options. Every \
         response is checked, and the first file of each renderer is decoded (size, pages, text, pixels). CPU \
         times are medians of the rounds; latencies are of all jobs. CPU time is that of the renderer's whole \
         process tree, by {}, read after the renderer has cleaned up. PSS is read during the warm-up and between \
         turns. PDFs are untagged, and all renderers write PNG fast rather than small, as the farm does. Errors are \
         noted below the table.\n",
        CONCURRENCY, comparison.rounds, comparison.accounting,
    );
    for version in &comparison.versions {
        let _ = writeln!(text, "- {version}");
    }
    for (kind, reason) in &comparison.unavailable {
        let _ = writeln!(text, "- not measured: {}: {reason}", kind.title());
    }
    text.push('\n');
}

/// The columns of the mix.
type Figure = fn(&Measurement) -> Option<f64>;
const FIGURES: [(&str, Figure); 4] = [
    ("CPU ms per job", Measurement::cpu_ms),
    ("p50 ms", |it| it.latency_ms(50)),
    ("p95 ms", |it| it.latency_ms(95)),
    ("peak PSS MiB", |it| (it.peak_memory_bytes > 0).then(|| mebibytes(it.peak_memory_bytes))),
];

/// A table with a row for each page.
fn figures(text: &mut String, comparison: &Comparison) {
    let titles: Vec<_> = comparison.kinds.iter().map(|kind| kind.title()).collect();
    head(text, "CPU ms per job, p50 ms", &titles);
    for (page, measurements) in comparison.pages.iter().zip(&comparison.measurements) {
        let cells = measurements.iter().map(|it| {
            it.as_ref().map_or_else(
                || "–".to_owned(),
                |it| format!("{}, {}", number(it.cpu_ms(), 0), number(it.latency_ms(50), 0)),
            )
        });
        let _ = writeln!(text, "| {} | {} |", page.title, cells.collect::<Vec<_>>().join(" | "));
    }
    text.push('\n');
    for (page, measurements) in comparison.pages.iter().zip(&comparison.measurements) {
        notes(text, page, &comparison.kinds, measurements);
    }
    text.push('\n');
}

fn head(text: &mut String, title: &str, columns: &[&str]) {
    let _ = writeln!(text, "| {title} | {} |\n|{}", columns.join(" | "), " --- |".repeat(columns.len() + 1));
}

/// Differences between the renderers that affect a fair comparison.
fn notes(text: &mut String, page: &Page, kinds: &[Kind], measurements: &[Option<Measurement>]) {
    let measured = || kinds.iter().zip(measurements).filter_map(|(kind, one)| Some((kind, one.as_ref()?)));
    let mut notes = Vec::new();
    let reference = measured().find(|(_, one)| one.file_error.is_none());
    for (kind, one) in measured() {
        notes.extend(errors(kind.title(), one));
        if let Some((other, reference)) = reference {
            if one.file_pages != reference.file_pages && one.file_pages > 0 {
                let pages = format!("{} pages instead of {}", one.file_pages, reference.file_pages);
                notes.push(format!("{}: {pages}.", kind.title()));
            }
            let (bytes, reference_bytes) = (one.file_bytes, reference.file_bytes);
            // More than a date or an id in a file explains.
            if bytes.abs_diff(reference_bytes) * 20 > reference_bytes && bytes > 0 {
                let ratio = count(bytes) / count(reference_bytes);
                let size = format!("the file has {ratio:.2} times the size of that of {}", other.title());
                notes.push(format!("{}: {size}.", kind.title()));
            }
        }
        let assets = page.assets.len();
        if let Some(fetches) = one.fetches_per_job.filter(|fetches| (fetches - count(assets)).abs() > 0.5) {
            notes.push(format!("{}: {fetches:.1} fetches per job instead of {assets}.", kind.title()));
        }
    }
    for note in notes {
        let _ = writeln!(text, "- {}: {note}", page.title);
    }
}

fn errors(title: &str, measurement: &Measurement) -> Option<String> {
    let error = measurement.first_error()?.lines().next().unwrap_or_default();
    Some(format!("{title}: {} errors: {error}", measurement.errors()))
}

fn mix(text: &mut String, comparison: &Comparison) {
    if comparison.mix.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "### Mix of {MIX_ACCOUNTS} accounts\n\n\
         Accounts by Zipf's law (s = 1), two concurrent jobs per core: 30 % invoices as PDF, 30 % those with assets by \
         HTTPS, 30 % PNGs of markup, 10 % pages with 20 images by HTTPS. The jobs and their order are the same for \
         every renderer; one that takes longer has fewer of them. Before the rounds, the farm has had {} jobs of the mix, \
         so that its warm pages are those of the accounts that come often.\n",
        WARM_UP_TURNS * TURN_JOBS,
    );
    let columns: Vec<_> = FIGURES.iter().map(|(title, _)| *title).collect();
    head(text, "", &[&columns[..], &["warm, spare, opened pages"]].concat());
    for mixed in &comparison.mix {
        let total: usize = mixed.pages.iter().flatten().sum();
        let share = |pages: usize| Some(count(pages) * 100.0 / count(total.max(1)));
        let cells: Vec<_> =
            mixed.pages.iter().flatten().map(|pages| number(share(*pages), 0) + " %").collect();
        let figures: Vec<_> =
            FIGURES.iter().map(|(_, figure)| number(figure(&mixed.measurement), 0)).collect();
        let _ = writeln!(text, "| {} | {} | {} |", mixed.title(), figures.join(" | "), cells.join(", "));
    }
    text.push('\n');
    for mixed in &comparison.mix {
        if let Some(note) = errors(&mixed.title(), &mixed.measurement) {
            let _ = writeln!(text, "- {note}");
        }
    }
}

/// The commit, with a mark if files have changed since, and the date in UTC.
fn stamp() -> String {
    let output = |program: &str, arguments: &[&str]| {
        let output =
            Command::new(program).args(arguments).current_dir(settings::tests_dir()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit =
        output("git", &["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "an unknown commit".to_owned());
    // Without the results, which earlier runs have written.
    let changes = output("git", &["status", "--porcelain", "--", ":/", ":!/bench/RESULTS.md"]);
    let mark = if changes.is_none_or(|changes| changes.is_empty()) { "" } else { "+changes" };
    format!("commit {commit}{mark}, {}", output("date", &["-u", "+%F"]).unwrap_or_default())
}

/// The commit, the machine and the versions of the renderers.
pub(super) fn versions(environment: &Environment) -> Vec<String> {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut all = vec![
        stamp(),
        format!(
            "{cores} cores, {}, Linux {}",
            model.map_or("unknown processor", |(_, name)| name),
            kernel.trim()
        ),
    ];
    let output = Command::new(&environment.chromium).arg("--version").output();
    let version = output.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    let name = environment.chromium.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    all.push(format!("{name} {}", version.trim().rsplit(' ').find(|word| word.contains('.')).unwrap_or("?")));
    let peers = fs::read_to_string(environment.tools.join("peers/package.json")).unwrap_or_default();
    let peers: serde_json::Value = serde_json::from_str(&peers).unwrap_or_default();
    for (name, version) in peers["dependencies"].as_object().into_iter().flatten() {
        all.push(format!("{name} {}", version.as_str().unwrap_or("?")));
    }
    let python = fs::read_to_string(environment.tools.join("peers/requirements.txt")).unwrap_or_default();
    let weasyprint = python.lines().find_map(|line| line.strip_prefix("weasyprint=="));
    all.extend(weasyprint.map(|version| format!("weasyprint {version}")));
    all
}

/// Replaces the section between its markers, or appends it with markers where the file has none.
pub(super) fn replace_section(file: &Path, section: &str) -> Result<()> {
    let text = fs::read_to_string(file).unwrap_or_else(|_| "# Results\n".to_owned());
    fs::write(file, with_section(&text, section)).with_context(|| format!("cannot write {}", file.display()))
}

fn with_section(text: &str, section: &str) -> String {
    const MARKERS: [&str; 2] = ["<!-- peers:begin -->", "<!-- peers:end -->"];
    let [begin, end] = MARKERS;
    let section = format!("{begin}\n{}\n{end}", section.trim());
    let parts = text.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
    match parts {
        Some((before, after)) => format!("{before}{section}{after}"),
        None => format!("{}\n\n{section}\n", text.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_appended_and_then_replaced() {
        let text = with_section("# Results\n\nedge\n", "one");
        assert_eq!(text, "# Results\n\nedge\n\n<!-- peers:begin -->\none\n<!-- peers:end -->\n");
        let text = with_section(&format!("{text}\nafter\n"), "two\n");
        assert_eq!(text, "# Results\n\nedge\n\n<!-- peers:begin -->\ntwo\n<!-- peers:end -->\n\nafter\n");
    }

    #[test]
    fn ratios_in_the_documents_are_those_of_the_results() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
        let number = |word: &str| word.trim_matches(|c: char| !c.is_ascii_digit()).to_owned();
        let results = read("bench/RESULTS.md");
        let known: Vec<f64> =
            results.split(" ×").filter_map(|text| text.rsplit(' ').next()?.parse().ok()).collect();
        let readme = read("README.md");
        let readme = readme.split_once("**Less CPU per file.**").unwrap().1.split_once("\n- ").unwrap().0;
        for text in [readme, &read("docs/benchmarks.md")] {
            let ratios: Vec<_> = text
                .split_whitespace()
                .map(number)
                .filter(|it| it.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 2))
                .collect();
            assert!(ratios.len() > 3, "{ratios:?}");
            for ratio in ratios {
                let is_known = known.iter().any(|known| format!("{known:.2}") == ratio);
                assert!(is_known, "RESULTS.md has no ratio that rounds to {ratio}");
            }
        }
    }
}
