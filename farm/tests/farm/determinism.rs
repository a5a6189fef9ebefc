//! A job gives the same picture each time, on an idle and on an overloaded machine, for every way of capture.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use platen_farm::Rendered;
use platen_harness::{busy_loops::BusyLoops, pdf_file::without_dates};
use platen_shared::format::WaitUntil;
use serde_json::{Value, json};

use crate::{
    scrolling::{LATER, boxes},
    support::{
        GREEN, Shared, full_page_png, html, middle, picture, site::Site, small, to, url, viewport, waiting,
        with,
    },
};

tests! {
    "a text caret does not blink" => carets,
    "a picture has the resources that its layout requests" => drawn_resources,
    "equal jobs give equal files on an overloaded machine" => equal_jobs,
}

const ENDLESS: &str = "<style>@keyframes a { to { transform: rotate(1turn) } }\
    p { width: 90px; height: 90px; background: navy; animation: a 1.7s linear infinite }</style><p>";

/// Pages that show the number of their frames, or the progress of an endless animation.
fn moving() -> [String; 5] {
    let frames = |before: &str, draw: &str| {
        format!(
            "{before}<script>let n = 0; requestAnimationFrame(function again() {{ {draw}; requestAnimationFrame(again) }})</script>"
        )
    };
    [
        frames("<p id=p>0", "p.textContent = ++n"),
        format!("{ENDLESS}<script>0</script>"),
        ENDLESS.to_owned(),
        frames("<canvas id=c></canvas>", "c.getContext('2d').fillRect(n += 2, n % 50, 3, 3)"),
        "<p id=p>0<script>let n = 0; (function again() { p.textContent = ++n; n < 12 && requestIdleCallback(again) })()</script>"
            .to_owned(),
    ]
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
        let first = pixels(&shared.file(&at_load).await);
        for milliseconds in [500.0, 700.0, 1_000.0] {
            let job = waiting(at_load.clone(), milliseconds);
            assert!(pixels(&shared.file(&job).await) == first, "{milliseconds} ms: {page}");
        }
    }
}

async fn drawn_resources(shared: Arc<Shared>) {
    let page = format!("<!doctype html><link rel=stylesheet href='{}'><p>text", shared.site.at("/drawn.css"));
    let lazy = format!(
        "<!doctype html><body style='margin:0'><img loading=lazy width=320 height=240 src='{}'>",
        shared.site.at("/late.svg")
    );
    for markup in [page.clone(), format!("{page}<script>0</script>"), lazy] {
        let mut idle = html(&markup);
        idle.options.wait_until = WaitUntil::NetworkIdle;
        let idle = pixels(&shared.file(&idle).await);
        let waits = waiting(html(&markup), 1.0);
        let _busy = BusyLoops::start().unwrap();
        let by_url = url(&shared.site.at(&Site::markup(&markup)));
        let equal = [html(&markup), by_url.clone(), waits.clone()];
        let mut larger = by_url;
        larger.options.viewport = viewport(320, 240, 2.0);
        let others = [larger, to(full_page_png(), html(&markup)), to(full_page_png(), waits)];
        let files = stream::iter(equal.iter().chain(&others)).map(|job| shared.file(job)).buffered(2);
        for (number, file) in files.collect::<Vec<_>>().await.iter().enumerate() {
            assert_eq!(middle(file), GREEN, "job {number} of {markup}");
            assert!(number >= equal.len() || pixels(file) == idle, "job {number} of {markup}");
        }
    }
    // In a picture of the whole page, lazy images below the viewport are loaded.
    let whole = format!(
        "<!doctype html><body style='margin:0'><p style='height:9000px'>x</p><img loading=lazy style='display:block' \
         width=320 height=240 src='{}'>",
        shared.site.at("/late.svg")
    );
    let whole = picture(&shared.file(&to(full_page_png(), html(&whole))).await.bytes);
    assert_eq!(whole.get_pixel(160, whole.height() - 120).0, GREEN);
    // The wait for an image that never arrives is bounded.
    let never = format!(
        "<!doctype html><html style='background:green'><script>onload = () => new Image().src = '{}'</script>",
        shared.site.at("/never")
    );
    shared.expect_green(&html(&never)).await;
}

fn pixels(file: &Rendered) -> Vec<u8> {
    picture(&file.bytes).into_raw()
}

/// The header is hidden while the page is scrolled, with a delay.
const HEADER: &str = "let timer; onscroll = () => timer ??= setTimeout(() => { timer = null; boxes[0].hidden = scrollY > 100 }, 100)";

/// Requests, one for each class of pages whose files have once depended on the machine.
fn bodies(shared: &Shared) -> Vec<Value> {
    let whole = |html: &str| json!({ "html": html, "fullPage": true });
    let seen = |name: &str| boxes(LATER.iter().find(|(known, _)| *known == name).unwrap().1);
    let mut bodies = vec![whole(&boxes(HEADER))];
    let ways = [json!({}), json!({ "fullPage": true }), json!({ "deviceScaleFactor": 2 })];
    // Each page with both waits, and each wait in every way.
    for (number, page) in moving().iter().enumerate() {
        for (at, wait) in [0, 700].into_iter().enumerate() {
            // Without a wait, the machine decides how many idle callbacks there were.
            if wait > 0 || !page.contains("requestIdleCallback") {
                let page = json!({ "html": format!("<!doctype html>{page}"), "waitForTimeout": wait });
                bodies.push(with(ways[(number + at) % ways.len()].clone(), &page));
            }
        }
    }
    let printed = |name| json!({ "html": seen(name), "format": "pdf", "printBackground": true });
    bodies.extend(["debounce", "timer of an observer"].map(printed));
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
        json!({ "html": moving, "format": "pdf", "printBackground": true }),
        with(
            printed("timer of an observer"),
            &json!({
                "singlePage": true, "headerHtml": "<p>HEAD <span class=pageNumber></span>",
                "footerHtml": "<style>p { color: red }</style><p>FOOT"
            }),
        ),
    ]);
    bodies
}

/// Compares files of equal jobs: one alone, and one among others beside busy loops. `bench/corpus/run --repeat` does so
/// with whole pages.
async fn equal_jobs(shared: Arc<Shared>) {
    let bodies = bodies(&shared);
    let jobs: Vec<_> = bodies.iter().cloned().map(small).collect();
    let render = async |job| shared.render(job).await.map(|file| content(&file));
    let mut alone = Vec::new();
    for job in &jobs {
        alone.push(render(job).await);
    }
    let _busy = BusyLoops::start().unwrap();
    let beside: Vec<_> = stream::iter(&jobs).map(render).buffered(2).collect().await;
    let mut different = Vec::new();
    for (body, (alone, beside)) in bodies.iter().zip(alone.iter().zip(&beside)) {
        if alone.is_err() || alone != beside {
            let refusals: Vec<_> =
                [alone, beside].into_iter().filter_map(|file| file.as_ref().err()).collect();
            different.push(format!("{refusals:?} {body}"));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

/// What can be compared of a file: the pixels of a picture, or the bytes of a PDF.
fn content(file: &Rendered) -> Vec<u8> {
    if file.bytes.starts_with(b"%PDF-") { without_dates(&file.bytes) } else { pixels(file) }
}
