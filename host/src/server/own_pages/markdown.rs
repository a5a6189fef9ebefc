//! A document in Markdown as HTML, with its sections.

use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, html::push_html};
use url::{Position, Url};

use super::highlight::{escape, highlight};

#[derive(Debug)]
pub(super) struct Page {
    pub(super) html: String,
    /// What follows each heading. The first heading is the title of the document.
    pub(super) sections: Vec<Section>,
}

/// A heading, and what follows it up to the next one, as plain text.
#[derive(Debug)]
pub(super) struct Section {
    /// 1 to 6.
    pub(super) level: usize,
    pub(super) anchor: String,
    pub(super) title: String,
    pub(super) text: String,
}

impl Page {
    /// Plain text.
    pub(super) fn title(&self) -> &str {
        self.sections.first().map_or("", |section| &section.title)
    }

    /// The targets of its links and images.
    #[cfg(test)]
    pub(super) fn links(&self) -> Vec<&str> {
        let parts = self.html.split(" href=\"").flat_map(|part| part.split(" src=\"")).skip(1);
        parts.filter_map(|part| part.split('"').next()).collect()
    }
}

/// Renders a document with this name in `docs/`, without its extension. Headings have the anchors that they have on
/// GitHub, and link to themselves; links to other documents lead to their pages.
pub(super) fn page(name: &str, text: &str) -> Page {
    let events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    let mut sections: Vec<Section> = Vec::new();
    let mut out: Vec<Event<'_>> = Vec::with_capacity(events.len());
    // Whether the last link has a target on this server.
    let mut is_kept = true;
    // The headings of a table's columns, and those that are left of the row.
    let (mut columns, mut rest): (Vec<String>, std::vec::IntoIter<String>) = Default::default();
    let mut code: Option<String> = None;
    for (at, event) in events.iter().enumerate() {
        if let Some(section) = sections.last_mut() {
            match event {
                Event::Text(text) | Event::Code(text) => section.text.push_str(text),
                Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Link | TagEnd::Image) => {}
                Event::End(_) | Event::SoftBreak => section.text.push(' '),
                _ => {}
            }
        }
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let title = text_until(&events[at..], TagEnd::Heading(*level));
                let anchor = anchor(&title, &sections);
                out.push(raw(format!("<{level} id=\"{anchor}\"><a href=\"#{anchor}\">")));
                sections.push(Section { level: *level as usize, anchor, title, text: String::new() });
            }
            Event::End(TagEnd::Heading(level)) => {
                // The title is not a part of the text.
                sections.last_mut().expect("a heading has begun").text.clear();
                out.push(raw(format!("</a></{level}>\n")));
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let target = target(name, dest_url);
                is_kept = target.is_some();
                if let Some(target) = target {
                    let mut event = event.clone();
                    if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = &mut event
                    {
                        *dest_url = target.into();
                    }
                    out.push(event);
                }
            }
            Event::End(TagEnd::Link | TagEnd::Image) if !std::mem::replace(&mut is_kept, true) => {}
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                code = Some(language.to_string());
            }
            Event::Text(text) if code.is_some() => {
                let language = code.as_deref().unwrap_or_default();
                out.push(raw(format!("<pre><code>{}</code></pre>\n", highlight(language, text))));
            }
            Event::End(TagEnd::CodeBlock) if code.take().is_some() => {}
            Event::Start(Tag::TableHead) => {
                let cells = events[at..].split(|event| matches!(event, Event::End(TagEnd::TableCell)));
                let cells = cells.take_while(|cell| !matches!(cell[0], Event::End(_)));
                columns = cells.map(|cell| text_until(cell, TagEnd::TableCell)).collect();
                out.push(event.clone());
            }
            Event::Start(Tag::TableRow) => {
                rest = columns.clone().into_iter();
                out.push(event.clone());
            }
            // On a narrow screen a row is a list, with the heading of the column before each value.
            Event::Start(Tag::TableCell) if let Some(column) = rest.next() => {
                out.push(raw(format!("<td data-column=\"{}\">", escape(&column))));
            }
            // The marks of generated sections.
            Event::Html(html) if html.trim_start().starts_with("<!--") => {}
            event => out.push(event.clone()),
        }
    }
    let mut html = String::new();
    push_html(&mut html, out.into_iter());
    Page { html, sections }
}

fn raw<'e>(html: String) -> Event<'e> {
    Event::Html(CowStr::from(html))
}

fn text_until(events: &[Event<'_>], end: TagEnd) -> String {
    let inside = events.iter().take_while(|event| **event != Event::End(end));
    inside
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
            _ => None,
        })
        .collect()
}

/// The anchor of a heading: lower case, `-` instead of spaces, and without punctuation; with a number if another section has it.
fn anchor(heading: &str, sections: &[Section]) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    let anchor: String = kept.map(|char| if char == ' ' { '-' } else { char }).collect();
    let is_free = |anchor: &String| sections.iter().all(|section| section.anchor != *anchor);
    let numbered = (1..).map(|number| format!("{anchor}-{number}"));
    std::iter::once(anchor.clone()).chain(numbered).find(is_free).unwrap_or_default()
}

/// The address of what a document in `docs/` refers to; `None` for files that a server does not have.
fn target(name: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with('#') {
        return Some(link.to_owned());
    }
    // As if the repository were a site.
    let base = Url::parse(&format!("http://repository/docs/{name}")).ok()?;
    let mut url = base.join(link).ok()?;
    let path = match url.path() {
        "/shared/openapi.json" => "/v1/openapi.json".to_owned(),
        path if path.starts_with("/docs/") => path.strip_suffix(".md").unwrap_or(path).to_owned(),
        path if path.starts_with("/examples/") => format!("/docs{path}"),
        _ => return None,
    };
    url.set_path(&path);
    Some(url[Position::BeforePath..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_anchors_and_links_lead_to_pages() {
        let text = "# A `b`, c!\n\n<!-- x:begin -->\n\n[y](api.md#errors) [z](../../README.md) ![p](pictures/p.png)\n\n\
            ## D\n\ne `f`\n\n## D\n\n|a&\"|\n|-|\n|<b>|";
        let page = page("how-to/x", text);
        assert_eq!(page.title(), "A b, c!");
        assert!(page.html.contains("<h1 id=\"a-b-c\"><a href=\"#a-b-c\">") && !page.html.contains("begin"));
        assert!(page.html.contains("<td data-column=\"a&amp;&quot;\">"), "{}", page.html);
        assert_eq!(
            page.links(),
            ["#a-b-c", "/docs/how-to/api#errors", "/docs/how-to/pictures/p.png", "#d", "#d-1"]
        );
        let sections = page.sections.iter().map(|section| {
            (
                section.level,
                section.anchor.as_str(),
                section.text.split_whitespace().collect::<Vec<_>>().join(" "),
            )
        });
        assert_eq!(
            sections.collect::<Vec<_>>(),
            [(1, "a-b-c", "y z p".to_owned()), (2, "d", "e f".to_owned()), (2, "d-1", "a&\"".to_owned())]
        );
        assert_eq!(target("api", "../shared/openapi.json").unwrap(), "/v1/openapi.json");
        assert_eq!(target("how-to/x", "../api.md#a").unwrap(), "/docs/api#a");
    }
}
