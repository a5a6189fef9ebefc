//! Pages that navigate while they are loaded, waited for or captured: the file shows the page at which they end.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use platen_harness::{site::Reply, wait::MAX_WAIT};
use platen_shared::{
    format::WaitUntil,
    job::{ImageOptions, Output, Region},
    refusal::Refusal,
};

use crate::support::{
    GREEN, GREEN_PAGE, Shared, colour, farm_process::FarmProcess, full_page_png, html, middle, pdf, pdf_of,
    png, send, site::Site, to, url, waiting,
};

tests! {
    "the target of a navigation is captured in every format" => targets,
    "a navigation that leads to no page keeps the document" => no_pages,
    "a navigation that the browser refuses is not waited for" => refused_by_browser,
    "the status is that of the captured document" => statuses,
    "a page that navigates again and again has a file" => again_and_again,
    "a page may navigate five times" => at_most_five,
    "a target that cannot be loaded is refused" => refused_targets,
    "a target that does not answer is waited for until shortly before the deadline" => silent,
    "a page that navigates while it is printed is printed again" => while_captured,
}

const TARGET: &str = "<!doctype html><html style='background:green'><body style='margin:0'>\
    <div id=t style='height:240px'>target</div>";

/// Delays what begins a navigation.
const BUSY: &str = "const busy = () => { const end = Date.now() + 900; while (Date.now() < end); };";

/// Scripts and elements that navigate to a URL.
fn navigating(target: &str) -> Vec<String> {
    vec![
        format!("<meta http-equiv=refresh content='0;url={target}'>first"),
        format!("first<script>onload = () => location.href = '{target}'</script>"),
        format!("first<script>location.replace('{target}')</script>"),
        format!("first<script>onload = () => setTimeout(() => location.assign('{target}'))</script>"),
        format!("<form action='{target}' id=f></form><script>onload = () => f.submit()</script>"),
        format!("<a href='{target}' id=a>first</a><script>onload = () => a.click()</script>"),
        format!("<iframe srcdoc=\"<script>onload = () => top.location = '{target}'</script>\"></iframe>"),
        format!("first<script>requestAnimationFrame(() => location.href = '{target}')</script>"),
    ]
}

/// Such pages that are busy before the navigation begins.
fn delayed(target: &str) -> [String; 2] {
    [
        format!("first<script>{BUSY}onload = () => {{ location.href = '{target}'; busy() }}</script>"),
        format!(
            "<form action='{target}' id=f></form><script>{BUSY}onload = () => {{ f.submit(); busy(); setTimeout(busy) }}</script>"
        ),
    ]
}

fn element_png() -> Output {
    let region = Region::Element("#t".to_owned().try_into().unwrap());
    Output::Image(ImageOptions { region, ..ImageOptions::new(platen_shared::format::ImageFormat::Png) })
}

async fn targets(shared: Arc<Shared>) {
    let site = &shared.site;
    // The target is slow enough to be awaited.
    let target = site.put("/target", Reply::page(TARGET).after(Duration::from_millis(200)));
    site.put(
        "/chain",
        Reply::page(format!("1<script>onload = () => location = '{}'</script>", site.at("/chain2"))),
    );
    site.put("/chain2", Reply::page(format!("2<meta http-equiv=refresh content='0;url={target}'>")));
    site.put("/refresh", Reply::page("first").with_header("refresh", &format!("0;url={target}")));
    let by_both = |page: &String| [html(page), url(&site.at(&Site::markup(page)))];
    let mut sources: Vec<_> = navigating(&target).iter().map(by_both).collect();
    sources.extend(["/chain", "/refresh"].map(|path| [url(&site.at(path)), url(&site.at(path))]));
    // Each page in every format, and each format of markup and of URLs.
    for (number, jobs) in sources.iter().enumerate() {
        let job = |format: usize| jobs[(number + format) % 2].clone();
        for (format, output) in [png(), full_page_png(), element_png()].into_iter().enumerate() {
            shared.expect_green(&to(output, job(format))).await;
        }
        shared.expect_text(job(3), "target").await;
        let mut idle = waiting(job(4), 100.0);
        idle.options.wait_until = WaitUntil::NetworkIdle;
        shared.expect_green(&idle).await;
    }
    for page in delayed(&target) {
        for job in [html(&page), url(&site.at(&Site::markup(&page)))] {
            shared.expect_green(&job).await;
        }
        shared.expect_text(html(&page), "target").await;
    }
}

async fn no_pages(shared: Arc<Shared>) {
    let site = &shared.site;
    for target in [
        "mailto:a@b.test",
        "javascript:1",
        "#x",
        "file:///etc/passwd",
        &site.at("/empty"),
        &site.at("/download"),
    ] {
        for page in [
            format!("{GREEN_PAGE}kept<script>onload = () => location.href = '{target}'</script>"),
            format!("{GREEN_PAGE}kept<script>setTimeout(() => location.href = '{target}')</script>"),
        ] {
            for job in [html(&page), url(&site.at(&Site::markup(&page)))] {
                shared.expect_green(&job).await;
            }
        }
    }
    for page in [
        "<script>onload = () => { document.open(); document.write(`<html style='background:green'>`) }</script>",
        "<html style='background:green'><script>onload = () => history.pushState(1, '')</script>",
        "<html style='background:green'><script>setInterval(() => location.href = 'mailto:a@b.test', 5)</script>",
    ] {
        shared.expect_green(&html(page)).await;
    }
}

/// Navigations before `load`, after it and during a wait. The last ones are cancelled by the page.
async fn refused_by_browser(shared: Arc<Shared>) {
    let site = &shared.site;
    let form = |attributes: &str, script: &str| {
        format!("<form id=f {attributes}></form><script>const go = () => {{ f.submit(); {script} }}</script>")
    };
    let green = site.at("/green");
    let pages = [
        form("action='data:text/html,x'", ""),
        form("action='data:text/html,x' method=post", ""),
        form("action='file:///etc/passwd' method=post", ""),
        form("action='chrome://version'", ""),
        form("action='view-source:http://page.test'", ""),
        form("action='javascript:1'", ""),
        form("action='data:text/html,x' target=_blank", ""),
        format!(
            "<iframe srcdoc=\"{}<script>onload = go</script>\"></iframe><script>const go = 0</script>",
            form("target=_top action='data:text/html,x'", "")
        ),
        format!(
            "<meta http-equiv=content-security-policy content=\"form-action 'none'\">{}",
            form(&format!("action='{green}'"), "")
        ),
        "<a id=a href='file:///etc/passwd'></a><script>const go = () => a.click()</script>".to_owned(),
        "<script>const go = () => location = 'data:text/html,x'</script>".to_owned(),
        "<script>const go = () => navigation.navigate('chrome://version')</script>".to_owned(),
        "<script>const go = () => open('data:text/html,x', '_self')</script>".to_owned(),
        "<meta http-equiv=refresh content='0;url=file:///etc/passwd'><script>const go = 0</script>"
            .to_owned(),
        form("action='tel:1'", ""),
        form(&format!("action='{}'", site.at("/never")), "stop()"),
        format!("<script>const go = () => {{ location = '{}'; stop() }}</script>", site.at("/never")),
    ];
    for (number, page) in pages.iter().enumerate() {
        for (at, (start, wait)) in
            [("onload = go", 0.0), ("go && go()", 0.0), ("go && setTimeout(go, 300)", 500.0)]
                .into_iter()
                .enumerate()
        {
            if start == "go && go()" && page.contains("stop()") {
                // Its own loading as well.
                continue;
            }
            let page = format!("{GREEN_PAGE}kept{page}<script>{start}</script>");
            // Each page and each start is tried as markup and by URL.
            let is_markup = (number + at) % 2 == 0;
            let job = if is_markup { html(&page) } else { url(&site.at(&Site::markup(&page))) };
            // Far longer than any of them takes.
            let file = shared.farm.render(&waiting(job, wait), Duration::from_mins(1)).await;
            assert_eq!(file.map(|file| middle(&file)), Ok(GREEN), "{page}");
        }
    }
}

async fn statuses(shared: Arc<Shared>) {
    let site = &shared.site;
    let going_to = |target: &str| format!("first<script>onload = () => location.href = '{target}'</script>");
    let gone =
        site.put("/gone-to-green", Reply::page(going_to(&site.at("/green"))).with_status(StatusCode::GONE));
    let to_missing = site.put("/to-missing", Reply::page(going_to(&site.at("/status/404"))));
    let to_empty =
        site.put("/to-empty", Reply::page(format!("{GREEN_PAGE}kept{}", going_to(&site.at("/empty")))));
    for (page, status) in [(&gone, 200), (&to_missing, 404), (&to_empty, 200)] {
        let mut job = url(page);
        let file = shared.file(&job).await;
        assert_eq!((file.page.status, middle(&file)), (Some(status), GREEN), "{page}");
        job.options.fail_on_http_status = true;
        let failed = shared.render(&job).await;
        match status {
            200 => assert!(failed.is_ok(), "{page}"),
            _ => assert!(matches!(failed, Err(Refusal::PageStatus { status: 404, .. })), "{page}"),
        }
    }
}

async fn again_and_again(shared: Arc<Shared>) {
    let site = &shared.site;
    for (number, script) in [
        "onload = () => location.reload()",
        "location.href = '/ever0?' + Math.random()",
        "setInterval(() => location.reload(), 20)",
        "onload = () => setTimeout(() => location.href = '/ever0?' + Math.random())",
    ]
    .iter()
    .enumerate()
    {
        let page = format!("{GREEN_PAGE}<p>ever<script>{script}</script>");
        let at = site.put(&format!("/ever{number}"), Reply::page(page));
        shared.expect_green(&url(&at)).await;
        shared.expect_text(url(&at), "ever").await;
    }
}

/// The document of a job and the five to which it navigates are loaded. What the page requests until the farm's command has
/// arrived is one more, or some on a busy machine.
async fn at_most_five(shared: Arc<Shared>) {
    let page = format!("{GREEN_PAGE}<script>onload = () => location.reload()</script>");
    let at = shared.site.put("/five", Reply::page(page));
    shared.expect_green(&url(&at)).await;
    let hits = shared.site.hits("/five");
    assert!((6..=12).contains(&hits), "{hits}");
}

async fn refused_targets(shared: Arc<Shared>) {
    let site = &shared.site;
    for (target, code) in [
        (site.forbidden(), "address_not_public"),
        (site.closed(), "connection_refused"),
        (site.closing(), "connection_failed"),
    ] {
        let page = format!("first<script>onload = () => location.href = '{target}'</script>");
        for job in [html(&page), url(&site.at(&Site::markup(&page)))] {
            assert_eq!(shared.render(&job).await.unwrap_err().code(), code, "{target}");
        }
    }
}

async fn silent(shared: Arc<Shared>) {
    let page = format!(
        "{GREEN_PAGE}kept<script>onload = () => location.href = '{}'</script>",
        shared.site.at("/never")
    );
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let (status, file) = send(&farm, &html(&page), 6_000).await;
    assert_eq!((status, colour(&file)), (200, GREEN));
    farm.end().await;
}

async fn while_captured(shared: Arc<Shared>) {
    let site = &shared.site;
    let target = site.put("/printed", Reply::page(TARGET));
    for page in [
        format!("first<script>onbeforeprint = () => location.href = '{target}'</script>"),
        format!("first<script>matchMedia('print').onchange = () => location.href = '{target}'</script>"),
    ] {
        for job in [html(&page), url(&site.at(&Site::markup(&page)))] {
            shared.expect_text(job, "target").await;
        }
    }
    // The network of the target must be idle as well.
    let late = format!(
        "fetch('{}').then(() => document.body.append('late'))",
        site.put("/late", Reply::page("x").after(Duration::from_millis(300)))
    );
    for (script, text, is_idle, limit) in [
        (late, "late", true, MAX_WAIT),
        (format!("fetch('{}')", site.at("/never")), "target", false, Duration::from_secs(8)),
    ] {
        let target = site.at(&Site::markup(&format!("{TARGET}<script>onload = () => {script}</script>")));
        let mut job =
            html(&format!("first<script>onbeforeprint = () => location.href = '{target}'</script>"));
        (job.options.output, job.options.wait_until) = (pdf(), WaitUntil::NetworkIdle);
        let file = shared.render_by(&job, limit).await.unwrap();
        let found = pdf_of(&file).text().unwrap();
        assert!(found.contains(text), "{script}: {found}");
        assert_eq!(file.page.is_idle, is_idle, "{script}");
    }
    for page in [
        format!("<p style='height:3000px'>first<script>onscroll = () => location.href = '{target}'</script>"),
        format!("<p style='height:3000px'>first<script>onresize = () => location.href = '{target}'</script>"),
    ] {
        let file = shared.file(&to(full_page_png(), html(&page))).await;
        // A handler that does not run leaves a page that is not green.
        assert!(middle(&file) == GREEN || page.contains("onresize"), "{page}");
    }
}
