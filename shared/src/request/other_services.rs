//! Names and values that other services and tools have for what a request of theirs can say, and what there is in their place.

use super::{
    field_kind::FieldKind,
    field_name::{FieldName, FieldPath},
};
use crate::format::PaperSize;

/// What replaces a field of another service; `None` if no such field is known. Case, `_` and `-` do not matter.
///
/// The names are those of Gotenberg 8, Puppeteer, `HTML/CSS to Image`, `DocRaptor` and `wkhtmltopdf`.
pub(super) fn replacement(name: &str) -> Option<&'static str> {
    let plain: String =
        name.chars().filter(|it| !matches!(it, '_' | '-')).map(|it| it.to_ascii_lowercase()).collect();
    REPLACEMENTS.iter().find(|(names, _)| names.contains(&&*plain)).map(|(_, text)| *text)
}

/// What to send in place of a value that another service accepts in a field of the same name: the end of the message for a
/// value that is refused. `json` is the value.
pub(super) fn hint(path: FieldPath, json: &str) -> Option<&'static str> {
    if path != path.field.into() {
        return None;
    }
    let text = json.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    let is_quoted = match path.field.spec().kind {
        FieldKind::Boolean => matches!(text, Some("true" | "false")),
        FieldKind::Number { .. } => text.is_some_and(|text| text.parse::<f64>().is_ok_and(f64::is_finite)),
        _ => false,
    };
    match path.field {
        _ if is_quoted => Some(", without quotes"),
        FieldName::WaitForSelector if json.starts_with('{') => {
            Some(". Send the selector alone, such as \"#chart\"")
        }
        FieldName::Format if text.is_some_and(|text| text.parse::<PaperSize>().is_ok()) => {
            Some(". The size of the paper is \"pdfFormat\"")
        }
        _ => None,
    }
}

const REPLACEMENTS: [(&[&str], &str); 20] = [
    (
        &["cookies", "headers", "extrahttpheaders", "authenticate"],
        "No cookies, headers or passwords are sent to a page: send its markup as \"html\"",
    ),
    (&["paperwidth"], "Use \"pdfWidth\" with a unit, such as \"8.5in\""),
    (&["paperheight"], "Use \"pdfHeight\" with a unit, such as \"11in\""),
    (
        &["margintop", "marginright", "marginbottom", "marginleft"],
        "Use \"margin\" with units, such as {\"top\": \"1in\"}",
    ),
    (&["papersize", "pagesize"], "Use \"pdfFormat\", or \"pdfWidth\" and \"pdfHeight\""),
    (&["orientation"], "Use \"landscape\": true"),
    (&["displayheaderfooter", "headertemplate", "footertemplate"], "Use \"headerHtml\" and \"footerHtml\""),
    (&["nativepageranges"], "Use \"pageRanges\""),
    (&["waitdelay", "delay", "msdelay"], "Use \"waitForTimeout\" in milliseconds"),
    (&["waitforexpression"], "Use \"waitForFunction\""),
    (&["emulatedmediatype"], "Use \"mediaType\""),
    (&["gotooptions", "skipnetworkidleevent"], "Use \"waitUntil\""),
    (&["viewport"], "Use \"width\", \"height\" and \"deviceScaleFactor\""),
    (&["failonhttpstatuscodes"], "Use \"failOnHttpStatus\": true"),
    (&["generatetaggedpdf", "pdfua"], "Use \"tagged\": true, or \"pdfStandard\": \"pdf/ua-1\""),
    (&["pdfa"], "Use \"pdfStandard\": \"pdf/a-2b\" or \"pdf/a-3b\""),
    (&["userpassword", "ownerpassword"], "Use \"protection\""),
    (&["embeds"], "Use \"attachments\""),
    (&["timeout"], "Each render has the same deadline, which the operator of the service sets"),
    (&["webhook", "callback"], "The answer to a request is its file"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_explained_in_a_document() {
        let documents = [
            include_str!("../../../docs/coming-from/docraptor.md"),
            include_str!("../../../docs/coming-from/gotenberg.md"),
            include_str!("../../../docs/coming-from/htmlcsstoimage.md"),
            include_str!("../../../docs/coming-from/puppeteer.md"),
            include_str!("../../../docs/coming-from/wkhtmltopdf.md"),
        ];
        let text = documents.concat().to_ascii_lowercase().replace(['_', '-'], "");
        let code = text.split('`').skip(1).step_by(2).collect::<Vec<_>>().join(" ");
        for name in REPLACEMENTS.iter().flat_map(|(names, _)| *names) {
            assert!(code.contains(name), "docs/coming-from/ does not explain {name}");
        }
    }

    #[test]
    fn values_of_other_services_have_a_hint() {
        for (field, json, expected) in [
            (FieldName::Landscape, "\"true\"", true),
            (FieldName::Landscape, "\"yes\"", false),
            (FieldName::Landscape, "1", false),
            (FieldName::Scale, "\"0.5\"", true),
            (FieldName::Scale, "\"half\"", false),
            (FieldName::Scale, "20", false),
            (FieldName::WaitForSelector, "{ \"selector\": \"h1\" }", true),
            (FieldName::WaitForSelector, "1", false),
            (FieldName::Format, "\"A4\"", true),
            (FieldName::Format, "\"gif\"", false),
            (FieldName::PageRanges, "\"true\"", false),
        ] {
            assert_eq!(hint(field.into(), json).is_some(), expected, "{field} {json}");
        }
        let side = FieldPath { member: Some("width"), ..FieldName::Scale.into() };
        assert_eq!(hint(side, "\"1\""), None);
    }

    #[test]
    fn a_replacement_names_fields_that_there_are() {
        let known: Vec<&str> = FieldName::all().map(FieldName::as_str).collect();
        let names: Vec<&str> = REPLACEMENTS.iter().flat_map(|(names, _)| *names).copied().collect();
        assert!(names.len() <= 40);
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} is listed twice");
            assert!(!known.iter().any(|field| field.eq_ignore_ascii_case(name)), "{name} is a field");
        }
        for (_, text) in REPLACEMENTS {
            let quoted = text.split('"').skip(1).step_by(2);
            for field in quoted.filter(|it| it.starts_with(|first: char| first.is_ascii_lowercase())) {
                let is_value = ["top", "pdf/a-2b", "pdf/a-3b", "pdf/ua-1"].contains(&field);
                assert!(known.contains(&field) || is_value, "{text}");
            }
        }
        assert_eq!(replacement("margin_top"), replacement("marginTop"));
        assert!(replacement("Paper-Width").is_some() && replacement("width").is_none());
    }
}
