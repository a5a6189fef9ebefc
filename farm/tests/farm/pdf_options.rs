//! The options of PDFs.

use std::sync::Arc;

use platen_harness::pdf_file::{Pdf, Word};
use platen_shared::refusal::Refusal;
use serde_json::{Value, json};

use crate::support::{Shared, site::Site, with};

tests! {
    "paper is landscape or of any size" => sheets,
    "margins have precedence over the page's rule" => margins,
    "the page's size is preferred on request" => css_page_size,
    "headers and footers are on every page" => headers,
    "a header runs no script and loads nothing" => hostile_header,
    "page ranges select pages" => page_ranges,
    "a single page is as tall as its content" => single_page,
    "every PDF has the colours and the motion of its reader" => media_features,
    "a PDF of 1,000 pages is whole, and tagged on request" => thousand_pages,
}

/// Points of a millimetre.
const MM: f64 = 72.0 / 25.4;
/// Chromium rounds sheets and positions to CSS pixels, of 0.75 points.
const TOLERANCE: f64 = 1.0;

const WORD: &str =
    "<!doctype html><style>body{margin:0;font:16px Liberation Sans}p{margin:0}</style><p>Hello";

/// The PDF of a request with these fields, by default of [`WORD`].
async fn pdf(shared: &Shared, fields: &Value) -> Pdf {
    shared.pdf(with(json!({ "html": WORD }), fields)).await
}

fn is_near(value: f64, expected: f64) -> bool {
    (value - expected).abs() < TOLERANCE
}

async fn sheets(shared: Arc<Shared>) {
    for (fields, width, height) in [
        (json!({}), 210.0, 297.0),
        (json!({ "scale": 2 }), 210.0, 297.0),
        (json!({ "landscape": true }), 297.0, 210.0),
        (json!({ "pdfFormat": "Ledger", "landscape": true }), 431.8, 279.4),
        (json!({ "pdfWidth": "100mm", "pdfHeight": "4in" }), 100.0, 101.6),
        (json!({ "pdfWidth": "100mm", "pdfHeight": "150mm", "landscape": true }), 150.0, 100.0),
        (json!({ "pdfWidth": "10mm", "pdfHeight": "10mm", "margin": 0 }), 10.0, 10.0),
        (json!({ "pdfWidth": 19_200, "pdfHeight": "5080mm" }), 5_080.0, 5_080.0),
    ] {
        let pages = pdf(&shared, &fields).await.pages().unwrap();
        assert!(
            pages.len() == 1 && is_near(pages[0].0, width * MM) && is_near(pages[0].1, height * MM),
            "{fields}: {pages:?}"
        );
    }
}

async fn margins(shared: Arc<Shared>) {
    let rule = |rule: &str| format!("{WORD}<style>{rule}</style>");
    for (fields, left, top) in [
        (json!({}), 10.0, 10.0),
        (json!({ "margin": 0 }), 0.0, 0.0),
        (json!({ "margin": "30mm" }), 30.0, 30.0),
        (json!({ "margin": { "top": "2in", "left": "5cm" } }), 50.0, 50.8),
        (json!({ "margin": { "bottom": "2in" } }), 0.0, 0.0),
        (json!({ "html": rule("@page{margin:40mm}") }), 40.0, 40.0),
        (json!({ "html": rule("@page{margin:40mm}"), "margin": "15mm" }), 15.0, 15.0),
        (json!({ "html": rule("@page :first{margin:40mm}"), "margin": "15mm" }), 15.0, 15.0),
        (json!({ "html": rule("@page{margin:40mm}"), "margin": "15mm", "javaScript": false }), 15.0, 15.0),
        (json!({ "css": "@page{margin:25mm}" }), 25.0, 25.0),
        (json!({ "css": "@page{margin:25mm}", "javaScript": false }), 25.0, 25.0),
        (json!({ "css": "@page{margin:25mm}", "margin": "15mm" }), 15.0, 15.0),
        (
            json!({ "html": format!("{WORD}<script>CSSStyleSheet = null</script>"), "margin": "15mm" }),
            15.0,
            15.0,
        ),
        (json!({ "margin": "20mm", "scale": 0.5 }), 20.0, 20.0),
        (json!({ "margin": "20mm", "landscape": true }), 20.0, 20.0),
    ] {
        let found = pdf(&shared, &fields).await.word("Hello").unwrap();
        assert!(is_near(found.left, left * MM), "{fields}: {found:?}");
        // The box of a word is that of its font, which begins within the line.
        assert!((-TOLERANCE..6.0).contains(&(found.top - top * MM)), "{fields}: {found:?}");
    }
    let html = rule("@page{size:50mm 50mm}");
    let refusal = shared.no_pdf(json!({ "html": html, "margin": "40mm", "preferCssPageSize": true })).await;
    assert_eq!(refusal, Refusal::NoSpaceBetweenMargins);
}

async fn css_page_size(shared: Arc<Shared>) {
    let html = |size: &str| format!("{WORD}<style>@page{{size:{size}}}</style>");
    for (fields, width, height) in [
        (json!({ "html": html("A5"), "preferCssPageSize": true }), 148.0, 210.0),
        (json!({ "html": html("A5") }), 210.0, 297.0),
        (json!({ "html": html("A5"), "landscape": true }), 297.0, 210.0),
        (json!({ "html": html("portrait"), "landscape": true }), 297.0, 210.0),
        (json!({ "html": html("A5 landscape"), "preferCssPageSize": true }), 210.0, 148.0),
        (json!({ "html": html("A5"), "preferCssPageSize": true, "landscape": true }), 148.0, 210.0),
        (json!({ "html": WORD, "preferCssPageSize": true, "landscape": true }), 297.0, 210.0),
        (json!({ "html": html("100mm 50mm"), "preferCssPageSize": true, "margin": "5mm" }), 100.0, 50.0),
    ] {
        let pages = pdf(&shared, &fields).await.pages().unwrap();
        assert!(is_near(pages[0].0, width * MM) && is_near(pages[0].1, height * MM), "{fields}: {pages:?}");
    }
}

const THREE_PAGES: &str =
    "<!doctype html><title>Report 7</title><style>p{break-after:page}</style><p>One<p>Two<h1>Three";

async fn headers(shared: Arc<Shared>) {
    let header = "<div style='width:100%;text-align:center'>Top <span class=title></span></div>";
    let footer = "<div style='margin-left:20mm;font-size:8pt'>Page <span class=pageNumber></span> of \
         <span class=totalPages></span> <span class=date></span> <span class=url></span></div>";
    let fields = json!({ "html": THREE_PAGES, "headerHtml": header, "footerHtml": footer, "margin": "25mm" });
    let words = shared.pdf(fields).await.words().unwrap();
    for page in 1..=3 {
        let of_page: Vec<&Word> = words.iter().filter(|word| word.page == page).collect();
        let texts: Vec<&str> = of_page.iter().map(|word| word.text.as_str()).collect();
        for text in ["Top", "Report", "7", "Page", &page.to_string(), "of", "3", "about:blank"] {
            assert!(texts.contains(&text), "{text} is not on page {page}: {texts:?}");
        }
        let top = of_page.iter().find(|word| word.text == "Top").unwrap();
        let foot = of_page.iter().find(|word| word.text == "Page").unwrap();
        // 10 CSS pixels without a size of their own.
        assert!(top.top < 20.0 * MM && is_near(top.bottom - top.top, 8.4), "{top:?}");
        assert!(foot.top > 277.0 * MM && is_near(foot.left, 20.0 * MM), "{foot:?}");
    }
    // One of them alone, and none of Chromium's own.
    for (fields, expected) in [
        (json!({ "headerHtml": "<b>Only</b>" }), "Only Hello"),
        (json!({ "footerHtml": "<b>Only</b>", "scale": 2 }), "Only Hello"),
        (json!({ "headerHtml": "" }), "Hello"),
    ] {
        assert_eq!(pdf(&shared, &fields).await.text().unwrap(), expected);
    }
}

async fn hostile_header(shared: Arc<Shared>) {
    // Pages of other tests request unknown paths of theirs.
    let site = Site::start().await;
    let secret = site.forbidden();
    let fetched = site.at("/header-image");
    let run = "document.body.append('RAN')";
    let hostile = format!(
        "Seen<script>{run}</script><img src=x onerror=\"{run}\"><svg onload=\"{run}\"></svg><iframe srcdoc='<b>FRAME</b>'></iframe>\
         <details open ontoggle=\"{run}\">d</details><input autofocus onfocus=\"{run}\"><img src='{secret}'><img src='{fetched}'>\
         <iframe src='{secret}'></iframe><object data='{secret}'></object><video src='{secret}' onloadstart=\"{run}\"></video>\
         <style>div{{background:url({secret})}}</style><b>q</b>\
         <meta http-equiv=refresh content='0;url={secret}'>"
    );
    for fields in [json!({ "headerHtml": hostile }), json!({ "footerHtml": hostile, "waitForTimeout": 500 })]
    {
        let text = pdf(&shared, &fields).await.text().unwrap();
        assert!(text.contains("Seen") && !text.contains("RAN") && !text.contains("FRAME"), "{text}");
    }
    assert_eq!(site.forbidden_requests(), 0);
    for refused in [
        format!("<link rel=stylesheet href='{fetched}'>x"),
        format!("<style>@import '{fetched}'</style>x"),
        format!("<style>@font-face{{font-family:q;src:url({fetched})}} b{{font-family:q}}</style><b>q</b>"),
    ] {
        let refusal = shared.no_pdf(json!({ "html": WORD, "headerHtml": refused })).await;
        assert_eq!(refusal, Refusal::HeaderFailed, "{refused}");
    }
    assert_eq!(site.forbidden_requests(), 0);
    // The text of another page cannot leave the header's elements.
    let html = "<!doctype html><title></script><script>document.body.append('RAN')</script></title><p>Hello";
    let fields = json!({ "html": html, "headerHtml": "<span class=title></span>" });
    let text = shared.pdf(fields).await.text().unwrap();
    assert!(text.contains("</script>"), "{text}");
}

async fn page_ranges(shared: Arc<Shared>) {
    let footer = "<i class=pageNumber></i>/<i class=totalPages></i>";
    for (fields, expected) in [
        (json!({ "pageRanges": "1" }), "One"),
        (json!({ "pageRanges": "2-3" }), "Two Three"),
        (json!({ "pageRanges": "1, 3" }), "One Three"),
        (json!({ "pageRanges": "1-3" }), "One Two Three"),
        // Pages keep their numbers.
        (json!({ "pageRanges": "2", "footerHtml": footer }), "2/3 Two"),
    ] {
        let pdf = shared.pdf(with(json!({ "html": THREE_PAGES }), &fields)).await;
        assert_eq!(pdf.text().unwrap(), expected, "{fields}");
    }
    for ranges in ["4", "1-4", "1, 3, 100", "4294967295"] {
        let refusal = shared.no_pdf(json!({ "html": THREE_PAGES, "pageRanges": ranges })).await;
        assert_eq!(refusal, Refusal::PageRangeExceeded, "{ranges}");
    }
}

async fn single_page(shared: Arc<Shared>) {
    let tall = "<!doctype html><style>body{margin:0}</style><div style='height:3000px;background:green'>Top</div><p>End";
    for (fields, width, height) in [
        (json!({ "html": tall, "margin": 0 }), 595.5, 3050.0 * 0.75),
        (json!({ "html": tall, "margin": "1in" }), 595.5, 3050.0 * 0.75 + 144.0),
        (json!({ "html": tall, "margin": 0, "scale": 0.5 }), 595.5, 1525.0 * 0.75),
        (json!({ "html": tall, "margin": 0, "landscape": true }), 842.25, 3050.0 * 0.75),
        (json!({ "html": "<!doctype html><body style='margin:0'>One", "margin": 0 }), 595.5, 14.0),
        (json!({ "html": format!("{tall}<style>@page{{margin:0}}") }), 595.5, 3050.0 * 0.75),
        (json!({ "html": format!("{tall}<style>@page{{margin:40mm}}") }), 595.5, 3050.0 * 0.75 + 80.0 * MM),
        (
            json!({ "html": format!("{tall}<style>@page{{size:landscape}}"), "margin": 0 }),
            595.5,
            3050.0 * 0.75,
        ),
        (
            json!({ "html": format!("{tall}<style>@page{{size:A5}}"), "margin": 0, "preferCssPageSize": true }),
            419.5,
            3050.0 * 0.75,
        ),
        (json!({ "html": THREE_PAGES, "margin": 0 }), 595.5, 130.0 * 0.75),
        (
            json!({ "html": "<!doctype html><body style='margin:0;min-height:100vh'><div style='height:2000px'>", "margin": 0 }),
            595.5,
            2000.0 * 0.75,
        ),
    ] {
        let pdf = shared.pdf(with(json!({ "singlePage": true }), &fields)).await;
        let pages = pdf.pages().unwrap();
        assert!(
            pages.len() == 1 && is_near(pages[0].0, width) && (pages[0].1 - height).abs() < 20.0,
            "{fields}: {pages:?}"
        );
    }
    let huge = json!({ "html": "<!doctype html><div style='height:20000px'>", "singlePage": true });
    assert_eq!(shared.no_pdf(huge).await, Refusal::NotOnePage);
    // The page cannot see it: its scripts would change the content.
    let sees = "<!doctype html><p>Kept<script>addEventListener('resize', () => document.body.textContent = 'Changed');\
         matchMedia('print').onchange = () => document.body.textContent = 'Changed'</script><noscript>No scripts</noscript>\
         <style>@media (scripting: none) { p { display: none } }</style><style>@layer a { @media not all and (scripting) { p { display: none } } }\
         </style><iframe srcdoc='<noscript>None</noscript>'></iframe>";
    for (html, text) in [(THREE_PAGES, "One Two Three"), (sees, "Kept")] {
        assert_eq!(shared.pdf(json!({ "html": html, "singlePage": true })).await.text().unwrap(), text);
    }
}

async fn media_features(shared: Arc<Shared>) {
    let html = "<!doctype html><style>b,i{display:none}@media (prefers-color-scheme:dark){b{display:inline}}\
        @media (prefers-reduced-motion:reduce){i{display:inline}}</style><p>Text <b>DARK</b> <i>STILL</i><script>onbeforeprint = null</script>";
    for fields in [
        json!({}),
        json!({ "singlePage": true }),
        json!({ "fitToWidth": true }),
        json!({ "headerFirstHtml": "" }),
        json!({ "fitToWidth": true, "headerFirstHtml": "" }),
    ] {
        let reader = json!({ "html": html, "colorScheme": "dark", "reducedMotion": true });
        let text = shared.pdf(with(reader, &fields)).await.text().unwrap();
        assert_eq!(text, "Text DARK STILL", "{fields}");
    }
}

async fn thousand_pages(shared: Arc<Shared>) {
    let section = |number| {
        format!(
            "<section><h2>Section-{number}</h2><p>{}</section>",
            "Text that fills a paragraph. ".repeat(60)
        )
    };
    let sections: String = (1..=1_000).map(section).collect();
    let html = format!("<!doctype html><style>section + section {{ break-before: page }}</style>{sections}");
    let footer = "<p style='margin:auto'>Page-<i class=pageNumber></i>/<i class=totalPages></i>";
    for tagged in [false, true] {
        let fields = json!({ "html": html, "footerHtml": footer, "margin": "15mm", "tagged": tagged });
        let pdf = shared.pdf(fields).await;
        assert_eq!(pdf.pages().unwrap().len(), 1_000);
        let text = pdf.text().unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        for (prefix, suffix) in [("Section-", ""), ("Page-", "/1000")] {
            let found = words
                .iter()
                .filter_map(|word| word.strip_prefix(prefix)?.strip_suffix(suffix)?.parse::<u32>().ok());
            assert!(found.eq(1..=1_000), "{prefix} on every page, in order");
        }
        assert_eq!((pdf.is_tagged().unwrap(), pdf.outline().unwrap().is_empty()), (tagged, true));
    }
}
