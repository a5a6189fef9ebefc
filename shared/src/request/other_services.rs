//! Names that other services and tools have for what a request of theirs can say, and what there is in their place.

/// What replaces a field of another service; `None` if no such field is known. Case, `_` and `-` do not matter.
///
/// The names are those of Gotenberg 8, Puppeteer, `HTML/CSS to Image`, `DocRaptor` and `wkhtmltopdf`.
pub(super) fn replacement(name: &str) -> Option<&'static str> {
    let plain: String =
        name.chars().filter(|it| !matches!(it, '_' | '-')).map(|it| it.to_ascii_lowercase()).collect();
    REPLACEMENTS.iter().find(|(names, _)| names.contains(&&*plain)).map(|(_, text)| *text)
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
    use crate::request::FieldName;

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
