//! The latency of a well-behaved account beside ordinary accounts, and beside hostile ones.
//!
//! Invariant: in both parts the well-behaved account sends the same jobs at the same rate to the same farm,
//! and every file is decoded and compared with the expected one. The hostile pages are those of the farm's
//! tests.

use std::{
    cell::{Cell, RefCell},
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use futures::future::join_all;
use platen_harness::settings::Settings;
use platen_shared::wire;
use serde_json::json;

use crate::{
    farm::{self, Farm},
    statistics::{LoadResult, Tally, percentiles_ms},
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Jobs of the well-behaved account in each part, one per second
    #[arg(long, default_value_t = 120)]
    jobs: u32,
    /// Chromium for the farm
    #[arg(long, env = "PLATEN_CHROMIUM", default_value = "/usr/lib/chromium/chromium-headless-shell")]
    chromium: PathBuf,
}

const HOSTILE: &str = include_str!("../../farm/tests/farm/neighbours/hostile.html");
const ORDINARY: &str = "<!doctype html><style>body { font: 14px sans-serif } td { border: 1px solid }</style>\
    <h1>Invoice</h1><table id=t></table><script>for (let i = 0; i < 60; i++) \
    t.insertRow().insertCell().textContent = 'Item ' + i</script>";
/// Deadlines of well-behaved and ordinary jobs, and of hostile ones, in milliseconds.
const DEADLINE_MS: u64 = 30_000;
const HOSTILE_DEADLINE_MS: u64 = 3_000;
/// Number of ordinary accounts, and of hostile ones.
const OTHER_ACCOUNTS: usize = 4;

/// Runs one job and returns the status and the body of its response.
async fn send(farm: &Farm, account: &str, page: &str, deadline_ms: u64) -> Result<(u16, Vec<u8>)> {
    let job = farm::job(account, &json!({ "html": page, "width": 400, "height": 300 }))?;
    let request = farm.request(&job);
    let response = request.header(wire::DEADLINE_MS, deadline_ms).send().await?;
    let status = response.status().as_u16();
    Ok((status, response.bytes().await?.to_vec()))
}

pub(crate) fn hostile_pages() -> Vec<&'static str> {
    HOSTILE.split("<!-- ").skip(1).filter_map(|section| Some(section.split_once(" -->")?.1)).collect()
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
    let (status, file) = send(farm, "good", &page, DEADLINE_MS).await?;
    let latency = started.elapsed();
    ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(&file));
    let image = image::load_from_memory(&file)?.to_rgb8();
    let is_expected = image.dimensions() == (400, 300) && image.get_pixel(390, 5).0 == colour;
    ensure!(is_expected, "the image is not the expected one");
    Ok(latency)
}

/// Runs both parts and prints the results.
pub(crate) async fn run(options: Options) -> Result<()> {
    let mut command = Command::new(Settings::from_env()?.platen.with_file_name("platen-farm"));
    command.args(["--page-memory", "400", "--browsers", "2"]);
    let mut farm = Farm::start(command, &options.chromium).await?;
    let (ordinary, hostile) = <(RefCell<Tally<u16>>, RefCell<Tally<u16>>)>::default();
    let beside_ordinary = beside(&farm, options.jobs, async |account, done| {
        while !done.get() {
            let (status, _) = send(&farm, &format!("ordinary {account}"), ORDINARY, DEADLINE_MS).await?;
            ordinary.borrow_mut().add(status);
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
            let (status, _) = send(&farm, &format!("hostile {account}"), page, HOSTILE_DEADLINE_MS).await?;
            hostile.borrow_mut().add(status);
            if status == 503 {
                // As a client does that obeys `retry-after`.
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
        Ok(())
    })
    .await?;
    let left = farm.process.stop().await?.left.len();

    println!("| other accounts send | jobs | wrong | p50 ms | p95 ms |\n| --- | --- | --- | --- | --- |");
    for (others, result) in [("ordinary jobs", &beside_ordinary), ("hostile jobs", &beside_hostile)] {
        let [p50, p95] = percentiles_ms(&result.latencies, [50, 95]);
        println!("| {others} | {} | {} | {p50:.0} | {p95:.0} |", options.jobs, result.errors.len());
    }
    let p95 = |result: &LoadResult| result.percentile_ms(95).context("no job was successful");
    println!("\nRatio of the p95: {:.2}", p95(&beside_hostile)? / p95(&beside_ordinary)?);
    println!("Ordinary jobs: {}", ordinary.borrow());
    println!("Hostile jobs: {}", hostile.borrow());
    println!("Processes left: {left}");
    for error in beside_ordinary.errors.iter().chain(&beside_hostile.errors) {
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
