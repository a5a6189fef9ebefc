//! `docs/options.md`: every field of a request with an example, and the pictures of what it does.

use std::fmt::Write as _;

use platen_shared::request::{FieldName, Formats};

use crate::api_reference;

/// A request that shows what a field does.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    pub body: &'static str,
    /// The fields to leave out for the picture without the option; empty for no such picture.
    pub without: &'static [&'static str],
}

const fn alone(body: &'static str) -> Example {
    Example { body, without: &[] }
}

const fn compared(body: &'static str, without: &'static [&'static str]) -> Example {
    Example { body, without }
}

/// The example of a field; `None` if a picture cannot show what it does.
#[expect(clippy::too_many_lines, reason = "a table")]
pub fn example(name: FieldName) -> Option<Example> {
    Some(match name {
        FieldName::Url
        | FieldName::TemplateId
        | FieldName::Variables
        | FieldName::FileName
        | FieldName::FailOnHttpStatus
        | FieldName::UserAgent
        | FieldName::WaitUntil => return None,
        FieldName::Html => alone(
            r#"{ "html": "<body style='margin: 24px; font: 20px sans-serif'><h1>Invoice 42</h1><p>Total: € 10.50", "width": 320, "height": 160 }"#,
        ),
        FieldName::Format => {
            alone(r#"{ "html": "<h1>Invoice 42</h1><p>Total: € 10.50", "format": "pdf", "pdfFormat": "A6" }"#)
        }
        FieldName::Width => compared(
            r#"{ "html": "<body style='font: 64px sans-serif'>Text is wrapped at the width of the viewport.", "width": 480, "height": 320 }"#,
            &["width"],
        ),
        FieldName::Height => compared(
            r#"{ "html": "<body style='margin: 0; height: 100vh; background: gold'>Top", "width": 120, "height": 80 }"#,
            &["height"],
        ),
        FieldName::DeviceScaleFactor => compared(
            r#"{ "html": "<body style='margin: 8px; font: 16px serif'>Sharp text", "width": 100, "height": 36, "deviceScaleFactor": 3 }"#,
            &["deviceScaleFactor"],
        ),
        FieldName::FullPage => compared(
            r#"{ "html": "<body style='margin: 0'><div style='height: 150px; background: gold'></div><div style='height: 300px; background: teal'>", "width": 200, "height": 150, "fullPage": true }"#,
            &["fullPage"],
        ),
        FieldName::WaitForTimeout => compared(
            r#"{ "html": "<body style='font: 24px sans-serif'>Loading … <script>setTimeout(() => document.body.textContent = 'Ready', 500)</script>", "width": 200, "height": 60, "waitForTimeout": 600 }"#,
            &["waitForTimeout"],
        ),
        FieldName::WaitForSelector => compared(
            r##"{ "html": "<body style='font: 24px sans-serif'>Loading … <script>setTimeout(() => document.body.innerHTML = '<b id=chart>Chart</b>', 700)</script>", "width": 200, "height": 60, "waitForSelector": "#chart" }"##,
            &["waitForSelector"],
        ),
        FieldName::MediaType => compared(
            r#"{ "html": "<style>@media print { nav { display: none } } nav { background: gold }</style><nav>Menu</nav><p>Article", "width": 200, "height": 80, "mediaType": "print" }"#,
            &["mediaType"],
        ),
        FieldName::ColorScheme => compared(
            r#"{ "html": "<style>:root { color-scheme: light dark }</style><h2>Report</h2><button>Details</button>", "width": 200, "height": 120, "colorScheme": "dark" }"#,
            &["colorScheme"],
        ),
        FieldName::ReducedMotion => compared(
            r#"{ "html": "<style>b { display: inline-block; transform: rotate(20deg) } @media (prefers-reduced-motion) { b { transform: none } }</style><body style='margin: 32px'><b>Moves</b>", "width": 200, "height": 80, "reducedMotion": true }"#,
            &["reducedMotion"],
        ),
        FieldName::Timezone => compared(
            r#"{ "html": "<script>document.write(new Date(0).toLocaleString())</script>", "width": 240, "height": 40, "timezone": "Asia/Tokyo" }"#,
            &["timezone"],
        ),
        FieldName::Locale => compared(
            r#"{ "html": "<script>document.write((1234.5).toLocaleString(undefined, { style: 'currency', currency: 'EUR' }))</script>", "width": 200, "height": 40, "locale": "de-DE" }"#,
            &["locale"],
        ),
        FieldName::Css => compared(
            r#"{ "html": "<h2>Report</h2><nav>Menu</nav><p>Article", "width": 200, "height": 140, "css": "nav { display: none } h2 { color: teal }" }"#,
            &["css"],
        ),
        FieldName::JavaScript => compared(
            r#"{ "html": "<p id=a>As delivered<script>a.textContent = 'Changed by a script'</script>", "width": 200, "height": 60, "javaScript": false }"#,
            &["javaScript"],
        ),
        FieldName::Animations => compared(
            r#"{ "html": "<style>h2 { animation: show 3s both } @keyframes show { from { opacity: 0 } }</style><h2>Fades in</h2>", "width": 200, "height": 80, "animations": "allow" }"#,
            &["animations"],
        ),
        FieldName::Scroll => compared(
            r#"{ "html": "<div style='height: 120px'></div><p id=a>Not seen yet<script>new IntersectionObserver(([entry]) => { if (entry.isIntersecting) a.textContent = 'Loaded when seen' }).observe(a)</script>", "width": 200, "height": 100, "fullPage": true, "scroll": false }"#,
            &["scroll"],
        ),
        FieldName::Mobile => compared(
            r#"{ "html": "<h1>Without a viewport rule</h1><p>A mobile device lays this page out 980 pixels wide.", "width": 320, "height": 160, "mobile": true }"#,
            &["mobile"],
        ),
        FieldName::Quality => compared(
            r#"{ "html": "<body style='margin: 0; height: 100vh; background: conic-gradient(gold, tomato, teal, gold)'>", "width": 200, "height": 150, "format": "jpeg", "quality": 5 }"#,
            &["quality"],
        ),
        FieldName::OmitBackground => compared(
            r#"{ "html": "<h1 style='text-align: center; color: teal'>Logo</h1>", "width": 200, "height": 90, "omitBackground": true }"#,
            &["omitBackground"],
        ),
        FieldName::Selector => compared(
            r##"{ "html": "<p>Text before</p><table id=t border=1 cellpadding=8><tr><td>1<td>2<tr><td>3<td>4</table><p>Text after", "width": 240, "height": 200, "selector": "#t" }"##,
            &["selector"],
        ),
        FieldName::Clip => compared(
            r#"{ "html": "<body style='margin: 0; height: 100vh; background: conic-gradient(gold, tomato, teal, gold)'>", "width": 240, "height": 160, "clip": { "x": 60, "y": 40, "width": 120, "height": 80 } }"#,
            &["clip"],
        ),
        FieldName::PdfFormat => {
            compared(r#"{ "html": "<h1>Card</h1>", "format": "pdf", "pdfFormat": "A6" }"#, &["pdfFormat"])
        }
        FieldName::PrintBackground => compared(
            r#"{ "html": "<h1 style='background: gold'>Invoice 42</h1>", "format": "pdf", "pdfFormat": "A6", "printBackground": true }"#,
            &["printBackground"],
        ),
        FieldName::Scale => compared(
            r#"{ "html": "<h1>Invoice 42</h1><p>Total: € 10.50", "format": "pdf", "pdfFormat": "A6", "scale": 0.5 }"#,
            &["scale"],
        ),
        FieldName::Landscape => compared(
            r#"{ "html": "<h1>Certificate</h1>", "format": "pdf", "pdfFormat": "A6", "landscape": true }"#,
            &["landscape"],
        ),
        FieldName::Margin => compared(
            r#"{ "html": "<p style='background: gold'>Margins are white.", "format": "pdf", "pdfFormat": "A6", "printBackground": true, "margin": { "top": "40mm", "left": "25mm", "right": "5mm" } }"#,
            &["margin"],
        ),
        FieldName::PdfWidth => compared(
            r#"{ "html": "<h1>Label</h1>", "format": "pdf", "pdfWidth": "100mm", "pdfHeight": "150mm" }"#,
            &["pdfWidth", "pdfHeight"],
        ),
        FieldName::PdfHeight => {
            alone(r#"{ "html": "<p>Receipt", "format": "pdf", "pdfWidth": "80mm", "pdfHeight": "40mm" }"#)
        }
        FieldName::PreferCssPageSize => compared(
            r#"{ "html": "<style>@page { size: 100mm 60mm }</style><h1>Card</h1>", "format": "pdf", "pdfFormat": "A5", "preferCssPageSize": true }"#,
            &["preferCssPageSize"],
        ),
        FieldName::SinglePage => compared(
            r#"{ "html": "<div style='height: 400px; background: gold'></div><div style='height: 400px; background: teal'>", "format": "pdf", "pdfFormat": "A6", "printBackground": true, "singlePage": true }"#,
            &["singlePage"],
        ),
        FieldName::HeaderHtml => compared(
            r#"{ "html": "<h1>Report</h1>", "format": "pdf", "pdfFormat": "A6", "margin": "20mm", "headerHtml": "<div style='width: 100%; text-align: right; margin-right: 20mm'>Company · <span class=date></span></div>" }"#,
            &["headerHtml"],
        ),
        FieldName::FooterHtml => compared(
            r#"{ "html": "<h1>Report</h1><p style='break-before: page'>More", "format": "pdf", "pdfFormat": "A6", "margin": "20mm", "footerHtml": "<div style='width: 100%; text-align: center'>Page <span class=pageNumber></span> of <span class=totalPages></span></div>" }"#,
            &["footerHtml"],
        ),
        FieldName::PageRanges => compared(
            r#"{ "html": "<style>h1 { break-after: page }</style><h1>One</h1><h1>Two</h1><h1>Three</h1><h1>Four", "format": "pdf", "pdfFormat": "A6", "pageRanges": "1, 3-4" }"#,
            &["pageRanges"],
        ),
        FieldName::Tagged => alone(
            r#"{ "html": "<html lang=en><title>Report</title><h1>Report</h1><p>For screen readers", "format": "pdf", "pdfFormat": "A6", "tagged": true }"#,
        ),
        FieldName::Outline => alone(
            r#"{ "html": "<h1>First chapter</h1><p>Text<h1>Second chapter</h1><p>Text", "format": "pdf", "pdfFormat": "A6", "outline": true }"#,
        ),
    })
}

pub fn document() -> String {
    let mut text = "# Options\n\n\
        Every field of a request, with an example and its picture. Where there are two, the left one is without the option. \
        [The same as a table](api.md#request), with the rules for lengths. All of them are fields of both endpoints, unless it \
        is said otherwise, and options of `platen render`.\n"
        .to_owned();
    for (title, formats) in GROUPS {
        let _ = write!(text, "\n## {title}\n");
        for name in FieldName::all().filter(|name| formats.contains(&name.spec().formats)) {
            let spec = name.spec();
            let _ = write!(text, "\n### {name}\n\n{}\n\n{}", spec.description, api_reference::values(spec));
            let Some(example) = example(name) else { continue };
            let _ = write!(text, "\n```json\n{}\n```\n\n![{name}](pictures/{name}.png)\n", example.body);
        }
    }
    text
}

const GROUPS: [(&str, &[Formats]); 3] = [
    ("All formats", &[Formats::All]),
    ("Images", &[Formats::Images, Formats::JpegAndWebp, Formats::PngAndWebp]),
    ("PDF", &[Formats::Pdf]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_are_documented() {
        crate::documents::check("options.md", &document());
    }
}
