//! The metadata of PDFs, in the information dictionary and in XMP, and their language.

use std::sync::Arc;

use lopdf::{Dictionary, Document, LoadOptions, decode_text_string};
use platen_harness::pdf_file::{Pdf, without_dates};
use platen_shared::job::{DocumentOptions, Output, RenderJob};
use serde_json::{Value, json};

use crate::support::{Shared, paged, with};

tests! {
    "metadata is in the information dictionary and in XMP" => metadata,
    "metadata that is not given is the page's" => defaults,
    "a document has a language" => language,
    "the same job with the same date gives the same bytes" => same_bytes,
    "a PDF without such options is the browser's, and has the language of the page" => untouched,
    "every PDF has the language of its page" => every_language,
    "a tagged file is not much larger than its page" => sizes,
}

/// The PDF of a page with these options of its document.
pub(crate) fn documented(fields: Value, options: Value) -> RenderJob {
    let mut job = paged(fields);
    let Output::Pdf(pdf) = &mut job.options.output else { panic!("no PDF") };
    pdf.document = serde_json::from_value::<DocumentOptions>(options).unwrap();
    job
}

async fn document(shared: &Shared, fields: Value, options: Value) -> Document {
    Document::load_mem(&shared.file(&documented(fields, options)).await.bytes).unwrap()
}

fn info(document: &Document) -> &Dictionary {
    document.get_dictionary(document.trailer.get(b"Info").unwrap().as_reference().unwrap()).unwrap()
}

pub(crate) fn text(dictionary: &Dictionary, key: &str) -> Option<String> {
    dictionary.get(key.as_bytes()).ok().map(|text| decode_text_string(text).unwrap())
}

pub(crate) fn xmp(document: &Document) -> String {
    let packet = document.catalog().unwrap().get_deref(b"Metadata", document).unwrap().as_stream().unwrap();
    let packet = String::from_utf8(packet.content.clone()).unwrap();
    for prefix in packet.split(" xmlns:").skip(1).filter_map(|it| it.split('=').next()) {
        assert!(packet.contains(&format!("<{prefix}:")), "{prefix} is declared and not used: {packet}");
    }
    packet
}

const PAGE: &str = "<!doctype html><html lang=fr><title>Of the page</title><p>Text";

async fn metadata(shared: Arc<Shared>) {
    let given = json!({
        "title": "Rechnung 17 <ä> & \"😀\"", "author": "A & B", "subject": "S", "keywords": "one, two",
        "creator": "Shop 2", "language": "de-CH", "date": "2026-07-24T09:30:00+02:00",
    });
    for tagged in [false, true] {
        let fields = json!({ "html": PAGE, "tagged": tagged });
        let document = document(&shared, fields, json!({ "metadata": given })).await;
        let info = info(&document);
        for (key, field) in [
            ("Title", "title"),
            ("Author", "author"),
            ("Subject", "subject"),
            ("Keywords", "keywords"),
            ("Creator", "creator"),
        ] {
            assert_eq!(text(info, key).as_deref(), given[field].as_str(), "{key}");
        }
        for key in ["CreationDate", "ModDate"] {
            assert_eq!(text(info, key).as_deref(), Some("D:20260724093000+02'00'"));
        }
        let catalog = document.catalog().unwrap();
        assert_eq!(text(catalog, "Lang").as_deref(), Some("de-CH"));
        let preferences = catalog.get_deref(b"ViewerPreferences", &document).unwrap().as_dict().unwrap();
        assert!(preferences.get(b"DisplayDocTitle").unwrap().as_bool().unwrap());
        let xmp = xmp(&document);
        for expected in [
            "Rechnung 17 &lt;ä&gt; &amp; \"😀\"</rdf:li>",
            "<rdf:li>A &amp; B</rdf:li>",
            "<rdf:li>de-CH</rdf:li>",
            "<pdf:Keywords>one, two</pdf:Keywords>",
            "<xmp:CreatorTool>Shop 2</xmp:CreatorTool>",
            "<xmp:CreateDate>2026-07-24T09:30:00+02:00</xmp:CreateDate>",
            "<xmp:ModifyDate>2026-07-24T09:30:00+02:00</xmp:ModifyDate>",
        ] {
            assert!(xmp.contains(expected), "{xmp}");
        }
    }
}

async fn defaults(shared: Arc<Shared>) {
    let document = document(&shared, json!({ "html": PAGE }), json!({ "metadata": { "author": "A" } })).await;
    let info = info(&document);
    assert_eq!(text(info, "Title").as_deref(), Some("Of the page"));
    assert_eq!(text(info, "Subject"), None);
    let made = text(info, "CreationDate").unwrap();
    let digits: String = made.chars().skip(2).take(14).collect();
    let in_xmp: String = xmp(&document)
        .split("CreateDate>")
        .nth(1)
        .unwrap()
        .chars()
        .filter(char::is_ascii_digit)
        .take(14)
        .collect();
    assert_eq!(digits, in_xmp);
    let xmp = xmp(&document);
    assert!(xmp.contains(">Of the page</rdf:li>") && !xmp.contains("pdf:Keywords>"), "{xmp}");
}

async fn language(shared: Arc<Shared>) {
    let author = json!({ "author": "A" });
    for (html, fields, metadata, expected) in [
        (PAGE, json!({}), author.clone(), Some("fr")),
        (PAGE, json!({ "locale": "it" }), json!({ "language": "de" }), Some("de")),
        (PAGE, json!({ "locale": "it" }), author.clone(), Some("fr")),
        ("<p>Text", json!({ "locale": "it" }), author.clone(), Some("it")),
        ("<p>Text", json!({ "locale": "it", "tagged": true }), json!({}), Some("it")),
        ("<html lang='in English'><p>Text", json!({ "locale": "it" }), author.clone(), Some("it")),
        ("<form name=documentElement lang=xx></form>", json!({}), author.clone(), None),
        ("<p>Text", json!({}), author.clone(), None),
        ("<p>Text", json!({ "tagged": true }), author, None),
        (PAGE, json!({ "tagged": true }), json!({ "language": "de" }), Some("de")),
    ] {
        let mut fields = fields;
        fields["html"] = html.into();
        let document = document(&shared, fields, json!({ "metadata": metadata })).await;
        assert_eq!(text(document.catalog().unwrap(), "Lang").as_deref(), expected, "{html} {metadata}");
        let mut elements = document.objects.values().filter_map(|object| object.as_dict().ok());
        assert!(!elements.any(|it| it.has_type(b"StructElem") && it.has(b"Lang")), "{html} {metadata}");
    }
}

async fn same_bytes(shared: Arc<Shared>) {
    let job = |date: &str, standard: Value| {
        let options = json!({ "metadata": { "date": date }, "standard": standard });
        documented(json!({ "html": PAGE }), options)
    };
    for standard in [json!({}), json!({ "archive": "a3b" })] {
        let first = shared.file(&job("2026-07-24T09:30:00Z", standard.clone())).await.bytes;
        assert_eq!(first, shared.file(&job("2026-07-24T09:30:00Z", standard.clone())).await.bytes);
        let other = shared.file(&job("2026-07-24T09:30:01Z", standard)).await.bytes;
        let id = |file: &[u8]| Document::load_mem(file).unwrap().trailer.get(b"ID").unwrap().clone();
        assert_ne!(id(&first), id(&other));
    }
}

async fn untouched(shared: Arc<Shared>) {
    let document = document(&shared, json!({ "html": PAGE, "locale": "it" }), json!({})).await;
    assert!(!document.catalog().unwrap().has(b"Metadata") && !document.trailer.has(b"ID"));
    // The browser's file is at its beginning.
    let with_language = shared.file(&paged(json!({ "html": PAGE }))).await.bytes;
    let plain = shared.file(&paged(json!({ "html": PAGE.replace(" lang=fr", "") }))).await.bytes;
    let (with_language, plain) = (without_dates(&with_language), without_dates(&plain));
    assert!(with_language.starts_with(&plain) && with_language.len() < plain.len() + 400);
}

/// The language of a file in which nothing is wrong.
fn catalog_language(file: &[u8]) -> Option<String> {
    let options = LoadOptions { strict: true, ..LoadOptions::default() };
    let document = Document::load_mem_with_options(file, options).unwrap();
    let pdf = Pdf::parse(file).unwrap();
    assert!(pdf.text().unwrap().contains("Text") && pdf.title().unwrap() == "T", "the file is whole");
    text(document.catalog().unwrap(), "Lang")
}

async fn every_language(shared: Arc<Shared>) {
    let site = shared.site.at("/missing");
    for (root, expected) in [
        ("<html lang=fr>", Some("fr")),
        ("<html lang='de-CH'>", Some("de-CH")),
        ("<!-- a --><HTML CLASS=a LANG=\"zh-hant-tw\">", Some("zh-Hant-TW")),
        ("<html lang=pt_BR>", Some("pt-BR")),
        ("<html lang='en'><html lang='fr'>", Some("en")),
        ("<html class='a'><p><html lang='fr'>", Some("fr")),
        ("<html lang='f&#114;'>", Some("fr")),
        ("<html><div lang=fr>", None),
        ("<html lang=''>", None),
        ("<html lang='in English'>", None),
        ("<html lang='en) /Type /Font >> endobj'>", None),
        ("<html lang='en\\'>", None),
        ("<html lang='e\u{0}n'>", None),
        (&format!("<html lang='en{}'>", "-abcdefgh".repeat(20)), None),
        ("<html lang='en'><script>document.documentElement.lang = 'sv'</script>", Some("sv")),
        ("<html><script>document.documentElement.lang = 'sv'</script>", Some("sv")),
        (
            "<html lang='en'><script>document.documentElement.remove = Document.prototype.getElementById = null</script>",
            Some("en"),
        ),
        ("<html lang=en><img name=documentElement>", Some("en")),
        (&format!("<html lang=da><img src='{site}'>"), Some("da")),
    ] {
        let html = format!(
            "<!doctype html>{root}<title>T</title><h1>A heading that is broken into lines</h1><style>h1{{width:90px}}</style>Text"
        );
        for fields in [
            json!({}),
            json!({ "outline": true }),
            json!({ "tagged": true }),
            json!({ "headerFirstHtml": "<p>FIRST" }),
            json!({ "headerFirstHtml": "<p>FIRST", "outline": true }),
            json!({ "singlePage": true, "javaScript": false }),
        ] {
            let fields = with(fields, &json!({ "html": html }));
            let file = shared.file(&paged(fields.clone())).await.bytes;
            let runs_scripts = fields["javaScript"] != false || !root.contains("<script>");
            if runs_scripts {
                assert_eq!(catalog_language(&file).as_deref(), expected, "{fields}");
            }
            if fields["outline"] == true {
                assert_eq!(
                    Pdf::parse(&file).unwrap().outline().unwrap(),
                    ["A heading that is broken into lines"]
                );
            }
            // In an update, or in a file that is written anew.
            let updates = file.windows(9).filter(|it| *it == b"startxref").count();
            let is_updated =
                fields["tagged"] != true && fields["outline"] != true && fields["headerFirstHtml"].is_null();
            if runs_scripts {
                assert_eq!(updates, if is_updated && expected.is_some() { 2 } else { 1 }, "{fields}");
            }
        }
    }
}

async fn sizes(shared: Arc<Shared>) {
    let rows: Vec<String> = (0..3_000)
        .map(|cell| format!("{}<td>cell {cell}", if cell % 6 == 0 { "<tr>" } else { "" }))
        .collect();
    let rows = rows.concat();
    let html = format!("<!doctype html><html lang=en><title>T</title>Text<table>{rows}</table>");
    let plain = shared.file(&paged(json!({ "html": html }))).await.bytes.len();
    for options in [
        json!({}),
        json!({ "metadata": { "author": "A" } }),
        json!({ "standard": { "archive": "a2b" } }),
        json!({ "protection": { "user_password": "user", "owner_password": "", "allow": ["print"] } }),
    ] {
        let file =
            shared.file(&documented(json!({ "html": html, "tagged": true }), options.clone())).await.bytes;
        assert!(file.len() < 8 * plain, "{options}: {} beside {plain}", file.len());
        let version = if options["protection"].is_null() { b"%PDF-1.7" } else { b"%PDF-2.0" };
        assert!(file.starts_with(version), "{options}");
        if options["protection"].is_null() {
            assert_eq!(catalog_language(&file).as_deref(), Some("en"));
        }
    }
}
