//! The browser that a page and its workers see: the user agent, client hints, a mobile device.

use std::sync::Arc;

use platen_harness::site::Reply;
use serde_json::{Value, json};

use crate::support::{
    GREEN, Shared, dimensions, farm_process::FarmProcess, green_if, middle, of, small, with,
};

tests! {
    "the user agent is that of Chrome or of the job, in requests, scripts and client hints" => user_agents,
    "all workers of a page have its user agent, language and time zone" => workers,
    "a mobile page has the rules of its viewport and a touch screen" => mobile,
    "a user agent and a mobile device are not those of the next job" => next_job,
}

const FIREFOX: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:130.0) Gecko/20100101 Firefox/130.0";
const EDGE: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 \
    Safari/537.36 Edg/121.0.0.0";

/// Green on the page that the markup navigates to, which is a secure context, as soon as a script has made it so.
async fn is_green_there(shared: &Shared, path: &str, fields: &Value) {
    let page = json!({ "html": shared.site.secure(path), "waitForSelector": "html[data-ready]" });
    shared.expect_green(&small(with(page, fields))).await;
}

/// A page that is green if `condition` holds after the promises in it.
fn page(condition: &str) -> Reply {
    Reply::page(format!(
        "<!doctype html><body><div style='position:absolute'></div><script>(async () => {{\
         let green; try {{ green = {condition} }} catch (error) {{ document.title = error }}\
         document.documentElement.style.background = green ? 'green' : 'red'; document.documentElement.dataset.ready = '' }})()</script>"
    ))
}

async fn user_agents(shared: Arc<Shared>) {
    let hints = "await navigator.userAgentData.getHighEntropyValues(['fullVersionList', 'platform'])";
    for (fields, condition, sent) in [
        (
            json!({}),
            "/ Chrome\\/\\d+\\.0\\.0\\.0 Safari/.test(navigator.userAgent) && navigator.platform === 'Linux x86_64' && \
             hints.fullVersionList.some(({ brand, version }) => brand === 'Google Chrome' && !version.endsWith('.0.0.0')) \
             && !JSON.stringify([navigator.userAgent, navigator.appVersion, hints]).includes('Headless') && !hints.mobile",
            "Google Chrome",
        ),
        (
            json!({ "userAgent": EDGE }),
            "navigator.userAgent.endsWith('Edg/121.0.0.0') && navigator.platform === 'Win32' && hints.platform === 'Windows' \
             && hints.brands.some(({ brand, version }) => brand === 'Microsoft Edge' && version === '121') \
             && hints.brands.some(({ brand, version }) => brand === 'Chromium' && version === '120')",
            "Microsoft Edge",
        ),
        (
            json!({ "userAgent": FIREFOX }),
            "navigator.userAgent.endsWith('Firefox/130.0') && navigator.platform === 'Win32' && !hints.brands.length",
            "",
        ),
        (
            json!({ "mobile": true }),
            "navigator.userAgent.includes('Android') && hints.platform === 'Android' && hints.mobile",
            "Google Chrome",
        ),
    ] {
        let reply = page(&format!("await (async hints => {condition})({hints})"));
        shared.site.put("/agent", reply);
        is_green_there(&shared, "/agent", &fields).await;
        let headers = shared.site.last_headers("/agent");
        let agent = headers["user-agent"].to_str().unwrap();
        let expected = fields["userAgent"].as_str();
        assert!(expected.map_or(!agent.contains("Headless"), |expected| agent == expected), "{agent}");
        let sent_hints = headers.get("sec-ch-ua").map_or("", |hints| hints.to_str().unwrap());
        assert_eq!(sent_hints.is_empty(), sent.is_empty(), "{fields}");
        assert!(sent_hints.contains(sent) && !sent_hints.contains("Headless"), "{sent_hints}");
    }
}

async fn workers(shared: Arc<Shared>) {
    let script = "const info = async () => { await fetch('/from-worker'); return JSON.stringify([navigator.userAgent, navigator.languages,\
        navigator.userAgentData.brands, Intl.DateTimeFormat().resolvedOptions().timeZone, (1234.5).toLocaleString()]) };\
        onmessage = async event => (event.source ?? self).postMessage(await info());\
        onconnect = async ({ ports: [port] }) => port.postMessage(await info())";
    let reply = || Reply::of("text/javascript", script);
    shared.site.put("/reader-worker.js", reply());
    shared.site.put("/from-worker", Reply::page(""));
    let start = |kind: &str| match kind {
        "dedicated" => {
            "const worker = new Worker('/reader-worker.js'); worker.onmessage = done; worker.postMessage(0)"
        }
        "shared" => "new SharedWorker('/reader-worker.js').port.onmessage = done",
        _ => {
            "navigator.serviceWorker.onmessage = done; const registered = navigator.serviceWorker.register('/reader-worker.js');\
             Promise.all([registered, navigator.serviceWorker.ready]).then(([{ active, installing, waiting }, ready]) => ready.active.postMessage(0))"
        }
    };
    for (fields, language, zone) in [
        (json!({}), "en-US", "UTC"),
        (json!({ "locale": "de-CH", "timezone": "America/New_York" }), "de-CH", "America/New_York"),
        (json!({ "locale": "fr" }), "fr", "UTC"),
    ] {
        for kind in ["dedicated", "shared", "service"] {
            let path = format!("/reader-{kind}-{language}");
            shared.site.put(
                &path,
                page(&format!(
                    "await new Promise(resolve => {{ const done = ({{ data }}) => resolve(data === JSON.stringify([navigator.userAgent,\
                     navigator.languages, navigator.userAgentData.brands, '{zone}', (1234.5).toLocaleString()]) && \
                     navigator.languages[0] === '{language}' && !data.includes('Headless')); {} }})",
                    start(kind)
                )),
            );
            is_green_there(&shared, &path, &fields).await;
            let headers = shared.site.last_headers("/from-worker");
            let accepted = headers["accept-language"].to_str().unwrap();
            assert!(accepted.starts_with(language), "{kind} {fields}: {accepted}");
            assert!(!headers["user-agent"].to_str().unwrap().contains("Headless"), "{kind}");
        }
    }
}

const TOUCH: &str = "'ontouchstart' in window && navigator.maxTouchPoints > 0 && matchMedia('(pointer: coarse)').matches \
    && matchMedia('(hover: none)').matches";

async fn mobile(shared: Arc<Shared>) {
    let meta = "<meta name=viewport content='width=device-width, initial-scale=1'>";
    for (head, condition) in [
        (meta, "innerWidth === 320 && visualViewport.scale === 1"),
        ("", "innerWidth > 900 && visualViewport.scale < 1"),
    ] {
        let html = format!("{head}{}", green_if(&format!("{condition} && {TOUCH}")));
        for fields in [json!({}), json!({ "deviceScaleFactor": 2 }), json!({ "waitForTimeout": 50 })] {
            let job = small(with(json!({ "html": html, "mobile": true }), &fields));
            shared.expect_green(&job).await;
            let factor = if fields.get("deviceScaleFactor").is_some() { 2 } else { 1 };
            assert_eq!(dimensions(&shared.file(&job).await), (320 * factor, 240 * factor), "{fields}");
        }
        // The whole page has its own width in CSS pixels.
        let whole = shared.file(&small(json!({ "html": html, "mobile": true, "fullPage": true }))).await;
        assert_eq!((dimensions(&whole).0 > 900, middle(&whole)), (head.is_empty(), GREEN));
    }
}

async fn next_job(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let html = green_if(&format!(
        "!navigator.userAgent.includes('Firefox') && navigator.platform === 'Linux x86_64' && !({TOUCH}) && innerWidth === 320 \
         && !('ontouchstart' in window) && navigator.maxTouchPoints === 0"
    ));
    for fields in [
        json!({ "userAgent": FIREFOX }),
        json!({ "mobile": true }),
        json!({ "mobile": true, "userAgent": EDGE, "locale": "de" }),
    ] {
        for fields in [fields, json!({}), json!({ "javaScript": false })] {
            // What a page of another reader shows is not looked at.
            let is_usual = fields == json!({});
            let html = if is_usual { html.as_str() } else { "<html style='background:green'>" };
            farm.expect_green(&of("acc_reader", small(with(json!({ "html": html }), &fields)))).await;
        }
    }
    farm.end().await;
}
