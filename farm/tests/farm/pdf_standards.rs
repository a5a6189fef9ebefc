//! Files of PDF/A and PDF/UA: pages of many kinds conform, as another program says that knows the rules of both, and pages
//! that cannot are refused with their rule.

use std::{fs, process::Command, sync::Arc};

use lopdf::{Document, Object, decode_text_string};
use platen_shared::refusal::Refusal;
use serde_json::json;
use tempfile::TempDir;

use crate::{
    pdf_metadata::documented,
    support::{Shared, pages, with},
};

tests! {
    CONFORMANCE => conformance,
    "a page that breaks a rule of its standard is refused" => refusals,
    "the structure tree has the order of reading" => reading_order,
}

/// Needs the checker that `scripts/install-clients` installs.
pub(crate) const CONFORMANCE: &str = "pages of many kinds conform to the standards";

pub(crate) const PAGES: &str = include_str!("pdf_standards/pages.html");

const IMAGE: &str = "<img src='data:image/svg+xml,<svg xmlns=%22http://www.w3.org/2000/svg%22><circle r=%229%22/></svg>' width=9>";

/// Prints the rules that each file of a folder breaks. The name of a file ends with its standard.
const CHECK: &str = "import page, pathlib, sys
for file in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    report = page.validate_pdf(str(file), profile=page.ValidationProfile(file.stem.split('.')[-1]))
    for failure in report.failures: print(file.name, failure.rule_id, failure.message, failure.object_id)";

async fn refusals(shared: Arc<Shared>) {
    let page = |inner: &str| format!("<!doctype html><html lang=en><title>T</title>{inner}");
    for (html, rule) in [
        ("<html lang=en><p>Text".to_owned(), "title"),
        ("<title>T</title><p>Text".to_owned(), "language"),
        (page(""), "no text"),
        (page(IMAGE), "image"),
        (page(&format!("<figure>{IMAGE}<figcaption>C</figcaption></figure>")), "image"),
        (page("<h2>Two"), "heading"),
        (page("<h1>One</h1><h3>Three"), "heading"),
        (page("<table><caption>C</caption><tr><th>a<th>b<tr><td>c</table>"), "columns"),
        (page("<table><caption>C</caption><tr><th>a<tr><td>b<td>c</table>"), "columns"),
        (page("<div role=table><p>a</p><div role=row><span role=cell>b</span></div></div>"), "cells"),
    ] {
        let job = documented(json!({ "html": html }), json!({ "standard": { "ua1": true } }));
        let refused = shared.render(&job).await.map(|_| html.clone()).unwrap_err();
        let Refusal::StandardNotMet { rule: found } = &refused else { panic!("{html}: {refused}") };
        assert!(found.contains(rule), "{html}: {found}");
        // PDF/A-2b does not ask for it.
        shared.file(&documented(json!({ "html": html }), json!({ "standard": { "archive": "a2b" } }))).await;
    }
    for (inner, rule) in [
        ("<p>&#x10FFFD;".to_owned(), "font"),
        (format!("<a href='https://example.com/{}'>link", "a".repeat(40_000)), "too long"),
    ] {
        let job = documented(json!({ "html": page(&inner) }), json!({ "standard": { "archive": "a2b" } }));
        let refused = shared.render(&job).await.map(|_| rule).unwrap_err();
        assert!(refused.to_string().contains(rule), "{refused}");
    }
}

/// The types of the elements with a meaning, in their order; an image with its text.
fn reading(document: &Document) -> Vec<String> {
    let root = document.catalog().unwrap().get_deref(b"StructTreeRoot", document).unwrap();
    let (mut found, mut left) = (Vec::new(), vec![root]);
    while let Some(object) = left.pop() {
        match object {
            Object::Reference(id) => left.push(document.get_object(*id).unwrap()),
            Object::Array(kids) => left.extend(kids.iter().rev()),
            Object::Dictionary(element) => {
                let kind = element.get(b"S").and_then(Object::as_name).unwrap_or_default();
                let alt = element.get(b"Alt").and_then(decode_text_string).map(|alt| format!(" {alt}"));
                found.push(format!("{}{}", String::from_utf8_lossy(kind), alt.unwrap_or_default()));
                left.extend(element.get(b"K"));
            }
            _ => {}
        }
    }
    found.retain(|kind| !kind.is_empty() && kind != "NonStruct");
    found
}

async fn reading_order(shared: Arc<Shared>) {
    let html = "<!doctype html><html lang=en><title>T</title><h1>One</h1><p>Text with <a href='https://example.com/'>a link</a>\
        <ul><li>a<li>b</ul><h2>Two</h2><table><tr><th>c<tr><td>d</table>\
        <figure><img alt='A square' width=9 src='data:image/svg+xml,<svg xmlns=%22http://www.w3.org/2000/svg%22><circle r=%229%22/></svg>'><figcaption>e</figcaption></figure>";
    let job = documented(json!({ "html": html }), json!({ "standard": { "archive": "a3b", "ua1": true } }));
    let file = shared.file(&job).await;
    let document = Document::load_mem(&file.bytes).unwrap();
    let expected =
        "Document H1 P Link L LI Lbl LBody LI Lbl LBody H2 Table TR TH TR TD Div Figure A square P";
    assert_eq!(reading(&document).join(" "), expected);
    let link = document
        .objects
        .values()
        .filter_map(|it| it.as_dict().ok())
        .find(|it| it.has_type(b"Annot"))
        .unwrap();
    assert_eq!(decode_text_string(link.get(b"Contents").unwrap()).unwrap(), "a link");
}

async fn conformance(shared: Arc<Shared>) {
    let python = format!("{}/venv/bin/python", std::env::var("PLATEN_CLIENTS").unwrap());
    let directory = TempDir::new().unwrap();
    let header = json!({ "headerHtml": "<a href='https://example.com/'>Head</a>", "footerHtml": "<span class=pageNumber></span>", "margin": "2cm", "printBackground": true });
    for (name, html) in pages(PAGES) {
        for (standard, profiles) in [
            (json!({ "archive": "a2b" }), &["2b"][..]),
            (json!({ "archive": "a3b", "ua1": true }), &["3b", "ua1"]),
            (json!({ "ua1": true }), &["ua1"]),
        ] {
            for fields in [json!({}), header.clone()] {
                let job = documented(
                    with(fields.clone(), &json!({ "html": html })),
                    json!({ "standard": standard }),
                );
                let file = shared.render(&job).await.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
                for profile in profiles {
                    let name = format!("{name} {} {}.{profile}.pdf", fields["margin"], profiles.len());
                    fs::write(directory.path().join(name), &file.bytes).unwrap();
                }
            }
        }
    }
    let checked = Command::new(python).args(["-c", CHECK]).arg(directory.path()).output().unwrap();
    let broken = String::from_utf8(checked.stdout).unwrap();
    assert!(
        checked.status.success() && broken.is_empty(),
        "{broken}{}",
        String::from_utf8_lossy(&checked.stderr)
    );
}
