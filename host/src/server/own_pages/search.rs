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

/// Endings that a word of a query may have and the documents not, the longest first.
const ENDINGS: [&str; 4] = ["ing", "ed", "es", "s"];
/// A shorter word without its ending is another word.
const MIN_STEM: usize = 4;

/// A section in lower case, in which words are searched.
struct Entry<'p> {
    path: &'p str,
    page: &'p Page,
    section: &'p Section,
    page_title: String,
    title: String,
    text: String,
}

impl Entry<'_> {
    fn own(&self) -> [&str; 2] {
        [&self.title, &self.text]
    }
}

/// The place of a section among the results: small is better.
type Rank = (usize, u8, bool);

/// The sections that have the most words of the query, the best first, as the content of a page. Pages are given with their
/// paths below `/docs/`.
pub(super) fn html<'p>(query: &str, pages: impl Iterator<Item = (&'p str, &'p Page)>) -> String {
    let entries: Vec<Entry<'p>> = pages.flat_map(|(path, page)| entries(path, page)).collect();
    let query = query.to_ascii_lowercase();
    let words: Vec<&str> =
        query.split_whitespace().take(MAX_WORDS).map(|word| known(word, &entries)).collect();
    let mut found: Vec<_> = entries.iter().filter_map(|entry| Some((rank(&words, entry)?, entry))).collect();
    found.sort_by_key(|(rank, _)| *rank);
    let missing = found.first().map_or(words.len(), |((missing, ..), _)| *missing);
    found.retain(|((other, ..), _)| *other == missing);
    let mut html = format!(
        "<h1>Search</h1><p role=\"status\">{}</p><ol class=\"results\">",
        status(found.len(), words.len() - missing, words.len())
    );
    for (_, Entry { path, page, section, .. }) in found.iter().take(MAX_RESULTS) {
        let place = if section.level == 1 {
            String::new()
        } else {
            format!("<small>{}</small> ", escape(page.title()))
        };
        let _ = write!(
            html,
            "<li>{place}<a href=\"/docs/{path}#{}\">{}</a><p>{}</p></li>",
            section.anchor,
            escape(&section.title),
            excerpt(section, &words)
        );
    }
    html + "</ol>"
}

fn entries<'p>(path: &'p str, page: &'p Page) -> impl Iterator<Item = Entry<'p>> {
    page.sections.iter().map(move |section| Entry {
        path,
        page,
        section,
        page_title: page.title().to_ascii_lowercase(),
        title: section.title.to_ascii_lowercase(),
        text: section.text.to_ascii_lowercase(),
    })
}

/// The word, or if no section has it, its beginning without an ending: "margin" for "margins".
fn known<'w>(word: &'w str, entries: &[Entry<'_>]) -> &'w str {
    let is_somewhere =
        |word: &str| entries.iter().any(|entry| entry.own().iter().any(|text| text.contains(word)));
    if is_somewhere(word) {
        return word;
    }
    let stems = ENDINGS.iter().filter_map(|ending| word.strip_suffix(ending));
    stems.filter(|stem| stem.len() >= MIN_STEM).find(|stem| is_somewhere(stem)).unwrap_or(word)
}

/// What was found: sections with this many words of all.
fn status(found: usize, words: usize, all: usize) -> String {
    let sections = match found {
        0 => return "No section has any of these words.".to_owned(),
        1 => "1 section".to_owned(),
        found if found > MAX_RESULTS => format!("The first {MAX_RESULTS} of {found} sections"),
        found => format!("{found} sections"),
    };
    if words == all { sections } else { format!("{sections} with {words} of {all} words") }
}

/// The place of a section: first by the number of words that it lacks, then by where it has the others, then by whether each
/// of them begins a word there. `None` if it has none itself.
fn rank(words: &[&str], entry: &Entry<'_>) -> Option<Rank> {
    let Entry { page_title, title, text, .. } = entry;
    let has = |texts: &[&str], word: &str| texts.iter().any(|text| text.contains(word));
    if !words.iter().any(|word| has(&entry.own(), word)) {
        return None;
    }
    let found: Vec<&str> =
        words.iter().copied().filter(|word| has(&[title, text, page_title], word)).collect();
    let missing = words.len() - found.len();
    // With a word in the title, it is about it; otherwise it mentions it.
    let place = match () {
        () if *title == words.join(" ") => 0,
        () if found.iter().all(|word| title.contains(word)) => 1,
        () if found.iter().any(|word| title.contains(word)) => 2,
        () => 3,
    };
    let is_inside = !found.iter().all(|word| [title, text, page_title].iter().any(|text| begins(text, word)));
    Some((missing, place, is_inside))
}

/// Whether a word of the text begins with this one.
fn begins(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| !text[..at].ends_with(char::is_alphanumeric))
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
        let results = |query: &str| html(query, [("x", &page)].into_iter());
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
        // Words that a section lacks are left out when no section has all.
        assert_eq!(anchors("nowhere wait time"), ["wait", "other"]);
        assert!(results("nowhere wait time").contains("2 sections with 2 of 3 words"));
        // Beginnings of words, and words with an ending that the documents do not have.
        assert_eq!(anchors("wai tim"), ["wait", "other"]);
        assert_eq!(anchors("waiting"), anchors("wait"));
        assert!(anchors("its").is_empty(), "a stem of two letters");
        let inside = markdown::page("x", "# A\n\n## Renew\n\n## News\n\n## New");
        let html = html("new", [("x", &inside)].into_iter());
        let at = |anchor: &str| html.find(&format!("#{anchor}\"")).unwrap();
        assert!(at("new") < at("news") && at("news") < at("renew"), "{html}");
        assert!(results("wait").contains("about <mark>wait</mark> é &amp; more"), "{}", results("wait"));
        assert!(results("<b>").contains("No section has any"));
    }
}
