//! The comparison as Markdown.
//!
//! Invariant: a section of `RESULTS.md` is replaced between its markers and nothing else is
//! touched; a figure that was not measured is a dash, never a guess.

use std::{fmt::Write as _, fs, path::Path, process::Command};

use anyhow::{Context as _, Result};

use super::{
    HalfLoad, Outcome, aims,
    figures::{Figures, percentile_ms},
    page::GALLERY_FETCHES,
    target::{Kind, Surroundings},
};

/// Puts a section between its markers, at the end of the file where there are none yet.
pub(super) fn put(file: &Path, name: &str, section: &str) -> Result<()> {
    let text = fs::read_to_string(file).unwrap_or_else(|_| "# Results\n".to_owned());
    fs::write(file, with_section(&text, name, section))
        .with_context(|| format!("cannot write {}", file.display()))
}

fn with_section(text: &str, name: &str, section: &str) -> String {
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let section = format!("{begin}\n{}\n{end}", section.trim());
    let parts = text.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    match parts {
        Some((before, after)) => format!("{before}{section}{after}"),
        None => format!("{}\n\n{section}\n", text.trim_end()),
    }
}

/// The whole section.
pub(super) fn section(outcome: &Outcome) -> String {
    let mut text = String::from("## Platen beside its peers\n\n");
    introduction(&mut text, outcome);
    text.push_str("![CPU time a job](results.svg)\n\n");
    aims::table(&mut text, outcome);
    for (page, figures) in outcome.pages.iter().zip(&outcome.figures) {
        let _ = writeln!(text, "### {}\n", page.title);
        text.push_str(
            "| | jobs/s | p50 ms | p95 ms | p99 ms | CPU-ms a job | peak PSS MiB | bytes | jobs | errors |\n",
        );
        text.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
        for (kind, figures) in outcome.kinds.iter().zip(figures) {
            if let Some(figures) = figures {
                row(&mut text, *kind, figures);
            }
        }
        text.push('\n');
        notes(&mut text, outcome, figures);
    }
    half_load(&mut text, &outcome.half_load);
    idle(&mut text, &outcome.idle);
    text
}

fn introduction(text: &mut String, outcome: &Outcome) {
    let _ = writeln!(
        text,
        "`bench/run`, {} jobs at once, {} rounds on the invoice and one less on other pages, every side with a turn \
         in each, after the same warm-up. Every side gets the same page and options; every answer is checked, and the \
         first file of each side is decoded: size, pages, text, pixels. Rates and CPU time are medians of the rounds, \
         latencies are of all jobs. CPU time is of the side's whole process tree, by {}, read when it had cleaned up; \
         PSS was read during the warm-up and between turns. PDFs are untagged and PNG is written {} on all sides. \
         Compare within one run only.\n",
        outcome.concurrency,
        outcome.rounds,
        outcome.accounting,
        if outcome.fast_png {
            "fast rather than small, as the farm writes it"
        } else {
            "small rather than fast"
        },
    );
    for version in &outcome.versions {
        let _ = writeln!(text, "- {version}");
    }
    for (kind, reason) in &outcome.missing {
        let _ = writeln!(text, "- not measured: {}: {reason}", kind.title());
    }
    text.push('\n');
}

fn row(text: &mut String, kind: Kind, figures: &Figures) {
    let ms = |percent| number(figures.latency_ms(percent), 0);
    let memory = (figures.memory > 0).then(|| mebibytes(figures.memory));
    let bytes = if figures.bytes > 0 { figures.bytes.to_string() } else { "–".to_owned() };
    let errors = if figures.wrong.is_some() { "wrong file".to_owned() } else { figures.errors().to_string() };
    let _ = writeln!(
        text,
        "| {} | {} | {} | {} | {} | {} | {} | {bytes} | {} | {errors} |",
        kind.title(),
        number(figures.rate().filter(|rate| *rate > 0.0), 1),
        ms(50),
        ms(95),
        ms(99),
        number(figures.cpu_ms(), 1),
        number(memory, 0),
        figures.jobs(),
    );
}

/// What a reader must know to compare fairly.
fn notes(text: &mut String, outcome: &Outcome, figures: &[Option<Figures>]) {
    let known = || outcome.kinds.iter().zip(figures).filter_map(|(kind, one)| Some((kind, one.as_ref()?)));
    let mut notes = Vec::new();
    let reference = known().find(|(_, one)| one.wrong.is_none());
    for (kind, one) in known() {
        if let Some(error) = one.first_error() {
            notes.push(format!("{}: {}", kind.title(), error.lines().next().unwrap_or_default()));
        }
        if let Some((other, reference)) = reference {
            if one.pages != reference.pages && one.pages > 0 {
                let pages = format!("{} pages instead of {}", one.pages, reference.pages);
                notes.push(format!("{}: {pages}.", kind.title()));
            }
            // Far beyond what a date or an id in a file makes.
            if one.bytes.abs_diff(reference.bytes) * 20 > reference.bytes && one.bytes > 0 {
                let ratio = super::count(one.bytes) / super::count(reference.bytes);
                notes.push(format!(
                    "{}: the file is {ratio:.2} times that of {}.",
                    kind.title(),
                    other.title()
                ));
            }
        }
        let whole = super::count(GALLERY_FETCHES);
        if let Some(fetches) = one.fetches.filter(|fetches| (fetches - whole).abs() > 0.5) {
            notes.push(format!("{}: {fetches:.1} fetches a job instead of {GALLERY_FETCHES}.", kind.title()));
        }
    }
    for note in &notes {
        let _ = writeln!(text, "- {note}");
    }
    if !notes.is_empty() {
        text.push('\n');
    }
}

fn half_load(text: &mut String, all: &[HalfLoad]) {
    if all.is_empty() {
        return;
    }
    text.push_str(
        "### At half load\n\nEach side at half the rate it showed above, jobs arriving at random.\n\n",
    );
    text.push_str("| | page | jobs/s | p50 ms | p95 ms | p99 ms | p99 / p50 | jobs | errors |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for one in all {
        let ms = |percent| percentile_ms(&one.seen.latencies, percent);
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} | {} | {} | {} | {} | {} | {} |",
            one.kind.title(),
            one.page,
            one.rate,
            number(ms(50), 0),
            number(ms(95), 0),
            number(ms(99), 0),
            number(one.tail(), 1),
            one.seen.latencies.len(),
            one.seen.errors.len(),
        );
    }
    text.push('\n');
}

impl HalfLoad {
    /// p99 over p50.
    pub(super) fn tail(&self) -> Option<f64> {
        Some(percentile_ms(&self.seen.latencies, 99)? / percentile_ms(&self.seen.latencies, 50)?)
    }
}

fn idle(text: &mut String, all: &[(Kind, f64)]) {
    text.push_str("### With nothing to do\n\n| | CPU-ms a second |\n| --- | --- |\n");
    for (kind, spent) in all {
        let _ = writeln!(text, "| {} | {spent:.1} |", kind.title());
    }
}

/// A number, or a dash.
pub(super) fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.decimals$}"))
}

/// Bytes as MiB.
pub(super) fn mebibytes(bytes: u64) -> f64 {
    u32::try_from(bytes >> 10).map_or(f64::INFINITY, f64::from) / 1024.0
}

/// One line a side and page, while the run goes on.
pub(super) fn progress(kind: Kind, figures: &Figures) {
    super::say(&format!(
        "  {:<20} {:>7} jobs/s  p50 {:>6} ms  CPU {:>8} ms  PSS {:>5.0} MiB  {} bytes  {} jobs  {}",
        kind.name(),
        number(figures.rate(), 1),
        number(figures.latency_ms(50), 0),
        number(figures.cpu_ms(), 1),
        mebibytes(figures.memory),
        figures.bytes,
        figures.jobs(),
        figures
            .first_error()
            .map(|error| format!("{} errors: {error}", figures.errors()))
            .unwrap_or_default(),
    ));
}

/// The machine and what ran on it.
pub(super) fn versions(around: &Surroundings) -> Vec<String> {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut all = vec![format!(
        "{cores} cores, {}, Linux {}",
        model.map_or("unknown processor", |(_, name)| name),
        kernel.trim()
    )];
    let output = Command::new(&around.chromium).arg("--version").output();
    let version = output.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    let name = around.chromium.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    all.push(format!("{name} {}", version.trim().rsplit(' ').find(|word| word.contains('.')).unwrap_or("?")));
    let peers = fs::read_to_string(around.tools.join("peers/package.json")).unwrap_or_default();
    let peers: serde_json::Value = serde_json::from_str(&peers).unwrap_or_default();
    for (name, version) in peers["dependencies"].as_object().into_iter().flatten() {
        all.push(format!("{name} {}", version.as_str().unwrap_or("?")));
    }
    let python = fs::read_to_string(around.tools.join("peers/requirements.txt")).unwrap_or_default();
    let weasyprint = python.lines().find_map(|line| line.strip_prefix("weasyprint=="));
    all.extend(weasyprint.map(|version| format!("weasyprint {version}")));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_put_in_its_place() {
        let text = with_section("# Results\n\nedge\n", "peers", "one");
        assert_eq!(text, "# Results\n\nedge\n\n<!-- peers:begin -->\none\n<!-- peers:end -->\n");
        let text = with_section(&format!("{text}\nafter\n"), "peers", "two\n");
        assert_eq!(text, "# Results\n\nedge\n\n<!-- peers:begin -->\ntwo\n<!-- peers:end -->\n\nafter\n");
    }

    #[test]
    fn what_was_not_measured_is_a_dash() {
        assert_eq!(number(None, 1), "–");
        assert_eq!(number(Some(1.25), 1), "1.2");
        assert!((mebibytes(3 << 20) - 3.0).abs() < 1e-9);
    }
}
