//! A picture of more than the viewport is as a reader sees the page who scrolls through it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    Test,
    options::small,
    support::{GREEN, Shared, picture, request},
};

pub(crate) const TESTS: &[Test] = &[
    ("a full page shows what scripts load and show while it is scrolled", |s| Box::pin(seen(s))),
    ("a full page has sticky and fixed elements once and sections of the viewport's height", |s| {
        Box::pin(placed(s))
    }),
    ("a full page that grows at its end is bounded", |s| Box::pin(endless(s))),
];

const RED: [u8; 3] = [255, 0, 0];
const BLUE: [u8; 3] = [0, 0, 255];
/// `waitForTimeout` of a job in real time, and of one in virtual time. A page has three frames in real time first.
const WAITS: [f64; 2] = [0.0, 200.0];

/// Renders the page at 320 × 240, and returns the height and the colours in the middle of these lines.
async fn lines(shared: &Shared, html: &str, fields: Value, lines: &[u32]) -> (u32, Vec<[u8; 3]>) {
    let mut body = small(json!({ "html": html }));
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let rendered = shared.render(&request(&body)).await.unwrap_or_else(|refusal| panic!("{body}: {refusal}"));
    let picture = picture(&rendered.bytes);
    let colours = lines.iter().map(|line| picture.get_pixel(picture.width() / 2, *line).0);
    (picture.height(), colours.collect())
}

async fn seen(shared: Arc<Shared>) {
    let late = shared.site.at("/late.svg");
    let cases = [
        // A picture that is requested when it comes near.
        format!(
            "<img style='display:block' width=320 height=240 data-src='{late}'><script>new IntersectionObserver(all => \
             all.forEach(it => {{ if (it.isIntersecting) it.target.src = it.target.dataset.src }}))\
             .observe(document.images[0])</script>"
        ),
        // A picture that a handler of scroll events requests.
        format!(
            "<img style='display:block' width=320 height=240 data-src='{late}'><script>const image = document.images[0];\
             onscroll = () => {{ const {{ top }} = image.getBoundingClientRect();\
             if (top < innerHeight && !image.src) image.src = image.dataset.src }}</script>"
        ),
        // A picture that a handler of scroll events requests, in a page that runs no callbacks for animation frames.
        format!(
            "<img style='display:block' width=320 height=240 data-src='{late}'><script>const image = document.images[0];\
             window.requestAnimationFrame = () => 0; onscroll = () => {{ if (!image.src && scrollY > 2000)\
             image.src = image.dataset.src }}</script>"
        ),
        // A section that fades in, with a transition and with an animation of a script.
        "<div style='height:240px;background:green;opacity:0;transition:opacity 1s'></div><script>\
         const part = document.querySelector('div'); new IntersectionObserver(([it]) => {\
         if (it.isIntersecting) part.style.opacity = 1 }).observe(part)</script>"
            .to_owned(),
        "<div style='height:240px;background:green;opacity:0'></div><script>\
         const part = document.querySelector('div'); new IntersectionObserver(([it]) => { if (it.isIntersecting)\
         part.animate({ opacity: [0, 1] }, { duration: 1000, fill: 'both' }) }).observe(part)</script>"
            .to_owned(),
        // A lazy image that a script adds.
        format!(
            "<div style='height:240px'></div><script>const part = document.querySelector('div');\
             new IntersectionObserver(([it]) => {{ if (it.isIntersecting && !part.firstChild) part.innerHTML =\
             '<img loading=lazy style=display:block width=320 height=240 src={late}>' }}).observe(part)</script>"
        ),
    ];
    for (number, case) in cases.iter().enumerate() {
        let html =
            format!("<!doctype html><body style='margin:0'><p style='height:3000px;margin:0'>x</p>{case}");
        for wait in WAITS {
            for fields in [
                json!({ "fullPage": true }),
                json!({ "clip": { "x": 0, "y": 2900, "width": 320, "height": 340 } }),
            ] {
                let mut fields = fields;
                fields["waitForTimeout"] = wait.into();
                let top = if fields["clip"].is_object() { 2900 } else { 0 };
                let requests = shared.site.hits("/late.svg");
                let (height, found) = lines(&shared, &html, fields, &[3120 - top]).await;
                let requests = shared.site.hits("/late.svg") - requests;
                let context = format!("{number} {wait}, {requests} requests of the image");
                assert_eq!((height, found), (3240 - top, vec![GREEN]), "{context}");
            }
            let selector = json!({ "selector": "img, div", "waitForTimeout": wait });
            let (height, found) = lines(&shared, &html, selector, &[120]).await;
            assert_eq!((height, found), (240, vec![GREEN]), "{number} {wait}");
        }
    }
}

async fn placed(shared: Arc<Shared>) {
    // A header that is hidden when the reader scrolls down, and one that is sticky; a section of the viewport's height.
    let html = "<!doctype html><body style='margin:0'>\
        <header style='position:POSITION;top:0;width:100%;height:20px;background:blue'></header>\
        <section style='height:100vh;background:green'></section><div style='height:1000px;background:red'></div>\
        <script>onscroll = () => document.querySelector('header').style.display = scrollY > 10 ? 'none' : ''</script>";
    for (position, top) in [("sticky", 20), ("fixed", 0)] {
        for wait in WAITS {
            let fields = json!({ "fullPage": true, "waitForTimeout": wait });
            let html = html.replace("POSITION", position);
            let at = [10, 30, 239 + top, 240 + top, 480, 720, 1239 + top];
            let (height, found) = lines(&shared, &html, fields, &at).await;
            assert_eq!(height, 1240 + top, "{position} {wait}");
            assert_eq!(found, [BLUE, GREEN, GREEN, RED, RED, RED, RED], "{position} {wait}");
        }
    }
    // A page that has scrolled itself is captured there.
    let html = "<!doctype html><body style='margin:0'><div style='height:2000px'></div><script>scrollTo(0, 500);\
        const at = document.body.appendChild(document.createElement('div')); at.style.cssText = 'height:20px';\
        onscroll = () => at.style.background = scrollY === 500 ? 'green' : 'red'</script>";
    let (height, found) = lines(&shared, html, json!({ "fullPage": true }), &[2010]).await;
    assert_eq!((height, found), (2020, vec![GREEN]));
}

async fn endless(shared: Arc<Shared>) {
    let html = "<!doctype html><body style='margin:0'><div style='height:500px;background:green'></div><script>\
        onscroll = () => { if (scrollY + innerHeight > document.documentElement.scrollHeight - 50) {\
        const more = document.createElement('div'); more.style.cssText = 'height:500px;background:blue';\
        document.body.append(more) } }</script>";
    for wait in WAITS {
        let fields = json!({ "fullPage": true, "waitForTimeout": wait });
        let (height, found) = lines(&shared, html, fields, &[250, 750]).await;
        assert_eq!((height, found), (1_000, vec![GREEN, BLUE]), "{wait}");
    }
}
