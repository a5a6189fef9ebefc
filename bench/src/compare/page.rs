//! The pages of the comparison and their options.
//!
//! Invariant: all renderers get the same page and options. The pixels or the text of the file show whether
//! the page was rendered completely.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use platen_harness::{
    image_file::Colour,
    settings,
    site::{Reply, Site},
};
use platen_shared::limits;
use serde_json::{Value, json};

use super::{page_template, test_image};

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
}

impl Source {
    /// Adds the field `html` or `url` to a request.
    pub(crate) fn write_to(&self, request: &mut Value) {
        match self {
            Self::Html(html) => request["html"] = html.as_str().into(),
            Self::Url(url) => request["url"] = url.as_str().into(),
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
    /// Whether the page needs neither scripts nor the network.
    pub(crate) is_static: bool,
    /// Whether renderers with a choice write PNG fast instead of small.
    pub(crate) fast_png: bool,
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
            "waitUntil": if self.network_idle { "networkidle" } else { "load" },
            "waitForTimeout": self.wait_ms,
        });
        self.source.write_to(&mut body);
        body
    }

    /// The page without its wait, for the warm-up.
    pub(crate) fn without_wait(&self) -> Self {
        Self { wait_ms: 0, network_idle: false, ..self.clone() }
    }
}

/// Adds the pages that need a site to `site` and returns all pages of the comparison.
pub(crate) fn all(site: &Site) -> Result<Vec<Page>> {
    let directory = settings::tests_dir().join("../bench/pages");
    let read = |name: &str| -> Result<String> {
        let path = directory.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let invoice = Page {
        name: "invoice-png",
        title: "Invoice, PNG 1280×720",
        source: Source::Html(read("invoice.html")?),
        output: Output::Png,
        network_idle: false,
        wait_ms: 0,
        size: VIEWPORT,
        probes: vec![(8, 8, [0x1f, 0x4e, 0x8c])],
        text: "",
        is_static: true,
        fast_png: false,
    };
    let pdf = Page { output: Output::Pdf, ..invoice.clone() };
    Ok(vec![
        Page {
            name: "invoice-pdf",
            title: "Invoice, PDF A4",
            text: "Thank you for your order",
            ..pdf.clone()
        },
        invoice.clone(),
        Page {
            name: "table-pdf",
            title: "Table of 200 rows, PDF A4",
            source: Source::Html(page_template::repeat(&read("table.html")?, 200)?),
            probes: vec![(8, 8, [0x14, 0x53, 0x2d])],
            text: "200 A-",
            ..pdf
        },
        Page {
            name: "images-png",
            title: "20 images and a web font by URL, PNG",
            source: Source::Url(gallery(site, &read("gallery.html")?)?),
            probes: (0..20)
                .map(|n| (24 + n % 5 * 248 + 120, 80 + n / 5 * 158 + 142, test_image::STRIPE))
                .collect(),
            is_static: false,
            ..invoice.clone()
        },
        Page {
            name: "huge-png",
            title: "5 MB of HTML, PNG",
            source: Source::Html(page_template::fill_to(&read("report.html")?, limits::MAX_HTML_BYTES)?),
            probes: vec![(8, 8, [0x3b, 0x2a, 0x63])],
            ..invoice.clone()
        },
        Page {
            name: "full-page-png",
            title: "Full page 1280×10,000, PNG",
            source: Source::Html(page_template::repeat(&read("article.html")?, 10)?),
            output: Output::FullPng,
            size: (1280, 10_000),
            probes: vec![(640, 9_980, [0x7c, 0x2d, 0x12])],
            ..invoice.clone()
        },
        Page {
            name: "chart-png",
            title: "Chart animation of 1 s, `waitForTimeout: 1200`, PNG",
            source: Source::Html(read("chart.html")?),
            wait_ms: 1_200,
            probes: vec![(1230, 38, [0x15, 0x80, 0x3d])],
            is_static: false,
            ..invoice.clone()
        },
        Page {
            name: "idle-png",
            title: "Invoice, `networkidle`, PNG",
            network_idle: true,
            ..invoice.clone()
        },
        Page {
            name: "wait-3000-png",
            title: "Invoice, `waitForTimeout: 3000`, PNG",
            wait_ms: 3_000,
            ..invoice.clone()
        },
        Page {
            name: "wait-10000-png",
            title: "Invoice, `waitForTimeout: 10000`, PNG",
            wait_ms: 10_000,
            ..invoice
        },
    ])
}

/// The page of this name.
pub(crate) fn named(site: &Site, name: &str) -> Result<Page> {
    let page = all(site)?.into_iter().find(|page| page.name == name);
    page.with_context(|| format!("unknown page {name}"))
}

/// Adds the gallery to the site, with `no-store`, so that every renderer fetches all of it for each job.
fn gallery(site: &Site, page: &str) -> Result<String> {
    let uncached = |reply: Reply| reply.with_header("cache-control", "no-store");
    for number in 1..=20 {
        let image = test_image::jpeg(number)?;
        site.put(&format!("/bench/image-{number}.jpg"), uncached(Reply::of("image/jpeg", image)));
    }
    site.put("/bench/font.ttf", uncached(Reply::of("font/ttf", font()?)));
    Ok(site.put("/bench/gallery", uncached(Reply::page(page_template::repeat(page, 20)?))))
}

/// Fetches of the gallery's images and font so far.
pub(crate) fn gallery_fetches(site: &Site) -> usize {
    let images = (1..=20).map(|number| site.hits(&format!("/bench/image-{number}.jpg")));
    images.sum::<usize>() + site.hits("/bench/font.ttf")
}

/// Fetches of one complete gallery.
pub(crate) const GALLERY_FETCHES: usize = 21;

/// A font of the Liberation family, served under another name, so that no renderer has it installed.
fn font() -> Result<Vec<u8>> {
    const PATHS: [&str; 2] = [
        "/usr/share/fonts/truetype/liberation/LiberationSerif-Regular.ttf",
        "/usr/share/fonts/truetype/liberation2/LiberationSerif-Regular.ttf",
    ];
    let found = PATHS.iter().find(|path| Path::new(path).exists());
    let font = fs::read(found.context("no Liberation font: install fonts-liberation")?)?;
    ensure!(font.len() > 10_000, "the font file is too short");
    Ok(font)
}
