//! The page at `/` and the documents of the repository's `docs/` as web pages, with a reference of the API.
//!
//! Invariant: a page loads nothing from another host, and only the reference runs scripts.

use std::{collections::BTreeMap, sync::LazyLock};

use include_dir::{Dir, include_dir};

use super::{
    Content,
    markdown::{self, Page},
};

static DOCUMENTS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../docs");
static EXAMPLES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../examples");
const STYLE: &str = include_str!("../../../assets/documents.css");
// From version 5.32.6 of the npm package swagger-ui-dist.
const SWAGGER_UI: &str = include_str!("../../../assets/swagger-ui/swagger-ui-bundle.js");
const SWAGGER_UI_STYLE: &str = include_str!("../../../assets/swagger-ui/swagger-ui.css");
const ICON_IMAGE: &str = include_str!("../../../../dashboard/assets/icon.svg");
/// The path of the icon.
pub(super) const ICON: &str = "/favicon.svg";
const HTML: &str = "text/html; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE_SHEET: &str = "text/css; charset=utf-8";
/// The folder of the reference, whose files are those of Swagger UI.
const REFERENCE: &str = "/docs/reference";
/// Starts Swagger UI. Without `validatorUrl` it would send the document to a server of its authors.
const START_REFERENCE: &str = "SwaggerUIBundle({ url: '/v1/openapi.json', dom_id: '#reference', deepLinking: true,\
    validatorUrl: null, defaultModelsExpandDepth: 0, tryItOutEnabled: true })";

/// The documents in the navigation. Those of `how-to/` follow the first group.
const USE: &[&str] = &["quick-start", "api", "options", "pdf", "templates", "clients", "mcp", "dashboard"];
const RUN: &[&str] =
    &["operating", "configuration", "containers", "kubernetes", "spin", "monitoring", "runbooks"];
const HOW_IT_WORKS: &[&str] = &["rendering", "security", "benchmarks"];

/// The rendered documents, by path without `/docs`.
static PAGES: LazyLock<BTreeMap<String, Page>> = LazyLock::new(|| {
    let files = DOCUMENTS.files().chain(DOCUMENTS.dirs().flat_map(Dir::files));
    let documents = files.filter_map(|file| {
        let name = file.path().to_str()?.strip_suffix(".md")?;
        Some((name.to_owned(), markdown::page(name, file.contents_utf8()?)))
    });
    documents.collect()
});

/// The content security policy.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
                                 frame-ancestors 'none'";
/// Swagger UI sets styles of elements, and shows images that are data: URLs.
const REFERENCE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                                img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                                frame-ancestors 'none'";

/// The page at a path.
pub(super) fn get(path: &str) -> Option<Content> {
    match path {
        "/" => Some(Content::new(HTML, start())),
        "/docs" => Some(Content::new(HTML, html("quick-start")?)),
        "/llms.txt" => Some(Content::new(TEXT, for_language_models())),
        ICON => Some(Content::new("image/svg+xml", ICON_IMAGE)),
        "/docs/style.css" => Some(Content::new(STYLE_SHEET, STYLE)),
        REFERENCE => Some(Content { policy: REFERENCE_POLICY, ..Content::new(HTML, reference()) }),
        "/docs/reference.js" => Some(Content::new(SCRIPT, START_REFERENCE)),
        "/docs/swagger-ui/swagger-ui-bundle.js" => Some(Content::new(SCRIPT, SWAGGER_UI)),
        "/docs/swagger-ui/swagger-ui.css" => Some(Content::new(STYLE_SHEET, SWAGGER_UI_STYLE)),
        _ => {
            let name = path.strip_prefix("/docs/")?;
            if let Some(file) = name.strip_prefix("examples/") {
                let text = EXAMPLES.get_file(file)?.contents();
                return Some(Content::new(TEXT, text));
            }
            match name.rsplit_once('.') {
                Some((_, "png")) => Some(Content::new("image/png", DOCUMENTS.get_file(name)?.contents())),
                Some((_, "md")) => {
                    Some(Content::new("text/markdown; charset=utf-8", DOCUMENTS.get_file(name)?.contents()))
                }
                Some(_) => None,
                None => Some(Content::new(HTML, html(name)?)),
            }
        }
    }
}

/// The page for a path that does not exist.
pub(super) fn not_found() -> Content {
    let body = "<main class=\"start text\" id=\"content\"><h1>Page not found</h1><p>There is no page at this address.</p>\
        <ul><li><a href=\"/docs\">Documents</a></li><li><a href=\"/dashboard\">Dashboard</a></li></ul></main>";
    Content::new(HTML, layout("Page not found", "", body, ""))
}

/// The documents as Markdown, in the form of <https://llmstxt.org>.
fn for_language_models() -> String {
    let mut text = "# Platen\n\n> Renders HTML, a public URL or a saved template to PNG, WebP, JPEG or PDF, over HTTP.\n".to_owned();
    let how_to: Vec<&str> =
        PAGES.keys().map(String::as_str).filter(|name| name.starts_with("how-to/")).collect();
    for (group, names) in [("Use", USE), ("Examples", &how_to), ("Run", RUN), ("How it works", HOW_IT_WORKS)]
    {
        text.extend(["\n## ", group, "\n\n"]);
        for name in names {
            let title = PAGES.get(*name).map_or("", |page| &page.title);
            text.extend(["- [", title, "](/docs/", name, ".md)\n"]);
        }
    }
    text.push_str("\n## Reference\n\n- [OpenAPI document](/v1/openapi.json)\n");
    text
}

fn html(name: &str) -> Option<String> {
    let page = PAGES.get(name)?;
    let body = format!("<main id=\"content\" class=\"text\">{}</main>", page.html);
    Some(layout(&page.title, &navigation(name), &body, ""))
}

fn reference() -> String {
    let head = "<link rel=\"stylesheet\" href=\"/docs/swagger-ui/swagger-ui.css\">\
        <script src=\"/docs/swagger-ui/swagger-ui-bundle.js\" defer></script>\
        <script src=\"/docs/reference.js\" defer></script>";
    let body = "<main id=\"content\" class=\"reference\"><div id=\"reference\"></div><noscript>The reference requires JavaScript. \
        The <a href=\"/v1/openapi.json\">OpenAPI document</a> has the same content.</noscript></main>";
    layout("Reference", &navigation("reference"), body, head)
}

fn navigation(current: &str) -> String {
    let link = |name: &str, title: &str| {
        let current = if name == current { " aria-current=\"page\"" } else { "" };
        format!("<a href=\"/docs/{name}\"{current}>{title}</a>")
    };
    let mut html = "<nav aria-label=\"Documents\"><a class=\"brand\" href=\"/\">Platen</a>".to_owned();
    let links = |names: &[&str]| -> String {
        let pages = names.iter().filter_map(|name| Some((name, PAGES.get(*name)?)));
        pages.map(|(name, page)| link(name, &page.title)).collect()
    };
    let how_to: Vec<&str> =
        PAGES.keys().map(String::as_str).filter(|name| name.starts_with("how-to/")).collect();
    let first = links(USE) + &link("reference", "Reference") + &links(&how_to);
    for (group, links) in [("Use", first), ("Run", links(RUN)), ("How it works", links(HOW_IT_WORKS))] {
        html.extend(["<p>", group, "</p>", &links]);
    }
    html.push_str("<p>This server</p><a href=\"/dashboard\">Dashboard</a></nav>");
    html
}

fn start() -> String {
    let body = "<main class=\"start text\" id=\"content\"><h1>Platen</h1>\
        <p>Renders HTML, a URL or a template to PNG, WebP, JPEG or PDF.</p>\
        <ul><li><a href=\"/dashboard\">Dashboard</a>: API keys, templates and usage</li>\
        <li><a href=\"/docs\">Documents</a>: quick start, options, errors and examples</li>\
        <li><a href=\"/docs/reference\">Reference</a> of the API, and its <a href=\"/v1/openapi.json\">OpenAPI document</a></li>\
        </ul>\
        <p class=\"made\"><a href=\"/docs/how-to/numbered-invoice\"><img src=\"/docs/pictures/example-numbered-invoice.png\" alt=\"An invoice as PDF\"></a> \
        <a href=\"/docs/how-to/social-card\"><img src=\"/docs/pictures/example-social-card.png\" alt=\"A card as PNG\"></a> \
        <a href=\"/docs/how-to/report\"><img src=\"/docs/pictures/example-report.png\" alt=\"A report as PDF\"></a></p></main>";
    layout("Platen", "", body, "")
}

fn layout(title: &str, navigation: &str, body: &str, head: &str) -> String {
    let full_title = if title == "Platen" { "Platen".to_owned() } else { format!("{title} · Platen") };
    let class = if navigation.is_empty() { " class=\"single\"" } else { "" };
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{full_title}</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"icon\" href=\"{ICON}\" type=\"image/svg+xml\">{head}\
         <link rel=\"stylesheet\" href=\"/docs/style.css\"></head><body{class}>\
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

    #[test]
    fn pages_load_nothing_from_other_hosts() {
        for path in ["/", "/docs", "/docs/api", REFERENCE] {
            let html = String::from_utf8(get(path).unwrap().body.to_vec()).unwrap();
            for attribute in ["src=\"", "<link rel=\"stylesheet\" href=\""] {
                for part in html.split(attribute).skip(1) {
                    assert!(part.starts_with('/'), "{path}: {}", part.chars().take(60).collect::<String>());
                }
            }
        }
        for file in ["swagger-ui/swagger-ui-bundle.js", "swagger-ui/swagger-ui.css"] {
            assert!(get(&format!("/docs/{file}")).unwrap().body.len() > 100_000, "{file}");
        }
        // Text, so that a browser does not run them as pages of this host.
        let example = get("/docs/examples/email.html").unwrap();
        assert!(example.media_type.starts_with("text/plain") && !example.body.is_empty());
        assert!(get("/docs/swagger-ui/../x").is_none() && get("/docs/../README.md").is_none());
        assert!(get("/docs/how-to/email.md").unwrap().body.starts_with(b"# "));
    }
}
