//! Animations that end are at their end in the file, and others as they were.

use std::sync::Arc;

use platen_shared::job::{Animations, RenderJob};
use serde_json::json;

use crate::support::{
    GREEN, Shared, full_page_png, html, middle, pdf, picture, site::Site, small, to, waiting,
};

tests! {
    "animations that run by time and end are at their end" => ended,
    "animations that the end of another one starts are at their end" => chained,
    "animations of a view timeline are as in view" => in_view,
    "animations that do not end by themselves are as they were" => not_ended,
    "animations are left as they are on request" => allowed,
    "a layer has its last size after an animation" => last_size,
}

/// A red page on which the text of `#a` is hidden by the keyframes `f`, and covers the page with green otherwise.
const HEAD: &str = "<!doctype html><html style='background:red'><style>body { margin: 0 }\
    #a { margin: 0; height: 240px; background: green }\
    @keyframes f { from, 90% { visibility: hidden } } @keyframes h { from, to { visibility: hidden } }</style>";

/// Whether the element of a page is shown at `load` and after a wait, in a picture and in a PDF each.
async fn is_shown(shared: &Shared, job: &RenderJob) -> Vec<bool> {
    let mut shown = Vec::new();
    for wait in [0.0, 100.0] {
        let job = waiting(job.clone(), wait);
        shown.push(middle(&shared.file(&job).await) == GREEN);
        shown.push(shared.text(&to(pdf(), job)).await.contains("shown"));
    }
    shown
}

async fn assert_shown(shared: &Shared, name: &str, markup: &str) {
    let shown = is_shown(shared, &html(&format!("{HEAD}{markup}"))).await;
    assert_eq!(shown, [true; 4], "{name}");
}

fn frame(attributes: &str) -> String {
    format!("<iframe style='display:block;border:0' width=320 height=240 {attributes}></iframe>")
}

async fn ended(shared: Arc<Shared>) {
    let page = format!("{HEAD}<p id=a style='animation:f 9s both'>shown");
    let elsewhere = shared.site.elsewhere(&Site::markup(&page));
    let sandboxed = frame(&format!("sandbox srcdoc=\"{page}\""));
    let of_data = frame(&format!("src=\"data:text/html,{}\"", page.replace('%', "%25").replace('#', "%23")));
    let cases = [
        ("filled", "<p id=a style='animation:f 9s both'>shown".to_owned()),
        ("delayed", "<p id=a style='animation:f 9s 9s both'>shown".to_owned()),
        ("not filled", "<p id=a style='animation:h 9s'>shown".to_owned()),
        ("repeated", "<p id=a style='animation:f 9s 3 both'>shown".to_owned()),
        ("of a pseudo-element", "<style>#a::before { content: 'shown'; display: block; height: 240px;\
            background: green; animation: f 9s both } #a { background: red }</style><p id=a>".to_owned()),
        ("of an open shadow tree", format!("<div><template shadowrootmode=open>{page}</template></div>")),
        (
            "of a shadow tree in another one",
            format!("<div><template shadowrootmode=open><span><template shadowrootmode=open>{page}</template></span></template></div>"),
        ),
        ("of a frame", frame(&format!("srcdoc=\"{page}\""))),
        ("of a frame in a frame", frame(&format!("srcdoc=\"{HEAD}{}\"", frame(&format!("srcdoc='{}'", page.replace('\'', "&quot;")))))),
        ("of a sandboxed frame", sandboxed),
        ("of a frame of data", of_data),
        ("of a frame of another origin", frame(&format!("src='{elsewhere}'"))),
        ("transition", "<p id=a style='visibility:hidden;transition:visibility 9s 9s'>shown<script>\
            a.offsetTop; a.style.visibility = 'visible'</script>".to_owned()),
        ("first style", "<style>#a { transition: visibility 9s 9s; @starting-style { visibility: hidden } }</style>\
            <p id=a>shown".to_owned()),
        ("of a script", "<p id=a>shown<script>a.animate({ visibility: ['hidden', 'hidden'] }, 9e3)</script>".to_owned()),
        ("backwards", "<p id=a style='visibility:hidden'>shown<script>const all = a.animate(\
            { visibility: ['visible', 'hidden'] }, { duration: 9e3, easing: 'steps(2)', fill: 'both' }); all.reverse()</script>".to_owned()),
        ("of markup with names of methods", "<form name=getAnimations><input name=shadowRoot></form>\
            <img name=querySelectorAll><p id=a style='animation:f 9s both'>shown".to_owned()),
        ("begun by print", "<style>#b { display: none } @media print { #b { display: block } }</style>\
            <p id=a style='animation:f 9s both'><p id=b style='animation:f 9s both'>shown".to_owned()),
    ];
    for (name, markup) in &cases {
        assert_shown(&shared, name, markup).await;
    }
    let mut unscripted = html(&page);
    unscripted.options.environment.java_script = false;
    assert_eq!(is_shown(&shared, &unscripted).await, [true; 4], "without scripts of the page");
}

async fn chained(shared: Arc<Shared>) {
    let steps = |script: &str| {
        format!(
            "<style>.t {{ visibility: hidden; transition: visibility 9s 9s }} .t.shown {{ visibility: visible }}</style>\
             <i id=one style='animation:f 9s both'>x</i><p id=a class=t>shown<script>\
             const show = () => a.classList.add('shown'), then = document.getAnimations()[0];{script}</script>"
        )
    };
    for (name, script) in [
        ("end event", "one.onanimationend = show"),
        ("finish event", "then.onfinish = show"),
        ("finished", "then.finished.then(show)"),
        (
            "two frames later",
            "one.onanimationend = () => requestAnimationFrame(() => requestAnimationFrame(show))",
        ),
        (
            "a task later",
            "one.onanimationend = () => { const it = new MessageChannel; it.port1.onmessage = show; it.port2.postMessage(0) }",
        ),
        (
            "three steps",
            "let left = 3; one.onanimationend = function step() { if (!left--) return show();\
             one.animate({ opacity: [0, 1] }, 5e3).onfinish = step }",
        ),
    ] {
        assert_shown(&shared, name, &steps(script)).await;
    }
    assert_shown(
        &shared,
        "view transition",
        "<style>::view-transition-group(*) { animation-duration: 9s }</style><p id=a style='background:red'>hidden<script>\
         onload = () => document.startViewTransition(() => { a.style.background = 'green'; a.textContent = 'shown' })</script>",
    )
    .await;
}

async fn in_view(shared: Arc<Shared>) {
    let page = |above: u32, range: &str| {
        html(&format!(
            "{HEAD}<style>@keyframes v {{ from, 90% {{ background: red }} }} #a {{ animation: v linear both;\
             animation-timeline: view(); animation-range: {range} }}</style><div style='height:{above}px'></div><p id=a>"
        ))
    };
    for range in ["entry 0% cover 50%", "entry 0% entry 100%", "entry", "contain 0% contain 45%"] {
        shared.expect_green(&page(100, range)).await;
        let below = to(full_page_png(), page(3_000, range));
        let whole = picture(&shared.file(&below).await.bytes);
        assert_eq!(whole.get_pixel(160, 3_120).0, GREEN, "{range}, below the viewport");
    }
    let leaving = html(&format!(
        "{HEAD}<style>@keyframes v {{ to {{ background: red }} }} #a {{ animation: v linear both;\
         animation-timeline: view(); animation-range: exit }}</style><p id=a>"
    ));
    shared.expect_green(&leaving).await;
}

async fn not_ended(shared: Arc<Shared>) {
    let keyframes = "<style>@keyframes g { from { background: green } to { background: red } } #a { background: red }</style>";
    for (name, markup) in [
        ("paused", "<p id=a style='animation:g 9s paused both'>"),
        ("endless", "<p id=a style='animation:g 900s steps(1) infinite'>"),
        (
            "scroll timeline",
            "<p id=a style='animation:g linear both;animation-timeline:scroll()'><p style='height:999px'>",
        ),
        (
            "stopped",
            "<p id=a style='animation:g 9s both'><script>document.getAnimations()[0].playbackRate = 0</script>",
        ),
        (
            "paused by a script",
            "<p id=a style='animation:g 9s both'><script>document.getAnimations()[0].pause()</script>",
        ),
    ] {
        for wait in [0.0, 100.0] {
            let job = waiting(html(&format!("{HEAD}{keyframes}{markup}")), wait);
            assert_eq!(middle(&shared.file(&job).await), GREEN, "{name} after {wait} ms");
        }
    }
    // The end of each starts another one.
    let endless = "<p id=a>shown<script>(function again() { a.animate({ opacity: [1, 1] }, 1e3).onfinish = again })()</script>";
    assert_shown(&shared, "endless chain", endless).await;
}

async fn allowed(shared: Arc<Shared>) {
    for (markup, shown) in [
        ("<p id=a style='animation:f 9s both'>shown", [false; 4]),
        ("<p id=a>shown<script>a.animate({ visibility: ['hidden', 'hidden'] }, 9e3)</script>", [false; 4]),
        (
            "<p id=a style='visibility:hidden;transition:visibility 9s 9s'>shown<script>\
             a.offsetTop; a.style.visibility = 'visible'</script>",
            // Chromium prints without transitions.
            [false, true, false, true],
        ),
    ] {
        let mut job = html(&format!("{HEAD}{markup}"));
        job.options.animations = Animations::Allow;
        assert_eq!(is_shown(&shared, &job).await, shown, "{markup}");
    }
}

async fn last_size(shared: Arc<Shared>) {
    let page = |style: &str, script: &str| {
        format!(
            "<!doctype html><style>@keyframes f {{ from {{ transform: translateZ(0) skewX(20deg) scale(1.2) }} \
             to {{ transform: translateZ(0) }} }} #a {{ margin: 20px; height: 50px; background: green; \
             transform: translateZ(0); {style} }}</style><p id=a>shown<script>{script}</script>"
        )
    };
    let by_script = "const began = performance.now(); (function next() { \
        const left = Math.max(0, 1 - (performance.now() - began) / 200); if (left) requestAnimationFrame(next); \
        a.style.transform = `translateZ(0) skewX(${20 * left}deg) scale(${1 + left / 5})` })()";
    for omits_background in [false, true] {
        let file = async |style: &str, script: &str| {
            let body = json!({ "omitBackground": omits_background, "waitForTimeout": 600, "html": page(style, script) });
            shared.file(&small(body)).await.bytes
        };
        let expected = file("", "").await;
        for (name, style, script) in [
            ("that has ended", "animation: f .2s both", ""),
            ("that is finished", "animation: f 1s both", ""),
            ("by a script", "", by_script),
        ] {
            assert!(file(style, script).await == expected, "{name}, without background: {omits_background}");
        }
    }
}
