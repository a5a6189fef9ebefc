//! The pages of PDFs: their number and size, their width, and what is on them.

use std::sync::Arc;

use platen_harness::image_file::WHITE;
use platen_shared::refusal::Refusal;
use serde_json::{Value, json};

use crate::support::{GREEN, Shared, with};

tests! {
    "a single page does not follow its own height" => own_height,
    "a single page has no named pages" => named_pages,
    "text of the page is not taken for its number and size" => hostile_text,
    "a page is laid out as wide as its sheet" => width,
    "titles of the outline have their spaces" => titles,
    "text that shows a background is printed without backgrounds" => clipped_text,
    "controls of media are printed without backgrounds" => media_controls,
}

/// CSS pixels of a point.
const PIXELS: f64 = 96.0 / 72.0;

/// The height of the only page in CSS pixels, and its text.
async fn single(shared: &Shared, html: &str, fields: Value) -> (f64, String) {
    let pdf = shared.pdf(with(json!({ "html": html, "singlePage": true, "margin": 0 }), &fields)).await;
    let pages = pdf.pages().unwrap();
    assert_eq!(pages.len(), 1, "{html}");
    (pages[0].1 * PIXELS, pdf.text().unwrap())
}

async fn own_height(shared: Arc<Shared>) {
    let p = "<p style='margin:0;height:30px'>End";
    for (html, lowest, highest) in [
        ("<style>html,body{height:100%}</style><h1>End", 40.0, 110.0),
        ("<style>body{min-height:100vh}</style>End", 16.0, 60.0),
        ("<!doctype html><style>html{height:100%}body{min-height:100%}</style><h1>End", 40.0, 110.0),
        (
            "<!doctype html><style>body{height:100dvh;display:flex;flex-direction:column}</style><h1>End",
            40.0,
            110.0,
        ),
        ("<!doctype html><style>html,body,#root{height:100%}</style><div id=root><h1>End", 40.0, 110.0),
        // The heights of the other elements are those of the viewport.
        ("<!doctype html><style>#app{min-height:100vh}</style><div id=app>End", 720.0, 780.0),
        (
            "<!doctype html><form style='min-height:100vh;padding:50px'><input name=style><input name=children>End</form>",
            820.0,
            880.0,
        ),
        (
            "<!doctype html><style>section{height:100vh}</style><section>1</section><section>2</section><section>End",
            2160.0,
            2230.0,
        ),
        (
            "<!doctype html><style>body{margin:0}div{height:50vh}</style><div></div><div></div><p>End",
            720.0,
            800.0,
        ),
        // What scrolls or is replaced does not make its document taller.
        (
            "<!doctype html><style>body{margin:0}header{height:50px}main{height:calc(100vh - 50px);overflow:auto}</style>\
            <header></header><main>End<div style='height:3000px'>",
            720.0,
            780.0,
        ),
        (
            "<!doctype html><style>html,body{margin:0;height:100%}iframe{border:0;height:100%}</style><iframe srcdoc=End></iframe>",
            720.0,
            780.0,
        ),
        ("<!doctype html><style>main{min-height:100vh;overflow:hidden}</style><main>End", 720.0, 780.0),
    ] {
        let (height, text) = single(&shared, html, json!({})).await;
        assert!((lowest..highest).contains(&height), "{html}: {height}");
        assert!(text.ends_with("End"), "{html}: {text}");
    }
    // The viewport of the request.
    let app = format!("<!doctype html><style>#app{{min-height:100vh}}</style><div id=app>{p}");
    let (height, _) = single(&shared, &app, json!({ "height": 300 })).await;
    assert!((300.0..360.0).contains(&height), "{height}");
    // An image with the name of a property.
    for name in ["styleSheets", "adoptedStyleSheets", "querySelectorAll", "documentElement", "body"] {
        let html =
            format!("<!doctype html><img name={name}><style>div{{min-height:100vh}}</style><div></div>{p}");
        for fields in [json!({}), json!({ "margin": { "top": "1cm" } }), json!({ "headerHtml": "<b></b>" })] {
            let (height, text) = single(&shared, &html, fields).await;
            assert!((740.0..860.0).contains(&height) && text == "End", "{name}: {height} {text}");
        }
    }
    let with_margin = json!({ "html": format!("<img name=styleSheets>{p}"), "singlePage": true });
    assert_eq!(shared.pdf(with_margin).await.pages().unwrap().len(), 1);
}

async fn named_pages(shared: Arc<Shared>) {
    let body = "<p class=cover>Cover<p>Text<div class=cover><p class=end>Inner</div><p>End";
    for rules in [
        ".cover{page:cover}",
        ".cover{page:cover}@page cover{size:A5 landscape;margin:3cm}",
        "body{page:main}.cover{page:cover}@page main{margin:1cm}",
        "p{page:one}.end{page:two;break-before:recto}@page :first{margin:5cm}",
    ] {
        let html = format!("<!doctype html><style>{rules}</style>{body}");
        let (height, text) = single(&shared, &html, json!({})).await;
        assert_eq!(text, "Cover Text Inner End", "{rules}");
        assert!((100.0..300.0).contains(&height), "{rules}: {height}");
    }
}

const HOSTILE: &[&str] = &[
    "/MediaBox [0 0 10 10]",
    "/Type /Pages /Count 900",
    ">>\nendobj\n1 0 obj\n<</Type /Pages\n/Count 900 /Kids []>>\nendobj",
    "/Type /Page\n/MediaBox [0 0 1 1]\nstartxref\n0\n%%EOF",
    ") /Title (x) /Count 900 \\) \\",
];

async fn hostile_text(shared: Arc<Shared>) {
    let pages = |title: &str, text: &str| {
        let title = title.replace('<', "&lt;");
        format!(
            "<!doctype html><html lang='{text}'><title>{title}</title><style>@page{{size:A5}}</style><h1 id='{text}'>{title}</h1>\
             <a href='https://a.example/?{text}#{text}'>a</a><a href='#{text}'>b</a><img alt='{text}' width=9 height=9>\
             <p style='break-before:page'>End"
        )
    };
    for hostile in HOSTILE {
        let html = pages(hostile, &hostile.replace('\n', " "));
        let is_a5 = |(width, height): (f64, f64)| (width - 420.0).abs() < 2.0 && (height - 595.0).abs() < 2.0;
        let header = format!("<span class=title></span>{}", hostile.replace('<', "&lt;"));
        for fields in [
            json!({ "preferCssPageSize": true, "margin": "1cm" }),
            json!({ "preferCssPageSize": true, "margin": "1cm", "headerHtml": header, "footerHtml": header }),
            json!({ "preferCssPageSize": true, "outline": true, "pageRanges": "1-2" }),
        ] {
            let fields = with(json!({ "html": html }), &fields);
            let pages = shared.pdf(fields.clone()).await.pages().unwrap();
            assert!(pages.len() == 2 && pages.into_iter().all(is_a5), "{fields}");
            for ranges in ["1-3", "3", "2, 900"] {
                let fields = with(fields.clone(), &json!({ "pageRanges": ranges }));
                assert_eq!(shared.no_pdf(fields).await, Refusal::PageRangeExceeded);
            }
        }
        for fields in [json!({ "preferCssPageSize": true }), json!({ "outline": true })] {
            let (height, text) = single(&shared, &html, fields.clone()).await;
            assert!(
                (100.0..600.0).contains(&height) && text.contains("End"),
                "{hostile} {fields}: {height} {text}"
            );
        }
        let narrow =
            json!({ "html": format!("<title>{hostile}</title>{}", "<p>x".repeat(200)), "singlePage": true });
        assert_eq!(shared.pdf(narrow).await.pages().unwrap().len(), 1);
    }
}

async fn width(shared: Arc<Shared>) {
    let html = "<!doctype html><body style='margin:0'><p id=p><script>\
        p.textContent = [innerWidth, screen.width, matchMedia('(min-width: 800px)').matches].join(' ')</script>";
    for (fields, expected) in [
        (json!({}), "718 718 false"),
        (json!({ "landscape": true }), "1047 1047 true"),
        (json!({ "scale": 0.5 }), "1436 1436 true"),
        (json!({ "margin": { "left": "60px" } }), "734 734 false"),
        (json!({ "width": 1280 }), "1280 1280 true"),
        (json!({ "singlePage": true }), "718 718 false"),
    ] {
        let pdf = shared.pdf(with(json!({ "html": html }), &fields)).await;
        assert_eq!(pdf.text().unwrap(), expected, "{fields}");
    }
    // What a script draws as wide as the viewport is neither cut nor made smaller.
    let drawn = "<!doctype html><html style='background:red'><body style='margin:0'><canvas id=c height=100 style='display:block'></canvas><script>\
        c.width = innerWidth; const d = c.getContext('2d'); d.fillStyle = 'green'; d.fillRect(0, 0, c.width, 100)</script>";
    for fields in [
        json!({}),
        json!({ "landscape": true }),
        json!({ "pdfFormat": "Letter" }),
        json!({ "pdfWidth": "101.3mm", "pdfHeight": "200mm" }),
        json!({ "scale": 0.7 }),
    ] {
        let pdf = shared.pdf(with(json!({ "html": drawn, "margin": 0 }), &fields)).await;
        let page = pdf.first_page().unwrap();
        let (width, _) = page.size();
        page.expect(width - 3, 10, GREEN).unwrap_or_else(|error| panic!("{fields}: {error}"));
        let scale = fields["scale"].as_f64().unwrap_or(1.0);
        let height = (0..page.size().1)
            .take_while(|y| page.expect(9, *y, GREEN).is_ok())
            .fold(0.0, |sum, _| sum + 1.0);
        assert!((height - 75.0 * scale).abs() < 1.5_f64, "{fields}: {height}");
    }
}

async fn titles(shared: Arc<Shared>) {
    let narrow = "h1,h2,h3,div{width:90px;font:20px Liberation Sans}";
    let headings = [
        (
            "<h1>A heading that needs several lines, at 90 pixels</h1>",
            "A heading that needs several lines, at 90 pixels",
        ),
        (
            "<h2 style='text-transform:uppercase'>A heading in several lines</h2>",
            "A HEADING IN SEVERAL LINES",
        ),
        ("<h2>one<br>two <br/> three<br><br>four</h2>", "one two three four"),
        (
            "<h3>\n  with <em>several</em>\n elements <a href='/(a'>and (links)</a></h3>",
            "with several elements and (links)",
        ),
        ("<div role=heading aria-level=2>a heading by its role</div>", "a heading by its role"),
        ("<h2>Größe und Übermaß der Überschriften</h2>", "Größe und Übermaß der Überschriften"),
        (
            "<section><template shadowrootmode=open><style>h2{width:60px}</style><h2>in a shadow tree</h2></template></section>",
            "in a shadow tree",
        ),
        ("<h2>super&shy;cali&shy;fragi&shy;listic expi&shy;ali</h2>", "supercalifragilistic expiali"),
        ("<h2>workshop</h2>", "workshop"),
        ("<h2>work shop</h2>", "work shop"),
        ("<h2>x</h2>", "x"),
    ];
    let expected: Vec<&str> = headings.iter().map(|(_, title)| *title).collect();
    let html = |rest: &str| {
        let headings: String = headings.iter().map(|(html, _)| *html).collect();
        format!("<!doctype html><html lang=en><title>ab</title><style>{narrow}</style>{headings}{rest}")
    };
    for (rest, fields) in [
        ("", json!({})),
        ("", json!({ "singlePage": true })),
        ("<img name=querySelectorAll><form><input name=matches><input name=shadowRoot></form>", json!({})),
        ("<script>Element.prototype.matches = () => { throw 1 }</script>", json!({})),
    ] {
        let pdf = shared.pdf(with(json!({ "html": html(rest), "outline": true }), &fields)).await;
        assert_eq!(pdf.outline().unwrap(), expected, "{rest} {fields}");
        assert!(pdf.is_tagged().unwrap() && pdf.title().unwrap() == "ab");
        assert!(pdf.text().unwrap().contains("several"), "the file is whole");
    }
}

async fn clipped_text(shared: Arc<Shared>) {
    let page = |style: &str, inner: &str| {
        format!(
            "<!doctype html><style>body{{margin:0;background:red}}h1{{margin:0;font:bold 90px/100px Liberation Sans;\
             color:transparent;background:rgb(0,128,0);{style}}}b{{background:blue;color:rgb(0,128,0)}}</style><h1>MMM{inner}</h1>\
             <p style='margin:0;height:100px;background:blue'>"
        )
    };
    let script = "<script>document.querySelector('h1').style.backgroundClip = 'text'</script>";
    for html in [
        page("background-clip:text", ""),
        page("-webkit-background-clip: TEXT", "<b>M</b>"),
        page("background:linear-gradient(rgb(0,128,0),rgb(0,128,0)) text", ""),
        page("", &format!("</h1>{script}<h1>")),
        page(
            "background-clip:text",
            "<form><input name=style type=hidden><input name=children type=hidden></form>",
        ),
        page("background-clip:text", "<img name=querySelectorAll>"),
    ] {
        let page = shared.pdf(json!({ "html": html, "margin": 0 })).await.first_page().unwrap();
        assert!(page.count(GREEN) > 2_000, "the text is there: {html}");
        let (width, _) = page.size();
        // Beside the text, and below it.
        page.expect(width - 20, 10, WHITE).unwrap_or_else(|error| panic!("{html}: {error}"));
        page.expect(width - 20, 190, WHITE).unwrap_or_else(|error| panic!("{html}: {error}"));
    }
    let css = json!({ "html": page("", ""), "margin": 0, "css": "h1{background-clip:text!important}" });
    assert!(shared.pdf(css).await.first_page().unwrap().count(GREEN) > 2_000);
}

async fn media_controls(shared: Arc<Shared>) {
    let drawn = async |html: &str, print_background: bool| {
        let fields = json!({ "html": html, "printBackground": print_background });
        let page = shared.pdf(fields).await.first_page().unwrap();
        let (width, height) = page.size();
        (width * height) as usize - page.count(WHITE)
    };
    for html in [
        "<video controls width=300 height=150></video>",
        "<audio CONTROLS></audio>",
        "<audio controls=''><source src='data:,'></audio>",
        "<div><video width=300 height=150></video></div><script>document.querySelector('video').controls = true</script>",
    ] {
        let with_backgrounds = drawn(html, true).await;
        assert!(with_backgrounds > 1_000, "{html}: {with_backgrounds}");
        assert_eq!(drawn(html, false).await, with_backgrounds, "{html}");
    }
    // Other backgrounds, also those around controls.
    let others = "<div style='background:red;padding:9px'><video width=300 height=150 style='background:red'></video></div>";
    assert_eq!(drawn(others, false).await, 0);
}
