//! Which requests of a page have failed.

use std::sync::Arc;

use http::StatusCode;
use platen_harness::site::Reply;
use serde_json::{Value, json};

use crate::support::{Shared, small};

tests! {
    "failed requests are counted" => failed_requests,
    "what the page or the request has stopped has not failed" => stopped_requests,
}

const PAGE: &str = "<!doctype html><body style='margin:0;background:green'>";

/// The texts of a page's failed requests.
async fn failures(shared: &Shared, fields: Value) -> Vec<String> {
    let file = shared.file(&small(fields.clone())).await;
    assert_eq!(file.page.failed_requests as usize, file.problems.len(), "{fields}: {:?}", file.page);
    file.problems.iter().map(ToString::to_string).collect()
}

async fn failed_requests(shared: Arc<Shared>) {
    let site = &shared.site;
    site.put("/gone", Reply::page("gone").with_status(StatusCode::GONE));
    let gone = site.at("/gone");
    let redirected = site.put("/to-the-gone", Reply::redirect("/gone"));
    site.put(
        "/breaks-off",
        Reply::of("text/plain", "text").with_header("access-control-allow-origin", "*").broken_off(),
    );
    site.put("/same-origin", Reply::of("text/plain", "text"));
    let (broken, same_origin) = (site.at("/breaks-off"), site.at("/same-origin"));
    let mut wrong = Vec::new();
    for (markup, failed) in [
        (format!("<img src='{gone}'>"), format!("GET {gone} 410")),
        (format!("<link rel=stylesheet href='{gone}'>"), format!("GET {gone} 410")),
        (format!("<script src='{gone}'></script>"), format!("GET {gone} 410")),
        (
            format!(
                "<style>@font-face {{ font-family: a; src: url({gone}) }} p {{ font: 9px a }}</style><p>a"
            ),
            format!("GET {gone} blocked by CORS"),
        ),
        (format!("<iframe src='{gone}#top'></iframe>"), format!("GET {gone} 410")),
        (format!("<img src='{redirected}'>"), format!("GET {gone} 410")),
        (
            "<img src='http://absent.invalid/a.png'>".to_owned(),
            "GET http://absent.invalid/a.png name not found".to_owned(),
        ),
        (
            "<img src='https://absent.invalid/a.png'>".to_owned(),
            "GET https://absent.invalid/a.png name not found".to_owned(),
        ),
        (format!("<img src='{}/a'>", site.closed()), format!("GET {}/a connection refused", site.closed())),
        (format!("<img src='{}a'>", site.closing()), format!("GET {}a ERR_EMPTY_RESPONSE", site.closing())),
        ("<img src='http://10.0.0.1/a'>".to_owned(), "GET http://10.0.0.1/a not public".to_owned()),
        ("<img src='https://[::1]/a'>".to_owned(), "GET https://[::1]/a not public".to_owned()),
        ("<img src='http://localhost:1/a'>".to_owned(), "GET http://localhost:1/a not public".to_owned()),
        (
            "<img src='http://169.254.169.254/latest'>".to_owned(),
            "GET http://169.254.169.254/latest not public".to_owned(),
        ),
        (
            format!("<script>fetch('{broken}').then(it => it.text()).catch(() => {{}})</script>"),
            format!("GET {broken} ERR_"),
        ),
        (
            format!("<script>fetch('{same_origin}').catch(() => {{}})</script>"),
            format!("GET {same_origin} blocked by CORS"),
        ),
        (
            format!("<script>fetch('{gone}', {{ method: 'POST', mode: 'no-cors' }})</script>"),
            format!("POST {gone} 410"),
        ),
        (
            format!("<script>fetch('{same_origin}', {{ method: 'PUT' }}).catch(() => {{}})</script>"),
            format!("PUT {same_origin} blocked by CORS"),
        ),
        (
            "<script>fetch('data:x').catch(() => {})</script>".to_owned(),
            "GET data:x ERR_INVALID_URL".to_owned(),
        ),
        (
            format!(
                "<script>new Worker(URL.createObjectURL(new Blob([`fetch('{gone}', {{ mode: 'no-cors' }})`])))</script>"
            ),
            format!("GET {gone} 410"),
        ),
        (
            format!(
                "<script>fetch('{gone}?{}', {{ method: 'x'.repeat(100), mode: 'cors' }}).catch(() => {{}})</script>",
                "y".repeat(5_000)
            ),
            "xxxxxxxxxxxxxxxx http".to_owned(),
        ),
    ] {
        let found =
            failures(&shared, json!({ "html": format!("{PAGE}{markup}"), "waitUntil": "networkidle" })).await;
        let is_right = found.len() == 1 && found[0].starts_with(&failed) && found[0].chars().count() <= 200;
        if !is_right {
            wrong.push(format!("{markup:.200}: {found:?} instead of {failed}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // The page itself.
    assert_eq!(failures(&shared, json!({ "url": gone })).await, [format!("GET {gone} 410")]);
    let twice = format!("{PAGE}<img src='{gone}?1'><img src='{gone}?2'>");
    assert_eq!(failures(&shared, json!({ "html": twice })).await.len(), 2);
}

async fn stopped_requests(shared: Arc<Shared>) {
    let site = &shared.site;
    site.put("/stays-open", Reply::never());
    site.put("/favicon.ico", Reply::page("x").with_status(StatusCode::NOT_FOUND));
    let (open, icon, blocked) = (site.at("/stays-open"), site.at("/favicon.ico"), site.elsewhere("/green"));
    for markup in [
        format!(
            "<script>const stop = new AbortController(); fetch('{open}', {{ signal: stop.signal }}).catch(() => {{}}); setTimeout(() => stop.abort(), 50)</script>"
        ),
        format!(
            "<script>const image = new Image(); image.src = '{open}'; setTimeout(() => image.src = '', 50)</script>"
        ),
        format!(
            "<script>const request = new XMLHttpRequest(); request.open('GET', '{open}'); request.send(); setTimeout(() => request.abort(), 50)</script>"
        ),
        format!(
            "<iframe src='{open}'></iframe><script>setTimeout(() => document.querySelector('iframe').remove(), 50)</script>"
        ),
        format!("<img src='{icon}'>"),
        format!("<img src='{blocked}'><iframe src='{blocked}'></iframe>"),
        format!("<meta http-equiv=content-security-policy content=\"img-src 'none'\"><img src='{open}'>"),
        format!("<link rel=icon href='{}'>", site.at("/absent-icon")),
    ] {
        let fields = json!({ "html": format!("{PAGE}{markup}"), "waitForTimeout": 300, "waitUntil": "domcontentloaded", "blockHosts": ["other.test"] });
        assert_eq!(failures(&shared, fields).await, [""; 0], "{markup}");
    }
    site.put("/elsewhere", Reply::page(PAGE));
    let leaves =
        format!("{PAGE}<img src='{open}'><script>setTimeout(() => location = '/elsewhere', 50)</script>");
    let leaves = site.put("/leaves", Reply::page(leaves));
    assert_eq!(failures(&shared, json!({ "url": leaves })).await, [""; 0]);
}
