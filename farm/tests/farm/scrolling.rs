//! A page is scrolled through before more than its viewport is captured, and its scripts have time for that.

use std::sync::Arc;

use futures::{StreamExt as _, stream};
use platen_harness::{busy_loops::BusyLoops, image_file::BLUE};
use serde_json::{Value, json};

use crate::support::{GREEN, Shared, farm_process::FarmProcess, picture, request, small, with};

tests! {
    "scripts that show a section some time after it was seen have that time" => later,
    "what follows scrolling back to the top is in the file" => back,
    "a section that scrolling has shown stays shown" => stays,
    "a PDF has what scrolling loads and shows" => printed,
    "a page is not scrolled on request" => unscrolled,
    "a page whose scripts ignore scrolling is used again" => ignored,
    "the time of scrolling is bounded" => bounded,
    "an image shows what is outside of the viewport" => outside,
}

const BOXES: usize = 15;
/// Height of a box in pixels.
const BOX_HEIGHT: u32 = 100;

/// A page of boxes that are green when `script` has called `show` for them.
pub(crate) fn boxes(script: &str) -> String {
    let all = format!("<div style='height:{BOX_HEIGHT}px;background:red'></div>").repeat(BOXES);
    format!(
        "<!doctype html><body style='margin:0'>{all}<script>\
         const boxes = [...document.querySelectorAll('div')], show = box => {{ box.style.background = 'green' }};\
         const see = () => boxes.filter(box => {{ const {{ top, bottom }} = box.getBoundingClientRect();\
           return top < innerHeight && bottom > 0 }}).forEach(show);\
         const observe = then => {{ const observer = new IntersectionObserver(all => all.forEach(({{ isIntersecting,\
           target }}) => isIntersecting && then(target))); boxes.forEach(box => observer.observe(box)) }};\
         see(); {script}</script>"
    )
}

/// Scripts that show boxes some time after these were seen.
pub(crate) const LATER: &[(&str, &str)] = &[
    ("debounce", "let timer; onscroll = () => { clearTimeout(timer); timer = setTimeout(see, 100) }"),
    ("throttle", "let timer; onscroll = () => { timer ??= setTimeout(() => { timer = null; see() }, 100) }"),
    (
        "throttle by the clock",
        "let last = 0; onscroll = () => { if (Date.now() - last >= 100) { last = Date.now(); see() } }",
    ),
    ("timer of an observer", "observe(box => setTimeout(show, 120, box))"),
    (
        "frames of an observer",
        "observe(box => { let n = 0; requestAnimationFrame(function next() {\
         ++n < 3 ? requestAnimationFrame(next) : show(box) }) })",
    ),
    (
        "time of the frames of an observer",
        "observe(box => { let first; requestAnimationFrame(function next(time) { first ??= time;\
         time - first < 100 ? requestAnimationFrame(next) : show(box) }) })",
    ),
    ("idle callback of an observer", "observe(box => requestIdleCallback(() => show(box)))"),
    ("end of scrolling", "onscrollend = () => setTimeout(see, 100)"),
    (
        "smooth scrolling",
        "document.documentElement.style.scrollBehavior = 'smooth'; let timer;\
         onscroll = () => { clearTimeout(timer); timer = setTimeout(see, 100) }",
    ),
    (
        "snapping",
        "document.documentElement.style.scrollSnapType = 'y mandatory';\
         boxes.forEach(box => box.style.scrollSnapAlign = 'start'); let timer;\
         onscroll = () => { clearTimeout(timer); timer = setTimeout(see, 100) }",
    ),
    (
        "end of an animation",
        "boxes.splice(0, 3); observe(box => { box.animate({ opacity: [0, 1] }, 1000).onfinish = () => show(box) })",
    ),
];

/// The whole page, and whether the middle of each box is green.
async fn green(shared: &Shared, html: &str, fields: Value) -> Vec<bool> {
    let job = small(with(json!({ "html": html, "fullPage": true }), &fields));
    let picture = picture(&shared.file(&job).await.bytes);
    let middle = |number: usize| u32::try_from(number).unwrap() * BOX_HEIGHT + BOX_HEIGHT / 2;
    (0..BOXES).map(|number| picture.get_pixel(160, middle(number)).0 == GREEN).collect()
}

async fn later(shared: Arc<Shared>) {
    for (busy, wait) in [(false, 200), (true, 0)] {
        let _loops = busy.then(|| BusyLoops::start().unwrap());
        let found = LATER.iter().map(|(name, script)| {
            let shared = &shared;
            async move { (name, green(shared, &boxes(script), json!({ "waitForTimeout": wait })).await) }
        });
        // Several at once, as the loops take all of the machine for as long as they run.
        for (name, found) in stream::iter(found).buffered(2).collect::<Vec<_>>().await {
            assert_eq!(found, [true; BOXES], "{name}, {wait} ms, busy: {busy}");
        }
    }
    // In real time.
    let page = boxes(&format!("new Worker('data:text/javascript,'); {}", LATER[1].1));
    assert_eq!(green(&shared, &page, json!({ "waitForTimeout": 50 })).await, [true; BOXES]);
}

async fn back(shared: Arc<Shared>) {
    let page = "<!doctype html><body style='margin:0'><header style='position:fixed;top:0;width:100%;height:40px;\
        background:green'></header><div style='height:3000px;background:red'></div><script>\
        const header = document.querySelector('header'), update = () => header.hidden = scrollY > 100; let timer;";
    for script in [
        "onscroll = () => { timer ??= setTimeout(() => { timer = null; update() }, 100) }",
        "onscroll = () => { clearTimeout(timer); timer = setTimeout(update, 200) }",
        "let last = 0; onscroll = () => { if (Date.now() - last >= 100) { last = Date.now(); update() } }",
        "onscrollend = () => setTimeout(update, 400)",
    ] {
        for wait in [0, 200] {
            let html = format!("{page}{script}</script>");
            let file =
                shared.file(&small(json!({ "html": html, "fullPage": true, "waitForTimeout": wait }))).await;
            assert_eq!(picture(&file.bytes).get_pixel(160, 20).0, GREEN, "{script}, {wait}");
        }
    }
}

async fn stays(shared: Arc<Shared>) {
    for (style, script) in [
        ("[data-seen] { opacity: 1 }", "target.toggleAttribute('data-seen', isIntersecting)"),
        (".seen { opacity: 1; transition: opacity 1s }", "target.classList.toggle('seen', isIntersecting)"),
        (
            "div { opacity: 1; visibility: hidden }",
            "target.style.visibility = isIntersecting ? 'visible' : ''",
        ),
        (".seen i { opacity: 1 }", "target.classList.toggle('seen', isIntersecting)"),
        ("div { opacity: 1 } .out { visibility: hidden }", "target.classList.toggle('out', !isIntersecting)"),
    ] {
        let page = format!(
            "boxes.forEach(box => {{ box.innerHTML = '<i style=\"display:block;height:100%\"></i>'; box.classList.add('out') }});\
             document.head.insertAdjacentHTML('beforeend', '<style>div, div i {{ opacity: 0 }} {style} {}</style>');\
             boxes.forEach(box => {{ box.style.background = '' }});\
             const observer = new IntersectionObserver(all => all.forEach(({{ isIntersecting, target }}) => {script}));\
             boxes.forEach(box => observer.observe(box))",
            if style.contains(" i ") {
                "div { opacity: 1 } div i { background: green }"
            } else {
                "div { background: green }"
            }
        );
        assert_eq!(green(&shared, &boxes(&page), json!({})).await, [true; BOXES], "{style}: {script}");
    }
}

/// The text of the PDF of a page with a section 3,000 px below its top.
async fn text_of(shared: &Shared, script: &str, fields: Value) -> String {
    let html = format!(
        "<!doctype html><p style='height:3000px'>top<div style='height:50px'></div><script>\
         const part = document.querySelector('div'), show = () => {{ part.textContent = 'seen' }};{script}</script>"
    );
    shared.text(&request(&with(json!({ "html": html, "format": "pdf" }), &fields))).await
}

const PRINTED: &[&str] = &[
    "new IntersectionObserver(([it]) => it.isIntersecting && show()).observe(part)",
    "onscroll = () => part.getBoundingClientRect().top < innerHeight && show()",
    "let timer; onscroll = () => { clearTimeout(timer); timer = setTimeout(() => scrollY > 2000 && show(), 100) }",
    "new IntersectionObserver(([it]) => it.isIntersecting && fetch('data:,').then(show)).observe(part)",
    "part.style.display = 'none'; let timer; onscroll = () => { timer = setTimeout(() => {\
     part.style.display = ''; show() }, 100) }",
];

async fn printed(shared: Arc<Shared>) {
    for script in PRINTED {
        for fields in [json!({}), json!({ "waitForTimeout": 200 }), json!({ "singlePage": true })] {
            let text = text_of(&shared, script, fields.clone()).await;
            assert!(text.contains("seen"), "{script}, {fields}: {text}");
        }
    }
}

async fn unscrolled(shared: Arc<Shared>) {
    for script in PRINTED {
        let text = text_of(&shared, script, json!({ "scroll": false })).await;
        assert!(!text.contains("seen"), "{script}: {text}");
    }
    let page = boxes("observe(show)");
    let found = green(&shared, &page, json!({ "scroll": false })).await;
    assert_eq!(found.iter().filter(|green| **green).count(), 3);
}

async fn ignored(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let jobs = async |script: &str| {
        let before = farm.warm_pages().await;
        for _ in 0..4 {
            farm.file(&small(json!({ "html": boxes(script), "fullPage": true }))).await;
        }
        farm.warm_pages().await - before
    };
    // The first job of an account leaves no page, and the second one begins with a new one.
    assert_eq!(jobs("boxes.length").await, 2, "a page whose scripts ignore scrolling");
    assert_eq!(jobs(LATER[0].1).await, 1, "a page that was in virtual time");
    farm.end().await;
}

async fn bounded(shared: Arc<Shared>) {
    let never = shared.site.at("/never");
    for script in [
        // More steps than the time is enough for, by default.
        format!("document.body.style.zoom = 5; {}", LATER[0].1),
        // Requests that never end, new ones in each step.
        format!("onscroll = () => {{ fetch('{never}').catch(() => 0); see() }}"),
        // Scripts that never rest.
        "(function again() { requestAnimationFrame(again); see() })()".to_owned(),
        "const { port1, port2 } = new MessageChannel(); port1.onmessage = () => port2.postMessage(0);\
         port2.postMessage(0); onscroll = see"
            .to_owned(),
    ] {
        shared.file(&small(json!({ "html": boxes(&script), "fullPage": true }))).await;
    }
}

async fn outside(shared: Arc<Shared>) {
    let green = "<body style='background:green'>";
    let frame = "<iframe style='display:block;border:0' width=320 height=100";
    let page = shared.site.elsewhere("/green");
    let part = "<p style='margin:0;height:100px;background:green'>x</p></div>";
    let inner = "<iframe style='border:0' src='data:text/html,<body style=background:green>'></iframe>";
    let parts = [
        format!("{frame} src=\"data:text/html,{green}\"></iframe>"),
        format!("{frame} sandbox srcdoc=\"{green}\"></iframe>"),
        format!("{frame} src='{page}'></iframe>"),
        format!("{frame} srcdoc=\"<body style='margin:0'>{inner}\"></iframe>"),
        format!(
            "<object style='display:block' width=320 height=100 data=\"data:text/html,{green}\"></object>"
        ),
        format!("<div style='content-visibility:auto'>{part}"),
        format!("<div style='content-visibility:auto;contain-intrinsic-size:500px'>{part}"),
        "<div style='height:100px;background:linear-gradient(green,green) fixed'></div>".to_owned(),
        "<div style='height:100px;background:linear-gradient(green,green) fixed, linear-gradient(red,red)'></div>".to_owned(),
    ];
    // Each part in each picture, and both with and without scripts.
    for (number, part) in parts.iter().enumerate() {
        for (at, (fields, top)) in [
            (json!({ "fullPage": true }), 1_500),
            (json!({ "clip": { "x": 0, "y": 1400, "width": 320, "height": 200 } }), 100),
            (json!({ "selector": "main" }), 0),
            (json!({ "fullPage": true, "waitForTimeout": 200 }), 1_500),
        ]
        .into_iter()
        .enumerate()
        {
            let script = ["", "<script>0</script>"][(number + at) % 2];
            let html = format!(
                "<!doctype html><body style='margin:0'><header style='position:fixed;bottom:0;right:0;width:10%;\
                 height:10%;background:blue'></header><section style='height:100vh'></section>\
                 <p style='height:1260px;margin:0'>x</p><main>{part}</main><p style='height:500px'>{script}"
            );
            let job = small(with(json!({ "html": html }), &fields));
            let picture = picture(&shared.file(&job).await.bytes);
            assert_eq!(picture.get_pixel(160, top + 50).0, GREEN, "{fields}, {script}: {part}");
            if fields["fullPage"] == true {
                assert_eq!(picture.get_pixel(310, 230).0, BLUE, "{fields}, {script}: {part}");
            }
        }
    }
    for (html, y) in [
        // A page of many viewports.
        (format!("<body style='margin:0'><p style='height:9000px;margin:0'>x</p>{}", parts[0]), 9_050),
        // The root has a fixed background behind the whole page.
        (
            "<body style='margin:0;background:linear-gradient(green,green) fixed'><p style='height:2000px;margin:0'>x"
                .to_owned(),
            1_900,
        ),
    ] {
        let job = small(json!({ "html": format!("<!doctype html>{html}"), "fullPage": true }));
        assert_eq!(picture(&shared.file(&job).await.bytes).get_pixel(160, y).0, GREEN, "{html}");
    }
}
