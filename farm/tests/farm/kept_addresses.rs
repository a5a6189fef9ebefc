//! The page of a job with assets is kept if nothing could run in it, and gives the account's next such job what a new page gives it.
//! A script can see nothing of that, because no job with one gets such a page.

use std::{fs, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use platen_harness::pdf_file::without_dates;
use platen_shared::job::RenderJob;
use serde_json::{Value, json};

use crate::support::{
    GREEN_PAGE, Shared, farm_process::FarmProcess, html, of, paged, pages, site::GREEN_PICTURE, small, with,
};

tests! {
    "a page with assets is kept only if nothing could run in it, and shows nothing of that" => kept,
    "the options of a job decide whether its page with assets is kept" => options,
    "only documents of one kind have the same page" => kinds,
    "a page with assets is replaced after its number of jobs" => replaced,
}

/// Pages that leave what they can; the names of those that are kept begin with `kept`.
const PAGES: &str = include_str!("kept_addresses/pages.html");
/// Shows the files of its own job, and without a script what it can of others.
const OBSERVER: &str = include_str!("kept_addresses/observer.html");

fn font(style: &str) -> Value {
    let file = fs::read(format!("/usr/share/fonts/truetype/liberation/LiberationSerif-{style}.ttf")).unwrap();
    json!({ "content": BASE64_STANDARD.encode(file) })
}

/// Files with the names of those of [`observer`], and other contents.
fn files() -> Value {
    let picture = GREEN_PICTURE
        .replace("green", "red")
        .replace("<rect ", "<rect id='used' onload='document.title = 1' onerror='document.title = 1' ");
    json!({
        "picture.svg": { "text": picture },
        "picture.jpg": { "text": picture, "mimeType": "image/svg+xml" },
        "missing.svg": { "text": picture },
        "style.css": { "text": "html { background: red } p { font-size: 90px } @page { margin: 5cm }" },
        "more.css": { "text": "body { border: 9px solid red }" },
        "font.ttf": font("BoldItalic"),
        "script.js": { "text": "name = document.cookie = 'leak=1; domain=document.invalid'" },
        "other.html": { "text": GREEN_PAGE },
    })
}

fn observer() -> RenderJob {
    small(observer_fields())
}

fn observer_fields() -> Value {
    json!({ "html": OBSERVER, "assets": {
        "picture.svg": { "text": GREEN_PICTURE },
        "style.css": { "text": "p { border: 3px solid green }" },
        "font.ttf": font("Regular"),
    } })
}

/// Whether the page of a job is kept for the observer, which shows there what it shows on a new page. The job is the second one
/// of an account, of which the first page is not kept.
async fn is_kept(farm: &FarmProcess, name: &str, job: &RenderJob) -> bool {
    farm.file(&of(name, html("x"))).await;
    farm.file(&of(name, job.clone())).await;
    let before = farm.warm_pages().await;
    let found = farm.file(&of(name, observer())).await;
    let kept = farm.warm_pages().await - before;
    let on_new = farm.file(&of(&format!("new {name}"), observer())).await;
    assert!(found == on_new, "{name}: another file");
    kept == 1
}

async fn kept(shared: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let found = pages(PAGES);
    for (name, page) in &found {
        let page = page.replace("{site}", &shared.site.at(""));
        let job = small(json!({ "html": page, "assets": files() }));
        assert_eq!(is_kept(&farm, name, &job).await, name.starts_with("kept"), "{name}");
    }
    assert!(found.iter().filter(|(name, _)| name.starts_with("kept")).count() >= 10);
    // One after the other on a page, as a file of either format.
    farm.file(&of("one", html("x"))).await;
    let before = farm.warm_pages().await;
    let kept = found.iter().filter(|(name, _)| name.starts_with("kept"));
    let mut jobs = 0;
    for (number, (name, page)) in kept.enumerate() {
        farm.file(&of("one", small(json!({ "html": page, "assets": files() })))).await;
        let job = if number % 2 == 0 { observer() } else { paged(observer_fields()) };
        let on_warm = farm.file(&of("one", job.clone())).await;
        let on_new = farm.file(&of(&format!("{number}"), job)).await;
        assert!(without_dates(&on_warm) == without_dates(&on_new), "{name}: another file");
        jobs += 2;
    }
    assert_eq!(farm.warm_pages().await - before, jobs - 1);
    farm.end().await;
}

async fn options(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let moving = "<style>@keyframes move { to { transform: translateX(9px) } } p { animation: move 9s infinite }</style><p>p";
    for (expected, html, options) in [
        (
            true,
            "p",
            json!({ "format": "pdf", "headerHtml": "<p class=title>", "footerHtml": "<p class=pageNumber>" }),
        ),
        (false, "p", json!({ "format": "pdf", "footerHtml": "<img src=x onerror='name = 1'>" })),
        (false, "p", json!({ "format": "pdf", "headerFirstHtml": "<script>name = 1</script>" })),
        // In virtual time.
        (false, "<p>p", json!({ "waitForSelector": "p" })),
        (true, "<p>p", json!({ "selector": "p" })),
        (true, "<p style='height: 9000px'>p", json!({ "fullPage": true })),
        (true, "p", json!({ "waitForTimeout": 500 })),
        (true, "p", json!({ "waitUntil": "networkidle" })),
        (false, moving, json!({ "waitForTimeout": 500 })),
        (
            false,
            "p",
            json!({ "waitForFunction": "(document.cookie = 'leak=1; domain=document.invalid'), true" }),
        ),
        (false, "p", json!({ "css": "p { color: red }" })),
    ] {
        let job = small(with(json!({ "html": html, "assets": files() }), &options));
        assert_eq!(is_kept(&farm, &format!("{html} {options}"), &job).await, expected, "{html} {options}");
    }
    farm.end().await;
}

/// Neither markup without an address nor one with a script has a page that has had an address.
async fn kinds(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let with_assets = |html: &str| of("one", small(json!({ "html": html, "assets": files() })));
    let warm = async |job: RenderJob| {
        let before = farm.warm_pages().await;
        farm.file(&job).await;
        farm.warm_pages().await - before
    };
    assert_eq!(warm(of("one", html("x"))).await, 0);
    // The first page of an account is not kept.
    for (one, two) in [(0, 0), (1, 0), (1, 1)] {
        assert_eq!(warm(with_assets("<img src=picture.svg>")).await, one);
        assert_eq!(warm(with_assets("<script>name = 1</script>")).await, 0);
        assert_eq!(warm(of("one", html("x"))).await, one);
        assert_eq!(warm(of("two", small(json!({ "html": "x", "assets": {} })))).await, two);
    }
    farm.end().await;
}

async fn replaced(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let job = small(json!({ "html": "x", "assets": {} }));
    for _ in 0..53 {
        farm.file(&job).await;
    }
    // The first job leaves no page, and the page of the second one is replaced after its 50th job.
    assert_eq!(farm.warm_pages().await, 50);
    farm.end().await;
}
