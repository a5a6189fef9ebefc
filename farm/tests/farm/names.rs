//! Markup whose ids and names are those of members of the document, the window and elements, and scripts that replace these
//! members, change nothing in the scripts of the farm.

use std::{collections::BTreeSet, sync::Arc};

use platen_harness::{pdf_file::Pdf, site::Reply};
use platen_shared::job::RenderJob;
use serde_json::{Value, json};

use crate::support::{Shared, dimensions, of, request, small, with};

tests! {
    "names in the markup do not change the scripts of the farm" => names,
    "members that the page replaces do not change the scripts of the farm" => replaced,
    "a selector is checked in an empty document" => selectors,
}

/// Options that run scripts of the farm.
fn options() -> Vec<Value> {
    vec![
        json!({}),
        json!({ "fullPage": true }),
        json!({ "fullPage": true, "deviceScaleFactor": 2, "format": "webp" }),
        json!({ "clip": { "x": 0, "y": 1200, "width": 300, "height": 300 } }),
        json!({ "selector": "#target" }),
        json!({ "selector": "#below" }),
        json!({ "waitForSelector": "#target" }),
        json!({ "waitForSelector": "#below", "selector": "#below" }),
        json!({ "waitForTimeout": 100 }),
        json!({ "waitForTimeout": 100, "fullPage": true }),
        json!({ "waitUntil": "networkidle" }),
        json!({ "css": "#target { background: blue }" }),
        json!({ "css": "#target { background: blue }", "waitForTimeout": 50 }),
        json!({ "css": "#target { background: blue }", "javaScript": false }),
        json!({ "omitBackground": true }),
        json!({ "format": "pdf" }),
        json!({ "format": "pdf", "waitForTimeout": 50 }),
        json!({ "format": "pdf", "margin": "3cm" }),
        json!({ "format": "pdf", "landscape": true }),
        json!({ "format": "pdf", "singlePage": true }),
        json!({ "format": "pdf", "singlePage": true, "preferCssPageSize": true, "margin": "1cm" }),
        json!({ "format": "pdf", "preferCssPageSize": true, "margin": 0 }),
        json!({ "format": "pdf", "css": "#target { display: none }" }),
    ]
}

/// A page with something for each of the scripts to do: a focused field, a scrolled container, an animation, a lazy image
/// far below, a section that a script shows when it is in view, and forms around and as the elements of the selectors.
fn page(controls: &str, end: &str, script: bool) -> String {
    let show = "const late = document.querySelector('#below p'), { style } = late; new IntersectionObserver(([entry]) => \
         { if (entry.isIntersecting) style.color = 'green' }).observe(late)";
    let show = if script { format!("<script>{show}</script>") } else { String::new() };
    format!(
        "<!doctype html><title>t</title><style>@page {{ size: A5; margin: 1cm }} body {{ margin: 0; font: 16px Arial }}\
         #scrolls {{ overflow: auto; height: 100px }} #scrolls form {{ margin-top: 200px }} form {{ margin: 0 }}\
         @keyframes fade {{ to {{ opacity: 0.5 }} }} h1 {{ animation: fade 60s steps(1) both }}</style>\
         <h1>Head</h1><div id=scrolls><form id=target>Target <input value=x>{controls}</form></div>\
         <div style='height:1200px'></div><form id=below tabindex=0><p>Below</p>\
         <img loading=lazy width=50 height=50 src=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'>\
         <rect width='99' height='99' fill='blue'/></svg>\">{controls}</form>{show}{end}"
    )
}

/// What a caller sees of a file: the pixels, or the text and the size of each page.
async fn shown(shared: &Shared, job: &RenderJob) -> Result<(Vec<u8>, String), String> {
    let file = shared.render(job).await.map_err(|refusal| refusal.to_string())?.bytes;
    if !file.starts_with(b"%PDF") {
        let image = image::load_from_memory(&file).unwrap();
        return Ok((image.to_rgba8().into_raw(), format!("{}×{}", image.width(), image.height())));
    }
    let pdf = Pdf::parse(&file).unwrap();
    Ok((Vec::new(), format!("{:?} {}", pdf.pages().unwrap(), pdf.text().unwrap())))
}

/// Renders both pages of a pair with each of the options, and compares them.
async fn compare(shared: &Shared, pages: &[(String, String)]) {
    for (number, fields) in options().into_iter().enumerate() {
        let (plain, changed) = &pages[number % pages.len()];
        // The caret blinks, and stands still after a wait only.
        let focus = if fields.get("waitForTimeout").is_some() { "<input autofocus" } else { "<input" };
        let body = |html: &str| {
            let html = html.replacen("<input", focus, 1);
            small(with(json!({ "html": html }), &fields))
        };
        let expected = shown(shared, &body(plain)).await;
        assert!(expected.is_ok(), "{fields}: {expected:?}");
        let found = shown(shared, &body(changed)).await;
        let texts = [&expected, &found].map(|shown| shown.as_ref().map(|(_, text)| text));
        assert!(expected == found, "{fields}: {texts:?}");
    }
}

/// The names of the members of an object.
async fn members(shared: &Shared, object: &str) -> BTreeSet<String> {
    let script = format!(
        "const names = []; for (let object = {object}; object; object = Object.getPrototypeOf(object)) \
         names.push(...Object.getOwnPropertyNames(object)); fetch('/names', {{ headers: {{ names: names.join() }} }})"
    );
    shared.site.put("/names", Reply::page(""));
    let page = shared.site.put("/lists-names", Reply::page(format!("<script>{script}</script>")));
    shared.file(&request(&json!({ "url": page, "waitUntil": "networkidle" }))).await;
    let headers = shared.site.last_headers("/names");
    headers["names"].to_str().unwrap().split(',').map(ToOwned::to_owned).collect()
}

async fn names(shared: Arc<Shared>) {
    let document = members(&shared, "document").await;
    let form = members(&shared, "document.createElement('form')").await;
    let window = members(&shared, "window").await;
    assert!(
        document.contains("adoptedStyleSheets") && form.contains("matches") && window.contains("scrollX")
    );
    // The names that the farm's own scripts use.
    let own = BTreeSet::from(
        ["as", "own", "platen", "style", "frame", "callbacks", "moved", "scroll"].map(String::from),
    );
    let all: BTreeSet<_> = document.union(&form).chain(&window).chain(&own).collect();
    // An element with a name costs Chromium the more time the more there are.
    let named: Vec<_> = document.iter().map(|name| format!("<img name='{name}'>")).collect();
    let ids: Vec<_> = all.iter().map(|name| format!("<i id='{name}'></i>")).collect();
    // A form whose members are the elements around it.
    let around: Vec<_> = form.iter().map(|name| format!("<fieldset name='{name}' form=inner>")).collect();
    let ends = "</fieldset>".repeat(around.len());
    let around = format!("{}<form id=inner></form>{ends}", around.concat());
    let elements = format!("<div style='display:none'>{}{}{around}</div>", named.concat(), ids.concat());
    let controls: Vec<_> = form.iter().map(|name| format!("<input type=hidden name='{name}'>")).collect();
    let controls = controls.concat();
    let pair = |script| (page("", "", script), page(&controls, &elements, script));
    compare(&shared, &[false, true].map(pair)).await;
}

async fn replaced(shared: Arc<Shared>) {
    let replace = "<script>const fail = () => { throw 1 }, { getOwnPropertyNames, defineProperty } = Object, types = [Document, Element, HTMLElement, Node, EventTarget, Array,\
         Promise, Function, Object, CSSStyleSheet, IntersectionObserver, Animation, Proxy, Reflect, Window];\
         for (const type of types) for (const object of [type, type.prototype])\
         for (const name of getOwnPropertyNames(object)) if (name !== 'constructor')\
         try { defineProperty(object, name, { get: () => fail, set: fail }) } catch {}\
         for (const name of getOwnPropertyNames(window)) try { window[name] = fail } catch {}</script>";
    compare(&shared, &[(page("", "", true), page("", replace, true))]).await;
}

async fn selectors(shared: Arc<Shared>) {
    for name in ["createDocumentFragment", "querySelector", "adoptedStyleSheets", "body"] {
        let page = format!("<img name={name}><p id=a style='width:20px;height:10px;margin:0'>");
        for _ in 0..3 {
            let job = small(json!({ "html": page, "selector": "#a", "waitForSelector": "p" }));
            let file = shared.file(&of("acc_names", job)).await;
            assert_eq!(dimensions(&file), (20, 10), "{name}");
        }
    }
}
