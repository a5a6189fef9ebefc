//! PDFs of content that is made smaller or larger.

use std::sync::Arc;

use image::DynamicImage;
use platen_harness::pdf_file::Word;
use platen_shared::refusal::Refusal;
use serde_json::json;

use crate::support::{Shared, with};

tests! {
    "content that is too wide is scaled down on request" => fit_to_width,
    "content that is wide at the left, scrolled or fixed is scaled down as well" => other_sides,
    "content that is placed outside of the page is not" => placed_outside,
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

/// Whether something is drawn in the first and in the last quarter of a word.
fn is_drawn(pages: &[DynamicImage], word: &Word) -> bool {
    let page = pages[word.page - 1].to_luma8();
    let pixels = |points: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is on the page")]
        let pixels = (points / 72.0 * f64::from(RESOLUTION)).round() as u32;
        pixels
    };
    let quarter = (word.right - word.left) / 4.0;
    [word.left, word.right - quarter].into_iter().all(|left| {
        (pixels(left)..=pixels(left + quarter)).any(|x| {
            (pixels(word.top)..pixels(word.bottom))
                .any(|y| page.get_pixel_checked(x, y).is_some_and(|it| it.0[0] < 200))
        })
    })
}

/// Pixels per inch, at which words of a tenth of their size can be seen.
const RESOLUTION: u32 = 100;

async fn other_sides(shared: Arc<Shared>) {
    let item = |style: &str| {
        format!("<div style='display:flex;justify-content:space-between;{style}'><b>From</b><b>To</b></div>")
    };
    let wide = item("flex:none;width:2000px");
    let transition = format!(
        "<style>div{{width:100px;transition:width 9s}}@media print{{div{{width:2000px}}}}</style>{}",
        item("")
    );
    let shadow = |content: &str| format!("<div><template shadowrootmode=open>{content}</template></div>");
    let scrolled = |content: &str| format!("<div style='overflow:auto'>{content}</div>");
    let escaped = wide.replace('\'', "&#39;");
    for html in [
        shadow(&scrolled(&wide)),
        shadow(&shadow(&scrolled(&wide))),
        scrolled(&scrolled(&wide)),
        format!("<form style='overflow:auto'><input type=hidden name=style><input type=hidden name=shadowRoot>{wide}</form>"),
        format!("<div style='overflow:scroll;height:60px'>{wide}<p style='height:300px'>Middle</p>Bottom</div>After"),
        format!("<div style='overflow:auto;max-height:30px'><p>{}</p>{wide}</div>", "word ".repeat(300)),
        format!("<style>html{{overflow:hidden;height:100%}}body{{overflow:auto;height:100%}}</style>{wide}"),
        format!("<details open>{}</details>", scrolled(&wide)),
        format!("<iframe width=600 srcdoc='{}'></iframe>", escaped.replace('\'', "&#39;")),
        format!("<iframe width=600 srcdoc=\"<iframe srcdoc='{}'></iframe>\"></iframe>", escaped.replace('&', "&amp;")),
        // Wide at the left.
        format!("<div dir=rtl>{wide}</div>"),
        "<table dir=rtl width=2000><tr><td>To<td align=left>From</table>".to_owned(),
        format!("<div dir=rtl style='white-space:nowrap'>To {} From</div>", "word ".repeat(60)),
        format!("<div dir=rtl>{}</div>", scrolled(&wide)),
        format!("<div style='display:flex;justify-content:flex-end'>{0}{0}{0}</div>", item("flex:none;width:900px")),
        format!("<div style='display:flex;flex-direction:row-reverse'>{wide}</div>"),
        format!("<div style='display:flex;justify-content:center'>{wide}</div>"),
        format!("<div style='display:flex;justify-content:flex-end;width:300px'>{wide}</div>"),
        format!("<div style='display:grid;justify-content:end;grid-template-columns:2000px'>{wide}</div>"),
        format!("<div style='float:right'>{wide}</div>"),
        format!("<div style='position:relative'><div style='position:absolute;right:0'>{wide}</div></div>"),
        "<div dir=rtl><div style='position:relative;width:1500px;height:50px'><b style='position:absolute;left:0'>From</b>\
            <b style='position:absolute;right:0'>To</b></div></div>"
            .to_owned(),
        format!("<div style='margin-left:-200px;width:900px'>{}</div>", item("")),
        format!("<div style='width:700px;transform:scale(2)'>{}</div>", item("")),
        format!("<style>html{{margin-left:50px}}</style><div style='transform:rotate(180deg);width:1500px'>{}</div>", item("width:1200px")),
        "<div style='writing-mode:vertical-rl;height:200px;width:200px'><p>From<p>word<p>word<p>word<p>word<p>word<p>To</div>"
            .to_owned(),
        // Fixed.
        "<p>From<p style='position:fixed;left:1200px'>To".to_owned(),
        "<p>From<div style='overflow:hidden;height:9px'><p style='position:fixed;left:900px;top:90px'>To</div>".to_owned(),
        item("position:fixed;right:10px;width:1500px"),
        item("position:fixed;left:50%;width:1500px"),
        format!("<div style='overflow:auto'><table width=2000><tr><td style='position:sticky;left:0'>From<td>{}\
            <td style='position:sticky;right:0'>To</table></div>", "word ".repeat(90)),
        transition.clone(),
        shadow(&transition),
    ] {
        let html = format!("<!doctype html><body style='margin:0'>{html}");
        let pdf = shared.pdf(json!({ "html": html, "fitToWidth": true })).await;
        let (pages, words) = (pdf.pictures(RESOLUTION).unwrap(), pdf.words().unwrap());
        for text in ["From", "To", "Bottom"].into_iter().filter(|text| html.contains(text)) {
            assert!(words.iter().any(|word| word.text == text), "{html}: {words:?}");
        }
        for word in words {
            // Chromium rounds the margins to pixels.
            let is_inside = word.left > CENTIMETRE - 1.0 && word.right < 20.0 * CENTIMETRE + 1.5;
            assert!(is_inside && is_drawn(&pages, &word), "{html}: {word:?}");
        }
    }
}

async fn placed_outside(shared: Arc<Shared>) {
    for html in [
        "<a style='position:absolute;left:-9999px'>skip</a>",
        "<a style='position:absolute;left:-50px;width:200px;background:red'>part</a>",
        "<h1 style='text-indent:-9999px;white-space:nowrap'>logo</h1>",
        "<b style='float:left;margin-left:-9999px'>margin</b><p style='position:relative;right:9999px'>relative</p>",
        "<nav style='position:fixed;top:0;width:300px;transform:translateX(-100%)'>menu</nav>",
        "<nav style='position:fixed;top:0;width:300px;translate:-110%'>menu</nav>",
        "<nav style='position:fixed;top:0;right:-300px;width:300px'>menu</nav>",
        "<nav style='position:fixed;top:0;left:100%;width:300px'>menu</nav>",
        "<nav style='position:fixed;top:0;left:100vw;width:300px'>menu</nav>",
        "<nav style='position:fixed;top:0;left:0;width:100%;transform:translateX(100%)'>menu</nav>",
        "<div style='overflow:hidden'><div style='display:flex;width:900px;transform:translateX(-300px)'><p>slide</div></div>",
        "<div style='overflow:hidden;width:300px'><template shadowrootmode=open><div style='display:flex;margin-left:-300px'><slot></slot>\
            </div></template><p style='flex:none;width:300px'>one<p style='flex:none;width:300px'>two</div>",
        "<div style='display:none;margin-left:-300px;width:900px'>none</div><div style='opacity:0;margin-left:-300px;width:900px'>none</div>",
        "<div dir=rtl style='visibility:hidden'><p style='width:2000px'>hidden</div>",
        "<details><div style='overflow:auto'><p style='width:2000px'>closed</div></details>",
    ] {
        let size = async |fit: bool| {
            let html = format!("<!doctype html><body style='margin:0'>{html}<p>Size");
            let word = shared.pdf(json!({ "html": html, "fitToWidth": fit })).await.word("Size").unwrap();
            (word.bottom - word.top, word.left)
        };
        let (fitted, plain) = (size(true).await, size(false).await);
        // Chromium itself makes smaller what is too wide at the right.
        assert!(
            (fitted.0 - plain.0).abs() < 0.1 && (fitted.1 - plain.1).abs() < 0.1,
            "{html}: {fitted:?} {plain:?}"
        );
    }
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
