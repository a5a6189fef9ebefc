//! What one account's page can do to another account's job: show through in what it reads, keep it from
//! being rendered, or take the machine from it.
//!
//! Invariant: no wall-clock limit decides any of these; the figures are those of `bench/run --neighbours`.

mod background;
mod unreadable;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt as _, stream};
use nix::sys::signal::Signal;
use platen_shared::{id::AccountId, job::RenderJob, wire};

use crate::{
    Test,
    support::{
        GREEN, Shared, colour, html,
        leftovers::{self, Process},
        program::Program,
        site, slow, viewport,
    },
};

pub(crate) const TESTS: &[Test] = &[
    ("nothing of a neighbour can be read", |s| Box::pin(unreadable::test(s))),
    ("hostile neighbours do not keep a good account's jobs from it", |s| Box::pin(besieged(s))),
    ("good jobs among hostile ones show what they should", |s| Box::pin(interleaved(s))),
    ("while a heavy job runs a browser is started in advance", |s| Box::pin(reserve(s))),
    ("heavy jobs are paused while others begin, and go on", |s| Box::pin(background::test(s))),
    ("a page that uses too much memory takes none from a neighbour", |s| Box::pin(hog(s))),
    ("a page that crashes its browser is not tried on the next one", |s| Box::pin(crashed_browser(s))),
    ("renderers that die while pages are opened cost their browser", |s| Box::pin(stillborn(s))),
    ("an idle page uses no CPU time", |s| Box::pin(idle(s))),
];

/// Pages that try to keep others from being rendered.
const HOSTILE: &str = include_str!("neighbours/hostile.html");

/// The pages of a file, each after a comment with its name.
fn pages(file: &'static str) -> Vec<(&'static str, &'static str)> {
    let sections = file.split("<!-- ").skip(1);
    let named = sections.map(|section| {
        let (name, page) = section.split_once(" -->").unwrap();
        (name.split_once(": ").unwrap().1, page)
    });
    named.collect()
}

async fn start(arguments: &[&str]) -> Program {
    let known: Vec<_> = site::HOSTS.iter().map(|host| format!("--resolve={host}=127.0.0.1")).collect();
    let all: Vec<&str> = arguments.iter().copied().chain(known.iter().map(String::as_str)).collect();
    Program::start(&all).await
}

fn of(account: &str, mut job: RenderJob) -> RenderJob {
    job.account = AccountId::from_text(account);
    job
}

/// Status, and file or refusal.
async fn send(program: &Program, job: &RenderJob, deadline_ms: u64) -> (u16, Vec<u8>) {
    let request = program.post(job).header(wire::DEADLINE_MS, deadline_ms.to_string());
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.bytes().await.unwrap().to_vec())
}

const PATIENT: u64 = 120_000;

/// A picture of one colour, which is that of a number, at a size that goes with it.
fn numbered(number: u32) -> (RenderJob, [u8; 3]) {
    let wanted =
        [40 + u8::try_from(number % 200).unwrap(), 10 + u8::try_from(number / 200 % 200).unwrap(), 90];
    let [red, green, blue] = wanted;
    let mut job = html(&format!(
        "<!doctype html><body><script>document.documentElement.style.background = 'rgb({red},{green},{blue})'</script>"
    ));
    job.viewport = viewport(200 + number % 5 * 20, 150, 1.0);
    (job, wanted)
}

/// How the jobs of hostile pages may end: rendered, refused for what the page does, or at their deadline;
/// and not admitted, where as many hostile jobs run already as may.
const HOSTILE_ENDS: &[u16] = &[200, 422, 503, 504];

async fn besieged(_: Arc<Shared>) {
    const GOOD_JOBS: u32 = 20;
    let program = start(&["--browsers", "2", "--page-memory", "400"]).await;
    let done = AtomicBool::new(false);
    let siege = async |besieger: usize| {
        let pages = pages(HOSTILE);
        for (name, page) in pages.iter().cycle().skip(besieger * pages.len() / 4) {
            let job = of(&format!("hostile {besieger}"), html(page));
            let (status, body) = send(&program, &job, 3_000).await;
            assert!(
                HOSTILE_ENDS.contains(&status),
                "{name}: {status} {}",
                String::from_utf8_lossy(&body[..body.len().min(100)])
            );
            if done.load(Ordering::Relaxed) {
                break;
            }
        }
    };
    let good = async {
        let mut second = tokio::time::interval(Duration::from_secs(1));
        for number in 0..GOOD_JOBS {
            second.tick().await;
            let (job, wanted) = numbered(number);
            let (status, file) = send(&program, &of("good", job), PATIENT).await;
            assert_eq!(status, 200, "{number}: {}", String::from_utf8_lossy(&file));
            assert_eq!(colour(&file), wanted, "{number}");
        }
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(good, siege(0), siege(1), siege(2), siege(3));
    assert_eq!(program.metric("platen_farm_jobs_total{outcome=\"broken\"}").await, 0);
    program.end().await;
}

async fn interleaved(shared: Arc<Shared>) {
    const JOBS: u32 = 40;
    let kinds = [
        "<style>body { margin: 0; background: linear-gradient(90deg, navy, gold) }</style><h1>Invoice 1</h1>",
        "<canvas id=c></canvas><script>const d = c.getContext('2d'); d.fillStyle = 'teal'; d.fillRect(9, 9, 99, 99)</script>",
        "<p>A b c<svg width=90 height=90><circle cx=40 cy=40 r=30 fill=green /></svg><script>document.body.append(innerWidth)</script>",
    ];
    let mut references = Vec::new();
    for page in kinds {
        references.push(pixels(&shared.render(&html(page)).await.unwrap().bytes));
    }
    let program = start(&["--browsers", "2", "--page-memory", "400"]).await;
    let (farm, references) = (&program, &references);
    let hostile = pages(HOSTILE);
    let jobs = (0..2 * JOBS).map(|number| {
        let index = number as usize / 2;
        let (name, page) = hostile[index % hostile.len()];
        async move {
            if number % 2 == 0 {
                let job = of(&format!("hostile {}", index % 4), html(page));
                let (status, _) = send(farm, &job, 1_000).await;
                assert!(HOSTILE_ENDS.contains(&status), "{name}: {status}");
            } else {
                let kind = index % kinds.len();
                let job = of(&format!("good {}", index % 5), html(kinds[kind]));
                let (status, file) = send(farm, &job, PATIENT).await;
                assert_eq!(status, 200, "{number}: {}", String::from_utf8_lossy(&file));
                assert!(pixels(&file) == references[kind], "{number}");
            }
        }
    });
    stream::iter(jobs).buffer_unordered(6).collect::<Vec<()>>().await;
    assert_eq!(program.metric("platen_farm_jobs_total{outcome=\"broken\"}").await, 0);
    program.end().await;
}

async fn reserve(_: Arc<Shared>) {
    let program = start(&["--browsers", "2"]).await;
    program.until("platen_farm_browser_starts_total", 2).await;
    let heavy = of("heavy", html("<script>while (true);</script>"));
    let other = of("other", slow(10_000.0));
    let jobs = async {
        loop {
            tokio::join!(send(&program, &heavy, PATIENT), send(&program, &other, PATIENT));
        }
    };
    tokio::select! {
        () = jobs => {}
        // Each job has a browser, and nothing else waits for one.
        () = program.until("platen_farm_browser_starts_total", 3) => {}
    }
    program.end().await;
}

fn pixels(file: &[u8]) -> image::RgbImage {
    image::load_from_memory(file).unwrap().to_rgb8()
}

async fn hog(_: Arc<Shared>) {
    const MEBIBYTES: u64 = 400;
    let program = start(&["--browsers", "2", "--page-memory", &MEBIBYTES.to_string()]).await;
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
        let mut job = of("hog", html(&format!("<script>{page}</script>")));
        job.wait_for_timeout = 10_000.0.try_into().unwrap();
        let neighbour = of("neighbour", slow(3_000.0));
        let (job, neighbour) =
            tokio::join!(send(&program, &job, PATIENT), send(&program, &neighbour, PATIENT));
        // Chromium itself keeps the others within bounds on some machines.
        if job.0 != 200 || kind == "arrays" {
            let refusal = String::from_utf8_lossy(&job.1);
            assert_eq!((job.0, &*refusal), (422, r#"{"code":"page_memory_exceeded"}"#), "{kind}");
        }
        assert_eq!((neighbour.0, colour(&neighbour.1)), (200, GREEN), "beside {kind}");
        // Nothing that uses so much is left.
        while leftovers::below(program.id()).iter().any(|process| process.memory() > MEBIBYTES * 1024 * 1024)
        {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    assert_eq!(program.metric("platen_farm_retries_total").await, 0);
    program.end().await;
}

async fn crashed_browser(_: Arc<Shared>) {
    let program = start(&["--browsers", "2"]).await;
    let slow = of("hostile", slow(4_000.0));
    let job = tokio::spawn(program.post(&slow).send());
    program.until("platen_farm_slots_busy", 1).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    // A fault of the browser process stands for a page that brings one about. Which of the two has the
    // job is not seen from outside.
    let (status, body) = loop {
        for browser in leftovers::browsers(program.id()) {
            browser.signal(Signal::SIGSEGV);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        if job.is_finished() {
            let response = job.await.unwrap().unwrap();
            break (response.status().as_u16(), response.text().await.unwrap());
        }
    };
    assert_eq!((status, body.as_str()), (422, r#"{"code":"page_crashed"}"#));
    assert_eq!(program.metric("platen_farm_retries_total").await, 0);
    let (job, wanted) = numbered(1);
    let (status, file) = send(&program, &of("good", job), PATIENT).await;
    assert_eq!((status, colour(&file)), (200, wanted));
    program.end().await;
}

async fn stillborn(_: Arc<Shared>) {
    let program = start(&["--browsers", "1"]).await;
    let done = AtomicBool::new(false);
    let killing = async {
        while !done.load(Ordering::Relaxed) {
            program.kill_renderers();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let jobs = async {
        // Until the browser was replaced for it, and not for a page that no longer answers.
        while !program.log().contains("its renderers crash while pages are opened") {
            let (job, wanted) = numbered(2);
            let (status, file) = send(&program, &of("good", job), PATIENT).await;
            match status {
                200 => assert_eq!(colour(&file), wanted),
                // Not counted; or killed in the middle of the job, which then is its page's fault.
                503 | 422 => {}
                // The second attempt had no page.
                502 if program.metric("platen_farm_retries_total").await > 0 => {}
                status => panic!("{status}: {}\n{}", String::from_utf8_lossy(&file), program.log()),
            }
        }
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(killing, jobs);
    loop {
        let (job, wanted) = numbered(3);
        let (status, file) = send(&program, &of("good", job), PATIENT).await;
        if status == 200 {
            assert_eq!(colour(&file), wanted);
            break;
        }
        // The browser that was killed last may have a successor that is not ready yet.
        assert_eq!(status, 503);
    }
    program.end().await;
}

async fn idle(_: Arc<Shared>) {
    const BUSY: &[(&str, &str)] = &[
        (
            "timers",
            "<script>setInterval(() => { for (let i = 0; i < 1e6; i++); }, 1); (function f() { setTimeout(f) })()</script>",
        ),
        (
            "messages",
            "<script>const c = new MessageChannel; c.port1.onmessage = () => c.port2.postMessage(0); c.port2.postMessage(0)</script>",
        ),
        (
            "frames",
            "<script>(function f() { requestAnimationFrame(f) })(); (function f() { requestIdleCallback(f) })()</script>",
        ),
        (
            "animations",
            "<style>@keyframes k { to { transform: rotate(9turn); color: red } } p { animation: k 1s infinite }</style><p>x<p>y",
        ),
        (
            "web animations",
            "<p id=p>x<script>p.animate({ opacity: [0, 1] }, { duration: 99, iterations: Infinity })</script>",
        ),
        (
            "SMIL",
            "<svg><rect width=9 height=9><animate attributeName=x from=0 to=99 dur=1s repeatCount=indefinite /></rect></svg>",
        ),
        ("refresh", "<meta http-equiv=refresh content='0;url=about:blank'>x"),
        ("slow refresh", "<meta http-equiv=refresh content=1>x"),
        (
            "media",
            "<video autoplay loop muted src='data:video/webm;base64,'></video><audio autoplay loop src='data:audio/wav;base64,UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA='></audio><marquee>x</marquee>",
        ),
        (
            "sound",
            "<script>const a = new AudioContext(), t = a.createOscillator(); t.connect(a.destination); t.start(); a.createScriptProcessor?.(256).connect(a.destination)</script>",
        ),
        (
            "workers",
            "<script>for (let i = 0; i < 3; i++) new Worker('data:text/javascript,for (;;);')</script>",
        ),
        (
            "shared worker",
            "<script>try { new SharedWorker('data:text/javascript,for (;;);') } catch {}</script>",
        ),
        (
            "graphics",
            "<canvas id=c><script>const g = c.getContext('webgl'); (function f() { g?.clear(g.COLOR_BUFFER_BIT); requestAnimationFrame(f) })()</script>",
        ),
        (
            "picture",
            "<img src='data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH/C05FVFNDQVBFMi4wAwEAAAAh+QQFAQAAACwAAAAAAQABAAACAkQBACH5BAUBAAAALAAAAAABAAEAAAICRAEAOw=='>",
        ),
        ("caret", "<input autofocus><progress></progress><input type=text autofocus>"),
    ];
    let program = start(&["--browsers", "1"]).await;
    let mut baseline = Duration::ZERO;
    for (name, page) in std::iter::once(&("nothing", "<p>x")).chain(BUSY) {
        // Twice, so that the page is kept.
        for _ in 0..2 {
            let (status, body) = send(&program, &of(name, html(page)), PATIENT).await;
            assert_eq!(status, 200, "{name}: {}", String::from_utf8_lossy(&body));
        }
        // A spare page is opened and a used one is reset or closed first.
        let mut spent = Vec::new();
        let limit = baseline + Duration::from_millis(50);
        while spent.last().is_none_or(|last| *last > limit) {
            assert!(spent.len() < 20, "{name}: {spent:?} a second, and {baseline:?} after nothing");
            spent.push(cpu_of_a_second(&program).await);
            if *name == "nothing" {
                baseline = spent.iter().min().copied().unwrap_or_default();
            }
        }
    }
    program.end().await;
}

/// CPU time that the browsers of a farm use in a second.
async fn cpu_of_a_second(program: &Program) -> Duration {
    let before: BTreeMap<u32, Duration> =
        leftovers::below(program.id()).iter().map(|process| (process.id, process.cpu())).collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = leftovers::below(program.id());
    let new = |process: &Process| {
        process.cpu().saturating_sub(before.get(&process.id).copied().unwrap_or_default())
    };
    after.iter().map(new).sum()
}
