//! Headers and footers of PDFs: their styles, their documents and their dates.

use std::sync::Arc;

use platen_harness::pdf_file::{Pdf, Word};
use serde_json::{Value, json};

use crate::support::{Shared, with};

tests! {
    "a header's own rules for html and body have precedence" => own_rules,
    "styles of header and footer do not reach each other" => scopes,
    "the date of a header follows locale and time zone" => dates,
    "a page cannot change its header" => hostile_pages,
    "content of a header is laid out as in Chromium's" => layout,
    "parts and the first page have rules of their own" => page_rules,
}

/// The PDF of a request with these fields.
async fn pdf(shared: &Shared, fields: &Value) -> Pdf {
    shared.pdf(with(json!({ "html": "<p>Hello", "margin": "25mm" }), fields)).await
}

/// The size of a word's font in CSS pixels. A box has the height of its font: 1.117 for Liberation Sans, in points of 0.75
/// pixels.
fn size(word: &Word) -> f64 {
    ((word.bottom - word.top) / 0.75 / 1.117).round()
}

async fn own_rules(shared: Arc<Shared>) {
    for (header, expected) in [
        ("<p>HEAD", 10.0),
        ("<!doctype html><html><head><title>t</title></head><body><p>HEAD</body></html>", 10.0),
        ("<style>body{font-size:16px}</style><p>HEAD", 16.0),
        ("<style>html{font-size:16px}</style><p>HEAD", 16.0),
        ("<style>:root{font-size:16px} html{font-size:30px}</style><p>HEAD", 16.0),
        ("<style>html,body{font-size:16px}</style><p>HEAD", 16.0),
        ("<style>BODY > p{font-size:16px}</style><p>HEAD", 16.0),
        ("<style>html body.a > p:first-child{font-size:16px}</style><body class=a><p>HEAD", 16.0),
        ("<style>.dark body{font-size:16px}</style><html class=dark><p>HEAD", 16.0),
        ("<style>body{p{font-size:16px}}</style><p>HEAD", 16.0),
        (
            "<style>@media print{body:not(.b){font-size:16px}} @media screen{body{font-size:30px}}</style><p>HEAD",
            16.0,
        ),
        ("<style>@layer a{body{font-size:16px}}</style><p>HEAD", 16.0),
        ("<style>[title=\"html ]body\"]{font-size:16px}</style><p title='html ]body'>HEAD", 16.0),
        ("<style>.html,#body{font-size:30px}</style><style>body{font-size:16px}</style><p>HEAD", 16.0),
        ("<html style='font-size:16px'><p>HEAD", 16.0),
        ("<body style='font-size:8px'><div style='font-size:2em'>HEAD</div>", 16.0),
        ("<style>#header{font-size:16px}</style><p>HEAD", 16.0),
        ("<style>*{font-size:16px}</style><p>HEAD", 16.0),
        // `rem` is of the root of Chromium's document, which no template has.
        ("<p style='font-size:1rem'>HEAD", 16.0),
        ("<p style='font-size:1.25rem'>HEAD", 20.0),
        ("<style>html{font-size:10px}</style><p style='font-size:1rem'>HEAD", 16.0),
        ("<style>html{font-size:62.5%}body{font-size:1rem}</style><p>HEAD", 16.0),
        ("<style>:root{font-size:30px!important}p{font-size:calc(.5rem + 8px)}</style><p>HEAD", 16.0),
        ("<style>@media print{html{font-size:1px}}</style><p style='font:1rem Arial'>HEAD", 16.0),
        ("<html style='font-size:2rem'><p style='font-size:.5em'>HEAD", 16.0),
        ("<style>body{font-size:16px</style><p>HEAD", 16.0),
        ("<style>}body{font-size:30px} body{font-size:16px}</style><p>HEAD", 16.0),
    ] {
        let found = pdf(&shared, &json!({ "headerHtml": header })).await.word("HEAD").unwrap();
        assert!((size(&found) - expected).abs() < 0.1, "{header}: {found:?}");
        let footer = header.replace("#header", "#footer");
        let found = pdf(&shared, &json!({ "footerHtml": footer })).await.word("HEAD").unwrap();
        assert!((size(&found) - expected).abs() < 0.1, "footer {footer}: {found:?}");
    }
}

async fn scopes(shared: Arc<Shared>) {
    for rule in [
        "p{font-size:30px}",
        "body{font-size:30px}",
        "html{font-size:30px!important}",
        ":root{font-size:30px}",
        "*{font-size:30px}",
        "#header,#footer{font-size:30px}",
        "@media print{p{font-size:30px}}",
        "p{font-size:30px} @keyframes k{} @font-face{font-family:x}",
    ] {
        let (styled, plain) = (format!("<style>{rule}</style><p>STYLED"), "<p>PLAIN");
        for fields in [
            json!({ "headerHtml": styled, "footerHtml": plain }),
            json!({ "headerHtml": plain, "footerHtml": styled }),
        ] {
            let pdf = pdf(&shared, &fields).await;
            let [styled, plain] = ["STYLED", "PLAIN"].map(|text| size(&pdf.word(text).unwrap()));
            assert_eq!((styled, plain), (30.0, 10.0), "{fields}");
        }
    }
}

async fn dates(shared: Arc<Shared>) {
    let date = async |fields: Value| {
        let fields = with(json!({ "headerHtml": "<span class='a date b'></span>" }), &fields);
        let text = pdf(&shared, &fields).await.text().unwrap();
        text.trim_end_matches("Hello").trim().to_owned()
    };
    let english = date(json!({})).await;
    assert!(english.ends_with("AM") || english.ends_with("PM"), "{english}");
    assert_eq!(english.matches('/').count(), 2, "{english}");
    for (locale, separator) in [("de-DE", '.'), ("fr-FR", '/'), ("sv-SE", '-'), ("ja-JP", '/')] {
        let text = date(json!({ "locale": locale })).await;
        let is_twelve_hours = text.contains("AM") || text.contains("PM");
        assert!(text.matches(separator).count() == 2 && !is_twelve_hours, "{locale}: {text}");
    }
    // Two zones that never have the same day and hour.
    let (east, west) = (json!({ "timezone": "Pacific/Kiritimati" }), json!({ "timezone": "Pacific/Niue" }));
    assert_ne!(date(east).await, date(west).await);
    let is_styled =
        "<style>.a.date{font-size:16px} .date:empty{font-size:30px}</style><b class='a date'>x</b>";
    let words = pdf(&shared, &json!({ "headerHtml": is_styled, "locale": "de" })).await.words().unwrap();
    assert!(
        words.iter().any(|word| word.text.ends_with(',') && (size(word) - 16.0).abs() < 0.1),
        "{words:?}"
    );
}

async fn hostile_pages(shared: Arc<Shared>) {
    let header = "<style>body{font-size:16px}</style><p>HEAD";
    let csp = "<meta http-equiv=Content-Security-Policy content=\"require-trusted-types-for 'script'; default-src 'none'; trusted-types 'none'\">";
    for html in [
        csp,
        "<img name=createElement><img name=querySelector><img id=DOMParser><form name=defaultView></form>",
        "<script>DOMParser.prototype.parseFromString = Document.prototype.querySelector = String.prototype.replace = null</script>",
        "<script>document.open(); document.write('<p>Other'); document.close()</script>",
    ] {
        for java_script in [true, false] {
            let fields = json!({ "html": html, "headerHtml": header, "javaScript": java_script });
            let found = pdf(&shared, &fields).await.word("HEAD").unwrap();
            assert!((size(&found) - 16.0).abs() < 0.1, "{fields}: {found:?}");
        }
    }
    // The header is converted in an empty document, also where the page before it was kept as it is.
    let fields = json!({ "html": format!("{csp}<img name=createElement><p>Static"), "headerHtml": header });
    for _ in 0..3 {
        assert!((size(&pdf(&shared, &fields).await.word("HEAD").unwrap()) - 16.0).abs() < 0.1);
    }
    // Names of the header itself, and the most rules that fit.
    let rules = "b{color:red}".repeat(5_000);
    for header in [
        "<img name=querySelector><form class=date><input name=classList><input name=textContent></form><p>HEAD",
        "<frameset><frame></frameset><p>HEAD",
        &format!("<style>{rules}</style><p>HEAD"),
        &format!("{}<p>HEAD", "<div>".repeat(400)),
    ] {
        pdf(&shared, &json!({ "headerHtml": header, "footerHtml": "<p>FOOT" })).await;
    }
}

async fn layout(shared: Arc<Shared>) {
    let millimetres = |points: f64| points * 25.4 / 72.0;
    for (header, left, top) in [
        ("<p style='margin:0'>HEAD", 0.0, 5.3),
        ("<div style='width:100%;text-align:right'>HEAD</div>", 202.7, 5.3),
        ("<div style='margin:auto'>HEAD</div>", 101.3, 16.3),
        ("<style>#header{padding:0}</style>HEAD", 0.0, 0.0),
        ("<style>body{margin:0 0 0 30mm}</style>HEAD", 30.0, 5.3),
        ("<style>body{padding:5mm 20mm}</style>HEAD", 20.0, 10.3),
        ("<i>a</i><b style='margin-left:auto'>HEAD</b>", 202.5, 5.3),
        ("<div style='height:100%;display:flex;align-items:flex-end'>HEAD</div>", 0.0, 27.4),
    ] {
        let found = pdf(&shared, &json!({ "headerHtml": header })).await.word("HEAD").unwrap();
        let place = (millimetres(found.left), millimetres(found.top));
        assert!((place.0 - left).abs() < 1.0 && (place.1 - top).abs() < 1.5, "{header}: {place:?}");
    }
}

/// What docs/pdf.md says of rules of the page for its sheets.
async fn page_rules(shared: Arc<Shared>) {
    let html = "<!doctype html><style>@page { @top-center { content: counter(chapter) '.' counter(page) } }\
                @page appendix { @top-center { content: 'Appendix' } } section { page: appendix }\
                body { counter-reset: chapter } h1 { counter-increment: chapter }</style>\
                <h1>One</h1><section>More</section>";
    let text = pdf(&shared, &json!({ "html": html })).await.text().unwrap();
    assert_eq!(text, "0.1 One Appendix More");
    let first = "<!doctype html><style>@page :first { margin-top: 80mm !important }</style>\
                 <p>START<p style='break-before: page'>NEXT";
    let top = async |word: &str, fields: &Value| {
        let found = pdf(&shared, &with(json!({ "html": first }), fields)).await.word(word).unwrap();
        found.top / 72.0 * 25.4
    };
    let letterhead = json!({ "headerHtml": "a", "headerFirstHtml": "LETTERHEAD" });
    for fields in [json!({}), letterhead] {
        let (start, next) = (top("START", &fields).await, top("NEXT", &fields).await);
        assert!((80.0..90.0).contains(&start) && (25.0..35.0).contains(&next), "{start} {next}");
    }
}
