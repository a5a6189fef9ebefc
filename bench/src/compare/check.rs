//! Whether a file is what was asked for.
//!
//! Invariant: looked at by decoders that are not Chromium's.

use anyhow::{Context as _, Result, ensure};
use platen_tests::{image_file::Picture, pdf_file::Pdf};

use super::page::{Output, Page};

/// A4 in points.
const A4: (f64, f64) = (595.3, 841.9);

/// Whether it begins as a file of its kind does.
pub(crate) fn kind(file: &[u8], output: Output) -> Result<()> {
    let magic: &[u8] = if output == Output::Pdf { b"%PDF-" } else { b"\x89PNG\r\n\x1a\n" };
    ensure!(file.starts_with(magic), "the file does not begin as it should");
    Ok(())
}

/// Looks at the whole file: its size, its end, and what must be seen in it. Gives the number of its
/// pages, 1 for a picture.
pub(crate) fn closely(file: &[u8], page: &Page) -> Result<usize> {
    if page.output != Output::Pdf {
        let picture = Picture::decode(file, "image/png")?;
        let size = picture.size();
        ensure!(size == page.size, "the picture is {size:?} instead of {:?}", page.size);
        for (x, y, colour) in &page.probes {
            picture.expect(*x, *y, *colour)?;
        }
        return Ok(1);
    }
    let pdf = Pdf::parse(file)?;
    let pages = pdf.pages()?;
    for (width, height) in &pages {
        let near = (width - A4.0).abs() < 1.5 && (height - A4.1).abs() < 1.5;
        ensure!(near, "a page is {width} × {height} points");
    }
    ensure!(pdf.text()?.contains(page.text), "the text {:?} is missing", page.text);
    let (_, _, background) = page.probes.first().context("a colour to look for")?;
    let printed = pdf.first_page()?.count(*background);
    ensure!(printed > 1_000, "the background is not printed");
    Ok(pages.len())
}
