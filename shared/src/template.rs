//! Template substitution: the value of `{{ name }}` is HTML-escaped, that of `{{{ name }}}` is not.
//!
//! A name is a Unicode identifier that may contain `-` and `.` after its first character. Names are compared in NFC.
//!
//! Invariant: one pass from left to right; placeholders within values are not replaced. Any other use of
//! braces stays unchanged, because CSS and scripts contain braces.

use std::{borrow::Cow, collections::BTreeSet};

use icu_normalizer::ComposingNormalizerBorrowed;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};
use unicode_ident::{is_xid_continue, is_xid_start};

use crate::limits;

/// What a template is written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, EnumString, IntoStaticStr, Serialize, Deserialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// The placeholders of this module.
    #[default]
    Placeholders,
    /// Jinja, which the farm fills.
    Jinja,
}

impl Language {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Placeholders, Self::Jinja];

    /// The name in the database, on the command line and in forms.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The reason why a template cannot be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FillError {
    /// Placeholders without a value, each once, in the order of the markup.
    #[error("missing template variables: {}", .0.join(", "))]
    Missing(Vec<String>),
    /// The filled template is larger than its maximum.
    #[error("the filled template is too large")]
    TooLarge,
}

/// A stored template that [`unpack`] cannot decompress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored template is damaged")]
pub struct DamagedTemplate;

/// Compresses markup for the database with raw deflate (RFC 1951). A row of a libSQL server holds 5 MB by
/// default, which is less than the maximum of a template, and with a remote database the transfer of the
/// markup takes most of the time of a claim.
#[must_use]
pub fn pack(html: &str) -> Vec<u8> {
    miniz_oxide::deflate::compress_to_vec(html.as_bytes(), COMPRESSION_LEVEL)
}

/// The default of zlib. Higher levels take twice the time and save 1 % of the size.
const COMPRESSION_LEVEL: u8 = 6;

/// Decompresses the output of [`pack`].
///
/// # Errors
/// [`DamagedTemplate`], also when the markup is larger than [`limits::MAX_HTML_BYTES`].
pub fn unpack(packed: &[u8]) -> Result<String, DamagedTemplate> {
    let html = miniz_oxide::inflate::decompress_to_vec_with_limit(packed, limits::MAX_HTML_BYTES);
    String::from_utf8(html.map_err(|_| DamagedTemplate)?).map_err(|_| DamagedTemplate)
}

/// A placeholder, or the text between two of them.
enum Piece<'t> {
    Text(&'t str),
    Placeholder { name: &'t str, escape: bool },
}

/// The names of the placeholders of a template in NFC, each once, in the order of the markup.
#[must_use]
pub fn placeholders(template: &str) -> Vec<String> {
    let mut known = BTreeSet::new();
    let names = pieces(template).filter_map(|piece| match piece {
        Piece::Placeholder { name, .. } => Some(normalized(name)),
        Piece::Text(_) => None,
    });
    names.filter(|name| known.insert(name.clone())).map(Cow::into_owned).collect()
}

/// A name in NFC, in which names are compared. The tables are those that the `url` crate has for the names of hosts.
#[must_use]
pub fn normalized(name: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(name)
}

/// The first tags of other template languages, each once: `{{#if x}}`, `{{/if}}`, `{{> x}}`, `{{else}}`, `{% if x %}`. They stay
/// in the text, except `{{else}}`, which is a placeholder.
#[must_use]
pub fn foreign_tags(template: &str) -> Vec<&str> {
    let mut tags = Vec::new();
    for (open, close) in [("{{", "}}"), ("{%", "%}")] {
        for text in template.split_inclusive(close) {
            let Some(tag) = text.rfind(open).map(|at| &text[at..]) else { continue };
            let inside = tag.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
            let Some(inside) = inside.filter(|inside| !inside.contains('\n')) else { continue };
            let inside = inside.trim_start_matches(['~', ' ', '\t']);
            let is_foreign = open == "{%"
                || inside.starts_with(['#', '/', '>', '^', '&', '!'])
                || inside.split(is_space).next() == Some("else");
            if is_foreign && !tags.contains(&tag) {
                tags.push(tag);
            }
            if tags.len() == MAX_FOREIGN_TAGS {
                return tags;
            }
        }
    }
    tags
}

/// Enough for a warning.
const MAX_FOREIGN_TAGS: usize = 5;

/// Replaces the placeholders of a template; `value_of` returns the value of a name in NFC. The result has at most
/// `max_bytes`.
///
/// # Errors
/// [`FillError::Missing`] lists every placeholder without a value. [`FillError::TooLarge`] is returned
/// before the text that exceeds the limit is allocated.
pub fn fill<'v>(
    template: &str,
    max_bytes: usize,
    value_of: impl Fn(&str) -> Option<&'v str>,
) -> Result<String, FillError> {
    let missing: Vec<String> =
        placeholders(template).into_iter().filter(|name| value_of(name).is_none()).collect();
    if !missing.is_empty() {
        return Err(FillError::Missing(missing));
    }
    let mut filled = String::with_capacity(template.len());
    for piece in pieces(template) {
        let text = match piece {
            Piece::Text(text) => Cow::Borrowed(text),
            Piece::Placeholder { name, escape } => {
                let value = value_of(&normalized(name)).unwrap_or_default();
                if escape { escape_html(value) } else { Cow::Borrowed(value) }
            }
        };
        if filled.len() + text.len() > max_bytes {
            return Err(FillError::TooLarge);
        }
        filled.push_str(&text);
    }
    Ok(filled)
}

/// Escapes `& < > " '` for HTML text and quoted attributes.
#[must_use]
pub fn escape_html(text: &str) -> Cow<'_, str> {
    if !text.contains(['&', '<', '>', '"', '\'']) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    Cow::Owned(escaped)
}

fn pieces(template: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut search_from = 0;
        // `find("{{")` would prepare a search for each of many braces.
        while let Some(offset) = rest.as_bytes()[search_from..].windows(2).position(|two| two == b"{{") {
            let start = search_from + offset;
            if let Some((piece, length)) = placeholder_at(&rest[start..]) {
                if start > 0 {
                    let text = &rest[..start];
                    rest = &rest[start..];
                    return Some(Piece::Text(text));
                }
                rest = &rest[length..];
                return Some(piece);
            }
            // `{{{{ name }}` contains a placeholder one or two braces further right.
            search_from = start + 1;
        }
        Some(Piece::Text(std::mem::take(&mut rest)))
    })
}

/// Reads a placeholder at the start of `text`, with its length in bytes. Three braces on both sides have
/// precedence over two; `{{{ name }}` is a literal `{` before an escaped placeholder.
fn placeholder_at(text: &str) -> Option<(Piece<'_>, usize)> {
    for (open, close, escape) in [("{{{", "}}}", false), ("{{", "}}", true)] {
        let Some(inside) = text.strip_prefix(open) else { continue };
        let trimmed = inside.trim_start_matches(is_space);
        let name_length =
            trimmed.find(|c: char| !(is_xid_continue(c) || "-.".contains(c))).unwrap_or(trimmed.len());
        let (name, after) = trimmed.split_at(name_length);
        let is_name = name.starts_with(|c: char| is_xid_start(c) || c == '_');
        let after = after.trim_start_matches(is_space);
        if is_name && after.starts_with(close) {
            let length = text.len() - after.len() + close.len();
            return Some((Piece::Placeholder { name, escape }, length));
        }
    }
    None
}

fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = limits::MAX_HTML_BYTES;

    fn filled(template: &str) -> String {
        fill(template, MAX, |name| match name {
            "a" => Some("<A&'\">"),
            "b.c-d_1" => Some("{{ a }}"),
            "_x" => Some("x"),
            "empty" => Some(""),
            "größe" => Some("XL"),
            "名前" => Some("佐藤"),
            "имя-2" => Some("Анна"),
            "हिन्दी" => Some("ठीक"),
            _ => None,
        })
        .unwrap()
    }

    #[test]
    fn only_placeholders_are_replaced() {
        let table = [
            ("plain", "plain"),
            ("{{ a }}", "&lt;A&amp;&#39;&quot;&gt;"),
            ("{{a}}{{  a\n}}", "&lt;A&amp;&#39;&quot;&gt;&lt;A&amp;&#39;&quot;&gt;"),
            ("{{{ a }}}", "<A&'\">"),
            ("[{{_x}}]", "[x]"),
            ("{{ b.c-d_1 }}", "{{ a }}"),
            ("{{empty}}|", "|"),
            ("{ _x }", "{ _x }"),
            ("{{ 1a }}", "{{ 1a }}"),
            ("{{ a b }}", "{{ a b }}"),
            ("{{}}", "{{}}"),
            ("{{ _x", "{{ _x"),
            ("{{ _x }", "{{ _x }"),
            ("{{{ _x }}", "{x"),
            ("{{ _x }}}", "x}"),
            ("{{{{ _x }}}}", "{x}"),
            ("@media{a{color:red}}", "@media{a{color:red}}"),
            ("if(x){{y()}}", "if(x){{y()}}"),
            ("{{größe}}", "XL"),
            ("{{ gro\u{308}ße }}", "XL"),
            ("{{{ 名前 }}}", "佐藤"),
            ("{{ имя-2 }}", "Анна"),
            ("{{ हिन्दी }}", "ठीक"),
            ("{{ €x }}", "{{ €x }}"),
            ("{{ ٣x }}", "{{ ٣x }}"),
            ("{{ \u{301}e }}", "{{ \u{301}e }}"),
            ("{{ a\u{200b} }}", "{{ a\u{200b} }}"),
            ("{{ 💻 }}", "{{ 💻 }}"),
            ("é{{ _x }}é", "éxé"),
        ];
        for (template, expected) in table {
            assert_eq!(filled(template), expected, "{template}");
        }
    }

    #[test]
    fn every_missing_name_is_listed_once() {
        let error = fill("{{ z }}{{{ y }}}{{ z }}", MAX, |_| None).unwrap_err();
        assert_eq!(error, FillError::Missing(vec!["z".into(), "y".into()]));
        assert_eq!(placeholders("{{z}} {{{ y }}} {{z}} {{ 1 }}"), ["z", "y"]);
        assert_eq!(placeholders("{{größe}}{{gro\u{308}ße}}{{ö}}"), ["größe", "ö"]);
    }

    #[test]
    fn tags_of_other_languages_are_found() {
        for tag in [
            "{{#if x}}",
            "{{/if}}",
            "{{> x}}",
            "{{else}}",
            "{{ else if größe }}",
            "{{^x}}",
            "{{~#each größe}}",
            "{{& x}}",
            "{{! note }}",
            "{% for x in y %}",
            "{%- endif -%}",
        ] {
            let template = format!("<p>{{{{ a }}}}{tag} {tag}</p>");
            assert_eq!(foreign_tags(&template), [tag]);
        }
        for template in [
            "{{ a }}{{{ b }}}{{elsewhere}}",
            "@media{a{color:red}}",
            "if(x){{y()}}",
            "a{width:5%}",
            "{{#",
            "{ #if x }",
            "{% x",
            "é{{ x }}é",
            "if(a){{/x/.test(b)\n}}",
        ] {
            assert_eq!(foreign_tags(template), [""; 0], "{template}");
        }
        assert_eq!(foreign_tags(&"{{#a}}{{/a}}{{#b}}{{/b}}{% c %}{{#d}}".repeat(9)).len(), MAX_FOREIGN_TAGS);
    }

    #[test]
    fn packed_markup_unpacks_and_fits_a_row() {
        // Seven random bits per byte compress worst.
        let mut state = 1_u64;
        let noise: String = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(u8::try_from(state >> 57).unwrap())
        })
        .take(limits::MAX_HTML_BYTES)
        .collect();
        let packed = pack(&noise);
        assert!(packed.len() < 4_900_000, "{}", packed.len());
        assert_eq!(unpack(&packed).unwrap(), noise);
        assert_eq!(unpack(&pack("é")).unwrap(), "é");
        assert_eq!(unpack(b"not deflate"), Err(DamagedTemplate));
        assert_eq!(unpack(&pack(&" ".repeat(limits::MAX_HTML_BYTES + 1))), Err(DamagedTemplate));
    }
}
