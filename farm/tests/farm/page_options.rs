//! The options of what a page can read about its reader, and of its styles and scripts.

use std::sync::Arc;

use platen_harness::site::Reply;
use serde_json::json;

use crate::support::{Shared, green_if, html, site::Site, small, with};

tests! {
    "a page can read the settings of its reader, and the next one cannot" => environment,
    "the locale is sent to the page's server" => accept_language,
    "Chromium knows all time zones" => time_zones,
    "a style sheet is added after those of the page" => css,
    "no script of a page runs without JavaScript" => no_scripts,
    "an expression that is a function is called" => called_function,
}

async fn environment(shared: Arc<Shared>) {
    let usual = "matchMedia('screen').matches && matchMedia('(prefers-color-scheme: light)').matches \
         && matchMedia('(prefers-reduced-motion: no-preference)').matches \
         && new Date(0).getHours() === 0 && Intl.DateTimeFormat().resolvedOptions().timeZone === 'UTC' \
         && navigator.language === 'en-US' && (1234.5).toLocaleString() === '1,234.5'";
    for (fields, condition) in [
        (json!({ "mediaType": "print" }), "matchMedia('print').matches && !matchMedia('screen').matches"),
        (json!({ "mediaType": "screen" }), "matchMedia('screen').matches"),
        (json!({ "colorScheme": "dark" }), "matchMedia('(prefers-color-scheme: dark)').matches"),
        (json!({ "reducedMotion": true }), "matchMedia('(prefers-reduced-motion: reduce)').matches"),
        (
            json!({ "timezone": "America/New_York" }),
            "new Date(0).getHours() === 19 && Intl.DateTimeFormat().resolvedOptions().timeZone === 'America/New_York'",
        ),
        (
            json!({ "locale": "de-CH" }),
            "navigator.language === 'de-CH' && new Date(0).toLocaleDateString() === '1.1.1970'",
        ),
        (json!({ "locale": "ar-EG-u-nu-arab" }), "(12).toLocaleString() === '\u{661}\u{662}'"),
    ] {
        for (fields, condition) in [(fields, condition), (json!({}), usual)] {
            shared.expect_green(&small(with(json!({ "html": green_if(condition) }), &fields))).await;
        }
    }
}

async fn accept_language(shared: Arc<Shared>) {
    let reply = Reply::page("<html style='background:green'>");
    let page = shared.site.put("/language", reply);
    for (fields, language) in [(json!({ "locale": "de-CH" }), "de-CH"), (json!({}), "en-US")] {
        shared.expect_green(&small(with(json!({ "url": page }), &fields))).await;
        let received = shared.site.last_headers("/language");
        let received = received["accept-language"].to_str().unwrap();
        assert!(received.starts_with(language), "{received}");
    }
}

async fn time_zones(shared: Arc<Shared>) {
    let names: Vec<&str> = platen_shared::locale::TimeZone::names().collect();
    assert!(names.len() > 400, "{}", names.len());
    let condition = format!(
        "{}.every(timeZone => {{ try {{ return !!new Intl.DateTimeFormat('en', {{ timeZone }}) }} catch {{ return false }} }})",
        json!(names)
    );
    shared.expect_green(&html(&green_if(&condition))).await;
}

async fn css(shared: Arc<Shared>) {
    let page = "<!doctype html><style>body{background:red}</style><body><p>";
    let policy = "default-src 'none'; style-src 'self' 'unsafe-inline'";
    let strict = Reply::page(page).with_header("content-security-policy", policy);
    let strict = shared.site.put("/strict", strict);
    for source in [
        json!({ "html": page }),
        json!({ "url": shared.site.at(&Site::markup(page)) }),
        json!({ "url": strict }),
    ] {
        for script in [true, false] {
            let fields = json!({ "css": "body { background: green }", "javaScript": script });
            shared.expect_green(&small(with(fields, &source))).await;
        }
    }
    // Before the first script of the page, and as text that cannot end the sheet.
    let read = green_if("getComputedStyle(document.documentElement).color === 'rgb(1, 2, 3)'");
    let css =
        "html { color: rgb(1, 2, 3) } /* </style><script>document.body.remove()</script> ' \" \\ \u{2028} */";
    shared.expect_green(&small(json!({ "html": read, "css": css }))).await;
    // After those that scripts adopt, at any time.
    for script in
        ["document.adoptedStyleSheets = [red]", "setTimeout(() => document.adoptedStyleSheets = [red], 50)"]
    {
        let html = format!(
            "{page}<script>const red = new CSSStyleSheet(); red.replaceSync('body{{background:red}}'); {script}</script>"
        );
        let fields = json!({ "html": html, "css": "body { background: green }", "waitForTimeout": 100 });
        shared.expect_green(&small(fields)).await;
    }
    // The next page of the account does not have it.
    shared.expect_green(&html(&green_if("document.adoptedStyleSheets.length === 0"))).await;
    // A frame is another document.
    let frame = "<!doctype html><body style='margin:0'><iframe srcdoc=\"<body style='background:green'>\" \
         style='border:0;width:320px;height:240px'>";
    shared.expect_green(&small(json!({ "html": frame, "css": "body { background: red !important }" }))).await;
}

async fn no_scripts(shared: Arc<Shared>) {
    let run = "document.documentElement.style.background = 'red'";
    let hostile = format!(
        "<!doctype html><html style='background:green'><body onload=\"{run}\"><script>{run}</script>\
         <img src=x onerror=\"{run}\"><svg onload=\"{run}\"></svg><details open ontoggle=\"{run}\">d</details>\
         <iframe srcdoc=\"<script>parent.{run}</script>\"></iframe><a id=a href=\"javascript:{run}\">a</a>\
         <style>@keyframes k{{to{{opacity:.9}}}} p{{animation:k 1ms}}</style><p onanimationend=\"{run}\">p"
    );
    for fields in [
        json!({}),
        json!({ "waitForTimeout": 1_000 }),
        json!({ "fullPage": true }),
        json!({ "deviceScaleFactor": 2 }),
        json!({ "waitUntil": "networkidle", "css": "p { color: blue }" }),
    ] {
        shared.expect_green(&small(with(json!({ "html": hostile, "javaScript": false }), &fields))).await;
    }
    let noscript = "<!doctype html><html style='background:red'><noscript>\
         <div style='position:fixed;inset:0;background:green'></div></noscript>";
    shared.expect_green(&small(json!({ "html": noscript, "javaScript": false }))).await;
    shared.expect_green(&html(&green_if("true"))).await;
}

async fn called_function(shared: Arc<Shared>) {
    let html = "<!doctype html><html style='background:red'><script>var ready, isReady = () => ready; setTimeout(() => {\
                document.documentElement.style.background = 'green'; ready = true }, 600)</script>";
    for function in [
        "() => window.ready",
        "async () => ready",
        "() => new Promise(done => setTimeout(done, 900, true))",
        "function () { return this.ready }",
        "async function wait() { await null; return ready };",
        "() => {\n  // a comment;\n  return ready;\n}\n\n; /* ; */ // the end;",
        "(() => ready)",
        "Promise.resolve(() => ready)",
        "isReady",
        "window.isReady; // a function of the page",
        // Other ways to write an expression.
        "ready;",
        "/* a; */\nready\n;\n",
        "this.ready",
        "0, ready;",
        "{ ready }.ready",
        "ready ?\n'yes' :\n''",
    ] {
        shared.expect_green(&small(json!({ "html": html, "waitForFunction": function }))).await;
    }
    // At once, on a page without a script.
    let html = "<html style='background:green'>";
    for function in ["() => true", "async () => 1", "function* () {}"] {
        shared.expect_green(&small(json!({ "html": html, "waitForFunction": function }))).await;
    }
}
