//! What a good account gets beside others: beside their ordinary jobs, and beside hostile ones.
//!
//! Invariant: the good account sends the same jobs at the same rate in both parts, to the same farm, and
//! every answer is decoded and compared with what it must show. The pages are those of the farm's tests.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    process::Command,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, future::join_all, stream};
use nix::sys::signal::Signal;
use platen_shared::{
    format::{ImageFormat, WaitUntil},
    id::AccountId,
    job::{Output, RenderJob, Source, Viewport, WaitMs},
    wire,
};
use platen_tests::{process::Process, procfs, settings::Settings};
use reqwest::Client;

use crate::compare::figures::percentile_ms;

/// A good account beside ordinary and beside hostile ones.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Jobs of the good account in each part, one a second.
    #[arg(long, default_value_t = 120)]
    jobs: u32,
    /// Good jobs that are interleaved with as many hostile ones.
    #[arg(long, default_value_t = 400)]
    pairs: usize,
    /// Browsers of the farm.
    #[arg(long, default_value_t = 2)]
    browsers: u32,
    /// Deadline of the hostile jobs in milliseconds.
    #[arg(long, default_value_t = 3_000)]
    deadline_ms: u64,
    /// The Chromium.
    #[arg(long, env = "PLATEN_CHROMIUM", default_value = "/usr/lib/chromium/chromium-headless-shell")]
    chromium: PathBuf,
}

const TOKEN: &str = "the token of the bench";
const HOSTILE: &str = include_str!("../../farm/tests/farm/neighbours/hostile.html");
const ORDINARY: &str = "<!doctype html><style>body { font: 14px sans-serif } td { border: 1px solid }</style>\
    <h1>Invoice</h1><table id=t></table><script>for (let i = 0; i < 60; i++) \
    t.insertRow().insertCell().textContent = 'Item ' + i</script>";
/// Deadline of the others' jobs, in milliseconds.
const PATIENT_MS: u64 = 30_000;
/// What an answer at the deadline may take longer: the answer itself, on a machine that is busy.
const LATE: Duration = Duration::from_secs(2);
/// Hostile and ordinary accounts.
const OTHERS: usize = 4;

/// A running farm.
struct Farm {
    process: Process,
    jobs: String,
    http: Client,
}

impl Farm {
    async fn start(options: &Options) -> Result<Self> {
        let program = Settings::from_env()?.platen.with_file_name("platen-farm");
        ensure!(program.exists(), "there is no {}: build it first", program.display());
        let mut command = Command::new(program);
        command.args(["--listen", "127.0.0.1:0", "--page-memory", "400"]);
        command.args(["--browsers", &options.browsers.to_string()]);
        command.env("PLATEN_FARM_TOKEN", TOKEN).env("PLATEN_CHROMIUM", &options.chromium);
        let process = Process::start("farm", &command, Signal::SIGTERM)?;
        let address = |log: &str| {
            let rest = log.split_once("listening address=")?.1;
            rest.split_whitespace().next().map(ToOwned::to_owned)
        };
        let address = process.wait_for(address).await?;
        let jobs = format!("http://{address}{}", wire::JOBS_PATH);
        Ok(Self { process, jobs, http: Client::builder().no_proxy().build()? })
    }

    async fn send(&self, account: &str, page: &str, deadline_ms: u64) -> Result<(u16, Vec<u8>)> {
        let job = RenderJob {
            account: AccountId::from_text(account),
            source: Source::Html(page.to_owned().try_into()?),
            viewport: Viewport { width: 400.0.try_into()?, height: 300.0.try_into()?, ..Viewport::default() },
            wait_until: WaitUntil::Load,
            wait_for_timeout: WaitMs::default(),
            output: Output::Image { format: ImageFormat::Png, full_page: false },
        };
        let request = self.http.post(&self.jobs).bearer_auth(TOKEN).json(&job);
        let answer = request.header(wire::DEADLINE_MS, deadline_ms).send().await?;
        let status = answer.status().as_u16();
        Ok((status, answer.bytes().await?.to_vec()))
    }

    /// Tells it to end, and counts what is left of it.
    async fn end(mut self) -> Result<usize> {
        let below = procfs::descendants(self.process.pid());
        self.process.signal(Signal::SIGTERM)?;
        self.process.ended().await?;
        Ok(below.into_iter().filter(procfs::ProcessId::is_alive).count())
    }
}

fn hostile_pages() -> Vec<&'static str> {
    HOSTILE.split("<!-- ").skip(1).filter_map(|section| Some(section.split_once(" -->")?.1)).collect()
}

/// What the jobs of one side came to.
#[derive(Default)]
struct Seen {
    statuses: Mutex<BTreeMap<u16, usize>>,
    late: AtomicUsize,
}

impl Seen {
    fn note(&self, status: u16, is_late: bool) {
        *self.statuses.lock().unwrap_or_else(PoisonError::into_inner).entry(status).or_default() += 1;
        self.late.fetch_add(usize::from(is_late), Ordering::Relaxed);
    }

    fn text(&self) -> String {
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let all: Vec<String> = statuses.iter().map(|(status, jobs)| format!("{jobs} × {status}")).collect();
        format!("{}, {} after their deadline", all.join(", "), self.late.load(Ordering::Relaxed))
    }
}

/// The good account's latencies and what was wrong.
#[derive(Default)]
struct Good {
    latencies: Vec<Duration>,
    wrong: Vec<String>,
}

/// One job a second, each of another colour, whether or not the one before is answered.
async fn good_jobs(farm: &Farm, jobs: u32) -> Good {
    let begun = Instant::now();
    let jobs = (0..jobs).map(|number| async move {
        tokio::time::sleep_until((begun + Duration::from_secs(number.into())).into()).await;
        good_job(farm, number).await
    });
    let mut good = Good::default();
    for job in join_all(jobs).await {
        match job {
            Ok(latency) => good.latencies.push(latency),
            Err(error) => good.wrong.push(format!("{error:#}")),
        }
    }
    good
}

async fn good_job(farm: &Farm, number: u32) -> Result<Duration> {
    let colour = [u8::try_from(number % 200)?, u8::try_from(number / 200 % 200)?, 90];
    let [red, green, blue] = colour;
    let page = format!(
        "{ORDINARY}<script>document.documentElement.style.background = 'rgb({red},{green},{blue})'</script>"
    );
    let begun = Instant::now();
    let (status, file) = farm.send("good", &page, PATIENT_MS).await?;
    let latency = begun.elapsed();
    ensure!(status == 200, "{status}: {}", String::from_utf8_lossy(&file));
    let picture = image::load_from_memory(&file)?.to_rgb8();
    ensure!(picture.dimensions() == (400, 300) && picture.get_pixel(390, 5).0 == colour, "another picture");
    Ok(latency)
}

/// Sends jobs of an account's, one after the other, until `done`.
async fn ordinary_jobs(farm: &Farm, account: usize, done: &AtomicBool, seen: &Seen) -> Result<()> {
    while !done.load(Ordering::Relaxed) {
        let (status, _) = farm.send(&format!("ordinary {account}"), ORDINARY, PATIENT_MS).await?;
        seen.note(status, false);
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    Ok(())
}

async fn hostile_jobs(
    farm: &Farm,
    account: usize,
    deadline_ms: u64,
    done: &AtomicBool,
    seen: &Seen,
) -> Result<()> {
    let pages = hostile_pages();
    for page in pages.iter().cycle().skip(account * pages.len() / OTHERS) {
        if done.load(Ordering::Relaxed) {
            break;
        }
        hostile_job(farm, account, page, deadline_ms, seen).await?;
    }
    Ok(())
}

async fn hostile_job(farm: &Farm, account: usize, page: &str, deadline_ms: u64, seen: &Seen) -> Result<()> {
    let begun = Instant::now();
    let (status, _) = farm.send(&format!("hostile {account}"), page, deadline_ms).await?;
    seen.note(status, begun.elapsed() > Duration::from_millis(deadline_ms) + LATE);
    if status == 503 {
        // As a caller does that obeys `retry-after`.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

/// Runs both parts and the interleaved jobs, and prints what was found.
pub(crate) async fn run(options: Options) -> Result<()> {
    let farm = Farm::start(&options).await?;
    let (ordinary, hostile) = (Seen::default(), Seen::default());
    let beside_ordinary = beside(&farm, options.jobs, async |account, done| {
        ordinary_jobs(&farm, account, done, &ordinary).await
    })
    .await?;
    let beside_hostile = beside(&farm, options.jobs, async |account, done| {
        hostile_jobs(&farm, account, options.deadline_ms, done, &hostile).await
    })
    .await?;
    let interleaved = Seen::default();
    let wrong = interleave(&farm, options.pairs, &interleaved).await?;
    let left = farm.end().await?;

    println!("| the good account beside | jobs | wrong | p50 ms | p95 ms |\n| --- | --- | --- | --- | --- |");
    for (beside, good) in [("ordinary jobs", &beside_ordinary), ("hostile jobs", &beside_hostile)] {
        let [p50, p95] = [50, 95].map(|percent| percentile_ms(&good.latencies, percent).unwrap_or(f64::NAN));
        println!("| {beside} | {} | {} | {p50:.0} | {p95:.0} |", options.jobs, good.wrong.len());
    }
    let p95 = |good: &Good| percentile_ms(&good.latencies, 95).context("no job was answered well");
    println!("\nRatio of the p95: {:.2}", p95(&beside_hostile)? / p95(&beside_ordinary)?);
    println!("Ordinary jobs of others: {}", ordinary.text());
    println!("Hostile jobs: {}", hostile.text());
    println!(
        "Interleaved: {} of {} good jobs wrong; hostile: {}",
        wrong.len(),
        options.pairs,
        interleaved.text()
    );
    println!("Processes left: {left}");
    for wrong in [&beside_ordinary.wrong, &beside_hostile.wrong, &wrong].into_iter().flatten() {
        println!("- {wrong}");
    }
    Ok(())
}

/// The good account's jobs while every one of the other accounts does something.
async fn beside(
    farm: &Farm,
    jobs: u32,
    others: impl AsyncFn(usize, &AtomicBool) -> Result<()>,
) -> Result<Good> {
    let done = AtomicBool::new(false);
    let good = async {
        // The others are at work when the first good job comes.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let good = good_jobs(farm, jobs).await;
        done.store(true, Ordering::Relaxed);
        good
    };
    let others = join_all((0..OTHERS).map(|account| others(account, &done)));
    let (good, others) = tokio::join!(good, others);
    others.into_iter().collect::<Result<Vec<()>>>()?;
    Ok(good)
}

/// As many hostile jobs as good ones, six at once; says which good ones were wrong.
async fn interleave(farm: &Farm, pairs: usize, seen: &Seen) -> Result<Vec<String>> {
    let reference = farm.send("reference", ORDINARY, PATIENT_MS).await?;
    let reference = image::load_from_memory(&reference.1)?.to_rgb8();
    let (pages, reference) = (hostile_pages(), &reference);
    let jobs = (0..2 * pairs).map(|number| {
        let page = pages[number / 2 % pages.len()];
        async move {
            if number % 2 == 0 {
                hostile_job(farm, number / 2 % OTHERS, page, 1_000, seen).await?;
                return anyhow::Ok(None);
            }
            let (status, file) = farm.send(&format!("good {}", number % 7), ORDINARY, PATIENT_MS).await?;
            if status != 200 {
                return Ok(Some(format!("{status}: {}", String::from_utf8_lossy(&file))));
            }
            let is_right = image::load_from_memory(&file)?.to_rgb8() == *reference;
            Ok((!is_right).then(|| "another picture".to_owned()))
        }
    });
    let outcomes: Vec<Result<Option<String>>> = stream::iter(jobs).buffer_unordered(6).collect().await;
    Ok(outcomes.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}
