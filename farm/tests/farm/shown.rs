//! What scrolling has drawn stays drawn, however scripts hide it again; and what they replace or end is not drawn again.

use std::sync::Arc;

use platen_harness::image_file::{BLUE, Colour, RED};
use serde_json::{Value, json};

use crate::support::{GREEN, Shared, picture, request, small, with};

tests! {
    "what scrolling has drawn stays drawn however it is hidden" => stays,
    "what scripts draw frame by frame stays as it was in view" => frame_by_frame,
    "what an offset hides in the first viewport is drawn" => offset,
    "what was not hidden by leaving the view is left as it is" => left,
}

/// Where the box of a page begins, in pixels.
const TOP: u32 = 999;

/// A page with a box far below its first viewport. `script` is called with `on` when the box `t` comes into view and leaves it.
fn page(style: &str, attributes: &str, script: &str) -> String {
    format!(
        "<!doctype html><style>body {{ margin: 0 }} p {{ height: {TOP}px; margin: 0 }} b {{ display: block; height: 100px;\
         background: green }} {style}</style><p></p><section><b {attributes}>TEXT</b></section><p></p><script>\
         const t = document.querySelector('b'); new IntersectionObserver(([{{ isIntersecting: on }}]) => {{ {script} }})\
         .observe(t.parentElement)</script>"
    )
}

async fn colour(shared: &Shared, html: &str, fields: Value, y: u32) -> Colour {
    let job = small(with(json!({ "html": html, "fullPage": true }), &fields));
    picture(&shared.file(&job).await.bytes).get_pixel(250, y).0
}

/// Checks the box in a picture and in a PDF.
async fn assert_drawn(shared: &Shared, html: &str) {
    assert_eq!(colour(shared, html, json!({}), TOP + 50).await, GREEN, "{html}");
    let text = shared.text(&request(&json!({ "html": html, "format": "pdf" }))).await;
    assert!(text.contains("TEXT"), "{text:?}: {html}");
}

async fn stays(shared: Arc<Shared>) {
    let toggled = "t.classList.toggle('on', on)";
    for (style, attributes, script) in [
        // Without a class or style before.
        ("b { opacity: 0 } .on { opacity: 1 }", "", toggled),
        ("[data-reveal] { opacity: 0 } [data-reveal].on { opacity: 1 }", "data-reveal", toggled),
        ("b { opacity: 0 } [data-on] { opacity: 1 }", "", "on ? t.dataset.on = 1 : delete t.dataset.on"),
        ("", "style='opacity:0'", "on ? t.style.removeProperty('opacity') : t.style.opacity = 0"),
        ("b { opacity: 0 }", "", "on ? t.style.opacity = 1 : t.style.removeProperty('opacity')"),
        (".in { opacity: 1 } .out { opacity: 0 }", "class=out", "t.className = on ? 'in' : 'out'"),
        ("b { opacity: 0 } .s b { opacity: 1 }", "", "document.body.classList.toggle('s', on)"),
        // Hidden in another way.
        ("b { opacity: .1 } .on { opacity: 1 }", "", toggled),
        (
            "b { transform: perspective(500px) rotateY(90deg); transition: 1s } .on { transform: none }",
            "",
            toggled,
        ),
        (
            "b { transform: perspective(500px) rotateX(-100deg); backface-visibility: hidden; transition: 1s }\
             .on { transform: perspective(500px) rotateX(0) }",
            "",
            toggled,
        ),
        ("b { transform: translateX(-110%) } .on { transform: none }", "", toggled),
        ("section { overflow: hidden } b { translate: 0 100% } .on { translate: none }", "", toggled),
        ("b { transform: scale(0) } .on { transform: none }", "", toggled),
        ("b { clip-path: inset(0 100% 0 0) } .on { clip-path: inset(0) }", "", toggled),
        ("b { clip-path: circle(0%) } .on { clip-path: circle(100%) }", "", toggled),
        (
            "b { clip-path: polygon(0 0, 0 0, 0 100%, 0 100%) } .on { clip-path: polygon(0 0, 100% 0, 100% 100%, 0 100%) }",
            "",
            toggled,
        ),
        ("b { width: 0; overflow: hidden } .on { width: 320px }", "", toggled),
        ("section { height: 100px } b { height: 0; overflow: hidden } .on { height: 100px }", "", toggled),
        ("section { height: 100px } b { display: none } .on { display: block }", "", toggled),
        ("b { filter: opacity(0) } .on { filter: none }", "", toggled),
        (
            "b { mask: linear-gradient(#000, #000) no-repeat 0 0 / 0 100% } .on { mask-size: 100% 100% }",
            "",
            toggled,
        ),
        // Animations of scripts.
        (
            "b { opacity: 0 }",
            "",
            "t.animate({ opacity: on ? [0, 1] : [1, 0] }, { duration: 300, fill: 'both' })",
        ),
    ] {
        assert_drawn(&shared, &page(style, attributes, script)).await;
    }
    let cover = "b::after { content: ''; display: block; height: 100px; background: red } .on::after { transform: scaleX(0) }";
    assert_eq!(
        colour(&shared, &page(cover, "style='font-size:0'", toggled), json!({}), TOP + 50).await,
        GREEN
    );
    let tree = page("", "hidden", "inner.classList.toggle('on', on)")
        .replace(
            "<b hidden>TEXT</b>",
            "<b hidden></b><div><template shadowrootmode=open><style>i { opacity: 0; display: block; height: 100px; background: green }\
             .on { opacity: 1 }</style><i>TEXT</i></template></div>",
        )
        .replace("<script>", "<script>const inner = document.querySelector('div').shadowRoot.querySelector('i');")
        .replace("b {", "[hidden] { display: none !important } b {");
    assert_drawn(&shared, &tree).await;
}

async fn frame_by_frame(shared: Arc<Shared>) {
    // A tween of half a second in each direction, in steps of frames.
    let tween = "let at = 0, to = 0, last; const draw = time => { const step = (time - (last ?? time)) / 500; last = time;\
         at = to > at ? Math.min(to, at + step) : Math.max(to, at - step); STYLE; if (at !== to) requestAnimationFrame(draw); else last = null };";
    for (style, how) in [
        ("b { opacity: 0 }", "t.style.opacity = at"),
        ("b { opacity: 0 }", "t.style.cssText = `opacity: ${at}; visibility: ${at ? 'inherit' : 'hidden'}`"),
        ("b { transform: translateX(-100%) }", "t.style.transform = `translate(${at * 100 - 100}%, 0px)`"),
    ] {
        for (first, leaves) in [(true, true), (false, false)] {
            // It is hidden when it leaves the view, or only when the page is scrolled back.
            let script = if leaves { "to = on ? 1 : 0; requestAnimationFrame(draw)" } else { "" };
            let back = if first {
                ""
            } else {
                "onscroll = () => { const now = t.getBoundingClientRect().top < innerHeight ? 1 : 0;\
                 if (now !== to) { to = now; requestAnimationFrame(draw) } }"
            };
            let html = page(style, "", script)
                .replace("<script>", &format!("<script>{} {back};", tween.replace("STYLE", how)))
                .replace("const t = ", "var t = ");
            assert_drawn(&shared, &html).await;
        }
    }
}

async fn offset(shared: Arc<Shared>) {
    // A part of the box or all of it is in the first viewport of 240 px.
    for (top, height) in [(200, 100), (180, 40)] {
        let html = format!(
            "<!doctype html><style>body {{ margin: 0 }} b {{ display: block; height: {height}px; background: green; opacity: 0 }}\
             .on {{ opacity: 1 }}</style><p style='margin:0;height:{top}px'></p><b></b><p style='height:999px'></p><script>\
             onscroll = () => document.querySelector('b').classList.toggle('on', scrollY + innerHeight > {top} + 120)</script>"
        );
        assert_eq!(colour(&shared, &html, json!({}), top + height / 2).await, GREEN, "{top}");
    }
}

async fn left(shared: Arc<Shared>) {
    let layers = "section { position: relative; height: 100px } section > * { position: absolute; inset: 0; height: 100px }";
    // A placeholder that goes when its content has come.
    let placeholder = page(
        &format!("{layers} i {{ background: red }} .gone {{ opacity: 0 }}"),
        "",
        "if (on) setTimeout(() => t.nextSibling.classList.add('gone'), 300)",
    )
    .replace("</section>", "<i></i></section>");
    assert_eq!(colour(&shared, &placeholder, json!({}), TOP + 50).await, GREEN);
    // Slides of which one is shown at a time, for 200 ms each.
    let slides = page(
        &format!("{layers} section > * {{ opacity: 0 }} .on {{ opacity: 1 !important }} u {{ background: rgb(0 0 255 / .5) }}"),
        "class=on",
        "",
    )
    .replace("</section>", "<u></u><u></u></section>")
    .replace(
        "<script>",
        "<script>let n = 0; setInterval(() => { const all = document.querySelectorAll('section > *');\
         all[n % 3].className = ''; all[++n % 3].className = 'on' }, 200);",
    );
    let found = colour(&shared, &slides, json!({}), TOP + 50).await;
    assert!([GREEN, [127, 127, 255], [128, 128, 255], [127, 127, 254]].contains(&found), "{found:?}");
    // A bar that is shown only while the page is scrolled, and a header that is hidden then.
    for (style, expected) in [("opacity: 0", RED), ("opacity: 1", BLUE)] {
        let html = page(
            &format!("html {{ background: red }} header {{ position: fixed; top: 0; width: 100%; height: 20px; background: blue; {style} }}"),
            "",
            "",
        )
        .replace("<p></p><section>", "<header></header><p></p><section>")
        .replace(
            "<script>",
            "<script>const bar = document.querySelector('header'), at = getComputedStyle(bar).opacity;\
             onscroll = () => { bar.style.opacity = scrollY > 50 ? 1 - at : at };",
        );
        assert_eq!(colour(&shared, &html, json!({}), 10).await, expected, "{style}");
    }
    // What moves with the page is where it is without scrolling.
    let parallax = page("", "", "")
        .replace(
            "<script>",
            "<script>onscroll = () => { t.style.transform = `translateY(${scrollY / 5}px)` };",
        )
        .replace("const t", "var t");
    assert_eq!(colour(&shared, &parallax, json!({}), TOP + 5).await, GREEN);
}
