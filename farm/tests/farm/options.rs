//! The options of images and of the wait.

use std::{sync::Arc, time::Duration};

use http::StatusCode;
use platen_harness::{site::Reply, wait::MAX_WAIT};
use platen_shared::refusal::{FirstError, Refusal};
use serde_json::{Value, json};

use crate::support::{GREEN, Shared, dimensions, middle, picture, small, with};

tests! {
    "a selector captures the border box of an element" => selectors,
    "a selector without an element is refused" => no_element,
    "a clip captures a rectangle of the page" => clips,
    "an omitted background is transparent" => omitted_background,
    "quality changes the size of lossy images" => quality,
    "a PNG that need not be fast is smaller, with the same pixels" => small_png,
    "a job waits until an element is visible" => wait_for_selector,
    "a job waits until an expression is true" => wait_for_function,
    "an expression that fails is refused" => failing_function,
    "an element without a box is visible if its document is drawn" => visible,
    "the status of a page is known, and a failure on request" => page_status,
}

/// The deadline of jobs whose conditions never become true: they are looked at until then.
const CONDITION_DEADLINE: Duration = Duration::from_secs(10);

async fn size_and_middle(shared: &Shared, fields: Value) -> ((u32, u32), [u8; 3]) {
    let file = shared.file(&small(fields)).await;
    (dimensions(&file), middle(&file))
}

async fn selectors(shared: Arc<Shared>) {
    let page = |style: &str| {
        format!(
            "<!doctype html><body style='margin:0;background:red'><div style='height:30px'></div>\
             <div id=a style='background:green;{style}'></div><div id=b></div>"
        )
    };
    for (style, factor, size) in [
        ("margin-left:10px;width:100px;height:50px", 1.0, (100, 50)),
        ("margin-left:10px;width:100px;height:50px;border:5px solid green;padding:3px", 1.0, (116, 66)),
        ("margin:900px;width:100px;height:50px", 1.0, (100, 50)),
        ("margin:900px;width:100px;height:50px", 2.0, (200, 100)),
        ("margin-left:10.4px;width:20.2px;height:20px", 1.0, (21, 20)),
        ("width:100px;height:50px", 1.5, (150, 75)),
        ("width:33px;height:7px;margin-top:1px", 1.1, (36, 8)),
        ("width:1000px;height:7px", 2.625, (2625, 18)),
        ("position:fixed;top:20px;left:20px;width:40px;height:30px", 1.0, (40, 30)),
        ("width:0.3px;height:0.3px", 1.0, (1, 1)),
    ] {
        let fields = json!({ "html": page(style), "selector": "#a", "deviceScaleFactor": factor });
        let (found, colour) = size_and_middle(&shared, fields).await;
        assert_eq!(found, size, "{style} × {factor}");
        if size != (1, 1) {
            assert_eq!(colour, GREEN, "{style} × {factor}");
        }
    }
    let scroller = "<!doctype html><body style='margin:0'><div style='overflow:auto;width:200px;height:100px'>\
         <div style='height:500px;background:red'></div><p style='height:60px;margin:0;background:green'>";
    let fields = json!({ "html": scroller, "selector": "p" });
    assert_eq!(size_and_middle(&shared, fields).await, ((200, 60), GREEN));
    // In open shadow trees, also in a container that scrolls around the host.
    let shadow = "<!doctype html><body style='margin:0'><div style='overflow:auto;width:200px;height:100px'><div style='height:500px'>\
         </div><div id=host></div></div><script>const attach = host => host.attachShadow({ mode: 'open' });\
         attach(host).innerHTML = '<span id=inner></span>'; attach(host.shadowRoot.getElementById('inner')).innerHTML = \
         '<p style=\"display:block;width:30px;height:60px;margin:0;background:green\">'</script>";
    let fields = json!({ "html": shadow, "selector": "p", "waitForSelector": "p" });
    assert_eq!(size_and_middle(&shared, fields).await, ((30, 60), GREEN));
    let lazy = format!(
        "<!doctype html><div style='height:9000px'></div><img loading=lazy width=50 height=50 src='{}'>",
        shared.site.at("/late.svg")
    );
    let fields = json!({ "html": lazy, "selector": "img" });
    assert_eq!(size_and_middle(&shared, fields).await, ((50, 50), GREEN));
}

async fn no_element(shared: Arc<Shared>) {
    let html = "<!doctype html><p>a<span style='display:none'>b</span>";
    for (selector, refusal) in [
        ("#missing", Refusal::NoSuchElement),
        ("span", Refusal::EmptyElement),
        ("p >> q", Refusal::InvalidSelector { field: "selector".to_owned() }),
        ("p::before", Refusal::NoSuchElement),
        ("'); alert(1) //", Refusal::InvalidSelector { field: "selector".to_owned() }),
    ] {
        let job = small(json!({ "html": html, "selector": selector }));
        assert_eq!(shared.render(&job).await.unwrap_err(), refusal, "{selector}");
    }
    let job = small(json!({ "html": html, "waitForSelector": ":nope" }));
    let invalid = Refusal::InvalidSelector { field: "waitForSelector".to_owned() };
    assert_eq!(shared.render(&job).await.unwrap_err(), invalid);
}

async fn clips(shared: Arc<Shared>) {
    let html = "<!doctype html><body style='margin:0;background:red'>\
         <div style='position:absolute;left:100px;top:1000px;width:300px;height:200px;background:green'>";
    for (clip, factor, size) in [
        ((100.0, 1000.0, 300.0, 200.0), 1.0, (300, 200)),
        ((100.5, 1000.5, 10.0, 10.0), 2.0, (20, 20)),
        ((110.0, 1010.0, 33.0, 7.0), 1.1, (36, 8)),
        ((399.0, 1199.0, 1.0, 1.0), 1.0, (1, 1)),
    ] {
        let (x, y, width, height) = clip;
        let clip = json!({ "x": x, "y": y, "width": width, "height": height });
        let fields = json!({ "html": html, "clip": clip, "deviceScaleFactor": factor });
        assert_eq!(size_and_middle(&shared, fields).await, (size, GREEN), "{clip} × {factor}");
    }
}

async fn omitted_background(shared: Arc<Shared>) {
    let html = "<!doctype html><body style='margin:0'><div style='width:160px;height:240px;background:rgba(0,128,0,.5)'>";
    let pixel = async |fields: Value, x: u32| {
        let file = shared.file(&small(with(json!({ "html": html }), &fields))).await;
        let image = image::load_from_memory(&file.bytes).unwrap().to_rgba8();
        image.get_pixel(image.width() * x / 320, image.height() / 2).0
    };
    for format in ["png", "webp"] {
        for fields in [json!({}), json!({ "fullPage": true }), json!({ "deviceScaleFactor": 2 })] {
            let fields = with(json!({ "format": format, "omitBackground": true }), &fields);
            let alphas = (pixel(fields.clone(), 5).await[3], pixel(fields.clone(), 315).await[3]);
            assert_eq!(alphas, (128, 0), "{fields}");
        }
    }
    assert_eq!(pixel(json!({}), 300).await, [255; 4], "the next picture has a background");
}

async fn quality(shared: Arc<Shared>) {
    let html = "<!doctype html><body style='background:conic-gradient(red,lime,blue,red)'><h1>Quality</h1>";
    for format in ["jpeg", "webp"] {
        let size = async |fields: Value| {
            let fields = with(json!({ "html": html, "format": format }), &fields);
            shared.file(&small(fields)).await.bytes.len()
        };
        let mut sizes = Vec::new();
        for quality in [1, 80, 100] {
            sizes.push(size(json!({ "quality": quality })).await);
        }
        assert_eq!(size(json!({})).await, sizes[1]);
        assert!(sizes.is_sorted() && sizes[0] * 2 < sizes[2], "{format}: {sizes:?}");
    }
}

async fn small_png(shared: Arc<Shared>) {
    let html = "<!doctype html><body style='background:conic-gradient(red,lime,blue,red)'><h1>Size</h1>";
    for fields in [json!({}), json!({ "fullPage": true, "deviceScaleFactor": 2 })] {
        let file = async |speed: bool| {
            let fields = with(json!({ "html": html, "optimizeForSpeed": speed }), &fields);
            shared.file(&small(fields)).await.bytes
        };
        let (fast, compact) = (file(true).await, file(false).await);
        assert!(compact.len() * 5 < fast.len() * 4, "{fields}: {} and {} bytes", fast.len(), compact.len());
        assert!(picture(&fast) == picture(&compact), "{fields}: other pixels");
    }
}

async fn wait_for_selector(shared: Arc<Shared>) {
    let later = |how: &str| {
        format!(
            "<!doctype html><html style='background:red'><p id=a style='visibility:hidden'>a</p><div id=b></div>\
             <script>setTimeout(() => {{ document.documentElement.style.background = 'green'; {how} }}, 3000)</script>"
        )
    };
    let shows = "a.style.visibility = 'visible'; b.textContent = 'x'";
    for (how, fields) in [
        ("a.style.visibility = 'visible'", json!({ "waitForSelector": "#a" })),
        ("document.body.append(document.createElement('hr'))", json!({ "waitForSelector": "hr" })),
        (shows, json!({ "waitForSelector": "#b", "waitForTimeout": 100 })),
        (shows, json!({ "waitForSelector": "p", "waitForTimeout": 3_100 })),
        (shows, json!({ "waitForSelector": "#b", "waitUntil": "networkidle" })),
    ] {
        shared.expect_green(&small(with(json!({ "html": later(how) }), &fields))).await;
    }
    shared.file(&small(json!({ "html": later(shows), "waitForSelector": "#b", "format": "pdf" }))).await;
    // At once, also without scripts and on a page that cannot change.
    for fields in [json!({}), json!({ "javaScript": false })] {
        let at_once = json!({ "html": "<html style='background:green'><p>a", "waitForSelector": "p" });
        shared.expect_green(&small(with(at_once, &fields))).await;
    }
    for html in [later("").as_str(), "<p>a"] {
        let job = small(json!({ "html": html, "waitForSelector": "#never" }));
        assert_eq!(
            shared.render_by(&job, CONDITION_DEADLINE).await.unwrap_err(),
            Refusal::ElementNotVisible { first_error: FirstError::default() },
            "{html}"
        );
    }
}

async fn wait_for_function(shared: Arc<Shared>) {
    let later = |script: &str| {
        format!(
            "<!doctype html><html style='background:red'><script>var ready, green = () => {{\
             document.documentElement.style.background = 'green'; ready = true }}; {script}</script>"
        )
    };
    let timer = later("setTimeout(green, 3000)");
    for fields in [
        json!({ "waitForFunction": "ready" }),
        json!({ "waitForFunction": "window.ready // a comment", "waitForTimeout": 100 }),
        json!({ "waitForFunction": "ready", "waitUntil": "networkidle" }),
        json!({ "waitForFunction": "ready", "waitForSelector": "html", "waitUntil": "domcontentloaded" }),
        // The promise is fulfilled by the page's clock, and not asked for again meanwhile.
        json!({ "waitForFunction": "new Promise(done => setTimeout(done, 4000, true))" }),
        json!({ "waitForFunction": "window.asked ??= new Promise(done => setTimeout(() => done(1), 4000))" }),
        json!({ "waitForFunction": "await Promise.resolve(ready)" }),
    ] {
        shared.expect_green(&small(with(json!({ "html": timer }), &fields))).await;
    }
    shared.file(&small(json!({ "html": timer, "waitForFunction": "ready", "format": "pdf" }))).await;
    // At once, on a page without a script.
    let html = "<html style='background:green'>";
    shared
        .expect_green(&small(json!({ "html": html, "waitForFunction": "document.images.length + 1" })))
        .await;
    // What it does is in the file.
    let html = "<html style='background:red'>";
    let function = "document.documentElement.style.background = 'green'";
    shared.expect_green(&small(json!({ "html": html, "waitForFunction": function }))).await;
    // The document that follows another one is asked again.
    let next = "<script>history.length; setTimeout(() => location = 'data:text/html,', 50)</script>";
    let never = small(json!({ "html": next, "waitForFunction": "false" }));
    assert_eq!(
        shared.render_by(&never, CONDITION_DEADLINE).await.unwrap_err(),
        Refusal::FunctionNotTrue { first_error: FirstError::default() }
    );
}

async fn failing_function(shared: Arc<Shared>) {
    for (html, function, message) in [
        ("<p>a", "missing.value", "missing is not defined"),
        ("<p>a", "Promise.reject(new Error('not today'))", "not today"),
        ("<p>a", "(() => { throw 'text' })()", "text"),
        ("<p>a", "(() => { throw Symbol() })()", "an error"),
        ("<p>a", "(() => { throw { get message() { throw 1 } } })()", "an error"),
        (
            "<script>setTimeout(() => { state = { get ready() { throw new TypeError('late') } } }, 2000)</script>",
            "window.state?.ready",
            "late",
        ),
        ("<p>a", "1 +", "SyntaxError: Unexpected token ')'"),
        ("<p>a", "true) || (false", "SyntaxError: Unexpected token ')'"),
        ("<p>a", "true], [true", "SyntaxError: Unexpected token ']'"),
        ("<p>a", "true }, other: () => { true", "SyntaxError: Unexpected token '}'"),
        ("<p>a", "true; false", "SyntaxError: Unexpected token ';'"),
        ("<p>a", "true; if (false) true", "SyntaxError: Unexpected token ';'"),
        ("<p>a", "if (true) true", "SyntaxError: Unexpected token 'if'"),
        ("<p>a", "return true", "SyntaxError: Unexpected token 'return'"),
        ("<p>a", "// nothing", "SyntaxError: Unexpected token ')'"),
        ("<p>a", "() => missing.value", "missing is not defined"),
        ("<p>a", "async () => { throw new Error('inside') };", "inside"),
        ("<p>a", "class Chart {}", "Class constructor Chart cannot be invoked without 'new'"),
        ("<p>a", "(() => { throw new Error('first\\nsecond\u{7}') })()", "first"),
    ] {
        let job = small(json!({ "html": html, "waitForFunction": function }));
        let message = message.into();
        assert_eq!(
            shared.render(&job).await.unwrap_err(),
            Refusal::FunctionFailed { message, first_error: FirstError::default() },
            "{function}"
        );
    }
    // Overridden globals of the page do not matter.
    let hostile = "<script>Promise = Object = String = Boolean = Symbol = undefined</script>\
                   <html style='background:green'>";
    shared.expect_green(&small(json!({ "html": hostile, "waitForFunction": "1" }))).await;
    for html in ["<p>a", "<script>setInterval(() => {}, 100)</script>"] {
        for function in ["false", "new Promise(() => {})"] {
            let job = small(json!({ "html": html, "waitForFunction": function }));
            assert_eq!(
                shared.render_by(&job, CONDITION_DEADLINE).await.unwrap_err(),
                Refusal::FunctionNotTrue { first_error: FirstError::default() },
                "{function}"
            );
        }
    }
}

async fn visible(shared: Arc<Shared>) {
    let page = |style: &str, inner: &str| {
        format!(
            "<!doctype html><html class=a><head><meta name=ready><title>t</title></head><body class=b style='margin:0'>\
             <div class=c style='{style}'>{inner}</div><script class=s></script>"
        )
    };
    let absolute = "<div style='position:absolute;width:9px;height:9px'>x</div>";
    for (selector, style, inner, is_visible) in [
        ("html.a", "", absolute, true),
        ("body.b", "", absolute, true),
        (".c", "", absolute, true),
        (".c", "", &format!("<i>{absolute}</i>"), true),
        (".c", "height:0;overflow:hidden", "<p>x</p>", false),
        (".c", "visibility:hidden", absolute, false),
        ("html.a", "", "<style>html { visibility: hidden }", false),
        (".c", "", "", false),
        (".c", "display:none", absolute, false),
        (".c p", "display:none", "<p>x", false),
        (".c", "display:contents", "x", true),
        ("meta[name=ready]", "", "x", true),
        ("script.s", "", "x", true),
        (".c script", "display:none", "<script></script>", false),
        (".c option", "", "<select><option>x</select>", true),
        (".c option", "display:none", "<select><option>x</select>", false),
        ("head", "", "", true),
    ] {
        let job = small(json!({ "html": page(style, inner), "waitForSelector": selector }));
        let deadline = if is_visible { MAX_WAIT } else { Duration::from_secs(3) };
        let rendered = shared.render_by(&job, deadline).await;
        assert_eq!(rendered.is_ok(), is_visible, "{selector} {style} {inner}: {:?}", rendered.err());
    }
}

async fn page_status(shared: Arc<Shared>) {
    for (status, fails) in
        [(StatusCode::OK, false), (StatusCode::NOT_FOUND, true), (StatusCode::SERVICE_UNAVAILABLE, true)]
    {
        let reply = Reply::page("<html style='background:green'>").with_status(status);
        let page = shared.site.put("/status", reply);
        let file = shared.file(&small(json!({ "url": page }))).await;
        assert_eq!((middle(&file), file.page.status), (GREEN, Some(status.as_u16())));
        let strict = shared.render(&small(json!({ "url": page, "failOnHttpStatus": true }))).await;
        let found = match &strict {
            Err(Refusal::PageStatus { status, .. }) => Some(*status),
            other => other.as_ref().unwrap().page.status,
        };
        assert_eq!((strict.is_err(), found), (fails, Some(status.as_u16())));
    }
    let redirected = shared.site.at("/to?/status/410");
    let file = shared.file(&small(json!({ "url": redirected }))).await;
    assert_eq!(file.page.status, Some(410));
    let markup = json!({ "html": "<html style='background:green'>", "failOnHttpStatus": true });
    assert_eq!(shared.file(&small(markup)).await.page.status, None);
}
