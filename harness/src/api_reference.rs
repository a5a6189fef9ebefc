//! The tables of `docs/api.md`, which are those of the fields and of the codes of errors.

use std::fmt::Write as _;

use platen_shared::{
    job::PdfStandard,
    reason::ErrorCode,
    request::{FieldKind, FieldName, FieldSpec, Formats},
};

/// The fields in the order of the documents.
pub(crate) const GROUPS: [(&str, &[Formats]); 3] = [
    ("All formats", &[Formats::All]),
    ("Images", &[Formats::Images, Formats::JpegAndWebp, Formats::Png, Formats::PngAndWebp]),
    ("PDF", &[Formats::Pdf]),
];

/// A table of the fields for each set of formats, with links to their descriptions.
pub fn fields() -> String {
    let mut text = String::new();
    for (title, formats) in GROUPS {
        let _ = write!(text, "\n{title}:\n\n| field | value | default |\n| --- | --- | --- |\n");
        for name in FieldName::all().filter(|name| formats.contains(&name.spec().formats)) {
            let spec = name.spec();
            let default = spec.default.map_or(String::new(), |json| format!("`{}`", json.trim_matches('"')));
            let anchor = name.as_str().to_lowercase();
            let _ = writeln!(text, "| [`{name}`](options.md#{anchor}) | {} | {default} |", value(spec.kind));
        }
    }
    text + "\n"
}

/// The values of a field and its default, as a sentence.
pub fn values(spec: FieldSpec) -> String {
    let default =
        spec.default.map_or(String::new(), |json| format!(" Default: `{}`.", json.trim_matches('"')));
    format!("Values: {}.{default}\n", value(spec.kind))
}

fn value(kind: FieldKind) -> String {
    match kind {
        FieldKind::Boolean => "boolean".to_owned(),
        FieldKind::Text { max_chars, .. } if max_chars == usize::MAX => "string".to_owned(),
        FieldKind::Text { max_chars, .. } => format!("string, at most {}", with_commas(max_chars as u64)),
        FieldKind::Choice(names) => {
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        }
        FieldKind::Number { min, max, whole } => {
            let kind = if whole { "whole number" } else { "number" };
            format!("{kind}, {min} to {max}")
        }
        FieldKind::Length => "length".to_owned(),
        FieldKind::Margin => "length, or object of `top`, `right`, `bottom`, `left`".to_owned(),
        FieldKind::Clip => "object of `x`, `y`, `width`, `height`".to_owned(),
        FieldKind::Variables => "object of strings and numbers".to_owned(),
        FieldKind::Data => "object".to_owned(),
        FieldKind::Metadata => "object of strings".to_owned(),
        FieldKind::Standard => {
            let names: Vec<_> = PdfStandard::NAMES.iter().map(|name| format!("`{name}`")).collect();
            format!("{}, or array of two", names.join(", "))
        }
        FieldKind::Assets => "object of objects by path".to_owned(),
        FieldKind::Attachments => "array of objects".to_owned(),
        FieldKind::Texts { .. } => "array of strings".to_owned(),
        FieldKind::Protection => "object of `userPassword`, `ownerPassword`, `allow`".to_owned(),
    }
}

/// A table of the codes of errors.
pub fn errors() -> String {
    let mut text = "\n| status | code | cause | counts |\n| --- | --- | --- | --- |\n".to_owned();
    let unauthorized = "| 401 | | The key is missing, malformed, unknown, disabled or expired, or its account is disabled. \
                        The body is always `{\"error\":\"Invalid API key\"}` | no |\n";
    let mut codes: Vec<_> = ErrorCode::ALL.iter().collect();
    codes.sort_by_key(|code| code.status());
    for code in codes {
        if code.status() > 401 && !text.contains(unauthorized) {
            text.push_str(unauthorized);
        }
        let counts = if code.is_counted() { "yes" } else { "no" };
        let meaning = code.meaning().replace('|', "\\|");
        let _ = writeln!(text, "| {} | `{}` | {meaning} | {counts} |", code.status(), code.as_str());
    }
    text + "\n"
}

/// 5242880 as 5,242,880.
pub fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|part| std::str::from_utf8(part).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::check_section;

    #[test]
    fn the_api_is_documented() {
        check_section("api.md", "fields", &fields());
        check_section("api.md", "errors", &errors());
    }
}
