//! What a page leaves at its address is not there for another job at the same address, of its account or of another one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use http::{HeaderMap, StatusCode, Uri, header};
use percent_encoding::percent_decode_str;
use platen_farm::Farm;
use platen_harness::{browser::Browser, site::Reply};
use serde_json::{Value, json};

use crate::{
    leaks::{MESSY, PROBE},
    support::{
        GREEN, Shared, expect_green, file, html, middle, of, pages,
        secure_site::{Results, SecureSite},
        site::GREEN_PICTURE,
        small, until_metric, waiting, with,
    },
};

tests! {
    "what a page leaves at an address is there for a browser's next page" => found_in_a_browser,
    "nothing that a page leaves at a base URL is there for another job" => at_base,
    "nothing that a page leaves at its own address is there for another job" => at_own_address,
    "a messy page at a base URL leaves nothing" => messy,
    "no link is visited for another job" => visited,
    "jobs at the same base URL share no connection" => connections,
}

const WAYS: &str = include_str!("address_leaks/ways.html");
/// The least number of ways that are tried.
const MIN_WAYS: usize = 30;
/// Ways that leave nothing in the job itself: the browser refuses them, or they begin when the page ends.
const NEVER_SEEN: [&str; 3] = ["last words (network)", "permission", "service worker (network)"];
/// Ways of which the next page of a browser without a farm finds nothing either, because they end with their document or are
/// refused, and those that need assets or markup at another address.
const NOT_IN_A_BROWSER: [&str; 11] = [
    "asset in a cache (network)",
    "blob (network)",
    "broadcast channel of a worker",
    "broadcast channel",
    "file in place of an asset (network)",
    "global object",
    "lock",
    "permission",
    "shared worker (network)",
    HSTS,
    "title",
];
/// Names that only the settings of these tests resolve. `PARENT` is what a cookie of `HOST` can name.
const HOST: &str = "www.base.test";
const PARENT: &str = "base.test";
const OTHER: &str = "other.test";
/// The end of the names of ways that need the site.
const NETWORK: &str = "(network)";
const HSTS: &str = "strict transport security (network)";

/// What the site knows of earlier requests.
#[derive(Debug, Default)]
struct Memory {
    /// What `/` shows.
    markup: String,
    kept: HashMap<String, String>,
    pictures: u32,
}

async fn site() -> SecureSite {
    site_with(Arc::default()).await
}

async fn site_with(memory: Arc<Mutex<Memory>>) -> SecureSite {
    SecureSite::start(move |_, uri, headers| {
        let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok()).unwrap_or("*");
        reply(&mut memory.lock().unwrap(), uri, headers)
            .with_header("access-control-allow-origin", origin)
            .with_header("access-control-allow-credentials", "true")
    })
    .await
}

fn reply(memory: &mut Memory, uri: &Uri, headers: &HeaderMap) -> Reply {
    let query = percent_decode_str(uri.query().unwrap_or_default()).decode_utf8_lossy().into_owned();
    let seen = |name| headers.get(name).map_or("-", |value| value.to_str().unwrap_or_default());
    let path = uri.path();
    if let Some(name) = path.strip_prefix("/keep/") {
        memory.kept.insert(name.to_owned(), query);
        return Reply::page("");
    }
    if let Some(name) = path.strip_prefix("/kept/") {
        return Reply::page(memory.kept.get(name).cloned().unwrap_or_default());
    }
    match path {
        "/" => Reply::page(memory.markup.clone()),
        "/set" => Reply::page("").with_header("set-cookie", &query),
        "/echo" => Reply::page(seen(header::COOKIE).to_owned()),
        "/hsts" => Reply::page("").with_header("strict-transport-security", "max-age=999; includeSubDomains"),
        "/shared.js" => {
            let script = "let count = 0; onconnect = ({ ports: [port] }) => port.postMessage(++count)";
            Reply::of("text/javascript", script)
        }
        "/cached" => Reply::page("network").with_header("cache-control", "max-age=999, immutable"),
        // An asset of some jobs.
        "/asset.txt" | "/file.txt" => Reply::page("network").with_header("cache-control", "max-age=999"),
        "/picture.svg" => {
            memory.pictures += 1;
            let picture = GREEN_PICTURE.replace("width='100'", &format!("width='{}'", memory.pictures));
            Reply::of("image/svg+xml", picture).with_header("cache-control", "max-age=999, immutable")
        }
        "/tagged" => {
            let is_known = headers.contains_key(header::IF_NONE_MATCH);
            Reply::page(if is_known { "tagged" } else { "fresh" })
                .with_header("etag", "\"leak\"")
                .with_header("cache-control", "no-cache")
        }
        "/secret" if seen(header::AUTHORIZATION) == "-" => Reply::page("")
            .with_status(StatusCode::UNAUTHORIZED)
            .with_header("www-authenticate", "Basic realm=\"leak\""),
        "/secret" => Reply::page(""),
        _ => Reply::page("").with_status(StatusCode::NOT_FOUND),
    }
}

/// The names of the ways.
fn names() -> Vec<&'static str> {
    let lines = WAYS
        .lines()
        .filter_map(|line| line.strip_prefix("    \"")?.split_once("\": ["))
        .map(|(name, _)| name);
    lines.collect()
}

/// A page that looks for what some ways leave, after it has left it if it `leaves`.
fn markup(ways: &[&str], leaves: bool, parent: &str) -> String {
    WAYS.replace("PARENT", parent)
        .replace("WAYS ?? Object.keys(ways)", &json!(ways).to_string())
        .replace("LEAVES", &leaves.to_string())
}

/// What a job of an account finds of some ways, after it has left something if it `leaves`.
async fn found(
    farm: &Farm,
    site: &SecureSite,
    account: &str,
    ways: &[&str],
    leaves: bool,
    fields: &Value,
) -> Results {
    let parent = if fields["baseUrl"].is_string() { PARENT } else { "document.invalid" };
    let markup = markup(ways, leaves, parent);
    let asset = if leaves { "asset.txt" } else { "file.txt" };
    let job =
        json!({ "html": markup, "assets": { asset: { "text": "asset" } }, "waitForFunction": "window.done" });
    file(farm, &of(account, small(with(job, fields)))).await;
    let results = site.take();
    assert_eq!(results.len(), ways.len());
    results
}

/// Runs ways in a job, and looks for what they have left in jobs of the same account and of another one.
async fn check(farm: &Farm, site: &SecureSite, ways: &[&str], fields: &Value) {
    let left = found(farm, site, "one", ways, true, fields).await;
    for (name, result) in &left {
        let expected = if NEVER_SEEN.contains(&&**name) { "false" } else { "true" };
        assert_eq!(result, expected, "{name} in the job itself");
    }
    for account in ["one", "two"] {
        for (name, result) in found(farm, site, account, ways, false, fields).await {
            assert_eq!(result, "false", "{name}, found by {account}");
        }
    }
}

/// So the tests below can fail: each of these ways reaches the next page unless something prevents it.
async fn found_in_a_browser(_: Arc<Shared>) {
    let memory = Arc::<Mutex<Memory>>::default();
    let site = site_with(Arc::clone(&memory)).await;
    let browser = Browser::start_with(&site.switches()).await.unwrap();
    for name in names().into_iter().filter(|name| !NOT_IN_A_BROWSER.contains(name)) {
        let page = browser.page().await.unwrap();
        for leaves in [true, false] {
            memory.lock().unwrap().markup = markup(&[name], leaves, PARENT);
            page.go(&format!("https://{HOST}/?{leaves}")).await.unwrap();
            page.wait("window.done").await.unwrap();
        }
        assert_eq!(site.take()[name], "true", "{name}");
    }
}

async fn at_base(_: Arc<Shared>) {
    let site = site().await;
    let farm = site.farm(&[HOST, OTHER]).await;
    let names = names();
    assert!(names.len() >= MIN_WAYS, "{} ways", names.len());
    for name in names {
        // A secure page requests nothing by http.
        let scheme = if name == HSTS { "http" } else { "https" };
        check(&farm, &site, &[name], &json!({ "baseUrl": format!("{scheme}://{HOST}/") })).await;
    }
    farm.shutdown().await;
}

/// The host is another one for each job, so only names of the domain could be shared. All ways at once, beside a page that is
/// kept for documents without scripts.
async fn at_own_address(_: Arc<Shared>) {
    let site = site().await;
    let farm = site.farm(&[OTHER]).await;
    let names: Vec<_> = names().into_iter().filter(|name| !name.ends_with(NETWORK)).collect();
    let picture = json!({ "html": "<img src=a.svg>", "assets": { "a.svg": { "text": GREEN_PICTURE } } });
    let without_script = of("one", small(picture));
    for _ in 0..2 {
        file(&farm, &without_script).await;
    }
    until_metric(&farm, "platen_farm_pages_warm 1").await;
    check(&farm, &site, &names, &json!({})).await;
    until_metric(&farm, "platen_farm_pages_warm 1").await;
    file(&farm, &without_script).await;
    until_metric(&farm, "platen_farm_pages_total{source=\"warm\"} 1").await;
    check(&farm, &site, &names, &json!({})).await;
    farm.shutdown().await;
}

async fn messy(_: Arc<Shared>) {
    let site = site().await;
    let farm = site.farm(&[HOST]).await;
    let at_base = |html: &str| {
        small(json!({ "html": html, "baseUrl": format!("https://{HOST}/"), "waitForTimeout": 200 }))
    };
    // One entry of the history is that of the address.
    let probe = PROBE.replace("history.length === 1", "history.length <= 2");
    for (name, page) in pages(MESSY) {
        for account in ["one", "two"] {
            file(&farm, &of("one", at_base(page))).await;
            let found = file(&farm, &of(account, at_base(&probe))).await;
            assert_eq!(middle(&found), GREEN, "{name}, {account}");
        }
    }
    // Nor in a job without an address.
    expect_green(&farm, &of("one", waiting(html(PROBE), 200.0))).await;
    farm.shutdown().await;
}

/// No script can see which links are visited, but the file shows it. A browser context of its own keeps none today.
async fn visited(_: Arc<Shared>) {
    let site = site().await;
    let farm = site.farm(&[HOST]).await;
    let page = "<!doctype html><body style='margin:0'><style>a { display: block; height: 100vh } a:link { background-color: green } \
                a:visited { background-color: red }</style><a href='/seen.html'></a>";
    let job = |path: &str| small(json!({ "html": page, "baseUrl": format!("https://{HOST}/{path}") }));
    for account in ["one", "two"] {
        file(&farm, &of("one", job("seen.html"))).await;
        let found = file(&farm, &of(account, job("other.html"))).await;
        assert_eq!(middle(&found), GREEN, "{account}");
    }
    farm.shutdown().await;
}

/// A server can know a client by its connection, or by the TLS session that a later one resumes.
async fn connections(_: Arc<Shared>) {
    let site = site().await;
    let farm = site.farm(&[HOST]).await;
    let script = "Promise.all([1, 2, 3].map(it => fetch('/echo?' + it))).then(() => fetch('/echo')).then(() => window.done = true)";
    let html = format!("<!doctype html><script>{script}</script>");
    let fields =
        json!({ "html": html, "baseUrl": format!("https://{HOST}/"), "waitForFunction": "window.done" });
    for account in ["one", "one", "two"] {
        let before = (site.tls.connections(), site.tls.resumed());
        file(&farm, &of(account, small(fields.clone()))).await;
        let (opened, resumed) = (site.tls.connections() - before.0, site.tls.resumed() - before.1);
        assert!(opened >= 1, "{account}: no new connection");
        assert!(resumed < opened, "{account}: the first connection resumes a session");
    }
    farm.shutdown().await;
}
