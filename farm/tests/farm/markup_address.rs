//! Markup with an address: its files, its navigations, and what shows the address.

use std::sync::Arc;

use platen_farm::Farm;
use platen_harness::{http_proxy::HttpProxy, procfs, site::Reply};
use platen_shared::refusal::Refusal;
use serde_json::json;

use crate::support::{
    Shared, expect_green, farm, farm_process::FarmProcess, paged, pdf_of, site::GREEN_PICTURE, small, with,
};

tests! {
    "what is no asset comes from the network of the base URL" => network,
    "a base URL is public although the operator allows its host" => not_public,
    "no file shows the address that only its job has" => hidden,
    "texts about failures in markup with assets do not have its address" => told,
    "markup with an address navigates" => navigations,
    "a file that is asked for many times fills no memory" => repeated,
}

/// A name that only the settings of these tests resolve, at an address that is public.
const HOST: &str = "base.test";
const PUBLIC: &str = "1.1.1.1";

/// A farm that reaches `HOST` at a public address, where a proxy has a site of these tests.
async fn farm_with_base(proxy: &HttpProxy) -> Farm {
    farm(|config| {
        config.resolve = vec![format!("{HOST}={PUBLIC}").parse().unwrap()];
        config.egress.proxy = Some(proxy.url().into());
    })
    .await
}

async fn network(shared: Arc<Shared>) {
    let proxy = HttpProxy::to(([127, 0, 0, 1], shared.site.port()).into()).await.unwrap();
    let farm = farm_with_base(&proxy).await;
    let base = format!("http://{HOST}/folder/page.html");
    let job = |html: &str| {
        small(json!({ "html": html, "baseUrl": base, "assets": { "green": { "text": "asset" } } }))
    };
    let picture = "<!doctype html><body style='margin:0;background:red'><img style='display:block;width:100vw;height:100vh' src='/base.svg'>";
    shared.site.put("/base.svg", Reply::of("image/svg+xml", GREEN_PICTURE));
    expect_green(&farm, &job(picture)).await;
    let with_text = |path: &str, text: &str| {
        let script = format!(
            "<script>fetch('{path}').then(it => it.text()).then(it => document.body.style.background = it.includes('{text}') ? 'green' : 'red')</script>"
        );
        with(
            json!({ "html": format!("<!doctype html><body>{script}") }),
            &json!({ "baseUrl": base, "waitUntil": "networkidle", "assets": { "green": { "text": "asset" } } }),
        )
    };
    expect_green(&farm, &small(with_text("green?a", "asset"))).await;
    expect_green(&farm, &small(with_text("/green", "green"))).await;
    expect_green(&farm, &small(with_text("page.html", "fetch("))).await;
    farm.shutdown().await;
}

async fn not_public(shared: Arc<Shared>) {
    let job = small(json!({ "html": "x", "baseUrl": shared.site.at("/") }));
    let refusal = shared.render(&job).await.unwrap_err();
    assert_eq!(refusal, Refusal::AddressNotPublic { host: "page.test".to_owned() });
}

async fn hidden(shared: Arc<Shared>) {
    let html = "<!doctype html><title>Title</title><h1 id=a>Text</h1><a href=page.html>one</a> <a href='/'>two</a> <a href='#a'>three</a> \
                <a href='https://example.com/x'>four</a> <svg width=9 height=9><a href='b?c'><rect width=9 height=9 /></a></svg>";
    let header = "<style>.url { color: red }</style><p class='url a'></p>";
    for options in [
        json!({}),
        json!({ "tagged": true, "outline": true }),
        json!({ "singlePage": true }),
        json!({ "pdfStandard": "pdf/a-2b" }),
    ] {
        let fields = json!({
            "html": html, "assets": {}, "headerHtml": header, "metadata": { "date": "2026-11-27T06:34:51Z" },
        });
        let job = paged(with(fields, &options));
        let found = shared.file(&job).await;
        let document = lopdf::Document::load_mem(&found.bytes).unwrap();
        let all = format!("{:?}", document.objects);
        assert!(!String::from_utf8_lossy(&found.bytes).contains("document.invalid"), "{options}");
        let links: Vec<String> = document
            .objects
            .values()
            .filter_map(|object| object.as_dict().ok()?.get_deref(b"A", &document).ok()?.as_dict().ok())
            .filter_map(|action| {
                Some(String::from_utf8_lossy(action.get(b"URI").ok()?.as_str().ok()?).into_owned())
            })
            .collect();
        assert_eq!(links, ["https://example.com/x"], "{options}: {all}");
        let text = pdf_of(&found).text().unwrap();
        assert!(text.contains("about:blank") && !text.contains("document.invalid"), "{text}");
        assert!(found.bytes == shared.file(&job).await.bytes, "{options}: other bytes");
    }
}

async fn told(shared: Arc<Shared>) {
    let html = "<!doctype html><link rel=stylesheet href=absent.css><link rel=icon href=favicon.ico><img src=there.svg>\
                <script>throw new Error(`at ${location.href} of ${location.host}`)</script>";
    let fields = json!({ "html": html, "assets": { "there.svg": { "text": GREEN_PICTURE } } });
    let file = shared.file(&small(fields.clone())).await;
    assert_eq!((file.page.errors, file.page.failed_requests), (1, 1));
    let refused =
        shared.render(&small(with(fields, &json!({ "failOn": ["pageErrors", "failedRequests"] })))).await;
    let Err(Refusal::FailOn { errors: 1, failed_requests: 1, first }) = refused else {
        panic!("{refused:?}")
    };
    let mut texts: Vec<String> = first.0.iter().map(ToString::to_string).collect();
    texts.sort();
    assert_eq!(texts, ["Error: at / of ", "GET /absent.css 404"]);
}

async fn navigations(shared: Arc<Shared>) {
    let frame = json!({ "frame.html": { "text": "<!doctype html><html style='background:green'>" } });
    for script in [
        "location = 'frame.html?a'",
        "location.replace('/frame.html')",
        "if (sessionStorage.a) document.documentElement.style.background = 'green'; else { sessionStorage.a = 1; location.reload() }",
        "document.write('<form action=frame.html></form>'); document.forms[0].submit()",
    ] {
        let html = format!("<!doctype html><html style='background:red'><body><script>{script}</script>");
        shared.expect_green(&small(json!({ "html": html, "assets": frame }))).await;
    }
    // One that never ends stays at a document.
    let html =
        "<!doctype html><html style='background:green'><script>onload = () => location.reload()</script>";
    shared.expect_green(&small(json!({ "html": html, "assets": {} }))).await;
}

async fn repeated(_: Arc<Shared>) {
    const TIMES: u64 = 40;
    const BYTES: usize = 500_000;
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    // Chromium reports all of them at once.
    let script = format!(
        "const all = Array.from({{ length: {TIMES} }}, () => fetch('large').then(it => it.body.cancel())); \
         Promise.all(all).then(() => {{ window.done = true; document.documentElement.style.background = 'green' }})"
    );
    let job = |script: &str| {
        let html = format!("<!doctype html><html style='background:red'><script>{script}</script>");
        let large = json!({ "large": { "text": "x".repeat(BYTES) } });
        small(json!({ "html": html, "assets": large, "waitForFunction": "window.done" }))
    };
    farm.file(&job("window.done = true")).await;
    let before = procfs::memory(farm.pid(), "VmHWM").unwrap();
    farm.expect_green(&job(&script)).await;
    let growth = procfs::memory(farm.pid(), "VmHWM").unwrap() - before;
    assert!(growth < TIMES * BYTES as u64 / 2, "{growth} bytes");
    farm.end().await;
}
