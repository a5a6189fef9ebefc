//! Platen compared with other renderers: the same pages, options and concurrency, and in each round one
//! turn per renderer.
//!
//! Invariant: within one run all renderers work on the same machine in the same minutes, after the same
//! warm-up. A file that is not the requested one counts as an error.

mod aims;
mod file_check;
mod generators;
mod measure;
mod mix;
mod page;
mod page_template;
mod pages;
mod prepared_request;
mod report;
mod target;
mod test_image;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use platen_harness::settings::{self, Settings};

use self::{
    measure::Measurement,
    page::Page,
    pages::Hosts,
    target::{Environment, Kind, Target},
};
use crate::{cpu_accounting::Cgroups, http_client, statistics::milliseconds};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Renderers, separated by commas [default: all that are installed, without baseline and inlined]
    #[arg(long, value_delimiter = ',')]
    targets: Vec<Kind>,
    /// Pages, separated by commas; mix is jobs of 1,000 accounts [default: all]
    #[arg(long, value_delimiter = ',')]
    pages: Vec<String>,
    /// Rounds on the invoice pages; other pages get one fewer
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Chromium for all renderers
    #[arg(long, env = "PLATEN_CHROMIUM", default_value = "/usr/lib/chromium/chromium-headless-shell")]
    chromium: PathBuf,
    /// platen-farm of another build, for the target baseline
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Directory in which bench/run installed the other renderers
    #[arg(long, default_value = "target/bench")]
    tools: PathBuf,
}

/// The results of a run.
#[derive(Debug)]
struct Comparison {
    rounds: usize,
    accounting: String,
    versions: Vec<String>,
    pages: Vec<Page>,
    kinds: Vec<Kind>,
    /// Renderers that could not be started, with the reason.
    unavailable: Vec<(Kind, String)>,
    /// Indexed by page, then by renderer, like `pages` and `kinds`; `None` where a renderer does not
    /// support a page.
    measurements: Vec<Vec<Option<Measurement>>>,
    /// CPU milliseconds per second of a warm renderer without jobs.
    idle: Vec<(Kind, f64)>,
    mix: Vec<Mixed>,
}

impl Comparison {
    fn measurement(&self, page: &str, kind: Kind) -> Option<&Measurement> {
        let row = self.pages.iter().position(|known| known.name == page)?;
        let column = self.kinds.iter().position(|known| *known == kind)?;
        self.measurements[row][column].as_ref()
    }
}

/// A renderer on the mix.
#[derive(Debug)]
struct Mixed {
    kind: Kind,
    /// Memory for the warm pages of a farm.
    warm_memory_mib: Option<u32>,
    measurement: Measurement,
    /// Pages that a farm has given to jobs, warm ones, spare ones and opened ones.
    pages: Option<[usize; 3]>,
}

impl Mixed {
    /// The name in reports, as Markdown.
    fn title(&self) -> String {
        let memory = self.warm_memory_mib.map(|mebibytes| format!(", {} GiB of warm pages", mebibytes >> 10));
        self.kind.title().to_owned() + &memory.unwrap_or_default()
    }
}

/// Concurrent jobs of a renderer.
const CONCURRENCY: usize = 2;
/// The browser of the targets whose name ends in "-chromium".
const FULL_CHROMIUM: &str = "/usr/lib/chromium/chromium";
/// The name of the mix among the pages.
const MIX: &str = "mix";
/// Accounts of the mix, whose share of the jobs falls with their rank by Zipf's law with s = 1.
const MIX_ACCOUNTS: u32 = 1_000;
/// Pages that are kept collect their garbage once within about a minute after their last job. Measured: 40 pages of 23
/// renderers take 0.4 s of CPU time for it, and then 2 ms a second.
const SETTLE_DURATION: Duration = Duration::from_mins(1);
const IDLE_DURATION: Duration = Duration::from_secs(10);

/// Runs the selected benchmark and writes its section of `RESULTS.md`.
pub(crate) async fn run(options: Options) -> Result<()> {
    let directory = traversable_directory()?;
    let environment = Environment {
        chromium: target::trusting(&options.chromium, directory.path())?,
        full_chromium: target::trusting(Path::new(FULL_CHROMIUM), directory.path())?,
        baseline: options.baseline.clone(),
        tools: options
            .tools
            .canonicalize()
            .context("the other renderers are not installed: run bench/run")?,
        settings: Settings::from_env()?,
        cgroups: Cgroups::find(),
        directory,
    };
    let hosts = Hosts::start().await?;
    let results = settings::tests_dir().join("../bench/RESULTS.md");
    // Only complete runs replace results.
    let section = report::section(&compare(&options, &environment, &hosts).await?);
    if options.targets.is_empty() && options.pages.is_empty() {
        return report::replace_section(&results, &section);
    }
    println!("{section}");
    Ok(())
}

/// A temporary directory that unprivileged users can traverse, for their home directories.
pub(crate) fn traversable_directory() -> Result<tempfile::TempDir> {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::Builder::new().prefix("platen-bench-").tempdir()?;
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o711))?;
    Ok(directory)
}

/// The name of a value on the command line.
pub(crate) fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

async fn compare(options: &Options, environment: &Environment, hosts: &Hosts) -> Result<Comparison> {
    let versions = report::versions(environment);
    let mut pages = pages::all(hosts)?;
    let names: Vec<&str> = pages.iter().map(|page| page.name).chain([MIX]).collect();
    for name in &options.pages {
        ensure!(names.contains(&name.as_str()), "unknown page {name}; the pages are {}", names.join(", "));
    }
    let is_selected = |name| options.pages.is_empty() || options.pages.iter().any(|page| page == name);
    let all = Kind::value_variants().iter().filter(|kind| !matches!(kind, Kind::Baseline | Kind::Inlined));
    let kinds =
        if options.targets.is_empty() { all.collect() } else { options.targets.iter().collect::<Vec<_>>() };

    let mut targets = Vec::new();
    let mut unavailable = Vec::new();
    for kind in kinds {
        eprintln!("starting {}", kind.name());
        match Target::start(*kind, environment).await {
            Ok(target) => targets.push(target),
            Err(error) => {
                eprintln!("  unavailable: {error:#}");
                let reason = error.to_string();
                unavailable.push((*kind, reason.lines().next().unwrap_or_default().to_owned()));
            }
        }
    }

    let http = http_client::client()?;
    let mix_pages = pages::mix(hosts, &pages)?;
    pages.retain(|page| is_selected(page.name));
    let mut measurements = Vec::new();
    for page in &pages {
        eprintln!("{}", page.name);
        measurements.push(measure::all(options, &http, &hosts.site, &targets, page).await?);
    }
    let mut comparison = Comparison {
        rounds: options.rounds,
        accounting: environment.cgroups.to_string(),
        versions,
        kinds: targets.iter().map(|target| target.kind).collect(),
        pages,
        unavailable,
        measurements,
        idle: Vec::new(),
        mix: Vec::new(),
    };
    comparison.idle = idle(&targets).await?;
    if is_selected(MIX) {
        eprintln!("{MIX}");
        // Warm pages take the memory.
        drop(targets);
        comparison.mix = mix::run(options, environment, &http, &mix_pages).await?;
    }
    Ok(comparison)
}

/// The CPU time of each renderer a minute after the last job.
async fn idle(targets: &[Target]) -> Result<Vec<(Kind, f64)>> {
    eprintln!("idle");
    tokio::time::sleep(SETTLE_DURATION).await;
    let cpu_times = || targets.iter().map(|target| target.processes.cpu_time()).collect::<Result<Vec<_>>>();
    let before = cpu_times()?;
    tokio::time::sleep(IDLE_DURATION).await;
    let spent = cpu_times()?.into_iter().zip(before).map(|(after, before)| after.saturating_sub(before));
    let per_second = spent.map(|spent| milliseconds(spent) / IDLE_DURATION.as_secs_f64());
    Ok(targets.iter().map(|target| target.kind).zip(per_second).collect())
}
