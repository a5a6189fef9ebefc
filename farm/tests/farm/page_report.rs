//! What is said of a page beside its file: its errors, its failed requests, its address.

use std::sync::Arc;

use http::StatusCode;
use platen_farm::Rendered;
use platen_harness::site::Reply;
use platen_shared::{
    page_report::{MAX_COUNT, PageReport},
    refusal::{FirstError, PageTexts, Refusal},
};
use serde_json::{Value, json};

use crate::support::{GREEN, Shared, middle, paged, small, with};

tests! {
    "errors that nothing handles are counted" => errors,
    "errors of frames are counted" => errors_of_frames,
    "errors without end, and hostile ones, do no harm" => hostile_errors,
    "equal jobs of a page that is used again have equal counts" => equal_jobs,
    "each way to lose a part is counted, and refused on request" => lost_parts,
    "a refusal names the first error of its page" => first_error,
    "a file of a URL has the address of its document" => address,
    "the sheets of a PDF are counted" => sheets,
}

const PAGE: &str = "<!doctype html><body style='margin:0;background:green'>";

fn of(script: &str) -> Value {
    json!({ "html": format!("{PAGE}<script>{script}</script>"), "waitForTimeout": 300 })
}

fn texts(file: &Rendered) -> Vec<&str> {
    file.problems.iter().map(|text| &**text).collect()
}

/// Checks the texts of the errors of a page, which is green.
async fn expect_errors(shared: &Shared, fields: Value, errors: &[&str]) {
    let file = shared.file(&small(fields.clone())).await;
    assert_eq!(middle(&file), GREEN, "{fields}");
    assert_eq!(texts(&file), errors, "{fields}");
    assert_eq!((file.page.errors as usize, file.page.failed_requests), (errors.len(), 0), "{fields}");
}

async fn errors(shared: Arc<Shared>) {
    for (script, found) in [
        ("", &[][..]),
        ("absent.member = 1", &["ReferenceError: absent is not defined"]),
        ("setTimeout(() => { throw new TypeError('a\\nb') }, 50)", &["TypeError: a"]),
        ("Promise.reject(new Error('rejected'))", &["Error: rejected"]),
        ("(async () => { throw 'a text' })()", &["a text"]),
        ("Promise.reject()", &["undefined"]),
        ("setTimeout(() => { throw null })", &["null"]),
        ("setTimeout(() => { throw 12.5 })", &["12.5"]),
        ("setTimeout(() => { throw { a: 1 } })", &["Object"]),
        ("this is no script", &["SyntaxError: Unexpected identifier 'is'"]),
        ("setTimeout(() => { throw 1 }); setTimeout(() => { throw 2 }, 20)", &["1", "2"]),
        // Handled ones.
        ("try { absent() } catch {}", &[]),
        ("Promise.reject(new Error('caught')).catch(() => {})", &[]),
        ("const late = Promise.reject(1); setTimeout(() => late.catch(() => {}), 100)", &[]),
        ("addEventListener('error', event => event.preventDefault()); absent()", &[]),
        ("addEventListener('unhandledrejection', event => event.preventDefault()); Promise.reject(1)", &[]),
        ("console.error(new Error('only logged')); reportError.name", &[]),
        // One of several is handled later.
        (
            "const late = Promise.reject('late'); Promise.reject('never'); setTimeout(() => late.catch(() => {}), 100)",
            &["never"],
        ),
        // An error of a worker is an event of its page.
        ("new Worker(URL.createObjectURL(new Blob(['throw 1'])))", &[]),
        (
            "new Worker(URL.createObjectURL(new Blob(['throw 1']))).onerror = () => { throw 'of the worker' }",
            &["of the worker"],
        ),
    ] {
        expect_errors(&shared, of(script), found).await;
    }
    // Of another document of the same job.
    let page = format!(
        "{PAGE}<script>if (!location.search) {{ setTimeout(() => {{ throw 'before' }}); setTimeout(() => location = '?2', 50) }}</script>"
    );
    let url = shared.site.put("/throws-before", Reply::page(page));
    expect_errors(&shared, json!({ "url": url }), &["before"]).await;
    let without_scripts = with(of("absent()"), &json!({ "javaScript": false }));
    expect_errors(&shared, without_scripts, &[]).await;
}

async fn errors_of_frames(shared: Arc<Shared>) {
    let throws = Reply::page("<script>throw new Error('framed')</script>");
    let frame = shared.site.put("/throws", throws.clone());
    let elsewhere = shared.site.elsewhere("/throws");
    for source in [
        format!("src='{frame}'"),
        format!("src='{elsewhere}'"),
        "srcdoc='<script>throw new Error(`framed`)</script>'".to_owned(),
    ] {
        let markup =
            format!("{PAGE}<iframe style='position:absolute;width:10px;height:10px' {source}></iframe>");
        expect_errors(&shared, json!({ "html": markup }), &["Error: framed"]).await;
    }
    let page =
        format!("{PAGE}<iframe hidden src='{elsewhere}'></iframe><iframe hidden src='/throws'></iframe>");
    let url = shared.site.put("/two-frames", Reply::page(page));
    expect_errors(&shared, json!({ "url": url }), &["Error: framed", "Error: framed"]).await;
}

async fn hostile_errors(shared: Arc<Shared>) {
    let count = async |script: &str| {
        let file = shared.file(&small(of(script))).await;
        assert_eq!(middle(&file), GREEN, "{script}");
        file
    };
    let many = count("for (let i = 0; i < 20000; i++) Promise.reject(new Error('x'.repeat(500)))").await;
    assert_eq!(many.page.errors, MAX_COUNT);
    let logs = "for (let i = 0; i < 20000; i++) console.log('x'.repeat(2000), { i, document })";
    assert_eq!(count(logs).await.page, PageReport::default());
    for (text, shown) in [
        ("'x'.repeat(1e6)", format!("{}…", "x".repeat(199))),
        ("'x'.repeat(200)", "x".repeat(200)),
        ("'\\u{1f600}'.repeat(1e5)", format!("{}…", "\u{1f600}".repeat(199))),
        ("'\\r\\nset-cookie: a=b\\r\\n\\r\\n<b>'", "set-cookie: a=b".to_owned()),
        ("'a\\0b\\x1b[31mc\\x7f\\x9bd'", "ab[31mcd".to_owned()),
        ("'a\\ud800b'", "a\u{fffd}b".to_owned()),
        ("'\\udc00'", "\u{fffd}".to_owned()),
        ("''", String::new()),
    ] {
        let file = count(&format!("setTimeout(() => {{ throw {text} }})")).await;
        let found = texts(&file).concat().replace("\u{fffd}\u{fffd}\u{fffd}", "\u{fffd}");
        assert_eq!((found, file.page.errors), (shown, 1), "{text}");
    }
    // Objects that answer a debugger.
    let traps = "const trap = new Proxy({}, { get() { throw 1 }, ownKeys() { throw 2 } }); const error = new Error('e');
        Object.defineProperty(error, 'stack', { get() { return 'stack' } });
        Object.defineProperty(error, 'message', { get() { for (;;); } }); setTimeout(() => { throw trap }); setTimeout(() => { throw error })";
    assert_eq!(count(traps).await.page.errors, 2);
}

async fn equal_jobs(shared: Arc<Shared>) {
    shared.site.put("/seen.svg", Reply::of("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>"));
    shared.site.put("/unseen.svg", Reply::page("x").with_status(StatusCode::NOT_FOUND));
    let (seen, unseen) = (shared.site.at("/seen.svg"), shared.site.at("/unseen.svg"));
    let broken = format!("{PAGE}<img src='{seen}'><img src='{unseen}'><script>absent()</script>");
    for _ in 0..3 {
        for (markup, errors, failed_requests) in [(broken.as_str(), 1, 1), (PAGE, 0, 0)] {
            for fields in [json!({ "html": markup }), json!({ "html": markup, "format": "pdf" })] {
                let page = shared.file(&small(fields.clone())).await.page;
                assert_eq!((page.errors, page.failed_requests), (errors, failed_requests), "{fields}");
            }
        }
    }
}

async fn lost_parts(shared: Arc<Shared>) {
    let site = &shared.site;
    let absent = site.put("/absent.png", Reply::page("x").with_status(StatusCode::NOT_FOUND));
    let failed = format!("GET {absent} 404");
    for (markup, errors, failed_requests, text) in [
        (format!("<img src='{absent}'>"), 0, 1, &*failed),
        (
            "<img src='https://absent.invalid/'>".to_owned(),
            0,
            1,
            "GET https://absent.invalid/ name not found",
        ),
        ("<script>absent()</script>".to_owned(), 1, 0, "ReferenceError: absent is not defined"),
        ("<script>Promise.reject(Error('late'))</script>".to_owned(), 1, 0, "Error: late"),
    ] {
        let fields = json!({ "html": format!("{PAGE}{markup}") });
        let page = shared.file(&small(fields.clone())).await.page;
        assert_eq!((page.errors, page.failed_requests), (errors, failed_requests), "{markup}");
        for (fail_on, fails) in [
            (json!(["pageErrors"]), errors > 0),
            (json!(["failedRequests"]), failed_requests > 0),
            (json!(["failedRequests", "pageErrors"]), true),
            (json!([]), false),
        ] {
            let rendered = shared.render(&small(with(fields.clone(), &json!({ "failOn": fail_on })))).await;
            let first = PageTexts(vec![text.into()]);
            let expected = fails.then_some(Refusal::FailOn { errors, failed_requests, first });
            assert_eq!(rendered.err(), expected, "{markup} {fail_on}");
        }
    }
    site.put("/sign-in", Reply::page(PAGE));
    let signed_out = site.put("/report", Reply::redirect("/sign-in?from=/report"));
    let file =
        shared.file(&small(json!({ "url": signed_out, "failOn": ["pageErrors", "failedRequests"] }))).await;
    assert_eq!(file.page.url, Some(site.at("/sign-in?from=/report")));
    let both = format!(
        "{PAGE}<script>for (let i = 0; i < 5; i++) setTimeout(() => {{ throw i }}, i)</script><img src='{absent}'>"
    );
    let refusal = shared
        .render(&small(json!({ "html": both, "failOn": ["pageErrors"], "waitForTimeout": 200 })))
        .await
        .unwrap_err();
    assert_eq!(refusal.to_string(), "The page had 5 errors: 0; 1; 2");
    assert!(refusal.is_counted());
}

async fn first_error(shared: Arc<Shared>) {
    let html = format!(
        "{PAGE}<script>setTimeout(() => {{ throw new Error('not started') }}); setTimeout(() => {{ throw 2 }}, 50)</script>"
    );
    let first_error = || FirstError(Some("Error: not started".into()));
    let refusal = async |fields: Value| {
        let job = small(with(json!({ "html": html }), &fields));
        shared.render_by(&job, std::time::Duration::from_secs(5)).await.unwrap_err()
    };
    let unmet = refusal(json!({ "waitForSelector": "#chart" })).await;
    assert_eq!(unmet, Refusal::ElementNotVisible { first_error: first_error() });
    let untrue = refusal(json!({ "waitForFunction": "window.ready" })).await;
    assert_eq!(untrue, Refusal::FunctionNotTrue { first_error: first_error() });
    let fails = refusal(json!({ "waitForTimeout": 100, "waitForFunction": "new Promise((_, no) => setTimeout(no, 100, 'x'))" })).await;
    let Refusal::FunctionFailed { first_error: found, .. } = fails else { panic!("{fails:?}") };
    assert_eq!(found, first_error());
}

async fn address(shared: Arc<Shared>) {
    let site = &shared.site;
    let at = async |fields: Value| shared.file(&small(fields)).await.page.url;
    site.put("/shown", Reply::page(PAGE));
    site.put(
        "/pushes",
        Reply::page(format!("{PAGE}<script>history.pushState(1, '', '/pushed?a=ä b#c')</script>")),
    );
    site.put("/goes", Reply::page(format!("{PAGE}<script>location = '/shown?went'</script>")));
    site.put(
        "/long",
        Reply::page(format!("{PAGE}<script>history.pushState(1, '', '/' + 'x'.repeat(3000))</script>")),
    );
    site.put("/frames", Reply::page(format!("{PAGE}<iframe src='/shown?framed'></iframe>")));
    site.put("/redirects", Reply::redirect("/shown?redirected"));
    for (page, shown) in [
        ("/shown", "/shown"),
        ("/shown?a=b#part", "/shown?a=b"),
        ("/redirects", "/shown?redirected"),
        ("/goes", "/shown?went"),
        ("/pushes", "/pushed?a=%C3%A4%20b"),
        ("/frames", "/frames"),
    ] {
        assert_eq!(at(json!({ "url": site.at(page) })).await, Some(site.at(shown)), "{page}");
    }
    assert_eq!(at(json!({ "url": site.at("/long") })).await, None);
    let markup = format!("{PAGE}<script>location = '{}'</script>", site.at("/shown"));
    assert_eq!(at(json!({ "html": markup })).await, None);
}

async fn sheets(shared: Arc<Shared>) {
    let html = format!("{PAGE}<p style='break-after:page'>1<p style='break-after:page'>2<p>3");
    let lorem = "<p style='break-after:page'>x".repeat(120);
    for (fields, sheets) in [
        (json!({}), 3),
        (json!({ "pageRanges": "2-3" }), 2),
        (json!({ "singlePage": true }), 1),
        (json!({ "tagged": true }), 3),
        (json!({ "outline": true, "metadata": { "author": "a" } }), 3),
        (json!({ "locale": "de" }), 3),
        (json!({ "headerFirstHtml": "first", "headerHtml": "others" }), 3),
        (json!({ "pdfStandard": "pdf/a-2b" }), 3),
        (json!({ "protection": { "userPassword": "secret" } }), 3),
        (json!({ "html": lorem }), 120),
    ] {
        let file = shared.file(&paged(with(json!({ "html": html }), &fields))).await;
        assert_eq!(file.page.sheets, Some(sheets), "{fields:.100}");
    }
    assert_eq!(shared.file(&small(json!({ "html": html }))).await.page.sheets, None);
}
