//! A document in Markdown as HTML.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html::push_html};
use url::{Position, Url};

/// A document as HTML.
#[derive(Debug)]
pub(super) struct Page {
    /// The text of its first heading, escaped.
    pub(super) title: String,
    pub(super) html: String,
}

#[cfg(test)]
impl Page {
    /// The targets of its links and images.
    pub(super) fn links(&self) -> Vec<&str> {
        let parts = self.html.split(" href=\"").flat_map(|part| part.split(" src=\"")).skip(1);
        parts.filter_map(|part| part.split('"').next()).collect()
    }
}

/// Renders a document with this name in `docs/`, without its extension. Headings have the anchors that they have on
/// GitHub, and links to other documents lead to their pages.
pub(super) fn page(name: &str, text: &str) -> Page {
    let mut events: Vec<Event<'_>> = Parser::new_ext(text, Options::ENABLE_TABLES).collect();
    let mut title = None;
    for at in 0..events.len() {
        if !matches!(events[at], Event::Start(Tag::Heading { .. })) {
            continue;
        }
        let heading = heading_text(&events[at + 1..]);
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[at] {
            *id = Some(anchor(&heading).into());
        }
        title.get_or_insert(heading);
    }
    let mut is_kept = true;
    events.retain_mut(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            let target = target(name, dest_url);
            is_kept = target.is_some();
            if let Some(target) = target {
                *dest_url = target.into();
            }
            is_kept
        }
        Event::End(TagEnd::Link | TagEnd::Image) => std::mem::replace(&mut is_kept, true),
        _ => true,
    });
    let events = events.into_iter().flat_map(|event| match event {
        // A wide table is scrolled, not the page.
        Event::Start(Tag::Table(_)) => vec![raw("<div class=\"table\">"), event],
        Event::End(TagEnd::Table) => vec![event, raw("</div>")],
        // The marks of generated sections.
        Event::Html(html) if html.trim_start().starts_with("<!--") => Vec::new(),
        event => vec![event],
    });
    let mut html = String::new();
    push_html(&mut html, events);
    let title = title.unwrap_or_default();
    let mut escaped = String::new();
    push_html(&mut escaped, [Event::Text(title.into())].into_iter());
    Page { title: escaped, html }
}

fn raw(html: &str) -> Event<'_> {
    Event::Html(CowStr::Borrowed(html))
}

fn heading_text(events: &[Event<'_>]) -> String {
    let inside = events.iter().take_while(|event| !matches!(event, Event::End(TagEnd::Heading(_))));
    inside
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
            _ => None,
        })
        .collect()
}

/// The anchor of a heading: lower case, `-` instead of spaces, and without punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_'));
    kept.map(|char| if char == ' ' { '-' } else { char }).collect()
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
        let text = "# A `b`, c!\n\n<!-- x:begin -->\n\n[y](api.md#errors) [z](../../README.md) ![p](pictures/p.png)\n\n|a|\n|-|\n|<b>|";
        let page = page("how-to/x", text);
        assert_eq!(page.title, "A b, c!");
        assert!(page.html.contains("<h1 id=\"a-b-c\">") && !page.html.contains("begin"), "{}", page.html);
        assert_eq!(page.links(), ["/docs/how-to/api#errors", "/docs/how-to/pictures/p.png"]);
        assert_eq!(target("api", "../shared/openapi.json").unwrap(), "/v1/openapi.json");
        assert_eq!(target("how-to/x", "../api.md#a").unwrap(), "/docs/api#a");
    }
}
