//! The pages of the corpus and the modes in which they are rendered.
//!
//! Invariant: pages are sorted by name, so that a seed gives the same run on every machine.

use std::{fmt, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use platen_shared::job::RenderJob;
use serde::Deserialize;
use serde_json::{Value, json};

use super::reader;
use crate::{compare::value_name, farm};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Format {
    /// The viewport
    Png,
    /// The whole page
    Full,
    Pdf,
}

impl Format {
    /// Its fields of a request.
    pub(super) fn fields(self) -> Value {
        match self {
            Self::Png => json!({}),
            Self::Full => json!({ "fullPage": true }),
            Self::Pdf => json!({ "format": "pdf", "printBackground": true }),
        }
    }
}

/// When a page is captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Milestone {
    /// `load`
    Load,
    /// `networkidle`
    Idle,
    /// One second after `load`
    Second,
}

/// How a job specifies its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Source {
    Html,
    Url,
}

/// How a page is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mode {
    pub(crate) format: Format,
    pub(crate) wait: Milestone,
    pub(crate) source: Source,
}

impl Mode {
    /// Every combination of these values; an empty list means all values.
    pub(super) fn all(formats: &[Format], waits: &[Milestone], sources: &[Source]) -> Vec<Self> {
        let formats = or_all(formats);
        let (waits, sources) = (or_all(waits), or_all(sources));
        let mut modes = Vec::new();
        for &format in formats {
            for &wait in waits {
                modes.extend(sources.iter().map(|&source| Self { format, wait, source }));
            }
        }
        modes
    }
}

fn or_all<T: clap::ValueEnum>(chosen: &[T]) -> &[T] {
    if chosen.is_empty() { T::value_variants() } else { chosen }
}

impl fmt::Display for Mode {
    /// `png-second-html`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [format, wait, source] =
            [value_name(&self.format), value_name(&self.wait), value_name(&self.source)];
        write!(f, "{format}-{wait}-{source}")
    }
}

/// A page on the file server.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) name: String,
    category: String,
    /// Path on the file server.
    path: String,
    /// The markup of an HTML page of the corpus; `None` for documents of packages, XHTML and SVG.
    markup: Option<String>,
}

/// An entry of `foreign.json`: a document in a package.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageDocument {
    name: String,
    path: String,
}

/// All pages below `directory`, with one folder per category, and the documents of packages.
pub(super) fn all(directory: &Path) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    for category in fs::read_dir(directory.join("pages"))? {
        let category = category?.path();
        // `data` holds resources of pages.
        if !category.is_dir() || category.ends_with("data") {
            continue;
        }
        for file in fs::read_dir(&category)? {
            let file = file?.path();
            let (name, folder) = (stem(&file)?, stem(&category)?);
            let Some(extension) = file.extension().and_then(|text| text.to_str()) else { continue };
            let markup = match extension {
                "html" => Some(fs::read_to_string(&file)?),
                "xhtml" | "svg" => None,
                _ => continue,
            };
            let path = format!("/pages/{folder}/{name}.{extension}");
            pages.push(Page { name, category: folder, path, markup });
        }
    }
    let documents: Vec<PackageDocument> =
        serde_json::from_str(&fs::read_to_string(directory.join("foreign.json"))?)?;
    pages.extend(documents.into_iter().map(|PackageDocument { name, path }| {
        let category = "foreign".to_owned();
        Page { name, category, path, markup: None }
    }));
    pages.sort_by(|one, other| one.name.cmp(&other.name));
    let duplicate = pages.windows(2).find(|pair| pair[0].name == pair[1].name);
    ensure!(duplicate.is_none(), "two pages have the same name: {duplicate:?}");
    Ok(pages)
}

fn stem(path: &Path) -> Result<String> {
    Ok(path.file_stem().and_then(|text| text.to_str()).context("the file name is not UTF-8")?.to_owned())
}

impl Page {
    /// Whether a name on the command line selects this page.
    pub(super) fn matches(&self, name: &str) -> bool {
        self.name == name || self.category == name
    }

    /// Whether the page can be rendered in this mode: not all pages are available as markup.
    pub(super) fn supports(&self, mode: Mode) -> bool {
        mode.source == Source::Url || self.markup.is_some()
    }

    /// Whether the reference reads the page before the capture: the file shows more than its viewport.
    pub(super) fn is_read(&self, mode: Mode) -> bool {
        mode.format != Format::Png && reader::can_read(&self.path)
    }

    /// The job, which waits for `extra_wait_ms` more than the mode says.
    pub(super) fn job(&self, mode: Mode, site: &str, account: &str, extra_wait_ms: u32) -> Result<RenderJob> {
        let url = format!("{site}{}", self.path);
        let mut request = mode.format.fields();
        match (mode.source, &self.markup) {
            (Source::Html, Some(markup)) => {
                // Relative URLs resolve as on the page at `url`.
                request["html"] = reader::with_first(markup, &format!("<base href=\"{url}\">")).into();
            }
            _ => request["url"] = url.into(),
        }
        request["waitForTimeout"] =
            (extra_wait_ms + if mode.wait == Milestone::Second { 1_000 } else { 0 }).into();
        request["waitUntil"] = if mode.wait == Milestone::Idle { "networkidle" } else { "load" }.into();
        farm::job(account, &request)
    }
}
