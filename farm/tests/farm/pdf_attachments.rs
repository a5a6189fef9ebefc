//! The files in PDFs, and their invoices.

use std::{collections::BTreeMap, sync::Arc};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use lopdf::{Dictionary, Document, Object};
use platen_harness::{pdf_file::Pdf, settings::tests_dir};
use serde_json::{Value, json};

use crate::{
    pdf_metadata::{documented, text, xmp},
    support::Shared,
};

tests! {
    "files are in the PDF" => files,
    "files are described and related" => described,
    "an invoice is in the PDF as its profile says" => invoices,
}

const DATE: &str = "2026-11-27T06:34:51+01:00";

async fn made(shared: &Shared, options: Value) -> Vec<u8> {
    let page = json!({ "html": "<!doctype html><title>Title</title><p id=a>Text<p><a href='#a'>Link</a>" });
    shared.file(&documented(page, options)).await.bytes.to_vec()
}

async fn files(shared: Arc<Shared>) {
    // Bytes that do not get smaller, and names that are written in two ways.
    let noise: Vec<u8> = (0..200_000_u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
    let names = ["Überblick (1).txt", "数据.csv", "zz", "a#b%20.txt", "%PDF-1.4.pdf", "Z"];
    let mut expected: BTreeMap<String, Vec<u8>> =
        names.iter().map(|name| ((*name).to_owned(), name.repeat(500).into_bytes())).collect();
    for number in expected.len()..18 {
        expected.insert(format!("file-{number}.txt"), format!("{number}\r\n").into_bytes());
    }
    expected.insert("noise".into(), noise);
    expected.insert("empty".into(), Vec::new());
    let attachments: Vec<_> = expected
        .iter()
        .rev()
        .map(|(name, content)| json!({ "name": name, "content": BASE64_STANDARD.encode(content) }))
        .collect();
    let options = json!({ "attachments": attachments, "metadata": { "date": DATE } });
    let file = made(&shared, options.clone()).await;
    let pdf = Pdf::parse(&file).unwrap();
    assert!(pdf.files().unwrap() == expected, "{:?}", pdf.files().unwrap().keys());
    assert_eq!(pdf.text().unwrap(), "Text Link");
    assert!(file.len() < 260_000, "{} bytes", file.len());
    assert!(file == made(&shared, options).await, "the same job gives other bytes");
    // Readers search in the names, which are therefore in the order of their bytes.
    let document = Document::load_mem(&file).unwrap();
    let names = names_of(&document);
    assert!(names.is_sorted() && names.len() == 20, "{names:?}");
}

/// The names of the files, as they are written.
fn names_of(document: &Document) -> Vec<Vec<u8>> {
    let catalog = document.catalog().unwrap();
    let trees = catalog.get_deref(b"Names", document).unwrap().as_dict().unwrap();
    let files = trees.get_deref(b"EmbeddedFiles", document).unwrap().as_dict().unwrap();
    let names = files.get(b"Names").unwrap().as_array().unwrap();
    names.iter().filter_map(|it| it.as_str().ok()).map(<[u8]>::to_vec).collect()
}

/// The files that the catalog names, each with its stream's dictionary.
fn associated(document: &Document) -> Vec<(&Dictionary, &Dictionary)> {
    let files = document.catalog().unwrap().get(b"AF").unwrap().as_array().unwrap();
    let dictionary = |file: &Object| document.get_dictionary(file.as_reference().unwrap()).unwrap();
    files
        .iter()
        .map(dictionary)
        .map(|file| {
            let embedded = file.get(b"EF").unwrap().as_dict().unwrap();
            assert_eq!(embedded.get(b"F").unwrap(), embedded.get(b"UF").unwrap());
            let stream = embedded.get_deref(b"F", document).unwrap().as_stream().unwrap();
            (file, &stream.dict)
        })
        .collect()
}

fn name<'a>(dictionary: &'a Dictionary, key: &str) -> &'a str {
    str::from_utf8(dictionary.get(key.as_bytes()).unwrap().as_name().unwrap()).unwrap()
}

async fn described(shared: Arc<Shared>) {
    let content = BASE64_STANDARD.encode("a;b");
    let attachments: Vec<_> = ["source", "data", "alternative", "supplement", "unspecified"]
        .iter()
        .map(|relationship| {
            json!({
                "name": format!("{relationship}.csv"), "content": content, "mime_type": "text/csv",
                "description": "Größe", "relationship": relationship,
            })
        })
        .chain([json!({ "name": "😀", "content": content })])
        .collect();
    let file = made(&shared, json!({ "attachments": attachments, "metadata": { "date": DATE } })).await;
    let document = Document::load_mem(&file).unwrap();
    let found: Vec<_> = associated(&document)
        .into_iter()
        .map(|(file, stream)| {
            assert_eq!(text(file, "F"), text(file, "UF"));
            let parameters = stream.get(b"Params").unwrap().as_dict().unwrap();
            assert_eq!(parameters.get(b"Size").unwrap().as_i64().unwrap(), 3);
            assert_eq!(text(parameters, "ModDate").unwrap(), "D:20261127063451+01'00'");
            (
                text(file, "F").unwrap(),
                name(file, "AFRelationship"),
                text(file, "Desc"),
                name(stream, "Subtype"),
            )
        })
        .collect();
    let expected: Vec<_> = ["Source", "Data", "Alternative", "Supplement", "Unspecified"]
        .map(|it| (format!("{}.csv", it.to_lowercase()), it, Some("Größe".to_owned()), "text/csv"))
        .into_iter()
        .chain([("😀".to_owned(), "Unspecified", None, "application/octet-stream")])
        .collect();
    assert_eq!(found, expected);
}

async fn invoices(shared: Arc<Shared>) {
    let fixture = |name: &str| {
        std::fs::read_to_string(tests_dir().join(format!("fixtures/invoices/{name}.xml"))).unwrap()
    };
    let basic = fixture("basic");
    let en_16931 = "urn:cen.eu:en16931:2017";
    let with = |guideline: &str| {
        basic.replace(
            &format!("{en_16931}#compliant#urn:factur-x.eu:1p0:basic"),
            &format!("{en_16931}{guideline}"),
        )
    };
    for (xml, level, file_name, relationship, version) in [
        (fixture("minimum"), "MINIMUM", "factur-x.xml", "Data", "1.0"),
        (fixture("basic-wl"), "BASIC WL", "factur-x.xml", "Data", "1.0"),
        (basic.clone(), "BASIC", "factur-x.xml", "Alternative", "1.0"),
        (with(""), "EN 16931", "factur-x.xml", "Alternative", "1.0"),
        (with("#conformant#urn:factur-x.eu:1p0:extended"), "EXTENDED", "factur-x.xml", "Alternative", "1.0"),
        (
            with("#compliant#urn:xeinkauf.de:kosit:xrechnung_3.0"),
            "XRECHNUNG",
            "xrechnung.xml",
            "Alternative",
            "3.0",
        ),
    ] {
        let other = json!({ "name": "terms.txt", "content": BASE64_STANDARD.encode("Terms") });
        let file = made(&shared, json!({ "invoice": xml, "attachments": [other] })).await;
        let files = Pdf::parse(&file).unwrap().files().unwrap();
        assert_eq!(files[file_name], xml.as_bytes(), "{level}");
        assert_eq!(files["terms.txt"], b"Terms", "{level}");
        let document = Document::load_mem(&file).unwrap();
        let (file, stream) = associated(&document)[0];
        assert_eq!(text(file, "UF").unwrap(), file_name);
        assert_eq!(
            (name(file, "AFRelationship"), name(stream, "Subtype")),
            (relationship, "text/xml"),
            "{level}"
        );
        let packet = xmp(&document);
        for property in [
            "pdfaid:part>3<".to_owned(),
            "pdfaid:conformance>B<".to_owned(),
            "fx:DocumentType>INVOICE<".to_owned(),
            format!("fx:DocumentFileName>{file_name}<"),
            format!("fx:Version>{version}<"),
            format!("fx:ConformanceLevel>{level}<"),
        ] {
            assert!(packet.contains(&property), "{property}: {packet}");
        }
    }
}
