//! Frames that a page needs, and frames that do not come: every page has its file.

use std::{sync::Arc, time::Duration};

use platen_harness::site::Reply;
use serde_json::json;

use crate::support::{
    GREEN, Shared, farm_process::FarmProcess, html, middle, pdf, site::Site, small, to, url, waiting, with,
};

tests! {
    "a resource that only a frame loads does not keep a page from loading" => loads,
    "a page that needs a frame to load has it at once" => frames_to_load,
    "what is fetched for later is not awaited" => fetched_for_later,
    "a resource that only layout requests is awaited" => requested_by_layout,
    "a page has the same animation frames whatever is captured" => counted,
    "animation frames of workers run, also when they are the last" => workers,
    "frames end although the compositor and a slow main thread change the page" => slow_pages,
}

const SHEET: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\"><g id=\"a\"><rect width=\"320\" height=\"240\" fill=\"green\"/>\
    </g><linearGradient id=\"p\"><stop stop-color=\"green\"/></linearGradient><mask id=\"m\"><rect width=\"999\" height=\"999\" \
    fill=\"white\"/></mask><clipPath id=\"c\"><rect width=\"999\" height=\"999\"/></clipPath><filter id=\"f\"><feFlood flood-color=\"green\"/></filter></svg>";

async fn loads(shared: Arc<Shared>) {
    let site = &shared.site;
    let reply = Reply::of("image/svg+xml", SHEET).with_header("access-control-allow-origin", "*");
    let sheet = site.put("/sheet.svg", reply);
    let encoded = SHEET.replace('"', "%22").replace('<', "%3C").replace('>', "%3E").replace('#', "%23");
    let svg = |content: &str| format!("<svg width=320 height=240 style='display:block'>{content}</svg>");
    for at in [sheet.as_str(), &format!("data:image/svg+xml,{encoded}")] {
        let same_document = [
            svg(&format!("<use href=\"{at}#a\"/>")),
            svg(&format!("<use xlink:href=\"{at}#a\"/>")),
            svg(&format!("<defs><g id=z><use href=\"{at}#a\"/></g></defs><use href=\"#z\"/>")),
            format!("<script>document.write(`{}`)</script>", svg(&format!("<use href=\"{at}#a\"/>"))),
            format!(
                "<iframe width=320 height=240 style='border:0' srcdoc=\"<body style='margin:0'><svg width=320 height=240>\
                 <use href='{at}#a'/></svg>\"></iframe>"
            ),
            format!("<div style='width:320px;height:240px;background:green;mask:url(\"{at}#m\")'></div>"),
            format!("<div style='width:320px;height:240px;filter:url(\"{at}#f\")'>x</div>"),
            svg(&format!("<rect width=320 height=240 fill='url(\"{at}#p\")'/>")),
            svg(&format!(
                "<filter id=q x=0 y=0 width=1 height=1><feImage href=\"{at}\"/></filter><rect width=320 height=240 filter='url(#q)'/>"
            )),
            format!(
                "<video width=320 height=240 poster=\"{at}\" style='object-fit:fill'></video><style>html{{background:green}}</style>"
            ),
            format!(
                "<div style='width:320px;height:240px;background:green;cursor:url(\"{at}\"),auto'></div>"
            ),
        ];
        for (number, content) in same_document.iter().enumerate() {
            let page = format!("<!doctype html><body style='margin:0'>{content}");
            let file = shared.render(&url(&site.at(&Site::markup(&page)))).await;
            let file = file.unwrap_or_else(|error| panic!("{page}: {error}"));
            // Chromium uses no elements of a `data:` URL.
            assert!(middle(&file) == GREEN || at.starts_with("data:"), "{number}: {page}");
            shared.file(&html(&page)).await;
            shared.file(&to(pdf(), html(&page))).await;
        }
    }
}

/// Green for 40 ticks of a timer, far longer than a page of these tests takes.
const TICKING: &str = "<!doctype html><html style='background:green'><body style='margin:0'><script>let ticks = 0;\
    setInterval(() => ++ticks === 40 && (document.documentElement.style.background = 'red'), 50)</script>";

async fn frames_to_load(shared: Arc<Shared>) {
    let site = &shared.site;
    site.put("/part.svg", Reply::of("image/svg+xml", SHEET));
    let used = "<svg width=9 height=9><use href='/part.svg#a'/></svg>";
    for content in [
        used,
        "<svg width=9 height=9><use href='/empty#a'/></svg>",
        &format!("<div><template shadowrootmode=open>{used}</template></div>"),
        &format!("<script>document.body.insertAdjacentHTML('beforeend', `{used}`)</script>"),
        &format!("<iframe width=9 height=9 srcdoc=\"{used}\"></iframe>"),
        "<iframe width=9 height=9 id=f></iframe><script>f.contentDocument.write('x');\
         requestAnimationFrame(() => f.contentDocument.close())</script>",
    ] {
        let page = url(&site.at(&Site::markup(&format!("{TICKING}{content}"))));
        shared.expect_green(&page).await;
        shared.file(&to(pdf(), page)).await;
    }
}

async fn fetched_for_later(shared: Arc<Shared>) {
    for content in [
        "<link rel=prefetch href='/never'>",
        "<link rel=prefetch as=document href='/never'>",
        "<link rel=preload as=fetch href='/never'>",
        "<link rel=modulepreload href='/never'>",
        "<link rel=compression-dictionary href='/never'>",
        "<script>onload = () => navigator.sendBeacon('/never', 'x')</script>",
        "<script>onload = () => fetch('/never', { keepalive: true })</script>",
        "<script>new EventSource('/never')</script>",
    ] {
        let page = format!("{TICKING}{content}");
        shared.expect_green(&url(&shared.site.at(&Site::markup(&page)))).await;
    }
}

/// An SVG file that only the layout requests is awaited before a capture.
async fn requested_by_layout(shared: Arc<Shared>) {
    let site = &shared.site;
    let late = Duration::from_millis(300);
    site.put("/late-sheet.svg", Reply::of("image/svg+xml", SHEET).after(late));
    for (name, rule) in [
        ("filter", "filter: url(/late-sheet.svg#f)"),
        ("clip-path", "background: green; clip-path: url(/late-sheet.svg#c)"),
        ("mask", "background: green; mask: url(/late-sheet.svg#m)"),
        ("cursor", "background: green; cursor: url(/late-sheet.svg), auto"),
    ] {
        let css = format!("div {{ width: 320px; height: 240px; {rule} }}");
        let path = format!("/{name}.css");
        site.put(&path, Reply::of("text/css", css).after(late));
        let page =
            format!("<!doctype html><link rel=stylesheet href='{path}'><body style='margin:0'><div>x</div>");
        let file = shared.file(&url(&site.at(&Site::markup(&page)))).await;
        assert_eq!(middle(&file), GREEN, "{name}");
    }
}

/// A page is green in the second of its frames.
async fn counted(shared: Arc<Shared>) {
    let page = "<!doctype html><body style='margin:0'><p id=a>0</p><script>let n = 0; requestAnimationFrame(function again() {\
        a.textContent = ++n; document.documentElement.style.background = n < 2 ? 'red' : 'green';\
        if (n < 2) requestAnimationFrame(again) })</script>";
    for fields in [
        json!({}),
        json!({ "fullPage": true }),
        json!({ "selector": "html" }),
        json!({ "clip": { "x": 0, "y": 0, "width": 300, "height": 200 } }),
        json!({ "deviceScaleFactor": 2 }),
        json!({ "format": "webp" }),
        json!({ "format": "jpeg" }),
        json!({ "omitBackground": true }),
        json!({ "fullPage": true, "format": "webp", "scroll": false }),
    ] {
        let job = small(with(json!({ "html": page, "css": "html { height: 240px }" }), &fields));
        let [_, green, _] = middle(&shared.file(&job).await);
        assert!((126..=130).contains(&green), "{fields}");
    }
    assert_eq!(shared.text(&to(pdf(), html(page))).await.trim(), "2");
}

const RED: &str = "<!doctype html><html style='background:red'><body style='margin:0'><script>\
    const done = () => document.documentElement.style.background = 'green';\
    const worker = (code, options) => \
      new Worker(URL.createObjectURL(new Blob([code], { type: 'text/javascript' })), options)</script>";

async fn workers(shared: Arc<Shared>) {
    let once = "requestAnimationFrame(time => postMessage(typeof time))";
    let pages = [
        format!("<script>new Worker('data:text/javascript,{once}').onmessage = done</script>"),
        format!("<script>worker(`{once}`).onmessage = done</script>"),
        format!(
            "<script>worker(`const inner = new Worker(URL.createObjectURL(new Blob(['{once}'])));\
             inner.onmessage = () => postMessage(0)`).onmessage = done</script>"
        ),
        "<script>worker(`let n = 0; (function again() { ++n < 9 ? requestAnimationFrame(again) : postMessage(0) })()`)\
         .onmessage = done</script>"
            .to_owned(),
        "<script>worker(`cancelAnimationFrame(requestAnimationFrame(() => { throw 1 })); setTimeout(() => postMessage(0), 50)`)\
         .onmessage = done</script>"
            .to_owned(),
        "<canvas width=320 height=240 style='display:block' id=c></canvas><script>const w = worker(`onmessage = event => {\
           const context = event.data.getContext('2d'); let n = 0; (function again() {\
           context.fillStyle = ++n < 9 ? 'red' : 'green'; context.fillRect(0, 0, 320, 240);\
           n < 9 && requestAnimationFrame(again) })() }`);\
         const canvas = c.transferControlToOffscreen(); w.postMessage(canvas, [canvas])</script>"
            .to_owned(),
    ];
    for page in pages.map(|page| format!("{RED}{page}")) {
        let file = shared.file(&waiting(html(&page), 600.0)).await;
        assert_eq!(middle(&file), GREEN, "{page}");
        // In every mode a frame is drawn after the worker's last one.
        for fields in [
            json!({ "format": "pdf" }),
            json!({ "fullPage": true }),
            json!({ "deviceScaleFactor": 2 }),
            json!({ "waitUntil": "networkidle" }),
        ] {
            shared.file(&small(with(json!({ "html": page }), &fields))).await;
        }
    }
}

/// Two frames of one pixel, each for 20 ms.
const ANIMATED_GIF: &str = "data:image/gif;base64,R0lGODlhAQABAPAAAP8AAACAACH5BAACAAAALAAAAAABAAEAAAICRAEAIfkEAAIAAAAsAAAAAAEAAQAAAgJMAQA7";

async fn slow_pages(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let list = (0..300).fold(String::new(), |list, number| list + &format!("<p id=i{number}>item {number}"));
    let slow = |change: &str| {
        format!(
            "<p id=x style='position:relative'>x</p><script>let n = 0; (function again() {{ \
             for (let step = 0; step < 1e6; step++) performance.now(); x.style.left = `${{++n % 90}}px`; {change};\
             n < 6 ? requestAnimationFrame(again) : end() }})();\
             function end() {{ document.documentElement.style.background = 'green'; document.body.append(document.createElement('hr')) }}</script>"
        )
    };
    let scroller =
        format!("<div style='position:fixed;top:0;bottom:0;width:99px;overflow:auto'>{list}</div>");
    let gif = format!("<img width=99 height=99 src='{ANIMATED_GIF}'>");
    for page in [
        format!("{gif}{}", slow("")),
        format!("<div style='width:99px;height:99px;background:url({ANIMATED_GIF})'></div>{}", slow("")),
        format!("{scroller}{}", slow("document.getElementById(`i${n * 40}`).scrollIntoView()")),
        format!(
            "{scroller}{gif}{}",
            slow("document.getElementById(`i${n * 40}`).scrollIntoView({ block: 'center' })")
        ),
    ] {
        // With a worker, the wait is in real time.
        for time in ["", "<script>new Worker('data:,')</script>"] {
            let page = format!("<!doctype html><html style='background:red'>{time}{page}");
            // In real time, a slow machine needs more than the 3 s.
            let fields = json!({ "html": page, "waitForTimeout": 3_000, "waitForSelector": "hr" });
            farm.expect_green(&small(fields)).await;
            for metric in ["platen_farm_retries_total", "platen_farm_real_time_retries_total"] {
                assert_eq!(farm.metric(metric).await, 0, "{metric} of {page}");
            }
        }
    }
    farm.end().await;
}
