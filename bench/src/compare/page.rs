//! The pages and what is asked of each: the rows of the comparison.
//!
//! Invariant: every side gets the same page and the same options, and a page tells by its pixels
//! or its text whether it was rendered to its end.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use platen_shared::limits;
use platen_tests::{
    image_file::Colour,
    settings,
    site::{Reply, Site},
};
use serde_json::{Value, json};

use super::{photo, repeat};

/// What comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// A PDF on A4 with backgrounds and without tags.
    Pdf,
    /// A PNG of the viewport.
    Png,
    /// A PNG of the whole page.
    FullPng,
}

/// Where the page comes from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Html(String),
    Url(String),
}

/// One page, asked for in one way.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// What the command line calls it.
    pub(crate) name: &'static str,
    /// What the report calls it.
    pub(crate) title: &'static str,
    pub(crate) source: Source,
    pub(crate) output: Output,
    pub(crate) network_idle: bool,
    pub(crate) wait_ms: u32,
    /// Size of the picture.
    pub(crate) size: (u32, u32),
    /// Places in the picture (or, for a PDF, colours of its first page) that show that all is there.
    pub(crate) probes: Vec<(u32, u32, Colour)>,
    /// The last words of a PDF.
    pub(crate) text: &'static str,
    /// Whether it needs neither scripts nor the network.
    pub(crate) plain: bool,
    /// Whether a PNG is asked for fast or small, of sides that leave the choice.
    pub(crate) fast_png: bool,
}

/// The window of every page.
pub(crate) const VIEWPORT: (u32, u32) = (1280, 720);

impl Page {
    /// The page as the body of a request to Platen's own API.
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
        match &self.source {
            Source::Html(html) => body["html"] = html.as_str().into(),
            Source::Url(url) => body["url"] = url.as_str().into(),
        }
        body
    }

    /// The same page without its wait: what a side is warmed up with.
    pub(crate) fn without_wait(&self) -> Self {
        Self { wait_ms: 0, network_idle: false, ..self.clone() }
    }
}

/// Every page of the comparison; those that need a site are put on `site`.
pub(crate) fn all(site: &Site) -> Result<Vec<Page>> {
    let directory = settings::crate_dir().join("../bench/pages");
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
        plain: true,
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
            source: Source::Html(repeat::times(&read("table.html")?, 200)?),
            probes: vec![(8, 8, [0x14, 0x53, 0x2d])],
            text: "200 A-",
            ..pdf
        },
        Page {
            name: "images-png",
            title: "20 images and a web font by URL, PNG",
            source: Source::Url(gallery(site, &read("gallery.html")?)?),
            probes: (0..20)
                .map(|n| (24 + n % 5 * 248 + 120, 80 + n / 5 * 158 + 142, photo::STRIPE))
                .collect(),
            plain: false,
            ..invoice.clone()
        },
        Page {
            name: "huge-png",
            title: "5 MB of HTML, PNG",
            source: Source::Html(repeat::up_to(&read("report.html")?, limits::MAX_HTML_BYTES)?),
            probes: vec![(8, 8, [0x3b, 0x2a, 0x63])],
            ..invoice.clone()
        },
        Page {
            name: "full-page-png",
            title: "Full page 1280×10,000, PNG",
            source: Source::Html(repeat::times(&read("article.html")?, 10)?),
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
            plain: false,
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

/// Puts the gallery on the site. Nothing of it may be kept from one job to the next, so that every
/// side fetches as much.
fn gallery(site: &Site, page: &str) -> Result<String> {
    let fresh = |reply: Reply| reply.with_header("cache-control", "no-store");
    for number in 1..=20 {
        let image = photo::jpeg(number)?;
        site.put(&format!("/bench/image-{number}.jpg"), fresh(Reply::of("image/jpeg", image)));
    }
    site.put("/bench/font.ttf", fresh(Reply::of("font/ttf", font()?)));
    Ok(site.put("/bench/gallery", fresh(Reply::page(repeat::times(page, 20)?))))
}

/// How many of the gallery's pictures and fonts have been fetched so far.
pub(crate) fn gallery_fetches(site: &Site) -> usize {
    let images = (1..=20).map(|number| site.hits(&format!("/bench/image-{number}.jpg")));
    images.sum::<usize>() + site.hits("/bench/font.ttf")
}

/// Fetches of one whole gallery.
pub(crate) const GALLERY_FETCHES: usize = 21;

/// A font file of the Liberation family, served under another name so that no side has it.
fn font() -> Result<Vec<u8>> {
    const PLACES: [&str; 2] = [
        "/usr/share/fonts/truetype/liberation/LiberationSerif-Regular.ttf",
        "/usr/share/fonts/truetype/liberation2/LiberationSerif-Regular.ttf",
    ];
    let found = PLACES.iter().find(|path| Path::new(path).exists());
    let font = fs::read(found.context("no Liberation font: install fonts-liberation")?)?;
    ensure!(font.len() > 10_000, "the font file is no font");
    Ok(font)
}
