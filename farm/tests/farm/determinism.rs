//! A job gives the same picture each time, on an idle and on an overloaded machine, for every way of capture.

use std::sync::Arc;

use futures::future::join_all;
use platen_farm::{Farm, Rendered};
use platen_harness::{busy_loops::BusyLoops, pdf_file::without_dates, wait::MAX_WAIT};
use platen_shared::{
    format::WaitUntil,
    job::{RenderJob, RenderOptions},
};
use serde_json::{Value, json};

use crate::{
    Test,
    options::small,
    support::{
        GREEN, Shared, farm, full_page_png, html, middle, picture, request, site::Site, url, viewport,
        waiting,
    },
};

pub(crate) const TESTS: &[Test] = &[
    ("a job that waits gives the same picture on an overloaded machine", |s| Box::pin(waits(s))),
    ("a job without a wait gives the same picture on an overloaded machine", |s| Box::pin(captures(s))),
    ("a text caret does not blink", |s| Box::pin(carets(s))),
    ("a picture has the resources that its layout requests", |s| Box::pin(drawn_resources(s))),
    ("equal jobs give equal files on an overloaded machine", |s| Box::pin(equal_jobs(s))),
];

/// Pages that show the number of their frames, or the progress of an endless animation.
const MOVING: &[&str] = &[
    "<p id=p>0<script>let n = 0; requestAnimationFrame(function again() { p.textContent = ++n; requestAnimationFrame(again) })</script>",
    "<style>@keyframes a { to { transform: rotate(1turn) } } p { width: 90px; height: 90px; background: navy; animation: a 1.7s linear infinite }</style><p><script>0</script>",
    "<style>@keyframes a { to { transform: rotate(1turn) } } p { width: 90px; height: 90px; background: navy; animation: a 1.7s linear infinite }</style><p>",
    "<canvas id=c></canvas><script>let n = 0; const t = c.getContext('2d'); requestAnimationFrame(function again() { t.fillRect(n, n % 50, 3, 3); n += 2; requestAnimationFrame(again) })</script>",
    "<p id=p>0<script>let n = 0; (function again() { p.textContent = ++n; n < 12 && requestIdleCallback(again) })()</script>",
];

/// A job for each way of capture. All but the first take several frames.
fn variants(job: &RenderJob) -> [RenderJob; 3] {
    [
        job.clone(),
        RenderJob {
            options: RenderOptions { viewport: viewport(320, 240, 2.0), ..job.options.clone() },
            ..job.clone()
        },
        RenderJob {
            options: RenderOptions { output: full_page_png(), ..job.options.clone() },
            ..job.clone()
        },
    ]
}

/// Renders a job alone, beside busy loops and alone again, and compares the pictures.
async fn assert_equal(farm: &Farm, job: &RenderJob) {
    let first = pixels(&farm.render(job, MAX_WAIT).await.unwrap());
    for is_busy in [true, false] {
        let busy = is_busy.then(|| BusyLoops::start(2).unwrap());
        let file = farm.render(job, MAX_WAIT).await.unwrap();
        drop(busy);
        assert!(pixels(&file) == first, "busy: {is_busy}, {job:?}");
    }
}

/// A farm of one browser, so that a job alone is alone.
async fn lone_farm() -> Farm {
    farm(|config| config.browsers = 1.try_into().ok()).await
}

async fn waits(_: Arc<Shared>) {
    let farm = lone_farm().await;
    for page in MOVING {
        for job in variants(&waiting(html(&format!("<!doctype html>{page}")), 700.0)) {
            assert_equal(&farm, &job).await;
        }
    }
    farm.shutdown().await;
}

async fn carets(shared: Arc<Shared>) {
    for page in [
        "<input autofocus>",
        "<p contenteditable id=p>x</p><script>p.focus()</script>",
        "<div id=d></div><script>d.attachShadow({ mode: 'open' }).innerHTML = '<textarea>x</textarea>';\
         d.shadowRoot.firstChild.focus()</script>",
        "<iframe srcdoc='<input autofocus>'></iframe>",
    ] {
        let at_load = html(&format!("<!doctype html><style>* {{ font: 60px sans-serif }}</style>{page}"));
        let first = pixels(&shared.render(&at_load).await.unwrap());
        for milliseconds in [500.0, 700.0, 1_000.0] {
            let job = waiting(at_load.clone(), milliseconds);
            assert!(pixels(&shared.render(&job).await.unwrap()) == first, "{milliseconds} ms: {page}");
        }
    }
}

async fn captures(_: Arc<Shared>) {
    let farm = lone_farm().await;
    for page in MOVING.iter().filter(|page| !page.contains("requestIdleCallback")) {
        for job in variants(&html(&format!("<!doctype html>{page}"))) {
            assert_equal(&farm, &job).await;
        }
    }
    farm.shutdown().await;
}

async fn drawn_resources(shared: Arc<Shared>) {
    let page = format!("<!doctype html><link rel=stylesheet href='{}'><p>text", shared.site.at("/drawn.css"));
    let lazy = format!(
        "<!doctype html><body style='margin:0'><img loading=lazy width=320 height=240 src='{}'>",
        shared.site.at("/late.svg")
    );
    for markup in [page.clone(), format!("{page}<script>0</script>"), lazy] {
        let idle = {
            let mut job = html(&markup);
            job.options.wait_until = WaitUntil::NetworkIdle;
            pixels(&shared.render(&job).await.unwrap())
        };
        let waits = waiting(html(&markup), 1.0);
        let _busy = BusyLoops::start(2).unwrap();
        for job in [html(&markup), url(&shared.site.at(&Site::markup(&markup))), waits] {
            let file = shared.render(&job).await.unwrap();
            assert_eq!(middle(&file), GREEN, "{job:?}");
            assert!(pixels(&file) == idle, "{job:?}");
            for job in [
                RenderJob {
                    options: RenderOptions { viewport: viewport(320, 240, 2.0), ..job.options.clone() },
                    ..job.clone()
                },
                RenderJob {
                    options: RenderOptions { output: full_page_png(), ..job.options.clone() },
                    ..job.clone()
                },
            ] {
                assert_eq!(middle(&shared.render(&job).await.unwrap()), GREEN, "{job:?}");
            }
        }
    }
    // In a picture of the whole page, lazy images below the viewport are loaded.
    let mut whole = html(&format!(
        "<!doctype html><body style='margin:0'><p style='height:9000px'>x</p><img loading=lazy style='display:block' \
         width=320 height=240 src='{}'>",
        shared.site.at("/late.svg")
    ));
    whole.options.output = full_page_png();
    let whole = picture(&shared.render(&whole).await.unwrap().bytes);
    assert_eq!(whole.get_pixel(160, whole.height() - 120).0, GREEN);
    // The wait for an image that never arrives is bounded.
    let never = format!(
        "<!doctype html><html style='background:green'><script>onload = () => new Image().src = '{}'</script>",
        shared.site.at("/never")
    );
    assert_eq!(middle(&shared.render(&html(&never)).await.unwrap()), GREEN);
}

fn pixels(file: &Rendered) -> Vec<u8> {
    picture(&file.bytes).into_raw()
}

/// Pages of eight boxes below each other that turn green when they are seen, in different ways.
const SEEN: [&str; 6] = [
    "let timer; onscroll = () => { clearTimeout(timer); timer = setTimeout(show, 100) }",
    "let last = 0; onscroll = () => { if (Date.now() - last >= 100) { last = Date.now(); show() } }",
    "observe(box => setTimeout(paint, 120, box))",
    "observe(box => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(() => paint(box)))))",
    "observe(box => requestIdleCallback(() => paint(box)))",
    // The header is hidden while the page is scrolled, with a delay.
    "let timer; onscroll = () => timer ??= setTimeout(() => { timer = null; boxes[0].hidden = scrollY > 100 }, 100)",
];

fn seen(way: &str) -> String {
    format!(
        "<!doctype html><style>div {{ height: 200px; background: red; print-color-adjust: exact }}</style><script>\
         document.write('<div></div>'.repeat(8)); const boxes = [...document.querySelectorAll('div')];\
         const paint = box => box.style.background = 'green';\
         const show = () => boxes.forEach(box => {{ const {{ top, bottom }} = box.getBoundingClientRect();\
         if (bottom > 0 && top < innerHeight) paint(box) }});\
         const observe = then => boxes.forEach(box => new IntersectionObserver(([it]) =>\
         {{ if (it.isIntersecting) then(box) }}).observe(box)); {way}</script>"
    )
}

/// Bodies of requests, one for each class of pages whose files have once depended on the machine.
fn bodies(shared: &Shared) -> Vec<Value> {
    let whole = |html: &str| json!({ "html": html, "fullPage": true });
    let mut bodies: Vec<Value> = SEEN.iter().map(|way| whole(&seen(way))).collect();
    bodies.extend([0, 3].map(|way| json!({ "html": seen(SEEN[way]), "format": "pdf" })));
    let green = shared.site.at("/green");
    let below = format!(
        "<!doctype html><p style='height:2000px'>x<iframe src='data:text/html,<body style=background:gold>x'></iframe>\
         <iframe sandbox srcdoc='<body style=background:teal>x'></iframe><iframe src='{}'></iframe>",
        shared.site.elsewhere("/green")
    );
    let icon = shared.site.at("/picture.svg");
    let moving = "<!doctype html><style>@keyframes f { from { opacity: 0 } } @keyframes g { to { background: gold } }\
        p { animation: f 1s both } div { transition: margin 1s; height: 50px; background: navy } b { animation: f .3s }\
        </style><p>x<div>x</div><b>x</b><script>const [part] = document.querySelectorAll('div'); part.clientWidth;\
        part.style.margin = '40px'; document.querySelector('b').onanimationend = event =>\
        event.target.style.animation = 'g .2s forwards'</script>";
    bodies.extend([
        whole(&below),
        // Resources and callbacks that need frames.
        json!({ "html": format!("<!doctype html><svg><use href='{icon}#a'/></svg>x") }),
        json!({ "html": format!("<!doctype html><p style='mask:url({icon}#a);filter:url({icon}#b)'>x") }),
        json!({ "waitForSelector": "b", "html": "<!doctype html><p>x<script>new Worker('data:text/javascript,\
            requestAnimationFrame(()=>postMessage(0))').onmessage = () =>\
            document.querySelector('p').innerHTML = '<b>y'</script>" }),
        // Pages that go on.
        json!({ "html": format!("<!doctype html><meta http-equiv=refresh content='0;url={green}'>x") }),
        json!({ "html": format!("<!doctype html>x<script>onload = () => location.href = '{green}'</script>") }),
        whole(&format!("<!doctype html>x<script>requestAnimationFrame(() => location.replace('{green}'))</script>")),
        json!({ "html": moving }),
        json!({ "html": moving, "format": "pdf" }),
        json!({
            "html": seen(SEEN[2]), "format": "pdf", "singlePage": true,
            "headerHtml": "<p>HEAD <span class=pageNumber></span>", "footerHtml": "<style>p { color: red }</style><p>FOOT"
        }),
    ]);
    bodies.into_iter().map(small).collect()
}

/// Compares files of equal jobs: one alone, and three at once beside busy loops. `bench/corpus/run --repeat` does so
/// with whole pages.
async fn equal_jobs(shared: Arc<Shared>) {
    let bodies = bodies(&shared);
    let jobs: Vec<_> = bodies.iter().map(request).collect();
    let render = async |job| shared.render(job).await.map(|file| content(&file));
    let mut alone = Vec::new();
    for job in &jobs {
        alone.push(render(job).await);
    }
    let _busy = BusyLoops::start(2).unwrap();
    let mut different = Vec::new();
    for ((body, job), alone) in bodies.iter().zip(&jobs).zip(alone) {
        let files = join_all((0..3).map(|_| render(job))).await;
        if alone.is_err() || files.iter().any(|file| *file != alone) {
            let refusals: Vec<_> =
                files.iter().chain([&alone]).filter_map(|file| file.as_ref().err()).collect();
            different.push(format!("{refusals:?} {body}"));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

/// What can be compared of a file: the pixels of a picture, or the bytes of a PDF.
fn content(file: &Rendered) -> Vec<u8> {
    if file.bytes.starts_with(b"%PDF-") { without_dates(&file.bytes) } else { pixels(file) }
}
