//! The latency of a well-behaved account beside ordinary accounts, and beside hostile ones.
//!
//! Invariant: in both parts the well-behaved account sends the same jobs at the same rate to the same farm,
//! and every file is decoded and compared with the expected one. The hostile pages are those of the farm's
//! tests.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, future::join_all, stream};
use image::RgbImage;
use platen_harness::settings::Settings;
use platen_shared::{
    format::WaitUntil,
    job::{Source, Viewport},
    wire,
};

use crate::{
    farm::{self, Farm},
    statistics::{LoadResult, numbers, percentiles_ms},
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Jobs of the well-behaved account in each part, one per second
    #[arg(long, default_value_t = 120)]
    jobs: u32,
    /// Well-behaved jobs that run interleaved with as many hostile ones
    #[arg(long, default_value_t = 400)]
    pairs: usize,
    /// Browsers of the farm
    #[arg(long, default_value_t = 2)]
    browsers: u32,
    /// Deadline of the hostile jobs in milliseconds
    #[arg(long, default_value_t = 3_000)]
    deadline_ms: u64,
    /// Chromium for the farm
    #[arg(long, env = "PLATEN_CHROMIUM", default_value = "/usr/lib/chromium/chromium-headless-shell")]
    chromium: PathBuf,
}

const HOSTILE: &str = include_str!("../../farm/tests/farm/neighbours/hostile.html");
const ORDINARY: &str = "<!doctype html><style>body { font: 14px sans-serif } td { border: 1px solid }</style>\
    <h1>Invoice</h1><table id=t></table><script>for (let i = 0; i < 60; i++) \
    t.insertRow().insertCell().textContent = 'Item ' + i</script>";
/// Deadline of well-behaved and ordinary jobs, in milliseconds.
const DEADLINE_MS: u64 = 30_000;
/// How much later than its deadline a response may arrive on a busy machine.
const DEADLINE_TOLERANCE: Duration = Duration::from_secs(2);
/// Number of ordinary accounts, and of hostile ones.
const OTHER_ACCOUNTS: usize = 4;
/// Concurrent jobs while well-behaved and hostile ones are interleaved.
const INTERLEAVED_JOBS: usize = 6;

async fn start_farm(options: &Options) -> Result<Farm> {
    let mut command = Command::new(Settings::from_env()?.platen.with_file_name("platen-farm"));
    command.args(["--page-memory", "400", "--browsers", &options.browsers.to_string()]);
    Farm::start(command, &options.chromium).await
}

/// Runs one job and returns the status and the body of its response.
async fn send(farm: &Farm, account: &str, page: &str, deadline_ms: u64) -> Result<(u16, Vec<u8>)> {
    let source = Source::Html(page.to_owned().try_into()?);
    let mut job = farm::job(account, source, WaitUntil::Load, 0, farm::png(false))?;
    job.options.viewport =
        Viewport { width: 400.0.try_into()?, height: 300.0.try_into()?, ..Viewport::default() };
    let request = farm.request(&job);
    let response = request.header(wire::DEADLINE_MS, deadline_ms).send().await?;
    let status = response.status().as_u16();
    Ok((status, response.bytes().await?.to_vec()))
}

pub(crate) fn hostile_pages() -> Vec<&'static str> {
    HOSTILE.split("<!-- ").skip(1).filter_map(|section| Some(section.split_once(" -->")?.1)).collect()
}

/// Counts the responses to the jobs of the other accounts.
#[derive(Default)]
struct ResponseCounts {
    by_status: RefCell<BTreeMap<u16, usize>>,
    late: Cell<usize>,
}

impl ResponseCounts {
    fn record(&self, status: u16, is_late: bool) {
        *self.by_status.borrow_mut().entry(status).or_default() += 1;
        self.late.update(|late| late + usize::from(is_late));
    }

    fn text(&self) -> String {
        let by_status = self.by_status.borrow();
        format!("{}, {} after their deadline", numbers(&by_status), self.late.get())
    }
}

/// Starts one job per second, each with a different colour, without waiting for the previous one.
async fn well_behaved_jobs(farm: &Farm, jobs: u32) -> LoadResult {
    let started = Instant::now();
    let jobs = (0..jobs).map(|number| async move {
        tokio::time::sleep_until((started + Duration::from_secs(number.into())).into()).await;
        well_behaved_job(farm, number).await
    });
    LoadResult::new(started, join_all(jobs).await)
}

async fn well_behaved_job(farm: &Farm, number: u32) -> Result<Duration> {
    let colour = [u8::try_from(number % 200)?, u8::try_from(number / 200 % 200)?, 90];
    let [red, green, blue] = colour;
    let page = format!(
        "{ORDINARY}<script>document.documentElement.style.background = 'rgb({red},{green},{blue})'</script>"
    );
    let started = Instant::now();
    let response = send(farm, "good", &page, DEADLINE_MS).await?;
    let latency = started.elapsed();
    let image = decode(&response)?;
    let is_expected = image.dimensions() == (400, 300) && image.get_pixel(390, 5).0 == colour;
    ensure!(is_expected, "the image is not the expected one");
    Ok(latency)
}

fn decode((status, file): &(u16, Vec<u8>)) -> Result<RgbImage> {
    ensure!(*status == 200, "{status}: {}", String::from_utf8_lossy(file));
    Ok(image::load_from_memory(file)?.to_rgb8())
}

async fn hostile_job(
    farm: &Farm,
    account: usize,
    page: &str,
    deadline_ms: u64,
    counts: &ResponseCounts,
) -> Result<()> {
    let started = Instant::now();
    let (status, _) = send(farm, &format!("hostile {account}"), page, deadline_ms).await?;
    counts.record(status, started.elapsed() > Duration::from_millis(deadline_ms) + DEADLINE_TOLERANCE);
    if status == 503 {
        // As a client does that obeys `retry-after`.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// Runs both parts and the interleaved jobs, and prints the results.
pub(crate) async fn run(options: Options) -> Result<()> {
    let farm = start_farm(&options).await?;
    let (ordinary, hostile) = (ResponseCounts::default(), ResponseCounts::default());
    let beside_ordinary = beside(&farm, options.jobs, async |account, done| {
        while !done.get() {
            let (status, _) = send(&farm, &format!("ordinary {account}"), ORDINARY, DEADLINE_MS).await?;
            ordinary.record(status, false);
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
        Ok(())
    })
    .await?;
    let pages = hostile_pages();
    let beside_hostile = beside(&farm, options.jobs, async |account, done| {
        for page in pages.iter().cycle().skip(account * pages.len() / OTHER_ACCOUNTS) {
            if done.get() {
                break;
            }
            hostile_job(&farm, account, page, options.deadline_ms, &hostile).await?;
        }
        Ok(())
    })
    .await?;
    let interleaved = ResponseCounts::default();
    let errors = interleave(&farm, options.pairs, &interleaved).await?;
    let mut farm = farm;
    let left = farm.process.stop().await?.left.len();

    println!("| other accounts send | jobs | wrong | p50 ms | p95 ms |\n| --- | --- | --- | --- | --- |");
    for (others, result) in [("ordinary jobs", &beside_ordinary), ("hostile jobs", &beside_hostile)] {
        let [p50, p95] = percentiles_ms(&result.latencies, [50, 95]);
        println!("| {others} | {} | {} | {p50:.0} | {p95:.0} |", options.jobs, result.errors.len());
    }
    let p95 = |result: &LoadResult| result.percentile_ms(95).context("no job was successful");
    println!("\nRatio of the p95: {:.2}", p95(&beside_hostile)? / p95(&beside_ordinary)?);
    println!("Ordinary jobs: {}", ordinary.text());
    println!("Hostile jobs: {}", hostile.text());
    println!(
        "Interleaved: {} of {} well-behaved jobs wrong; hostile jobs: {}",
        errors.len(),
        options.pairs,
        interleaved.text()
    );
    println!("Processes left: {left}");
    for error in [&beside_ordinary.errors, &beside_hostile.errors, &errors].into_iter().flatten() {
        println!("- {error}");
    }
    Ok(())
}

/// Runs the jobs of the well-behaved account while each of the other accounts runs `others`, one job after the
/// other, until they are done.
async fn beside(
    farm: &Farm,
    jobs: u32,
    others: impl AsyncFn(usize, &Cell<bool>) -> Result<()>,
) -> Result<LoadResult> {
    let done = Cell::new(false);
    let well_behaved = async {
        // By then the jobs of the other accounts are in progress.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let result = well_behaved_jobs(farm, jobs).await;
        done.set(true);
        result
    };
    let others = join_all((0..OTHER_ACCOUNTS).map(|account| others(account, &done)));
    let (result, others) = tokio::join!(well_behaved, others);
    others.into_iter().collect::<Result<Vec<()>>>()?;
    Ok(result)
}

/// Runs `pairs` of a hostile and a well-behaved job and returns the errors of the well-behaved ones.
async fn interleave(farm: &Farm, pairs: usize, counts: &ResponseCounts) -> Result<Vec<String>> {
    let reference = decode(&send(farm, "reference", ORDINARY, DEADLINE_MS).await?)?;
    let (pages, reference) = (hostile_pages(), &reference);
    let jobs = (0..2 * pairs).map(|number| {
        let page = pages[number / 2 % pages.len()];
        async move {
            if number % 2 == 0 {
                hostile_job(farm, number / 2 % OTHER_ACCOUNTS, page, 1_000, counts).await?;
                return anyhow::Ok(None);
            }
            let response = send(farm, &format!("good {}", number % 7), ORDINARY, DEADLINE_MS).await?;
            Ok(match decode(&response) {
                Ok(image) if image == *reference => None,
                Ok(_) => Some("the image is not the expected one".to_owned()),
                Err(error) => Some(format!("{error:#}")),
            })
        }
    });
    let outcomes: Vec<Result<_>> = stream::iter(jobs).buffer_unordered(INTERLEAVED_JOBS).collect().await;
    Ok(outcomes.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}
