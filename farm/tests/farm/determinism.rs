//! The same job gives the same picture, on an idle and on an overloaded machine, for every way of capture.

use std::sync::Arc;

use platen_farm::{Farm, Rendered};
use platen_shared::{
    format::WaitUntil,
    job::{RenderJob, RenderOptions},
};
use platen_tests::{busy_loops::BusyLoops, wait::MAX_WAIT};

use crate::{
    Test,
    support::{
        GREEN, Shared, farm, full_page_png, html, middle, picture, site::Site, url, viewport, waiting,
    },
};

pub(crate) const TESTS: &[Test] = &[
    ("a job that waits gives the same picture on an overloaded machine", |s| Box::pin(waits(s))),
    ("a job without a wait gives the same picture on an overloaded machine", |s| Box::pin(captures(s))),
    ("a text caret does not blink", |s| Box::pin(carets(s))),
    ("a picture has the resources that its layout requests", |s| Box::pin(drawn_resources(s))),
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

const ROUNDS: usize = 4;

/// Renders a job several times, every other time beside busy loops, and compares the pictures.
async fn assert_equal(farm: &Farm, job: &RenderJob) {
    let first = pixels(&farm.render(job, MAX_WAIT).await.unwrap());
    for round in 0..ROUNDS {
        let busy = (round % 2 == 0).then(|| BusyLoops::start(2).unwrap());
        let file = farm.render(job, MAX_WAIT).await.unwrap();
        drop(busy);
        assert!(pixels(&file) == first, "round {round} of {job:?}");
    }
}

/// A farm of one browser, so that the machine is idle in every other round.
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
