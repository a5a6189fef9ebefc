//! What PDFs have beyond the pages that the browser prints: the header of the first page, ids, and passwords.

use std::{fs, process::Command, sync::Arc};

use lopdf::{Document, Writer};
use platen_harness::pdf_file::{Pdf, without_dates};
use platen_shared::{
    job::{DocumentOptions, Output, PdfOptions, PdfPassword, Permission, Protection, RenderJob},
    refusal::Refusal,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Shared, pdf_of, request, with};

tests! {
    "the first page has its own header and footer" => first_page,
    "the first page has its own links and fonts, and the structure of all pages" => content_of_first_page,
    "a single page is the first one" => first_single_page,
    "a page that changes when it is printed keeps its text with another header" => changed_page,
    "tagged files of equal jobs are equal" => equal_ids,
    "a protected file opens with its passwords only" => passwords,
    "a protected file has the permissions of the request" => permissions,
}

/// A job for a PDF of these fields, with other options.
fn job(fields: &Value, change: impl FnOnce(&mut PdfOptions)) -> RenderJob {
    let mut job = request(&with(json!({ "format": "pdf" }), fields));
    let Output::Pdf(pdf) = &mut job.options.output else { panic!("no PDF") };
    change(pdf);
    job
}

/// A job with a header and a footer of the first page.
fn with_first(fields: &Value, header: Option<&str>, footer: Option<&str>) -> RenderJob {
    let text = |html: Option<&str>| html.map(|html| html.to_owned().try_into().unwrap());
    job(fields, |pdf| (pdf.first_header, pdf.first_footer) = (text(header), text(footer)))
}

/// The text of each page, from top to bottom.
fn pages(pdf: &Pdf) -> Vec<String> {
    let mut pages = Vec::new();
    let mut words = pdf.words().unwrap();
    words.sort_by(|one, other| one.top.round().total_cmp(&other.top.round()));
    for word in words {
        pages.resize(pages.len().max(word.page), String::new());
        let page: &mut String = &mut pages[word.page - 1];
        if !page.is_empty() {
            page.push(' ');
        }
        page.push_str(&word.text);
    }
    pages
}

const THREE_PAGES: &str = "<p>One<p style='break-before:page'>Two<p style='break-before:page'>Three";

async fn first_page(shared: Arc<Shared>) {
    let number = "<span class=pageNumber></span>/<span class=totalPages></span>";
    let (every, first) = (format!("<p>EVERY {number}"), format!("<p>FIRST {number}"));
    let header = json!({ "headerHtml": every });
    let both = json!({ "headerHtml": every, "footerHtml": "<p>FOOT" });
    let ranges = |ranges: &str| with(both.clone(), &json!({ "pageRanges": ranges }));
    let [one, two, three] = ["EVERY 1/3 One", "EVERY 2/3 Two", "EVERY 3/3 Three"];
    for (fields, own_header, own_footer, expected) in [
        (&json!({}), Some(&first[..]), None, ["FIRST 1/3 One", "Two", "Three"].as_slice()),
        (&json!({}), None, Some(&first[..]), &["One FIRST 1/3", "Two", "Three"]),
        (&json!({}), Some(""), Some(""), &["One", "Two", "Three"]),
        (&header, Some(&first), None, &["FIRST 1/3 One", two, three]),
        (&header, Some(""), None, &["One", two, three]),
        (&header, None, Some("<p>OWN"), &[&format!("{one} OWN"), two, three]),
        (&both, Some(""), None, &["One FOOT", &format!("{two} FOOT"), &format!("{three} FOOT")]),
        (&ranges("1,3"), Some(&first), Some(""), &["FIRST 1/3 One", &format!("{three} FOOT")]),
        (&ranges("2-3"), Some(&first), Some(""), &[&format!("{two} FOOT"), &format!("{three} FOOT")]),
        (&ranges("1"), Some(&first), None, &["FIRST 1/3 One FOOT"]),
    ] {
        for more in [
            json!({}),
            json!({ "tagged": true, "margin": "30mm" }),
            json!({ "outline": true }),
            json!({ "preferCssPageSize": true, "margin": "20mm" }),
        ] {
            let fields = with(with(json!({ "html": THREE_PAGES, "margin": "25mm" }), fields), &more);
            let pdf = pdf_of(&shared.file(&with_first(&fields, own_header, own_footer)).await);
            assert_eq!(pages(&pdf), expected, "{own_header:?} {own_footer:?} {fields}");
            let plain = shared.pdf(fields).await;
            assert_eq!(pdf.pages().unwrap(), plain.pages().unwrap());
            for word in ["One", "Three"].into_iter().filter(|word| expected.concat().contains(word)) {
                let (found, expected) = (pdf.word(word).unwrap(), plain.word(word).unwrap());
                assert!((found.left - expected.left).abs() + (found.top - expected.top).abs() < 0.01);
            }
        }
    }
}

async fn content_of_first_page(shared: Arc<Shared>) {
    let html = "<!doctype html><html lang=en><title>T</title><style>body { font-family: Liberation Serif }</style><h1>One</h1>\
        <table><tr><th id=a>Head<th>Next<tr><td headers=a>1<td>2</table><div style='opacity:.5'><p>Half <b>bold</b><b style='opacity:.5'>inner</b></div>\
        <p><a href='#end'>inner</a> <a href='https://a.example/'>outer</a><p id=end style='break-before:page'>End";
    let fields = json!({
        "html": html, "headerHtml": "<a href='https://every.example/'>EVERY</a>", "margin": "25mm", "tagged": true
    });
    let first = "<p style='font-family:Liberation Serif'>WXYZ <a href='https://first.example/'>FIRST</a>";
    let file = shared.file(&with_first(&fields, Some(first), None)).await;
    let (pdf, plain) = (pdf_of(&file), shared.pdf(fields).await);
    let text = pages(&pdf);
    assert!(text[0].starts_with("WXYZ FIRST One") && text[1] == "EVERY End", "{text:?}");
    assert_eq!(pdf.structure().unwrap(), plain.structure().unwrap());
    let links = pdf.links().unwrap();
    for (link, count) in [("a.example", 1), ("first.example", 1), ("every.example", 1)] {
        assert_eq!(links.iter().filter(|it| it.contains(link)).count(), count, "{links:?}");
    }
    let mut fonts = pdf.fonts().unwrap();
    let all = fonts.len();
    fonts.sort();
    fonts.dedup();
    assert_eq!(fonts.len(), all, "different subsets have different names: {fonts:?}");
}

async fn first_single_page(shared: Arc<Shared>) {
    for (first, expected) in [("<p>FIRST", "FIRST One Two Three"), ("", "One Two Three")] {
        let fields = json!({ "html": THREE_PAGES, "singlePage": true, "headerHtml": "<p>EVERY" });
        let pdf = pdf_of(&shared.file(&with_first(&fields, Some(first), None)).await);
        assert_eq!(pages(&pdf), [expected]);
    }
}

async fn changed_page(shared: Arc<Shared>) {
    let paragraphs: Vec<String> = (1..=90).map(|number| format!("P{number}")).collect();
    let page = |change: &str| {
        format!(
            "<!doctype html><div id=box></div><p>{}<script>const grow = () => {{ if (box.offsetHeight < 3000) box.style.height = `${{box.offsetHeight + 100}}px` }},\
             box = document.getElementById('box'), say = text => {{ box.textContent = text; grow() }};{change}</script>",
            paragraphs.join("<p>")
        )
    };
    let frame = "document.body.prepend(Object.assign(document.createElement('iframe'), { onload() {\
        this.contentWindow.addEventListener('beforeprint', grow); this.contentWindow.onafterprint = grow } }))";
    let animation = "<style>#box{animation:grow 3s linear infinite}@keyframes grow{to{height:900px}}</style>";
    for (html, shown) in [
        (page("onbeforeprint = () => say('BEFORE')"), "BEFORE"),
        (page("onafterprint = () => say('AFTER')"), ""),
        (page("onbeforeprint = onafterprint = () => grow()"), ""),
        (page("onbeforeprint = () => say('BEFORE'); onafterprint = () => box.remove()"), "BEFORE"),
        (page("matchMedia('print').onchange = event => say(event.matches ? 'PRINT' : 'SCREEN')"), "PRINT"),
        (page("matchMedia('screen').addListener(() => grow())"), ""),
        (page("onbeforeprint = () => Promise.resolve().then(() => say('LATER'))"), "LATER"),
        (page("setInterval(grow, 1); (function next() { grow(); requestAnimationFrame(next) })()"), ""),
        (page("new ResizeObserver(() => setTimeout(grow, 1)).observe(box)"), ""),
        (
            page(
                "new Worker(URL.createObjectURL(new Blob(['setInterval(postMessage, 1, 0)']))).onmessage = grow",
            ),
            "",
        ),
        (
            page(
                "const channel = new MessageChannel(); channel.port1.onmessage = () => { grow(); channel.port2.postMessage(0) };\
            onbeforeprint = () => channel.port2.postMessage(0)",
            ),
            "",
        ),
        (page(frame), ""),
        (page(&format!("</script>{animation}<script>")), ""),
        (format!("{animation}{}", page("")), ""),
        (page("</script><body onbeforeprint='grow()' onafterprint='grow()'><script>"), ""),
        (
            page(
                "</script><noscript><p>NONE</noscript><style>@media (scripting: none) { p { display: none } }</style><script>",
            ),
            "",
        ),
    ] {
        for more in [json!({}), json!({ "tagged": true, "headerHtml": "<p>EVERY", "margin": "30mm" })] {
            let fields = with(json!({ "html": html, "animations": "allow" }), &more);
            let pdf = pdf_of(&shared.file(&with_first(&fields, Some("<p>FIRST"), None)).await);
            let pages = pages(&pdf);
            let found: Vec<&str> =
                pages.iter().flat_map(|page| page.split(' ')).filter(|word| word.starts_with('P')).collect();
            let found: Vec<&str> = found.into_iter().filter(|word| *word != "PRINT").collect();
            assert_eq!(found, paragraphs, "{fields}");
            assert!(pages[0].contains("FIRST") && !pages[1].contains("FIRST"), "{fields}: {pages:?}");
            assert!(pages[0].contains(shown) && !pages[0].contains("NONE"), "{fields}: {pages:?}");
        }
    }
}

async fn equal_ids(shared: Arc<Shared>) {
    let table = "<table><tr><th id=a>A<th id=b>B<tr><td headers='a b'>1<td>2</table>";
    let html =
        format!("<!doctype html><html lang=en>{table}<ul><li>x</ul><p style='break-before:page'>{table}");
    let fields = json!({ "html": html, "tagged": true, "headerHtml": "EVERY" });
    let job = with_first(&fields, Some("FIRST"), None);
    let first = without_dates(&shared.file(&job).await.bytes);
    let mut objects = Vec::new();
    for object in Document::load_mem(&first).unwrap().objects.values().filter(|it| it.as_dict().is_ok()) {
        Writer::write_object(&mut objects, object).unwrap();
    }
    let count = |text: &[u8]| objects.windows(text.len()).filter(|it| *it == text).count();
    assert!(count(b"/Headers") >= 2 && count(b"(00000000)") >= 2 && count(b"(node") == 0);
    // Pages that have had other documents, and those of another browser.
    let other =
        request(&json!({ "html": "<p>x<p>y<table><tr><th>z</table>", "format": "pdf", "tagged": true }));
    let render = async |job| without_dates(&shared.file(job).await.bytes);
    for _ in 0..3 {
        let files = futures::future::join_all([&job, &other, &job, &job].map(render)).await;
        for (at, file) in files.iter().enumerate().filter(|(at, _)| *at != 1) {
            assert!(*file == first, "file {at} differs");
        }
    }
}

fn protected(user: &str, owner: &str, allow: &[Permission]) -> RenderJob {
    let [user_password, owner_password] =
        [user, owner].map(|text| PdfPassword::try_from(text.to_owned()).unwrap());
    let protection = Some(Protection { user_password, owner_password, allow: allow.to_vec() });
    let fields = json!({ "html": "<title>Secret title</title><h1>Secret text", "tagged": true });
    job(&fields, |pdf| pdf.document = DocumentOptions { protection, ..DocumentOptions::default() })
}

/// What poppler tells of a file that it opens with these options.
fn info(file: &[u8], options: &[&str]) -> Result<String, String> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("file.pdf");
    fs::write(&path, file).unwrap();
    let output = Command::new("pdfinfo").args(options).arg(path).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

async fn passwords(shared: Arc<Shared>) {
    for (user, owner) in [("user", "owner"), ("user", ""), ("", "owner"), ("Größe 日本", "ключ")] {
        let file = shared.file(&protected(user, owner, &[Permission::Print])).await.bytes;
        for secret in ["Secret", "user", "owner"] {
            assert!(!file.windows(secret.len()).any(|it| it == secret.as_bytes()), "{secret} can be read");
        }
        assert_eq!(info(&file, &[]).is_ok(), user.is_empty(), "{user}");
        // An empty password is not one of the owner.
        for options in
            [["-upw", user], ["-opw", owner]].iter().filter(|it| it[0] == "-upw" || !it[1].is_empty())
        {
            let found = info(&file, options).unwrap();
            assert!(found.contains("Secret title") && found.contains("algorithm:AES-256"), "{found}");
        }
        for wrong in [["-upw", "wrong"], ["-opw", "User"]] {
            info(&file, &wrong).unwrap_err();
        }
        let again = shared.file(&protected(user, owner, &[Permission::Print])).await.bytes;
        assert!(without_dates(&file) != without_dates(&again), "keys are random");
    }
    for refused in ["\u{7}", "\u{1f600}", &"ﷺ".repeat(9)] {
        let refusal = shared.render(&protected(refused, "owner", &[])).await.unwrap_err();
        assert_eq!(refusal, Refusal::InvalidPassword, "{refused}");
        assert!(!refusal.to_string().contains(refused));
    }
}

async fn permissions(shared: Arc<Shared>) {
    use Permission::{Annotate, Assemble, Copy, Fill, Modify, Print};
    for (allow, expected) in [
        (&[][..], "print:no copy:no change:no addNotes:no"),
        (&[Print], "print:yes copy:no change:no addNotes:no"),
        (&[Copy, Fill, Assemble], "print:no copy:yes change:no addNotes:no"),
        (&[Modify, Annotate], "print:no copy:no change:yes addNotes:yes"),
    ] {
        let file = shared.file(&protected("user", "owner", allow)).await.bytes;
        let found = info(&file, &["-upw", "user"]).unwrap();
        assert!(found.contains(expected), "{allow:?}: {found}");
        let bits = permission_bits(&file);
        for (permission, bit) in
            [(Print, 2), (Print, 11), (Modify, 3), (Copy, 4), (Annotate, 5), (Fill, 8), (Assemble, 10)]
        {
            assert_eq!(allow.contains(&permission), (bits >> bit) & 1 == 1, "{permission:?}");
        }
        assert_eq!((bits >> 9) & 1, 1, "the text can be read aloud");
    }
}

/// The permissions in the encryption dictionary of a file, which are not encrypted.
fn permission_bits(file: &[u8]) -> i64 {
    let text: String = file.iter().map(|&byte| char::from(byte)).collect();
    let (_, after) = text.rsplit_once("/P -").unwrap();
    -after.split(|it: char| !it.is_ascii_digit()).next().unwrap().parse::<i64>().unwrap()
}
