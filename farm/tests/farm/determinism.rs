//! The same job gives the same picture, however busy the machine is, in whatever way it is captured.

use std::sync::Arc;

use platen_farm::{Farm, Rendered};
use platen_shared::{format::WaitUntil, job::RenderJob};

use crate::{
    Test,
    support::{
        GREEN, PATIENCE, Shared, busy_loops::BusyLoops, farm, html, middle, png_of_all, site::Site, url,
        viewport,
    },
};

pub(crate) const TESTS: &[Test] = &[
    ("the same job gives the same picture on a machine that is overloaded", |s| Box::pin(waits(s))),
    ("the same job gives the same picture at load, and in any size", |s| Box::pin(captures(s))),
    ("a text caret does not blink", |s| Box::pin(carets(s))),
    ("a picture has what its layout requests", |s| Box::pin(drawn_resources(s))),
];

/// Pages that show how many frames they have had, and how far an animation without an end has come.
const MOVING: &[&str] = &[
    "<p id=p>0<script>let n = 0; requestAnimationFrame(function again() { p.textContent = ++n; requestAnimationFrame(again) })</script>",
    "<style>@keyframes a { to { transform: rotate(1turn) } } p { width: 90px; height: 90px; background: navy; animation: a 1.7s linear infinite }</style><p><script>0</script>",
    "<style>@keyframes a { to { transform: rotate(1turn) } } p { width: 90px; height: 90px; background: navy; animation: a 1.7s linear infinite }</style><p>",
    "<canvas id=c></canvas><script>let n = 0; const t = c.getContext('2d'); requestAnimationFrame(function again() { t.fillRect(n, n % 50, 3, 3); n += 2; requestAnimationFrame(again) })</script>",
    "<p id=p>0<script>let n = 0; (function again() { p.textContent = ++n; n < 12 && requestIdleCallback(again) })()</script>",
];

/// A job in each way that a picture is captured, and how often to try it. All but the first take several
/// frames.
fn variants(job: RenderJob) -> [(RenderJob, usize); 3] {
    [
        (job.clone(), 4),
        (RenderJob { viewport: viewport(320, 240, 2.0), ..job.clone() }, 4),
        (RenderJob { output: png_of_all(), ..job }, 4),
    ]
}

/// Renders a job several times, every other time beside busy loops.
async fn assert_equal(farm: &Farm, job: &RenderJob, rounds: usize) {
    let first = pixels(&farm.render(job, PATIENCE).await.unwrap());
    for round in 0..rounds {
        let busy = (round % 2 == 0).then(BusyLoops::start);
        let file = farm.render(job, PATIENCE).await.unwrap();
        drop(busy);
        assert!(pixels(&file) == first, "round {round} of {job:?}");
    }
}

/// A farm of one browser, so that the machine is as idle as it can be in one of the rounds.
async fn lone_farm() -> Farm {
    farm(|config| config.browsers = 1.try_into().ok()).await
}

async fn waits(_: Arc<Shared>) {
    let farm = lone_farm().await;
    for page in MOVING {
        let mut job = html(&format!("<!doctype html>{page}"));
        job.wait_for_timeout = 700.0.try_into().unwrap();
        for (job, rounds) in variants(job) {
            assert_equal(&farm, &job, rounds).await;
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
            let mut job = at_load.clone();
            job.wait_for_timeout = milliseconds.try_into().unwrap();
            assert!(pixels(&shared.render(&job).await.unwrap()) == first, "{milliseconds} ms: {page}");
        }
    }
}

async fn captures(_: Arc<Shared>) {
    let farm = lone_farm().await;
    for page in MOVING.iter().filter(|page| !page.contains("requestIdleCallback")) {
        for (job, rounds) in variants(html(&format!("<!doctype html>{page}"))) {
            assert_equal(&farm, &job, rounds).await;
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
            job.wait_until = WaitUntil::NetworkIdle;
            pixels(&shared.render(&job).await.unwrap())
        };
        let mut waits = html(&markup);
        waits.wait_for_timeout = 1.0.try_into().unwrap();
        for job in [html(&markup), url(&shared.site.at(&Site::markup(&markup))), waits] {
            let file = shared.render(&job).await.unwrap();
            assert_eq!(middle(&file), GREEN, "{job:?}");
            assert!(pixels(&file) == idle, "{job:?}");
            for job in [
                RenderJob { viewport: viewport(320, 240, 2.0), ..job.clone() },
                RenderJob { output: png_of_all(), ..job },
            ] {
                assert_eq!(middle(&shared.render(&job).await.unwrap()), GREEN, "{job:?}");
            }
        }
    }
    // In a picture of the whole page all of it is there.
    let mut whole = html(&format!(
        "<!doctype html><body style='margin:0'><p style='height:9000px'>x</p><img loading=lazy style='display:block' \
         width=320 height=240 src='{}'>",
        shared.site.at("/late.svg")
    ));
    whole.output = png_of_all();
    let picture = image::load_from_memory(&shared.render(&whole).await.unwrap().bytes).unwrap().to_rgb8();
    assert_eq!(picture.get_pixel(160, picture.height() - 120).0, GREEN);
    // One that does not come is not waited for without end.
    let never = format!(
        "<!doctype html><html style='background:green'><script>onload = () => new Image().src = '{}'</script>",
        shared.site.at("/never")
    );
    assert_eq!(middle(&shared.render(&html(&never)).await.unwrap()), GREEN);
}

fn pixels(file: &Rendered) -> Vec<u8> {
    image::load_from_memory(&file.bytes).unwrap().to_rgb8().into_raw()
}
