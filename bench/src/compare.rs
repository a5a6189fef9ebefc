//! Platen compared with other renderers: the same pages, options and concurrency, and in each round one
//! turn per renderer.
//!
//! Invariant: within one run all renderers work on the same machine in the same minutes, after the same
//! warm-up. A file that is not the requested one counts as an error.

mod aims;
mod chart;
mod egress_guard;
mod file_check;
mod generators;
mod markdown;
mod measure;
mod measurement;
mod page;
mod page_template;
mod prepared_request;
mod report;
mod target;
mod test_image;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use platen_harness::{
    settings::{self, Settings},
    site::Site,
};

use self::{
    measurement::Measurement,
    page::Page,
    prepared_request::PreparedRequest,
    target::{Environment, Kind, Target},
};
use crate::{
    cpu_accounting::Cgroups,
    http_client,
    statistics::{LoadResult, milliseconds},
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Renderers, separated by commas [default: all that are installed, without the baseline]
    #[arg(long, value_delimiter = ',')]
    targets: Vec<Kind>,
    /// Pages, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    pages: Vec<String>,
    /// Rounds on the invoice pages; other pages get one fewer
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Maximum number of jobs per turn
    #[arg(long, default_value_t = 60)]
    jobs: usize,
    /// Seconds after which a turn starts no further jobs
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// Concurrent jobs
    #[arg(long, default_value_t = 2)]
    concurrency: usize,
    /// Measure the CPU time of the egress guard instead of comparing
    #[arg(long)]
    guard: bool,
    /// Chromium for all renderers
    #[arg(long, env = "PLATEN_CHROMIUM", default_value = "/usr/lib/chromium/chromium-headless-shell")]
    chromium: PathBuf,
    /// platen-farm of another build, for the target baseline
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Full Chromium, for the targets whose name ends in "-chromium"
    #[arg(long, default_value = "/usr/lib/chromium/chromium")]
    full_chromium: PathBuf,
    /// Directory in which bench/run installed the other renderers
    #[arg(long, default_value = "target/bench")]
    tools: PathBuf,
}

/// The results of a run.
#[derive(Debug)]
struct Comparison {
    concurrency: usize,
    rounds: usize,
    fast_png: bool,
    accounting: String,
    versions: Vec<String>,
    pages: Vec<Page>,
    kinds: Vec<Kind>,
    /// Renderers that could not be started, with the reason.
    unavailable: Vec<(Kind, String)>,
    /// Indexed by page, then by renderer, like `pages` and `kinds`; `None` where a renderer does not
    /// support a page.
    measurements: Vec<Vec<Option<Measurement>>>,
    half_load: Vec<HalfLoad>,
    /// CPU milliseconds per second of a warm renderer without jobs.
    idle: Vec<(Kind, f64)>,
}

impl Comparison {
    fn measurement(&self, page: &str, kind: Kind) -> Option<&Measurement> {
        let row = self.pages.iter().position(|known| known.name == page)?;
        let column = self.kinds.iter().position(|known| *known == kind)?;
        self.measurements[row][column].as_ref()
    }
}

/// A renderer at half of its maximum rate.
#[derive(Debug)]
struct HalfLoad {
    kind: Kind,
    page: &'static str,
    rate: f64,
    result: LoadResult,
}

const HALF_LOAD_SECONDS: f64 = 10.0;
const IDLE_DURATION: Duration = Duration::from_secs(10);

/// Runs the selected benchmark and writes its section of `RESULTS.md`.
pub(crate) async fn run(options: Options) -> Result<()> {
    let environment = Environment {
        chromium: options.chromium.clone(),
        full_chromium: options.full_chromium.clone(),
        baseline: options.baseline.clone(),
        tools: options
            .tools
            .canonicalize()
            .context("the other renderers are not installed: run bench/run")?,
        concurrency: options.concurrency,
        settings: Settings::from_env()?,
        cgroups: Cgroups::find(),
        directory: traversable_directory()?,
    };
    let site = Site::start().await?;
    let results = settings::tests_dir().join("../bench");
    // Only complete runs replace results.
    let (name, section, is_complete) = if options.guard {
        ("guard", egress_guard::run(&environment, &site).await?, true)
    } else {
        let comparison = compare(&options, &environment, &site).await?;
        let is_complete = options.targets.is_empty() && options.pages.is_empty();
        if is_complete {
            std::fs::write(results.join("results.svg"), chart::svg(&comparison))?;
        }
        ("peers", report::section(&comparison), is_complete)
    };
    if is_complete {
        return markdown::replace_section(&results.join("RESULTS.md"), name, &section);
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
pub(crate) fn value_name(value: &impl clap::ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

async fn compare(options: &Options, environment: &Environment, site: &Site) -> Result<Comparison> {
    use clap::ValueEnum as _;
    let mut pages = page::all(site)?;
    for name in &options.pages {
        let names: Vec<&str> = pages.iter().map(|page| page.name).collect();
        ensure!(names.contains(&name.as_str()), "unknown page {name}; the pages are {}", names.join(", "));
    }
    pages.retain(|page| options.pages.is_empty() || options.pages.iter().any(|name| name == page.name));
    let all = Kind::value_variants().iter().filter(|kind| **kind != Kind::Baseline);
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
    let fast_png = farm_writes_fast_png(&http, &targets, site).await?;
    let mut measurements = Vec::new();
    for page in &mut pages {
        eprintln!("{}", page.name);
        page.fast_png = fast_png;
        measurements.push(measure::all(options, &http, site, &targets, page).await?);
    }
    let mut comparison = Comparison {
        concurrency: options.concurrency,
        rounds: options.rounds,
        fast_png,
        accounting: environment.cgroups.to_string(),
        versions: report::versions(environment),
        kinds: targets.iter().map(|target| target.kind).collect(),
        pages,
        unavailable,
        measurements,
        half_load: Vec::new(),
        idle: Vec::new(),
    };
    comparison.half_load = half_load(&http, &targets, &comparison).await?;
    comparison.idle = idle(&targets).await?;
    Ok(comparison)
}

/// Whether the farm's PNG files are those of Chromium's `optimizeForSpeed`. The other renderers get the
/// same option, so that all are compared at the same file size.
async fn farm_writes_fast_png(http: &reqwest::Client, targets: &[Target], site: &Site) -> Result<bool> {
    let running = |kind: Kind| targets.iter().find(|target| target.kind == kind);
    let (Some(farm), Some(raw)) = (running(Kind::Farm), running(Kind::Raw)) else { return Ok(false) };
    let small = page::named(site, "invoice-png")?;
    let fast = Page { fast_png: true, ..small.clone() };
    let file_bytes = async |target: &Target, page: &Page| {
        let request = PreparedRequest::new(target, page)?;
        anyhow::Ok(request.send(http).await?.len())
    };
    let of_farm = file_bytes(farm, &small).await?;
    Ok(file_bytes(raw, &fast).await?.abs_diff(of_farm) < file_bytes(raw, &small).await?.abs_diff(of_farm))
}

/// The invoice pages at half of a renderer's measured rate, with random arrivals.
async fn half_load(
    http: &reqwest::Client,
    targets: &[Target],
    comparison: &Comparison,
) -> Result<Vec<HalfLoad>> {
    let mut all = Vec::new();
    for page in comparison.pages.iter().filter(|page| page.name.starts_with("invoice-")) {
        for target in targets {
            if !matches!(target.kind, Kind::Farm | Kind::Chain | Kind::Cluster) {
                continue;
            }
            let measurement = comparison.measurement(page.name, target.kind);
            let Some(rate) = measurement.and_then(Measurement::rate) else { continue };
            let rate = rate / 2.0;
            eprintln!("half load: {}, {}", page.name, target.kind.name());
            let request = Arc::new(PreparedRequest::new(target, page)?);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few hundred")]
            let jobs = (rate * HALF_LOAD_SECONDS).ceil() as usize;
            let result = generators::open_loop(http, &request, rate, jobs).await;
            all.push(HalfLoad { kind: target.kind, page: page.name, rate, result });
        }
    }
    Ok(all)
}

/// The CPU time of each renderer while there are no jobs.
async fn idle(targets: &[Target]) -> Result<Vec<(Kind, f64)>> {
    eprintln!("idle");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let cpu_times = || targets.iter().map(|target| target.processes.cpu_time()).collect::<Result<Vec<_>>>();
    let before = cpu_times()?;
    tokio::time::sleep(IDLE_DURATION).await;
    let spent = cpu_times()?.into_iter().zip(before).map(|(after, before)| after.saturating_sub(before));
    let per_second = spent.map(|spent| milliseconds(spent) / IDLE_DURATION.as_secs_f64());
    Ok(targets.iter().map(|target| target.kind).zip(per_second).collect())
}
