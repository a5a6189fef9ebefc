//! A page of the comparison and its options.
//!
//! Invariant: all renderers get the same page and options. The pixels or the text of the file show whether
//! the page was rendered completely.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use platen_harness::{image_file::Colour, site::Site};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// An untagged PDF on A4 with backgrounds.
    Pdf,
    /// A PNG of the viewport.
    Png,
    /// A PNG of the whole page.
    FullPng,
}

#[derive(Debug, Clone)]
pub(crate) enum Source {
    Html(String),
    Url(String),
    Files(Files),
}

/// Markup and the files beside it.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) html: String,
    /// Path and content.
    pub(crate) assets: Vec<(&'static str, Vec<u8>)>,
    /// The same page with the files in its markup.
    pub(crate) inlined: String,
}

impl Source {
    /// Adds the field `html` or `url` to a request, and `assets`.
    pub(crate) fn write_to(&self, request: &mut Value) {
        match self {
            Self::Html(html) => request["html"] = html.as_str().into(),
            Self::Url(url) => request["url"] = url.as_str().into(),
            Self::Files(Files { html, assets, .. }) => {
                request["html"] = html.as_str().into();
                for (path, content) in assets {
                    request["assets"][path]["content"] = BASE64_STANDARD.encode(content).into();
                }
            }
        }
    }
}

/// A page and the options of its job.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// Heading in the report.
    pub(crate) title: &'static str,
    pub(crate) source: Source,
    pub(crate) output: Output,
    pub(crate) network_idle: bool,
    pub(crate) wait_ms: u32,
    /// Expected size of the image.
    pub(crate) size: (u32, u32),
    /// Expected pixels of the image; for a PDF only the colours count, on its first page.
    pub(crate) probes: Vec<(u32, u32, Colour)>,
    /// The last text of a PDF.
    pub(crate) text: &'static str,
    /// Paths on the site that every job fetches.
    pub(crate) assets: Vec<String>,
    /// Whether it is rendered alone: one job at a time, by some of the renderers, without scrolling through it first.
    pub(crate) is_heavy: bool,
}

/// The viewport of every page.
pub(crate) const VIEWPORT: (u32, u32) = (1280, 720);

impl Page {
    /// The body of a request to the public API of Platen.
    pub(crate) fn request(&self) -> Value {
        let mut body = json!({
            "format": if self.output == Output::Pdf { "pdf" } else { "png" },
            "pdfFormat": "A4",
            "printBackground": true,
            "scale": 1,
            "width": VIEWPORT.0,
            "height": VIEWPORT.1,
            "deviceScaleFactor": 1,
            "fullPage": self.output == Output::FullPng,
            "scroll": !self.is_heavy,
            "waitUntil": if self.network_idle { "networkidle" } else { "load" },
            "waitForTimeout": self.wait_ms,
        });
        self.source.write_to(&mut body);
        body
    }

    /// The page with its files in its markup.
    pub(crate) fn inlined(&self) -> Self {
        let source = match &self.source {
            Source::Files(files) => Source::Html(files.inlined.clone()),
            source => source.clone(),
        };
        Self { source, ..self.clone() }
    }

    /// The page without its wait, for the warm-up.
    pub(crate) fn without_wait(&self) -> Self {
        Self { wait_ms: 0, network_idle: false, ..self.clone() }
    }

    /// Fetches of its assets so far.
    pub(crate) fn fetches(&self, site: &Site) -> usize {
        self.assets.iter().map(|path| site.hits(path)).sum()
    }
}
