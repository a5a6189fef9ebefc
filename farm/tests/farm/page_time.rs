//! The time of pages: each is captured after exactly its time, on a stalled machine too; a wait is skipped only if it
//! would change nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt as _, stream};
use nix::sys::signal::Signal;
use platen_harness::procfs;
use platen_shared::format::WaitUntil;

use crate::support::{
    GREEN, GREEN_PAGE, Shared, colour, farm_process::FarmProcess, html, middle, pages, pdf, png, to, url,
    waiting,
};

tests! {
    "the clock of a page advances while its script runs" => busy_scripts,
    "a PDF has what a page loads when it is printed" => printing,
    "the callbacks of a page have run before it is captured" => callbacks,
    "the network is idle when no request of the page can end any more" => network,
    "a page changes within its wait, whatever its scripts have left to happen" => changing,
    "a wait is skipped only if nothing can change" => stillness,
    "stalled renderers do not shorten a wait" => stalls,
}

const HEAD: &str = "<!doctype html><html style='background:red'><script>\
    const done = () => document.documentElement.style.background = 'green';\
    const spin = time => { const begun = Date.now(); while (Date.now() - begun < time); };\
    const tick = () => { const begun = Date.now(); for (let n = 0; n < 3e8; n++) if (Date.now() > begun) return true }\
    </script>";

async fn busy_scripts(shared: Arc<Shared>) {
    for page in [
        // While the page loads, after load, and late in a wait.
        "<script>spin(20); done()</script>",
        "<script>onload = () => { spin(20); setTimeout(() => { spin(20); done() }) }</script>",
        "<script>setTimeout(() => { spin(20); done() }, 600)</script>",
        "<script>requestAnimationFrame(() => { spin(30); tick() && done() })</script>",
    ] {
        shared.expect_green(&waiting(html(&format!("{HEAD}{page}")), 800.0)).await;
    }
    // On the page of an earlier job that waited.
    for _ in 0..4 {
        shared.render(&waiting(html("<script>setTimeout(() => 0, 100)</script>"), 300.0)).await.unwrap();
        shared.expect_green(&html(&format!("{HEAD}<script>tick() && done()</script>"))).await;
    }
}

async fn printing(shared: Arc<Shared>) {
    let picture =
        "data:image/svg+xml,<svg xmlns=%22http://www.w3.org/2000/svg%22 width=%2290%22 height=%2290%22/>";
    let site = &shared.site;
    for (page, text) in [
        (format!("<p>top<p style='margin-top:9000px'><img loading=lazy src='{picture}'>below"), "below"),
        (
            "<p style='margin-top:9000px'><iframe loading=lazy srcdoc='<p>framed'></iframe>below".to_owned(),
            "below",
        ),
        (
            format!("<p style='margin-top:9000px'><img loading=lazy src='{}'>below", site.at("/picture.svg")),
            "below",
        ),
        (
            format!(
                "<p>top<script>onbeforeprint = () => {{ const image = new Image; image.src = '{picture}';\
                 document.body.append(image, 'printed') }}</script>"
            ),
            "printed",
        ),
        (
            "<p>top<script>matchMedia('print').onchange = event => event.matches && \
             document.body.append('printed')</script>"
                .to_owned(),
            "printed",
        ),
    ] {
        for wait in [0.0, 300.0] {
            let found = shared
                .text(&to(pdf(), waiting(html(&format!("<!doctype html>{page}<script>0</script>")), wait)))
                .await;
            assert!(found.contains(text), "{page} after {wait} ms: {found}");
        }
    }
}

async fn callbacks(shared: Arc<Shared>) {
    let page = format!(
        "{HEAD}<body style='margin:0'><p id=a style='margin:0;height:20px'>x</p><script>\
         const seen = new Set, see = name => {{ seen.add(name); document.body.append(` ${{name}} `);\
           if (seen.size === 3) done() }};\
         requestAnimationFrame(() => see('framed'));\
         new ResizeObserver(() => see('resized')).observe(a);\
         new IntersectionObserver(() => see('intersected')).observe(a);</script>"
    );
    for wait in [0.0, 1.0, 100.0] {
        let job = waiting(html(&page), wait);
        shared.expect_green(&job).await;
        let text = shared.text(&to(pdf(), job)).await;
        for name in ["framed", "resized", "intersected"] {
            assert!(text.contains(name), "{name} after {wait} ms in {text}");
        }
    }
}

async fn network(shared: Arc<Shared>) {
    let site = &shared.site;
    let idle = |markup: &str| {
        let mut job = html(&site.fill(&format!("{HEAD}{markup}")));
        job.options.wait_until = WaitUntil::NetworkIdle;
        job
    };
    for page in [
        "<script>new Worker('data:text/javascript,postMessage(0)').onmessage = done</script>",
        // Requests of a worker count as requests of the page.
        "<script>new Worker(URL.createObjectURL(new Blob([`const load = async () => {\
         await fetch('{site}/json'); postMessage(0) }; setTimeout(load, 50)`]))).onmessage = done</script>",
        "<script>done(); setTimeout(() => location = 'mailto:a@b.test', 50)</script>",
        "<script>done(); onload = () => location = 'mailto:a@b.test'</script>",
        "<iframe src='mailto:a@b.test'></iframe><script>done()</script>",
        "<script>done(); location = 'mailto:a@b.test'</script>",
        "<script>done(); setTimeout(() => location = '{site}/empty', 50)</script>",
        "<script>navigator.sendBeacon('{site}/json', 'x'); done()</script>",
        "<a id=a ping='{site}/json' href='#x'></a><script>a.click(); done()</script>",
        "<script>done(); new EventSource('{site}/events')</script>",
        "<link rel=preload as=image href='{site}/picture.svg'><img src='{site}/picture.svg'>\
         <img src='{site}/picture.svg'><script>done()</script>",
        "<script>const c = new AbortController; fetch('{site}/never', { signal: c.signal }).catch(done);\
         setTimeout(() => c.abort(), 100)</script>",
        "<script>try { new SharedWorker('data:text/javascript,') } catch {} done()</script>",
    ] {
        shared.expect_green(&idle(page)).await;
    }
    // Polls do not count.
    for poll in [
        "setInterval(() => fetch('{site}/json'), 300)",
        "setInterval(() => new Image().src = '{site}/picture.svg', 300)",
        "new Worker(URL.createObjectURL(new Blob([`setInterval(() => fetch('{site}/json'), 300)`])))",
        "(async () => { for (;;) { await fetch('{site}/json'); await new Promise(then => setTimeout(then, 100)) } })()",
    ] {
        let job = idle(&format!("<script>onload = () => {{ {poll}; done() }}</script>"));
        let file = shared.render_by(&job, Duration::from_secs(30)).await.unwrap();
        assert_eq!(middle(&file), GREEN, "{poll}");
    }
    // What is open for longer than the job has time is left out, and the file says so.
    let polls = "let n = 0; onload = () => { setInterval(() => fetch(`{site}/json?${n++}`), 300); done() }";
    for (script, output) in [
        ("onload = () => { fetch('{site}/never'); done() }", png()),
        ("fetch('{site}/never'); done()", pdf()),
        (polls, png()),
        (polls, pdf()),
    ] {
        let job = to(output, waiting(idle(&format!("<script>{script}</script>")), 100.0));
        // More than the time in which the network may become idle.
        let file = shared.render_by(&job, Duration::from_secs(8)).await;
        assert!(!file.unwrap_or_else(|error| panic!("{script}: {error}")).page.is_idle, "{script}");
    }
    assert!(shared.file(&idle("<script>fetch('{site}/json')</script>")).await.page.is_idle);
    let mut page = url(&site.at("/worker"));
    page.options.wait_until = WaitUntil::NetworkIdle;
    shared.expect_green(&page).await;
}

async fn changing(shared: Arc<Shared>) {
    let shared = &shared;
    let files = pages(include_str!("page_time/changing.html")).into_iter().map(|(name, page)| async move {
        let page = format!("{HEAD}{}", shared.site.fill(page));
        (name, middle(&shared.file(&waiting(html(&page), 2_000.0)).await))
    });
    let files: Vec<_> = stream::iter(files).buffered(2).collect().await;
    let wrong: Vec<_> = files.iter().filter(|(_, colour)| *colour != GREEN).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Two frames of one pixel: red for a tenth of a second, then green.
const ANIMATED_GIF: &str = "data:image/gif;base64,R0lGODlhAQABAPAAAP8AAACAACH5BAAKAAAALAAAAAABAAEAAAICRAEAIfkEAAoAAAAsAAAAAAEAAQAAAgJMAQA7";

async fn stillness(shared: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let svg = |content: &str| {
        let svg = format!("<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'>{content}</svg>");
        format!(
            "data:image/svg+xml,{}",
            svg.replace('<', "%3C").replace('>', "%3E").replace('\'', "%22").replace('#', "%23")
        )
    };
    let smil = "<rect width='999' height='999' fill='red'><set attributeName='fill' to='green' begin='0.2s'/></rect>";
    for (name, page) in [
        ("timer", "<script>setTimeout(done, 200)</script>"),
        (
            "timer of a script that has removed itself",
            "<body onload='setTimeout(done, 200); this.removeAttribute(`onload`)'>",
        ),
        ("SMIL", "<svg width=320 height=240 viewBox='0 0 9 9' preserveAspectRatio=none>SMIL</svg>"),
        ("SMIL of an image", "<img width=320 height=240 src='SVG'>"),
        (
            "animation",
            "<style>@keyframes a { to { background: green } } html { background: red; animation: a 0s 0.2s forwards }</style>",
        ),
        (
            "transition",
            "<style>html { background: green; transition: background 0.2s; @starting-style { background: red } }</style>",
        ),
        (
            "animation of a closed shadow tree",
            "<div><template shadowrootmode=closed><style>@keyframes a { to { background: green } }\
             p { margin: 0; height: 240px; background: red; animation: a 0s 0.2s forwards }</style><p></p></template></div>",
        ),
        ("animated image", "<img width=320 height=240 src='GIF'>"),
        ("animated background", "<style>html { background: url(GIF) }</style>"),
        ("refresh", "<meta http-equiv=refresh content='0.2;url={site}/green'>"),
        (
            "frame",
            "<iframe width=330 height=250 style='border:0' srcdoc=\"<body style='background:red'><script>setTimeout(() => \
             document.body.style.background = 'green', 200)</script>\"></iframe>",
        ),
        ("object", "<object width=320 height=240 data=\"SVG\"></object>"),
    ] {
        let page = page.replace("SMIL", smil).replace("SVG", &svg(smil)).replace("GIF", ANIMATED_GIF);
        // Only pages with a script begin with one.
        let head = if page.contains("done") { HEAD } else { "<!doctype html>" };
        let page = format!("{head}<style>body {{ margin: 0 }}</style>{page}");
        farm.expect_green(&waiting(html(&shared.site.fill(&page)), 600.0)).await;
        assert_eq!(farm.waits("skipped").await, 0, "the wait of {name} was skipped");
    }
    // Pages whose changes these colours would not show.
    for page in [
        "<input autofocus>",
        "<progress></progress>",
        "<marquee>x</marquee>",
        "<video src='data:video/mp4;base64,AAAA' autoplay></video>",
        "<audio></audio>",
        "<embed src='data:image/svg+xml,x'>",
        "<iframe></iframe>",
        "<p onclick=0>x<script>0</script>",
    ] {
        farm.file(&waiting(html(page), 50.0)).await;
        assert_eq!(farm.waits("skipped").await, 0, "{page}");
    }
    let pages = [
        String::new(),
        "<script type='application/ld+json'>{}</script><table><td>1</table>".to_owned(),
        "<img src='data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'>"
            .to_owned(),
        format!("<img src='{}'>", svg("<rect width='9' height='9'/>")),
    ];
    let styled = shared.site.fill("<!doctype html><link rel=stylesheet href='{site}/late.css'>");
    let still = pages.iter().map(|page| html(&format!("{GREEN_PAGE}{page}")));
    let still = still.chain([html(&styled), url(&shared.site.at("/green"))]);
    for (number, mut job) in (1..).zip(still) {
        job.options.wait_until = WaitUntil::NetworkIdle;
        job.options.wait_for_timeout = 10_000.0.try_into().unwrap();
        farm.expect_green(&job).await;
        assert_eq!(farm.waits("skipped").await, number, "{:?}", job.source);
    }
    farm.end().await;
}

/// Pages that change by timers and frames until `done`, before a second has passed. The first does so by the clock of the
/// machine alone.
const TIMED: &[&str] = &[
    "<script>setTimeout(done, 900)</script>",
    "<script>let n = 0; (function again() { ++n < 18 ? setTimeout(again, 50) : done() })()</script>",
    "<script>let n = 0; setInterval(() => ++n === 9 && done(), 100)</script>",
    "<script>let n = 0; requestAnimationFrame(function again() { ++n < 50 ? requestAnimationFrame(again) : done() })</script>",
    "<style>p { opacity: 0; transition: opacity 0.4s }</style><p id=p>x<script>p.ontransitionend = done;\
     setTimeout(() => p.style.opacity = 1, 400)</script>",
    "<script>(async () => { for (let n = 0; n < 8; n++) await new Promise(then => setTimeout(then, 100)); done() })()</script>",
];

async fn stalls(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "2"]).await;
    let over = Arc::new(AtomicBool::new(false));
    let (stop, farm_id) = (Arc::clone(&over), farm.pid());
    let stopping = std::thread::spawn(move || {
        for round in 0_u64.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let renderers = procfs::renderers(farm_id);
            let signal = |signal| {
                for renderer in &renderers {
                    let _ = renderer.signal(signal);
                }
            };
            signal(Signal::SIGSTOP);
            std::thread::sleep(Duration::from_millis(30 + round * 97 % 320));
            signal(Signal::SIGCONT);
            std::thread::sleep(Duration::from_millis(20 + round * 31 % 60));
        }
    });
    let running = &farm;
    // With a worker, the wait is in real time, in which a stalled page has fewer frames.
    let real = ["<script>new Worker('data:,')</script>", TIMED[0]].concat();
    let pages = TIMED.iter().map(|page| (*page).to_owned()).chain([real]).map(|page| format!("{HEAD}{page}"));
    let jobs = pages.cycle().take(36).map(|page| async move {
        let job = waiting(html(&page), 1_000.0);
        let file = running.file(&job).await;
        (page, colour(&file))
    });
    let files: Vec<_> = stream::iter(jobs).buffer_unordered(2).collect().await;
    over.store(true, Ordering::Relaxed);
    stopping.join().unwrap();
    let wrong: Vec<_> = files.iter().filter(|(_, colour)| *colour != GREEN).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    farm.end().await;
}
