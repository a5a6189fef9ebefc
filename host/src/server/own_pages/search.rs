//! The search of the documents, by section.

use std::fmt::Write as _;

use super::{
    highlight::escape,
    markdown::{Page, Section},
};

/// More words than that change nothing in a result.
const MAX_WORDS: usize = 10;
const MAX_RESULTS: usize = 30;
/// The length of the text that is shown of a section, in bytes before and after the first word that was found.
const CONTEXT: usize = 120;

/// The sections that have every word of the query, the best first, as the content of a page. Pages are given with their
/// paths.
pub(super) fn html<'p>(query: &str, pages: impl Iterator<Item = (&'p str, &'p Page)>) -> String {
    let query = query.to_ascii_lowercase();
    let words: Vec<&str> = query.split_whitespace().take(MAX_WORDS).collect();
    let sections =
        pages.flat_map(|(path, page)| page.sections.iter().map(move |section| (path, page, section)));
    let mut found: Vec<_> = sections
        .filter_map(|(path, page, section)| Some((rank(&words, page, section)?, path, page, section)))
        .collect();
    found.sort_by_key(|(rank, ..)| *rank);
    let mut html =
        format!("<h1>Search</h1><p role=\"status\">{}</p><ol class=\"results\">", count(found.len()));
    for (_, path, page, section) in found.iter().take(MAX_RESULTS) {
        let place = if section.level == 1 {
            String::new()
        } else {
            format!("<small>{}</small> ", escape(page.title()))
        };
        let _ = write!(
            html,
            "<li>{place}<a href=\"{path}#{}\">{}</a><p>{}</p></li>",
            section.anchor,
            escape(&section.title),
            excerpt(section, &words)
        );
    }
    html + "</ol>"
}

fn count(found: usize) -> String {
    match found {
        0 => "No section has all of these words.".to_owned(),
        1 => "1 section".to_owned(),
        found if found > MAX_RESULTS => format!("The first {MAX_RESULTS} of {found} sections"),
        found => format!("{found} sections"),
    }
}

/// The place of a section among the results: small is better. `None` if a word is missing, or there is none.
fn rank(words: &[&str], page: &Page, section: &Section) -> Option<u8> {
    let title = section.title.to_ascii_lowercase();
    if words.is_empty() {
        return None;
    }
    if title == words.join(" ") {
        return Some(0);
    }
    if words.iter().all(|word| title.contains(word)) {
        return Some(1);
    }
    let (text, page) = (section.text.to_ascii_lowercase(), page.title().to_ascii_lowercase());
    // With a word in the title, it is about it; otherwise it mentions it.
    let is_in_title = words.iter().any(|word| title.contains(word));
    let is_anywhere = words.iter().all(|word| [&title, &text, &page].iter().any(|part| part.contains(word)));
    let is_in_section = words.iter().any(|word| title.contains(word) || text.contains(word));
    (is_anywhere && is_in_section).then_some(if is_in_title { 2 } else { 3 })
}

/// The text around the first of the words that it has; its beginning if the title has one.
fn excerpt(section: &Section, words: &[&str]) -> String {
    let (title, text) = (section.title.to_ascii_lowercase(), section.text.trim());
    let lower = text.to_ascii_lowercase();
    let found = words.iter().find_map(|word| Some(lower.find(word)?..lower.find(word)? + word.len()));
    let is_in_title = words.iter().any(|word| title.contains(word));
    let found = found.filter(|_| !is_in_title).unwrap_or(0..0);
    let (before, after) = (&text[..found.start], &text[found.end..]);
    let from = before.floor_char_boundary(before.len().saturating_sub(CONTEXT));
    let to = after.floor_char_boundary(CONTEXT);
    let before = match before[from..].find(' ') {
        Some(space) if from > 0 => format!("…{}", escape(&before[from + space..])),
        _ => escape(&before[from..]),
    };
    let after = match after[..to].rfind(' ') {
        Some(space) if to < after.len() => format!("{} …", escape(&after[..space])),
        _ => escape(&after[..to]),
    };
    let marked = if found.is_empty() {
        String::new()
    } else {
        format!("<mark>{}</mark>", escape(&text[found.clone()]))
    };
    format!("{before}{marked}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::own_pages::markdown;

    #[test]
    fn sections_are_found_by_their_words_with_titles_first() {
        let text = "# Pages\n\nabout *wait* é & more\n\n## Wait\n\ntime\n\n## Other\n\na wait of time\n\n## Wait for it\n\nx";
        let page = markdown::page("x", text);
        let results = |query: &str| html(query, [("/docs/x", &page)].into_iter());
        let anchors = |query: &str| {
            let html = results(query);
            html.split("/docs/x#")
                .skip(1)
                .map(|part| part.split('"').next().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(anchors("WAIT"), ["wait", "wait-for-it", "pages", "other"]);
        assert_eq!(anchors("time wait"), ["wait", "other"]);
        // The title of the page counts for its sections, but alone it does not find them.
        assert_eq!(anchors("pages time"), ["wait", "other"]);
        assert_eq!(anchors("pages"), ["pages"]);
        assert!(anchors("nowhere").is_empty() && anchors(" ").is_empty());
        assert!(results("wait").contains("about <mark>wait</mark> é &amp; more"), "{}", results("wait"));
        assert!(results("<b>").contains("No section"));
    }
}
