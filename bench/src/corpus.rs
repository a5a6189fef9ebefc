//! Real pages, rendered by a farm and by a reference that renders in real time, and compared.
//!
//! Invariant: all requests stay on 127.0.0.1, the number of jobs is known before the first one, and dropping
//! a run stops every process it started. `bench/corpus/run` installs the packages that the pages use.

mod farm_instance;
mod file_server;
mod matrix;
mod page;
mod queue;
mod reader;
mod rendered;
mod repeatability;
mod stalls;
mod timer_page;
mod verdict;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use platen_harness::{loopback::Loopback, settings};
use platen_shared::job::Animations;

use self::{
    farm_instance::FarmInstance,
    page::{Format, Milestone, Mode, Page, Source},
    rendered::Rendered,
    verdict::AcceptedDifferences,
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Pages or categories, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    pages: Vec<String>,
    /// Formats [default: all]
    #[arg(long, value_delimiter = ',')]
    formats: Vec<Format>,
    /// Milestones [default: all; with --repeat: second]
    #[arg(long, value_delimiter = ',')]
    milestones: Vec<Milestone>,
    /// How jobs specify pages: as markup or by URL [default: all]
    #[arg(long, value_delimiter = ',')]
    sources: Vec<Source>,
    /// Concurrent jobs
    #[arg(long, default_value_t = 4)]
    concurrency: usize,
    /// Seed of the order and of the stalls [default: random]
    #[arg(long)]
    seed: Option<u64>,
    /// Instead, render this many pages that change by timers while renderer processes are stopped and continued
    #[arg(long, value_name = "JOBS", num_args = 0..=1, default_missing_value = "1000")]
    stalls: Option<usize>,
    /// Instead, render every page this many times on an idle and on a busy machine
    #[arg(long, value_name = "TIMES", num_args = 0..=1, default_missing_value = "20", conflicts_with = "stalls")]
    repeat: Option<usize>,
    /// Chromium for the farm and the reference
    #[arg(long, env = "PLATEN_CHROMIUM", default_value = "/usr/lib/chromium/chromium-headless-shell")]
    chromium: PathBuf,
}

/// The directory of files that differ; existing content is removed.
const OUTPUT: &str = "target/bench/corpus-differences";

/// The options, the pages and what all benchmarks of the corpus share.
pub(crate) struct Corpus {
    options: Options,
    pages: Vec<Page>,
    accepted: AcceptedDifferences,
    site: Loopback,
    seed: u64,
}

type Case = (Page, Mode);

/// Runs the selected benchmark.
///
/// # Errors
/// When a job fails or a difference is not accepted.
pub(crate) async fn run(options: Options) -> Result<()> {
    let directory = settings::tests_dir().join("../bench/corpus").canonicalize()?;
    let packages = Path::new("target/bench/corpus/node_modules").canonicalize();
    let packages = packages.context("the packages are not installed: run bench/corpus/run")?;
    let mut pages = page::all(&directory)?;
    for name in &options.pages {
        ensure!(pages.iter().any(|page| page.matches(name)), "unknown page or category {name}");
    }
    pages.retain(|page| options.pages.is_empty() || options.pages.iter().any(|name| page.matches(name)));
    let seed = options.seed.unwrap_or_else(rand::random);
    println!("seed {seed}");
    let corpus = Corpus {
        accepted: AcceptedDifferences::read(&directory.join("accepted.json"))?,
        site: file_server::start(&directory.join("pages"), &packages).await?,
        pages,
        seed,
        options,
    };
    let failures = match (corpus.options.stalls, corpus.options.repeat) {
        (Some(jobs), _) => stalls::run(&corpus, jobs).await?,
        (_, Some(times)) => repeatability::run(&corpus, times).await?,
        _ => matrix::run(&corpus).await?,
    };
    ensure!(failures == 0, "{failures} failures; see above");
    Ok(())
}

impl Corpus {
    /// All pages in all modes that the options select and the page supports.
    fn cases(&self, milestones: &[Milestone]) -> Vec<Case> {
        let modes = Mode::all(&self.options.formats, milestones, &self.options.sources);
        let mut cases = Vec::new();
        for page in &self.pages {
            cases.extend(modes.iter().filter(|mode| page.supports(**mode)).map(|mode| (page.clone(), *mode)));
        }
        cases
    }

    /// Renders a case and parses its file. The job waits for `extra_wait_ms` more than its mode says.
    async fn render(
        &self,
        farm: &FarmInstance,
        (page, mode): &Case,
        account: &str,
        extra_wait_ms: u32,
    ) -> Result<Rendered> {
        let is_read = farm.is_reference && page.is_read(*mode);
        let host = if is_read { file_server::READER_HOST } else { file_server::HOST };
        let origin = format!("http://{host}:{}", self.site.address().port());
        let mut job = page.job(*mode, &origin, account, extra_wait_ms)?;
        if farm.is_reference {
            job.options.animations = Animations::Allow;
            job.options.scroll = false;
        }
        if is_read {
            reader::read(&mut job, extra_wait_ms)?;
        }
        let (file, format) = (farm.render(&job).await?, mode.format);
        // Parsing blocks the thread.
        tokio::task::spawn_blocking(move || Rendered::parse(file, format)).await?
    }
}
