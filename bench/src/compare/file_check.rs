//! Checks that a file is the requested one, with decoders that are independent of Chromium.

use anyhow::{Context as _, Result, ensure};
use platen_harness::{image_file::Picture, pdf_file::Pdf};

use super::page::{Output, Page};

/// Size of A4 in points.
const A4: (f64, f64) = (595.3, 841.9);

pub(crate) fn signature(file: &[u8], output: Output) -> Result<()> {
    let (name, signature): (_, &[u8]) = match output {
        Output::Pdf => ("PDF", b"%PDF-"),
        Output::Png | Output::FullPng => ("PNG", b"\x89PNG\r\n\x1a\n"),
    };
    ensure!(file.starts_with(signature), "the file is not a {name}");
    Ok(())
}

/// Decodes a file, checks its size, text and colours, and returns the number of its pages (1 for an image).
pub(crate) fn content(file: &[u8], page: &Page) -> Result<usize> {
    if page.output != Output::Pdf {
        let picture = Picture::decode(file, "image/png")?;
        let size = picture.size();
        ensure!(size == page.size, "the image is {size:?} instead of {:?}", page.size);
        for (x, y, colour) in &page.probes {
            picture.expect(*x, *y, *colour)?;
        }
        return Ok(1);
    }
    let pdf = Pdf::parse(file)?;
    let pages = pdf.pages()?;
    for (width, height) in &pages {
        let is_a4 = (width - A4.0).abs() < 1.5 && (height - A4.1).abs() < 1.5;
        ensure!(is_a4, "a page is {width} × {height} points");
    }
    ensure!(pdf.text()?.contains(page.text), "the text {:?} is missing", page.text);
    let (_, _, background) = page.probes.first().context("the page has no expected colour")?;
    let printed = pdf.first_page()?.count(*background);
    ensure!(printed > 1_000, "the background is not printed");
    Ok(pages.len())
}
