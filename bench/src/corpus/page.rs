//! The pages of the corpus and the ways in which each is rendered.
//!
//! Invariant: pages come in the order of their names, so that a seed gives the same run everywhere.

use std::{fmt, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use platen_shared::{
    format::{ImageFormat, PaperSize, WaitUntil},
    id::AccountId,
    job::{Output, PdfScale, RenderJob, Source as JobSource, Viewport, WaitMs},
};
use serde::Deserialize;

/// What comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Format {
    Png,
    Pdf,
}

/// When the picture is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Milestone {
    /// `load`.
    Load,
    /// `networkidle`.
    Idle,
    /// A second after `load`.
    Second,
}

/// How the page is handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Source {
    Html,
    Url,
}

/// One way to render a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mode {
    pub(crate) format: Format,
    pub(crate) wait: Milestone,
    pub(crate) source: Source,
}

impl Mode {
    /// Every way that is made of these; an empty list stands for all.
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
        let format = if self.format == Format::Png { "png" } else { "pdf" };
        let wait = match self.wait {
            Milestone::Load => "load",
            Milestone::Idle => "idle",
            Milestone::Second => "second",
        };
        let source = if self.source == Source::Html { "html" } else { "url" };
        write!(f, "{format}-{wait}-{source}")
    }
}

/// A page on the file server.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) name: String,
    category: String,
    /// Where the file server has it.
    path: String,
    /// Its markup where it is one of our own.
    markup: Option<String>,
}

/// A line of `foreign.json`: a document that a package ships.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Foreign {
    name: String,
    path: String,
}

/// All pages below `directory`: our own in a folder for each category, and documents of packages.
pub(super) fn all(directory: &Path) -> Result<Vec<Page>> {
    let mut pages = Vec::new();
    for category in fs::read_dir(directory.join("pages"))? {
        let category = category?.path();
        // What pages fetch is no page.
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
    let foreign: Vec<Foreign> = serde_json::from_str(&fs::read_to_string(directory.join("foreign.json"))?)?;
    pages.extend(foreign.into_iter().map(|Foreign { name, path }| Page {
        name,
        category: "foreign".to_owned(),
        path,
        markup: None,
    }));
    pages.sort_by(|one, other| one.name.cmp(&other.name));
    let twice = pages.windows(2).find(|pair| pair[0].name == pair[1].name);
    ensure!(twice.is_none(), "two pages have one name: {twice:?}");
    Ok(pages)
}

fn stem(path: &Path) -> Result<String> {
    Ok(path.file_stem().and_then(|text| text.to_str()).context("a UTF-8 name")?.to_owned())
}

impl Page {
    /// Whether a name on the command line means this page.
    pub(super) fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.category == name
    }

    /// Whether there is such a way: only our own pages are handed over as markup.
    pub(super) fn can(&self, mode: Mode) -> bool {
        mode.source == Source::Url || self.markup.is_some()
    }

    /// The job, which waits for some time more than the mode says.
    pub(super) fn job(&self, mode: Mode, site: &str, account: &str, more_ms: u32) -> Result<RenderJob> {
        let url = format!("{site}{}", self.path);
        let source = match (mode.source, &self.markup) {
            (Source::Html, Some(markup)) => JobSource::Html(with_base(markup, &url).try_into()?),
            _ => JobSource::Url(url.try_into()?),
        };
        let wait_ms = more_ms + if mode.wait == Milestone::Second { 1_000 } else { 0 };
        let wait_until = if mode.wait == Milestone::Idle { WaitUntil::NetworkIdle } else { WaitUntil::Load };
        job(source, wait_until, wait_ms, mode.format, account)
    }
}

/// A job with the default viewport, or A4 with backgrounds.
pub(super) fn job(
    source: JobSource,
    wait_until: WaitUntil,
    wait_ms: u32,
    format: Format,
    account: &str,
) -> Result<RenderJob> {
    let output = match format {
        Format::Png => Output::Image { format: ImageFormat::Png, full_page: false },
        Format::Pdf => {
            Output::Pdf { paper: PaperSize::A4, print_background: true, scale: PdfScale::default() }
        }
    };
    let job = RenderJob {
        account: AccountId::from_text(account),
        source,
        viewport: Viewport::default(),
        wait_until,
        wait_for_timeout: WaitMs::try_from(f64::from(wait_ms))?,
        output,
    };
    Ok(job.check()?)
}

/// The markup with a `<base>`, so that its addresses are those of the page at `url`.
fn with_base(markup: &str, url: &str) -> String {
    let behind = |text: &str| {
        let start = markup.find(text)?;
        Some(start + markup[start..].find('>')? + 1)
    };
    let place = behind("<head>").or_else(|| behind("<!doctype")).or_else(|| behind("<!DOCTYPE"));
    let (before, rest) = markup.split_at(place.unwrap_or(0));
    format!("{before}<base href=\"{url}\">{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_stands_where_the_head_begins() {
        assert_eq!(with_base("x", "u"), "<base href=\"u\">x");
        assert_eq!(with_base("<!doctype html><p>", "u"), "<!doctype html><base href=\"u\"><p>");
        let with_head = with_base("<!doctype html><html><head><title>", "u");
        assert_eq!(with_head, "<!doctype html><html><head><base href=\"u\"><title>");
    }

    #[test]
    fn modes_have_names() {
        let all: Vec<_> = Mode::all(&[], &[], &[]).into_iter().map(|mode| mode.to_string()).collect();
        assert_eq!(all.len(), 12);
        assert_eq!((all[0].as_str(), all[11].as_str()), ("png-load-html", "pdf-second-url"));
        assert_eq!(Mode::all(&[Format::Png], &[Milestone::Second], &[]).len(), 2);
    }
}
