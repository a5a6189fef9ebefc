//! Platen beside its peers: the same pages, the same options, the same concurrency, one round of
//! each side after the other.
//!
//! Invariant: within one run every side renders on the same machine in the same minutes, after the
//! same warm-up, and a file that is not what was asked for is counted as an error. Left to others:
//! installing the peers and building in release (`bench/run`).

mod aims;
mod call;
mod chart;
mod check;
mod drive;
pub(crate) mod figures;
mod guard;
mod measure;
mod meter;
mod page;
mod photo;
mod repeat;
mod report;
mod soak;
pub(crate) mod target;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use platen_tests::{
    settings::{self, Settings},
    site::Site,
};
use tokio::signal::unix::{SignalKind, signal};

use self::{
    call::Call,
    drive::Seen,
    figures::{Figures, count},
    meter::Cgroups,
    page::Page,
    target::{Kind, Surroundings, Target},
};

/// Platen beside its peers.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Sides, separated by commas [default: all that are installed]
    #[arg(long, value_delimiter = ',')]
    targets: Vec<Kind>,
    /// Pages, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    pages: Vec<String>,
    /// Rounds on the invoice, one less on other pages; every side has one turn in each.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Jobs of a turn.
    #[arg(long, default_value_t = 60)]
    jobs: usize,
    /// Seconds after which a turn begins no more jobs.
    #[arg(long, default_value_t = 1.5)]
    seconds: f64,
    /// Jobs under way at once.
    #[arg(long, default_value_t = 2)]
    concurrency: usize,
    /// Instead of comparing: memory of the farm over many jobs.
    #[arg(long)]
    soak: bool,
    /// Jobs of --soak; with fewer than by default the outcome is printed and not written.
    #[arg(long, default_value_t = SOAK_JOBS)]
    soak_jobs: usize,
    /// Instead of comparing: what the egress guard costs.
    #[arg(long, conflicts_with = "soak")]
    guard: bool,
    /// The Chromium of all sides.
    #[arg(long, env = "PLATEN_CHROMIUM", default_value = "/usr/lib/chromium/chromium-headless-shell")]
    chromium: PathBuf,
    /// Full Chromium, for the sides that say so.
    #[arg(long, default_value = "/usr/lib/chromium/chromium")]
    full_chromium: PathBuf,
    /// Where bench/run installed the peers.
    #[arg(long, default_value = "target/bench")]
    tools: PathBuf,
}

/// Everything a run found out.
#[derive(Debug)]
struct Outcome {
    concurrency: usize,
    rounds: usize,
    fast_png: bool,
    accounting: String,
    versions: Vec<String>,
    pages: Vec<Page>,
    kinds: Vec<Kind>,
    /// Sides that could not be had, and why.
    missing: Vec<(Kind, String)>,
    /// By page, then by side, in the order of `pages` and `kinds`; nothing where a side cannot.
    figures: Vec<Vec<Option<Figures>>>,
    half_load: Vec<HalfLoad>,
    /// CPU time a second of a warm side that has nothing to do, in milliseconds.
    idle: Vec<(Kind, f64)>,
}

impl Outcome {
    fn of(&self, page: &str, kind: Kind) -> Option<&Figures> {
        let row = self.pages.iter().position(|known| known.name == page)?;
        let column = self.kinds.iter().position(|known| *known == kind)?;
        self.figures[row][column].as_ref()
    }
}

/// One side at half the rate it can do.
#[derive(Debug)]
struct HalfLoad {
    kind: Kind,
    page: &'static str,
    rate: f64,
    seen: Seen,
}

/// Enough to tell memory that grows from memory that settles.
const SOAK_JOBS: usize = 2_000;
const HALF_LOAD_SECONDS: f64 = 10.0;
const IDLE_WATCH: Duration = Duration::from_secs(10);

/// Compares, or what the options say instead, and writes what was found.
pub(crate) async fn run(options: Options) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        done = run_to_end(options) => done,
        // Dropping the run stops and reaps all it started.
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminate.recv() => bail!("told to end"),
    }
}

async fn run_to_end(options: Options) -> Result<()> {
    let around = Surroundings {
        chromium: options.chromium.clone(),
        full_chromium: options.full_chromium.clone(),
        tools: options.tools.canonicalize().context("the peers are not installed: run bench/run")?,
        concurrency: options.concurrency,
        settings: Settings::from_env()?,
        cgroups: Cgroups::find(),
        directory: open_directory()?,
    };
    let site = Site::start().await?;
    let results = settings::crate_dir().join("../bench");
    if options.soak {
        let section = soak::run(&around, &site, options.soak_jobs).await?;
        if options.soak_jobs < SOAK_JOBS {
            println!("{section}");
            return Ok(());
        }
        return report::put(&results.join("RESULTS.md"), "soak", &section);
    }
    if options.guard {
        let section = guard::run(&around, &site).await?;
        return report::put(&results.join("RESULTS.md"), "guard", &section);
    }
    let outcome = compare(&options, &around, &site).await?;
    let section = report::section(&outcome);
    if options.targets.is_empty() && options.pages.is_empty() {
        std::fs::write(results.join("results.svg"), chart::svg(&outcome))?;
        report::put(&results.join("RESULTS.md"), "peers", &section)
    } else {
        // Part of a comparison does not replace a whole one.
        println!("{section}");
        Ok(())
    }
}

/// Homes of unprivileged users are below it, so they must be able to pass.
pub(crate) fn open_directory() -> Result<tempfile::TempDir> {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::Builder::new().prefix("platen-bench-").tempdir()?;
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o711))?;
    Ok(directory)
}

async fn compare(options: &Options, around: &Surroundings, site: &Site) -> Result<Outcome> {
    use clap::ValueEnum as _;
    let mut pages = page::all(site)?;
    for name in &options.pages {
        let names: Vec<&str> = pages.iter().map(|page| page.name).collect();
        ensure!(names.contains(&name.as_str()), "there is no page {name}; there are {}", names.join(", "));
    }
    pages.retain(|page| options.pages.is_empty() || options.pages.iter().any(|name| name == page.name));
    let wanted = if options.targets.is_empty() { Kind::value_variants() } else { &options.targets };

    let mut targets = Vec::new();
    let mut missing = Vec::new();
    for kind in wanted {
        say(&format!("starting {}", kind.name()));
        match Target::start(*kind, around).await {
            Ok(target) => targets.push(target),
            Err(error) => {
                say(&format!("  not there: {error:#}"));
                let reason = error.to_string();
                missing.push((*kind, reason.lines().next().unwrap_or_default().to_owned()));
            }
        }
    }

    let http = reqwest::Client::builder().no_proxy().build()?;
    let fast_png = farm_writes_fast_png(&http, &targets, site).await?;
    let mut figures = Vec::new();
    for page in &mut pages {
        say(page.name);
        page.fast_png = fast_png;
        figures.push(measure::all(options, &http, site, &targets, page).await?);
    }
    let mut outcome = Outcome {
        concurrency: options.concurrency,
        rounds: options.rounds,
        fast_png,
        accounting: around.cgroups.to_string(),
        versions: report::versions(around),
        kinds: targets.iter().map(|target| target.kind).collect(),
        pages,
        missing,
        figures,
        half_load: Vec::new(),
        idle: Vec::new(),
    };
    outcome.half_load = half_load(&http, &targets, &outcome).await?;
    outcome.idle = idle(&targets).await?;
    Ok(outcome)
}

/// Whether the farm's PNG are those that Chromium writes when asked for speed. The others are asked
/// for the same, so that they are compared at the same size of file.
async fn farm_writes_fast_png(http: &reqwest::Client, targets: &[Target], site: &Site) -> Result<bool> {
    let running = |kind: Kind| targets.iter().find(|target| target.kind == kind);
    let (Some(farm), Some(raw)) = (running(Kind::Farm), running(Kind::Raw)) else { return Ok(false) };
    let pages = page::all(site)?;
    let small = pages.into_iter().find(|page| page.name == "invoice-png").context("an invoice")?;
    let fast = Page { fast_png: true, ..small.clone() };
    let bytes_of = async |target: &Target, page: &Page| {
        let call = Call::new(&target.speech, target.address, page)?;
        anyhow::Ok(drive::once(http, &call).await?.len())
    };
    let of_farm = bytes_of(farm, &small).await?;
    Ok(bytes_of(raw, &fast).await?.abs_diff(of_farm) < bytes_of(raw, &small).await?.abs_diff(of_farm))
}

/// The invoice at half the rate each of these sides showed, in random arrivals.
async fn half_load(http: &reqwest::Client, targets: &[Target], outcome: &Outcome) -> Result<Vec<HalfLoad>> {
    let mut all = Vec::new();
    for page in outcome.pages.iter().filter(|page| page.name.starts_with("invoice-")) {
        for target in targets {
            if !matches!(target.kind, Kind::Farm | Kind::Chain | Kind::Cluster) {
                continue;
            }
            let Some(rate) = outcome.of(page.name, target.kind).and_then(Figures::rate) else { continue };
            let rate = rate / 2.0;
            say(&format!("half load: {}, {}", page.name, target.kind.name()));
            let call = Arc::new(Call::new(&target.speech, target.address, page)?);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some hundred")]
            let jobs = (rate * HALF_LOAD_SECONDS).ceil() as usize;
            let seen = drive::open(http, &call, rate, jobs).await;
            all.push(HalfLoad { kind: target.kind, page: page.name, rate, seen });
        }
    }
    Ok(all)
}

/// What each side spends when nothing is asked of any.
async fn idle(targets: &[Target]) -> Result<Vec<(Kind, f64)>> {
    say("idle");
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before: Vec<Duration> = targets.iter().map(|target| target.meter.cpu()).collect::<Result<_>>()?;
    tokio::time::sleep(IDLE_WATCH).await;
    let mut all = Vec::new();
    for (target, before) in targets.iter().zip(before) {
        let spent = target.meter.cpu()?.saturating_sub(before);
        all.push((target.kind, spent.as_secs_f64() * 1_000.0 / IDLE_WATCH.as_secs_f64()));
    }
    Ok(all)
}

fn say(text: &str) {
    eprintln!("{text}");
}
