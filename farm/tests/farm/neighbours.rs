//! What a hostile page of one account can do to jobs of another: change what they read, prevent their rendering, or
//! take CPU time and memory. `bench/load neighbours` measures the latencies.

mod unreadable;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt as _, stream};
use platen_harness::{
    image_file::Colour,
    procfs::{self, ProcessId},
    wait,
};
use platen_shared::job::RenderJob;

use crate::support::{
    GREEN, MAX_WAIT_MS, Shared, colour, farm_process::FarmProcess, html, of, pages, picture, send, slow,
    viewport, waiting,
};

tests! {
    "a page reads nothing of another account's pages" => unreadable::test,
    "hostile jobs do not prevent another account's jobs" => besieged,
    "jobs among hostile ones have correct pictures" => interleaved,
    "a page that uses too much memory is refused and affects no other job" => excess_memory,
    "a browser whose renderers die while pages are opened is replaced" => dying_renderers,
    "an idle page uses no CPU time" => idle_page,
}

/// Pages that try to prevent the rendering of others.
const HOSTILE: &str = include_str!("neighbours/hostile.html");

/// A job whose colour and size depend on a number, and the colour.
fn numbered(number: u32) -> (RenderJob, Colour) {
    let colour =
        [40 + u8::try_from(number % 200).unwrap(), 10 + u8::try_from(number / 200 % 200).unwrap(), 90];
    let [red, green, blue] = colour;
    let mut job = html(&format!(
        "<!doctype html><body><script>document.documentElement.style.background = 'rgb({red},{green},{blue})'</script>"
    ));
    job.options.viewport = viewport(200 + number % 5 * 20, 150, 1.0);
    (job, colour)
}

/// The statuses of jobs of hostile pages: rendered, refused for what the page does, not admitted because the maximum
/// of such jobs runs, or at the deadline.
const HOSTILE_STATUSES: &[u16] = &[200, 422, 503, 504];

/// Whether a hostile job may have this status if [`expect_failures_of_killed_browsers`] follows.
fn may_end_with(status: u16) -> bool {
    status == 502 || HOSTILE_STATUSES.contains(&status)
}

/// Checks that at most one job for each browser that the farm killed has failed: it may have no time for another one.
async fn expect_failures_of_killed_browsers(farm: &FarmProcess) {
    let failed = farm.metric("platen_farm_jobs_total{outcome=\"broken\"}").await;
    let are_explained =
        async || Ok(failed <= farm.metric("platen_farm_browser_ends_total{reason=\"killed\"}").await);
    let explained = wait::until_true("a browser was killed for each failed job", are_explained).await;
    explained.unwrap_or_else(|error| panic!("{error:#}\n{}", farm.log()));
}

async fn besieged(_: Arc<Shared>) {
    const GOOD_JOBS: u32 = 20;
    let farm = FarmProcess::start(&["--browsers", "2", "--page-memory", "400"]).await;
    let (done, ended) = (AtomicBool::new(false), AtomicUsize::new(0));
    let siege = async |besieger: usize| {
        let pages = pages(HOSTILE);
        for (name, page) in pages.iter().cycle().skip(besieger * pages.len() / 4) {
            let job = of(&format!("hostile {besieger}"), html(page));
            let (status, body) = send(&farm, &job, 3_000).await;
            assert!(
                may_end_with(status),
                "{name}: {status} {}\n{}",
                String::from_utf8_lossy(&body[..body.len().min(100)]),
                farm.log()
            );
            ended.fetch_add(1, Ordering::Relaxed);
            if done.load(Ordering::Relaxed) {
                break;
            }
        }
    };
    let good = async {
        for number in 0..GOOD_JOBS {
            let before = ended.load(Ordering::Relaxed);
            let (job, colour_of_job) = numbered(number);
            let file = farm.file(&of("good", job)).await;
            assert_eq!(colour(&file), colour_of_job, "{number}");
            // Hostile jobs take the slots between good ones.
            let hostile_job_ended = || ended.load(Ordering::Relaxed) > before;
            wait::until("a hostile job ends", hostile_job_ended).await.unwrap();
        }
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(good, siege(0), siege(1), siege(2), siege(3));
    expect_failures_of_killed_browsers(&farm).await;
    farm.end().await;
}

async fn interleaved(shared: Arc<Shared>) {
    const JOBS: u32 = 20;
    let kinds = [
        "<style>body { margin: 0; background: linear-gradient(90deg, navy, gold) }</style><h1>Invoice 1</h1>",
        "<canvas id=c></canvas><script>const d = c.getContext('2d'); d.fillStyle = 'teal'; d.fillRect(9, 9, 99, 99)</script>",
        "<p>A b c<svg width=90 height=90><circle cx=40 cy=40 r=30 fill=green /></svg><script>document.body.append(innerWidth)</script>",
    ];
    let mut references = Vec::new();
    for page in kinds {
        references.push(picture(&shared.file(&html(page)).await.bytes));
    }
    let farm = FarmProcess::start(&["--browsers", "2", "--page-memory", "400"]).await;
    let (running, references) = (&farm, &references);
    let hostile = pages(HOSTILE);
    let jobs = (0..2 * JOBS).map(|number| {
        let index = number as usize / 2;
        let (name, page) = hostile[index % hostile.len()];
        async move {
            if number % 2 == 0 {
                let job = of(&format!("hostile {}", index % 4), html(page));
                let (status, _) = send(running, &job, 1_000).await;
                assert!(may_end_with(status), "{name}: {status}");
            } else {
                let kind = index % kinds.len();
                let job = of(&format!("good {}", index % 5), html(kinds[kind]));
                let file = running.file(&job).await;
                assert!(picture(&file) == references[kind], "{number}");
            }
        }
    });
    stream::iter(jobs).buffer_unordered(6).collect::<Vec<()>>().await;
    expect_failures_of_killed_browsers(&farm).await;
    farm.end().await;
}

async fn excess_memory(_: Arc<Shared>) {
    const MEBIBYTES: u64 = 400;
    let farm = FarmProcess::start(&["--browsers", "2", "--page-memory", &MEBIBYTES.to_string()]).await;
    for (kind, page) in [
        ("arrays", "const kept = []; while (true) kept.push(new Uint8Array(1.6e7).fill(1))"),
        (
            "pictures",
            "const kept = []; setInterval(() => { const c = new OffscreenCanvas(2000, 2000), d = c.getContext('2d'); d.fillRect(0, 0, 2000, 2000); d.getImageData(0, 0, 1, 1); kept.push(c) }, 1); new Worker('data:text/javascript,')",
        ),
        (
            "files",
            "const kept = []; setInterval(() => { for (let i = 0; i < 9; i++) kept.push(new Blob([new Uint8Array(2.6e5).fill(Math.random() * 99)])) }, 1); new Worker('data:text/javascript,')",
        ),
        (
            "workers",
            "for (let i = 0; i < 8; i++) new Worker('data:text/javascript,const kept = []; while (true) kept.push(new Uint8Array(1.6e7).fill(1))')",
        ),
    ] {
        let job = waiting(of("hostile", html(&format!("<script>{page}</script>"))), 10_000.0);
        let neighbour = of("neighbour", slow(3_000.0));
        let mut largest_bytes = 0;
        let measuring = async {
            loop {
                let of_each =
                    procfs::descendants(farm.pid()).into_iter().map(|process| process.anonymous_memory());
                largest_bytes = of_each.max().unwrap_or(0).max(largest_bytes);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let both =
            async { tokio::join!(send(&farm, &job, MAX_WAIT_MS), send(&farm, &neighbour, MAX_WAIT_MS)) };
        let (job, neighbour) = tokio::select! {
            jobs = both => jobs,
            never = measuring => never,
        };
        // A page that gets little CPU time may end before it exceeds the limit.
        if largest_bytes > 2 * MEBIBYTES * 1024 * 1024 || ![200, 504].contains(&job.0) {
            let refusal = String::from_utf8_lossy(&job.1[..job.1.len().min(100)]);
            assert_eq!(
                (job.0, &*refusal),
                (422, r#"{"code":"page_memory_exceeded","mebibytes":400}"#),
                "{kind}"
            );
        }
        assert_eq!((neighbour.0, colour(&neighbour.1)), (200, GREEN), "beside {kind}");
        let is_large = |process: &ProcessId| process.anonymous_memory() > MEBIBYTES * 1024 * 1024;
        let none_is_large = || !procfs::descendants(farm.pid()).iter().any(is_large);
        wait::until("no process uses too much memory", none_is_large).await.unwrap();
    }
    assert_eq!(farm.metric("platen_farm_retries_total").await, 0);
    farm.end().await;
}

async fn dying_renderers(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let done = AtomicBool::new(false);
    let killing = async {
        while !done.load(Ordering::Relaxed) {
            farm.kill_renderers();
            // Lets the jobs run in between.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let jobs = async {
        // Until the browser is replaced for this reason, not for a page that does not answer.
        while !farm.log().contains("its renderers crash while pages are opened") {
            let (job, colour_of_job) = numbered(2);
            let (status, file) = send(&farm, &of("good", job), MAX_WAIT_MS).await;
            match status {
                200 => assert_eq!(colour(&file), colour_of_job),
                // Not counted, or killed twice in the middle of the job, which is attributed to the page.
                503 | 422 => {}
                // The second attempt had no page.
                502 if farm.metric("platen_farm_retries_total").await > 0 => {}
                status => panic!("{status}: {}\n{}", String::from_utf8_lossy(&file), farm.log()),
            }
        }
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(killing, jobs);
    loop {
        let (job, colour_of_job) = numbered(3);
        let (status, file) = send(&farm, &of("good", job), MAX_WAIT_MS).await;
        if status == 200 {
            assert_eq!(colour(&file), colour_of_job);
            break;
        }
        // The replacement of the last browser may not be ready yet.
        assert_eq!(status, 503);
    }
    farm.end().await;
}

/// Also after a job with timers, animations or workers.
async fn idle_page(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let mut baseline = Duration::ZERO;
    for (name, page) in
        std::iter::once(("nothing", "<p>x")).chain(pages(include_str!("neighbours/busy.html")))
    {
        // The page of the second job is kept.
        for _ in 0..2 {
            farm.file(&of(name, html(page))).await;
        }
        // The CPU time of a second, until the spare page is open and the used one is reset or closed.
        let mut spent = Vec::new();
        let limit = baseline + Duration::from_millis(50);
        while spent.last().is_none_or(|last| *last > limit) {
            assert!(spent.len() < 20, "{name}: {spent:?} a second, and {baseline:?} after nothing");
            spent.push(cpu_of_a_second(&farm).await);
            if name == "nothing" {
                baseline = spent.iter().min().copied().unwrap_or_default();
            }
        }
    }
    farm.end().await;
}

/// CPU time that the processes of a farm use in a second.
async fn cpu_of_a_second(farm: &FarmProcess) -> Duration {
    let before = procfs::cpu_times(farm.pid());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = procfs::cpu_times(farm.pid()).into_iter();
    after.map(|(pid, time)| time.saturating_sub(before.get(&pid).copied().unwrap_or_default())).sum()
}
