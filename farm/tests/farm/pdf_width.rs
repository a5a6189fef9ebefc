//! PDFs of content that is made smaller or larger.

use std::sync::Arc;

use platen_shared::refusal::Refusal;
use serde_json::json;

use crate::support::{Shared, with};

tests! {
    "content that is too wide is scaled down on request" => fit_to_width,
    "a page that begins at the right can have a scale" => from_right,
}

/// CSS pixels of a point.
const PIXELS: f64 = 96.0 / 72.0;

/// Points of 1 cm.
const CENTIMETRE: f64 = 72.0 / 2.54;

async fn fit_to_width(shared: Arc<Shared>) {
    let row = |width: u32| {
        format!(
            "<div style='display:flex;justify-content:space-between;width:{width}px'><b>From</b><b>To</b></div>"
        )
    };
    let wide = row(2_000);
    let body = |inner: &str| format!("<!doctype html><body style='margin:0'>{inner}");
    let scrolled = body(&format!("<div style='overflow-x:auto'>{wide}</div><p>Next"));
    let own_margins = body(&format!("<style>@page {{ margin: 1cm 4cm }}</style>{wide}"));
    let landscape = body(&format!("<style>@page {{ size: A3 landscape }}</style>{wide}"));
    let grows = body(&format!("<div style='width:100vw;margin:0 4px'>{}</div>", row(3_000)));
    let script = body(&format!(
        "<div id=a></div><script>a.innerHTML = {}; addEventListener('resize', () => a.remove())</script>",
        json!(wide)
    ));
    let quirks = format!("<body style='margin:0'><div style='position:absolute'>{wide}</div>");
    let from_right = format!("<!doctype html><html dir=rtl><body style='margin:0'><div dir=ltr>{wide}</div>");
    let own_sheet = body(&format!("<style>@page {{ size: 10cm; margin: 0.45cm }}</style>{wide}"));
    for (html, fields, left, right) in [
        (&body(&wide), json!({}), 1.0, 20.0),
        (&scrolled, json!({}), 1.0, 20.0),
        (&body(&wide), json!({ "margin": "3cm" }), 3.0, 18.0),
        (&body(&wide), json!({ "margin": 0, "landscape": true, "singlePage": true }), 0.0, 29.7),
        (&own_margins, json!({}), 4.0, 17.0),
        (&landscape, json!({ "preferCssPageSize": true }), 1.0, 41.0),
        (
            &body(&wide),
            json!({ "headerHtml": "<i>Head</i>", "tagged": true, "printBackground": true }),
            1.0,
            20.0,
        ),
        (&grows, json!({}), 1.0, 20.0),
        (&script, json!({}), 1.0, 20.0),
        (&quirks, json!({}), 1.0, 20.0),
        (&from_right, json!({}), 1.0, 20.0),
        // The sheet of the page is in the middle of that of the file.
        (&own_sheet, json!({}), 5.95, 15.05),
        // Wider than a tenth: as much as fits.
        (&body(&row(6_000)), json!({}), 1.0, 20.0),
    ] {
        let pdf = shared.pdf(with(json!({ "html": html, "fitToWidth": true }), &fields)).await;
        let [from, to] = ["From", "To"]
            .map(|word| pdf.word(word).unwrap_or_else(|error| panic!("{fields} {html}: {error}")));
        assert!((from.left - left * CENTIMETRE).abs() < 2.0, "{fields} {html}: from {}", from.left);
        let end = right * CENTIMETRE;
        assert!(
            (end - 3.0..end + 1.0).contains(&to.right),
            "{fields} {html}: to {} instead of {end}",
            to.right
        );
    }
    // What fits is not changed, and text takes the wider lines.
    let size = |pdf: &platen_harness::pdf_file::Pdf| {
        let word = pdf.word("From").unwrap();
        word.bottom - word.top
    };
    let narrow = json!({ "html": body(&row(700)), "fitToWidth": true });
    let plain = json!({ "html": body(&row(700)) });
    assert!((size(&shared.pdf(narrow).await) - size(&shared.pdf(plain).await)).abs() < 0.1);
    let text = format!("{}<p>{}", row(1_400), "word ".repeat(60));
    let lines = |pdf: &platen_harness::pdf_file::Pdf| {
        let mut tops: Vec<_> =
            pdf.words().unwrap().iter().filter(|it| it.text == "word").map(|it| it.top.round()).collect();
        tops.dedup();
        tops.len()
    };
    let fitted = shared.pdf(json!({ "html": body(&text), "fitToWidth": true })).await;
    let whole = shared.pdf(json!({ "html": body(&text.replace("1400", "700")) })).await;
    assert!(lines(&fitted) < lines(&whole), "{} {}", lines(&fitted), lines(&whole));
}

async fn from_right(shared: Arc<Shared>) {
    let right = |margin: f64, scale: f64| 72.0 / 25.4 * 200.0 - margin / PIXELS * scale;
    let page = |attributes: &str, body: &str| {
        format!("<!doctype html><html {attributes}><body {body}><p>Word<p style='break-before:page'>Next")
    };
    for (html, margin) in [
        (page("dir=rtl", ""), 8.0),
        (page("dir=rtl", "style='width:400px;margin:0'"), 0.0),
        (page("", "dir=rtl style='margin:0 3px 0 9px'"), 3.0),
        (page("style='direction:rtl'", "style='margin:0;max-width:200px'"), 0.0),
    ] {
        for scale in [0.3, 1.0, 1.7] {
            let pdf = shared.pdf(json!({ "html": html, "scale": scale })).await;
            assert_eq!(pdf.pages().unwrap().len(), 2);
            for word in ["Word", "Next"] {
                let found = pdf.word(word).unwrap_or_else(|error| panic!("{html} {scale}: {error}"));
                let expected = right(margin, scale);
                assert!((found.right - expected).abs() < 2.0, "{html} {scale}: {} {expected}", found.right);
            }
        }
    }
    // Chromium makes what is too wide smaller.
    let code = "<p>Word<div dir=ltr><div style='width:900px;display:flex;justify-content:space-between'><b>From</b><b>To</b></div>";
    let pdf = shared.pdf(json!({ "html": format!("<!doctype html><html dir=rtl><body>{code}") })).await;
    let [from, to, word] = ["From", "To", "Word"].map(|word| pdf.word(word).unwrap());
    // Chromium rounds the margins to pixels.
    let (left, right) = (CENTIMETRE - 1.0, 20.0 * CENTIMETRE + 2.0);
    assert!(from.left > left && to.right < right && word.right < right, "{from:?} {to:?} {word:?}");
    let vertical = page("style='writing-mode:vertical-rl'", "");
    let refusal = shared.no_pdf(json!({ "html": vertical, "scale": 0.5 })).await;
    assert_eq!(refusal, Refusal::VerticalScale);
    let pdf = shared.pdf(json!({ "html": vertical, "fitToWidth": true })).await;
    assert_eq!(pdf.pages().unwrap().len(), 2);
}
