//! The page at `/` and the documents of the repository's `docs/` as web pages, with a reference of the API and a search.
//!
//! Invariant: a page loads nothing from another host, and can be read and searched without its script.

use std::{collections::BTreeMap, fmt::Write as _, sync::LazyLock};

use include_dir::{Dir, include_dir};
use url::form_urlencoded;

use super::{
    Content,
    highlight::escape,
    markdown::{self, Page, Section},
    reference, search,
};

static DOCUMENTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../docs");
static EXAMPLES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../examples");
const STYLE: &str = include_str!("../../../assets/documents.css");
const SCRIPT: &str = include_str!("../../../assets/documents.js");
const ICON_IMAGE: &str = include_str!("../../../../dashboard/assets/icon.svg");
pub(super) const ICON: &str = "/favicon.svg";
/// The path of the search, with the query parameter `q`.
pub(super) const SEARCH: &str = "/docs/search";
const HTML: &str = "text/html; charset=utf-8";
const MARKDOWN: &str = "text/markdown; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

const USE: &[&str] = &[
    "quick-start",
    "api",
    "options",
    "reference",
    "pdf",
    "templates",
    "clients",
    "mcp",
    "dashboard",
    "scope",
];
const RUN: &[&str] =
    &["operating", "configuration", "containers", "kubernetes", "spin", "monitoring", "runbooks"];
const HOW_IT_WORKS: &[&str] = &["rendering", "security", "benchmarks"];

/// The rendered documents, by path without `/docs/`.
static PAGES: LazyLock<BTreeMap<String, Page>> = LazyLock::new(|| {
    let files = DOCUMENTS.files().chain(DOCUMENTS.dirs().flat_map(Dir::files));
    let documents = files.filter_map(|file| {
        let name = file.path().to_str()?.strip_suffix(".md")?;
        Some((name.to_owned(), markdown::page(name, file.contents_utf8()?)))
    });
    let reference = markdown::page("reference", &reference::markdown());
    documents.chain([("reference".to_owned(), reference)]).collect()
});

/// The groups of the navigation with the names of their documents.
static GROUPS: LazyLock<[(&str, Vec<&str>); 5]> = LazyLock::new(|| {
    let of = |folder| PAGES.keys().map(String::as_str).filter(move |name| name.starts_with(folder)).collect();
    [
        ("Use", USE.to_vec()),
        ("Examples", of("how-to/")),
        ("Coming from another service", of("coming-from/")),
        ("Run", RUN.to_vec()),
        ("How it works", HOW_IT_WORKS.to_vec()),
    ]
});

pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
                                 form-action 'self'; frame-ancestors 'none'";

pub(super) fn get(path: &str) -> Option<Content> {
    match path {
        "/" => Some(Content::new(HTML, start())),
        "/docs" => Some(Content::new(HTML, html("quick-start")?)),
        "/llms.txt" => Some(Content::new(TEXT, for_language_models())),
        ICON => Some(Content::new("image/svg+xml", ICON_IMAGE)),
        "/docs/reference.md" => Some(Content::new(MARKDOWN, reference::markdown())),
        "/docs/style.css" => Some(Content::new("text/css; charset=utf-8", STYLE)),
        "/docs/script.js" => Some(Content::new("text/javascript; charset=utf-8", SCRIPT)),
        _ => {
            let name = path.strip_prefix("/docs/")?;
            if let Some(file) = name.strip_prefix("examples/") {
                let text = EXAMPLES.get_file(file)?.contents();
                return Some(Content::new(TEXT, text));
            }
            match name.rsplit_once('.') {
                Some((_, "png")) => Some(Content::new("image/png", DOCUMENTS.get_file(name)?.contents())),
                Some((_, "md")) => Some(Content::new(MARKDOWN, DOCUMENTS.get_file(name)?.contents())),
                Some(_) => None,
                None => Some(Content::new(HTML, html(name)?)),
            }
        }
    }
}

/// The page of the search, by the query of its address.
pub(super) fn found(query: &str) -> Content {
    let (_, words) =
        form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "q").unwrap_or_default();
    let pages = GROUPS.iter().flat_map(|(_, names)| names);
    let pages = pages.filter_map(|name| Some((*name, PAGES.get(*name)?)));
    let body = format!("<main id=\"content\" class=\"text\">{}</main>", search::html(&words, pages));
    Content::new(HTML, layout("Search", &(header(&words, false) + &navigation("")), &body))
}

/// The page for a path that does not exist.
pub(super) fn not_found() -> Content {
    let body = "<main class=\"start text\" id=\"content\"><h1>Page not found</h1><p>There is no page at this address.</p>\
        <ul><li><a href=\"/docs\">Documents</a></li><li><a href=\"/dashboard\">Dashboard</a></li></ul></main>";
    Content::new(HTML, layout("Page not found", "", body))
}

/// The documents as Markdown, in the form of <https://llmstxt.org>.
fn for_language_models() -> String {
    let mut text = "# Platen\n\n> Renders HTML, a public URL or a saved template to PNG, WebP, JPEG or PDF, over HTTP.\n".to_owned();
    for (group, names) in GROUPS.iter() {
        text.extend(["\n## ", group, "\n\n"]);
        for name in names {
            let title = PAGES.get(*name).map_or("", Page::title);
            text.extend(["- [", title, "](/docs/", name, ".md)\n"]);
        }
    }
    text.push_str("\n## Reference\n\n- [OpenAPI document](/v1/openapi.json)\n");
    text
}

fn html(name: &str) -> Option<String> {
    let page = PAGES.get(name)?;
    let sections = page.sections.iter().filter(|section| matches!(section.level, 2 | 3));
    let mut contents = String::new();
    for Section { level, anchor, title, .. } in sections {
        let _ = write!(contents, "<a href=\"#{anchor}\" class=\"level-{level}\">{}</a>", escape(title));
    }
    let has_contents = !contents.is_empty();
    if has_contents {
        let title = "<p id=\"contents-title\">On this page</p>";
        let nav = "<nav id=\"contents\" popover aria-labelledby=\"contents-title\">";
        contents = format!("{nav}{title}{contents}</nav>");
    }
    let body =
        format!("{contents}<main id=\"content\" class=\"text\">{}{}</main>", page.html, neighbours(name));
    Some(layout(&escape(page.title()), &(header("", has_contents) + &navigation(name)), &body))
}

/// Links to the documents before and after one.
fn neighbours(name: &str) -> String {
    let names: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names).copied().collect();
    let at = names.iter().position(|other| *other == name);
    let link = |at: Option<usize>, direction: &str| {
        let name = at.and_then(|at| names.get(at)).copied();
        name.map_or(String::new(), |name| format!("<span>{direction} {}</span>", link(name, None)))
    };
    let before = link(at.and_then(|at| at.checked_sub(1)), "Previous:");
    let after = link(at.map(|at| at + 1), "Next:");
    format!("<footer>{before}{after}</footer>")
}

/// The bar at the top. Its buttons open the navigation and the contents where there is no place for them beside the text.
fn header(words: &str, has_contents: bool) -> String {
    let contents = if has_contents {
        "<button type=\"button\" popovertarget=\"contents\">On this page</button>"
    } else {
        ""
    };
    format!(
        "<header><a class=\"brand\" href=\"/\"><img src=\"{ICON}\" alt=\"\" width=\"24\" height=\"24\">Platen</a>\
         <a href=\"/dashboard\">Dashboard</a><button type=\"button\" popovertarget=\"menu\">Menu</button>\
         <form action=\"{SEARCH}\" role=\"search\"><input type=\"search\" name=\"q\" value=\"{}\" maxlength=\"200\" required \
         placeholder=\"Search the documents\" aria-label=\"Search the documents\" aria-keyshortcuts=\"/\"></form>{contents}</header>",
        escape(words)
    )
}

fn navigation(current: &str) -> String {
    let mut html = "<nav id=\"menu\" popover aria-label=\"Documents\">".to_owned();
    for (group, names) in GROUPS.iter() {
        html.extend(["<p>", group, "</p>"]);
        html.extend(names.iter().map(|name| link(name, Some(current))));
    }
    html + "</nav>"
}

fn link(name: &str, current: Option<&str>) -> String {
    let current = if current == Some(name) { " aria-current=\"page\"" } else { "" };
    let title = PAGES.get(name).map_or("", Page::title);
    format!("<a href=\"/docs/{name}\"{current}>{}</a>", escape(title))
}

fn start() -> String {
    let body = format!(
        "<main class=\"start text\" id=\"content\"><h1><img src=\"{ICON}\" alt=\"\" width=\"40\" height=\"40\">Platen</h1>\
        <p>Renders HTML, a URL or a template to PNG, WebP, JPEG or PDF.</p>\
        <ul><li><a href=\"/dashboard\">Dashboard</a>: API keys, templates and usage</li>\
        <li><a href=\"/docs\">Documents</a>: quick start, options, errors and examples</li>\
        <li><a href=\"/docs/reference\">Reference</a> of the API, and its <a href=\"/v1/openapi.json\">OpenAPI document</a></li>\
        </ul>\
        <p class=\"made\"><a href=\"/docs/how-to/numbered-invoice\"><img src=\"/docs/pictures/example-numbered-invoice.png\" alt=\"An invoice as PDF\"></a> \
        <a href=\"/docs/how-to/social-card\"><img src=\"/docs/pictures/example-social-card.png\" alt=\"A card as PNG\"></a> \
        <a href=\"/docs/how-to/report\"><img src=\"/docs/pictures/example-report.png\" alt=\"A report as PDF\"></a></p></main>"
    );
    layout("Platen", "", &body)
}

/// A page. Without a bar and navigation it is a single column.
fn layout(title: &str, navigation: &str, body: &str) -> String {
    let full_title = if title == "Platen" { "Platen".to_owned() } else { format!("{title} · Platen") };
    let class = if navigation.is_empty() { " class=\"single\"" } else { "" };
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{full_title}</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"icon\" href=\"{ICON}\" type=\"image/svg+xml\">\
         <link rel=\"stylesheet\" href=\"/docs/style.css\"><script src=\"/docs/script.js\" defer></script></head><body{class}>\
         <a class=\"skip\" href=\"#content\">Skip to the content</a>{navigation}{body}</body></html>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_leads_to_a_page() {
        let mut links = 0;
        for (name, page) in PAGES.iter() {
            for link in page.links() {
                let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
                let path = if path.is_empty() { format!("/docs/{name}") } else { path.to_owned() };
                if !path.starts_with('/') || path == "/v1/openapi.json" || path.starts_with("/dashboard") {
                    continue;
                }
                let target = get(&path);
                let target = target.unwrap_or_else(|| panic!("{name} links to {link}, which does not exist"));
                let html = String::from_utf8_lossy(&target.body);
                assert!(
                    fragment.is_empty() || html.contains(&format!("id=\"{fragment}\"")),
                    "{name} links to {link}, which has no such heading"
                );
                links += 1;
            }
        }
        assert!(links > 10, "{links}");
    }

    #[test]
    fn all_documents_are_in_the_navigation() {
        let navigation = navigation("");
        let text = for_language_models();
        for name in PAGES.keys() {
            assert!(navigation.contains(&format!("\"/docs/{name}\"")), "{name}");
            assert!(text.contains(&format!("](/docs/{name}.md)")), "{name}");
        }
    }
}
