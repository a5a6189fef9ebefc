//! The colours of code: comments, strings, and words with a meaning. It knows just enough of each language of the
//! documents to find these.

use pulldown_cmark::{Event, html::push_html};

struct Language {
    /// What begins a comment that ends with the line.
    comment: &'static str,
    quotes: &'static str,
    /// Those of the quotes in which `\` has no meaning.
    raw_quotes: &'static str,
    words: &'static str,
    /// What follows a name in a list of names and values.
    after_name: Option<char>,
}

const BASE: Language = Language { comment: "#", quotes: "\"'", raw_quotes: "", words: "", after_name: None };

fn language(name: &str) -> Option<Language> {
    let language = match name {
        "sh" => Language { raw_quotes: "'", words: "curl platen sudo docker kubectl export", ..BASE },
        "json" => {
            Language { comment: "//", quotes: "\"", words: "true false null", after_name: Some(':'), ..BASE }
        }
        "yaml" => Language { words: "true false null", after_name: Some(':'), ..BASE },
        "toml" => Language { words: "true false", after_name: Some('='), ..BASE },
        "python" => Language {
            words: "as except for from if import in None not or raise return try True False with",
            ..BASE
        },
        "js" => Language {
            comment: "//",
            quotes: "\"'`",
            words: "async await const from if import let new return throw true false null",
            ..BASE
        },
        "go" => Language {
            comment: "//",
            quotes: "\"`",
            raw_quotes: "`",
            words: "any defer func if import map nil package return string",
            ..BASE
        },
        "php" => Language { comment: "//", words: "echo exit false if null true", ..BASE },
        "rust" => Language {
            comment: "//",
            quotes: "\"",
            words: "async await dyn fn if let match mut return use",
            ..BASE
        },
        _ => return None,
    };
    Some(language)
}

/// A program or data as HTML, with a `<span>` of the class `word`, `comment` or `string` around what has a colour;
/// without these for an unknown language.
pub(super) fn highlight(name: &str, code: &str) -> String {
    let Some(language) = language(name) else { return escape(code) };
    let mut html = String::new();
    let mut rest = code;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let begins_token = before.is_whitespace();
        let (kind, len) = if rest.starts_with(language.comment) && begins_token {
            ("comment", rest.find('\n').unwrap_or(rest.len()))
        } else if language.quotes.contains(first) {
            ("string", string_len(rest, first, language.raw_quotes.contains(first)))
        } else {
            let is_in_word = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '$' | '.');
            ("", rest.find(|char| !is_in_word(char)).unwrap_or(rest.len()).max(first.len_utf8()))
        };
        let (token, after) = rest.split_at(len);
        let is_name = kind != "comment"
            && language.after_name.is_some_and(|mark| after.trim_start_matches(' ').starts_with(mark));
        let is_word = kind.is_empty()
            && (language.words.split(' ').any(|word| word == token)
                || name == "sh" && begins_token && token.starts_with('-'));
        let kind = if is_word || is_name && !token.trim().is_empty() { "word" } else { kind };
        if kind.is_empty() {
            html.push_str(&escape(token));
        } else {
            html.extend(["<span class=\"", kind, "\">", &escape(token), "</span>"]);
        }
        before = token.chars().next_back().unwrap_or(before);
        rest = after;
    }
    html
}

/// Escapes a text for HTML, also for a value in double quotes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    push_html(&mut escaped, [Event::Text(text.into())].into_iter());
    escaped.replace('"', "&quot;")
}

/// The length of a string with its quotes.
fn string_len(text: &str, quote: char, is_raw: bool) -> usize {
    let mut is_escaped = false;
    for (at, char) in text.char_indices().skip(1) {
        if char == quote && !is_escaped {
            return at + char.len_utf8();
        }
        is_escaped = char == '\\' && !is_escaped && !is_raw;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_elements() {
        for (language, code, html) in [
            (
                "json",
                r#"{ "a\"b": "c", "d": [true, 1] }"#,
                r#"{ <b>"a\"b"</b>: <q>"c"</q>, <b>"d"</b>: [<b>true</b>, 1] }"#,
            ),
            ("sh", "curl -d 'a\\' b#c # d\n", "<b>curl</b> <b>-d</b> <q>'a\\'</q> b#c <i># d</i>\n"),
            ("yaml", "a: b # c", "<b>a</b>: b <i># c</i>"),
            ("go", "if x == `<` {", "<b>if</b> x == <q>`&lt;`</q> {"),
            ("js", "const ä = \"not closed", "<b>const</b> ä = <q>\"not closed</q>"),
            ("text", "if <b>", "if &lt;b&gt;"),
        ] {
            let spans = [("b", "word"), ("i", "comment"), ("q", "string")];
            let html = spans.iter().fold(html.replace('"', "&quot;"), |html, (element, kind)| {
                html.replace(&format!("<{element}>"), &format!("<span class=\"{kind}\">"))
                    .replace(&format!("</{element}>"), "</span>")
            });
            assert_eq!(highlight(language, code), html);
        }
    }
}
