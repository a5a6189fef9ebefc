//! Real pages: rendered by a farm and by a reference that draws by itself in real time, and compared.
//!
//! Invariant: everything stays on 127.0.0.1, the number of jobs is known before the first one, and
//! dropping a run ends every process it started. `bench/corpus/run` installs the packages that the pages
//! use.

mod accepted;
mod busy;
mod farm;
mod identity;
mod matrix;
mod page;
mod queue;
mod rendered;
mod repeat;
mod report;
mod server;
mod stalls;
mod timed;
mod verdict;

use std::{env, path::PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use platen_tests::settings;
use tokio::signal::unix::{SignalKind, signal};

use self::{
    accepted::Accepted,
    page::{Format, Milestone, Mode, Page, Source},
    server::FileServer,
};

/// Real pages, rendered in virtual time and by a browser that draws by itself in real time.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Pages or categories, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    pages: Vec<String>,
    /// Formats [default: all]
    #[arg(long, value_delimiter = ',')]
    formats: Vec<Format>,
    /// Milestones [default: all; with --repeat the last]
    #[arg(long, value_delimiter = ',')]
    milestones: Vec<Milestone>,
    /// How pages are handed over [default: all]
    #[arg(long, value_delimiter = ',')]
    sources: Vec<Source>,
    /// Jobs under way at once.
    #[arg(long, default_value_t = 4)]
    concurrency: usize,
    /// Seed of the order and of the stalls [default: another one each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Compare the two rounds of the farm only, without the reference.
    #[arg(long)]
    no_reference: bool,
    /// Keep the files of all jobs, not only of those that differ.
    #[arg(long)]
    keep: bool,
    /// Instead: so many jobs of pages that change by timers, while renderers are stopped and continued
    #[arg(long, value_name = "JOBS", num_args = 0..=1, default_missing_value = "1000")]
    stalls: Option<usize>,
    /// Instead: every page so many times, on an idle machine and on a busy one
    #[arg(long, value_name = "TIMES", num_args = 0..=1, default_missing_value = "20", conflicts_with = "stalls")]
    repeat: Option<usize>,
    /// The farm [default: platen-farm beside this program]
    #[arg(long, value_name = "FILE")]
    farm: Option<PathBuf>,
    /// The Chromium of both sides.
    #[arg(long, env = "PLATEN_CHROMIUM", default_value = "/usr/lib/chromium/chromium-headless-shell")]
    chromium: PathBuf,
    /// Where `bench/corpus/run` installed the packages.
    #[arg(long, default_value = "target/bench/corpus")]
    installed: PathBuf,
    /// Where files that differ are written; what was there is removed.
    #[arg(long, default_value = "target/bench/corpus-differences")]
    output: PathBuf,
}

/// What every mode of the command needs.
pub(crate) struct Corpus {
    options: Options,
    pages: Vec<Page>,
    accepted: Accepted,
    server: FileServer,
    farm: PathBuf,
    seed: u64,
}

/// Runs until done, or until told to end.
pub(crate) async fn run(options: Options) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        done = run_to_end(options) => done,
        // Dropping the run stops and reaps all it started.
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}

async fn run_to_end(options: Options) -> Result<()> {
    let directory = settings::crate_dir().join("../bench/corpus").canonicalize()?;
    let packages = options.installed.join("node_modules").canonicalize();
    let packages = packages.context("the packages are not installed: run bench/corpus/run")?;
    let mut pages = page::all(&directory)?;
    for name in &options.pages {
        let known = pages.iter().any(|page| page.answers_to(name));
        ensure!(known, "there is no page or category {name}");
    }
    pages.retain(|page| options.pages.is_empty() || options.pages.iter().any(|name| page.answers_to(name)));
    let farm = match &options.farm {
        Some(farm) => farm.clone(),
        None => env::current_exe()?.with_file_name("platen-farm"),
    };
    ensure!(farm.exists(), "there is no {}: build it first", farm.display());
    let seed = options.seed.unwrap_or_else(rand::random);
    println!("seed {seed}");
    let corpus = Corpus {
        accepted: Accepted::read(&directory.join("accepted.json"))?,
        server: FileServer::start(&directory.join("pages"), &packages).await?,
        pages,
        farm,
        seed,
        options,
    };
    let failures = match (corpus.options.stalls, corpus.options.repeat) {
        (Some(jobs), _) => stalls::run(&corpus, jobs).await?,
        (_, Some(times)) => repeat::run(&corpus, times).await?,
        _ => matrix::run(&corpus).await?,
    };
    ensure!(failures == 0, "{failures} failures; see above");
    Ok(())
}

impl Corpus {
    /// Every job that the options leave.
    fn cases(&self, milestones: &[Milestone]) -> Vec<(Page, Mode)> {
        let modes = Mode::all(&self.options.formats, milestones, &self.options.sources);
        let mut cases = Vec::new();
        for page in &self.pages {
            cases.extend(modes.iter().filter(|mode| page.can(**mode)).map(|mode| (page.clone(), *mode)));
        }
        cases
    }
}

fn say(text: &str) {
    eprintln!("{text}");
}
