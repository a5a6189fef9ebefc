//! Stops renderer processes for short times while pages wait. All files must be correct.
//!
//! Invariant: only renderer processes of the farm are stopped, and each of them is continued.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use nix::sys::signal::Signal;
use platen_harness::procfs::{self, ProcessId};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use super::{
    Corpus, OUTPUT,
    farm_instance::FarmInstance,
    page::Format,
    queue,
    rendered::{self, Rendered},
    timer_page,
};
use crate::{farm, number_marker};

/// How long a process is stopped, in milliseconds.
const STALL_MS: std::ops::RangeInclusive<u64> = 30..=500;
/// Time between two stalls of a thread, in milliseconds.
const INTERVAL_MS: std::ops::RangeInclusive<u64> = 5..=60;
const WAIT_MS: u32 = 1_000;
/// Number of threads, and so of processes that can be stopped at the same time.
const THREADS: u64 = 3;

/// Runs the jobs and returns the number of wrong files.
pub(super) async fn run(corpus: &Corpus, jobs: usize) -> Result<usize> {
    ensure!(jobs < usize::from(u16::MAX), "--stalls accepts fewer than {} jobs", u16::MAX);
    rendered::create_empty_directory(Path::new(OUTPUT))?;
    let farm = FarmInstance::start_under_test(corpus).await?;
    eprintln!("{jobs} jobs with stalls");
    let mut stalls = Stalls::start(farm.pid(), corpus.seed);
    let order = queue::shuffled(jobs, corpus.seed);
    let work = async |number| render(corpus, &farm, u16::try_from(number)?).await;
    let outcomes = queue::run(&order, corpus.options.concurrency, work).await;
    let stops = stalls.end();
    let mut wrong = 0;
    for (number, outcome) in outcomes.iter().enumerate() {
        if let Err(error) = outcome {
            wrong += 1;
            println!("job {number} (script {}): {error:#}", timer_page::script(number));
        }
    }
    println!("{wrong} of {jobs} files are wrong; renderer processes were stopped {stops} times");
    ensure!(stops > 0, "no renderer process was stopped");
    Ok(wrong)
}

async fn render(corpus: &Corpus, farm: &FarmInstance, number: u16) -> Result<()> {
    let ms = StdRng::seed_from_u64(corpus.seed ^ u64::from(number)).random_range(100..=900);
    let format = if number.is_multiple_of(4) { Format::Pdf } else { Format::Png };
    let mut request = format.fields();
    request["html"] = timer_page::markup(number, ms).into();
    request["waitForTimeout"] = WAIT_MS.into();
    let file = farm.render(&farm::job(&format!("acc_stalls{}", number % 3), &request)?).await?;
    tokio::task::spawn_blocking(move || {
        check(&file, format, number).inspect_err(|_| {
            let parsed = Rendered::parse(file.clone(), format);
            let _ = parsed.and_then(|wrong| wrong.write(Path::new(OUTPUT), &format!("stalls.{number}")));
        })
    })
    .await?
}

/// Checks that the file is that of this job and shows the end of its page.
fn check(file: &Bytes, format: Format, number: u16) -> Result<()> {
    match Rendered::parse(file.clone(), format)? {
        Rendered::Image { png } => {
            let found = number_marker::decode(&rendered::decode(&png)?).context("the page had not ended")?;
            ensure!(found == number, "the file is that of job {found}");
        }
        Rendered::Document { text, .. } => {
            ensure!(text.contains(&timer_page::text(number)), "the text is {:?}", text.trim());
        }
    }
    Ok(())
}

/// Threads that stop and continue renderer processes.
struct Stalls {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<usize>>,
}

impl Stalls {
    fn start(farm: u32, seed: u64) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let threads = (0..THREADS).map(|number| {
            let ended = Arc::clone(&ended);
            let random = StdRng::seed_from_u64(seed ^ number);
            thread::spawn(move || stall(farm, random, &ended))
        });
        Self { threads: threads.collect(), ended }
    }

    /// Ends the threads and returns how often a process was stopped.
    fn end(&mut self) -> usize {
        self.ended.store(true, Ordering::Relaxed);
        self.threads.drain(..).filter_map(|thread| thread.join().ok()).sum()
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.end();
    }
}

fn stall(farm: u32, mut random: StdRng, ended: &AtomicBool) -> usize {
    let mut stops = 0;
    while !ended.load(Ordering::Relaxed) {
        let mut renderers = procfs::renderers(farm);
        if !renderers.is_empty() {
            let stopped = Stopped::stop(renderers.swap_remove(random.random_range(0..renderers.len())));
            thread::sleep(Duration::from_millis(random.random_range(STALL_MS)));
            stops += usize::from(stopped.is_some());
        }
        thread::sleep(Duration::from_millis(random.random_range(INTERVAL_MS)));
    }
    stops
}

/// A stopped process, which continues when this value is dropped.
struct Stopped(ProcessId);

impl Stopped {
    fn stop(process: ProcessId) -> Option<Self> {
        (process.is_alive() && process.signal(Signal::SIGSTOP).is_ok()).then_some(Self(process))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // Fails if the process was killed meanwhile.
        let _ = self.0.signal(Signal::SIGCONT);
    }
}
