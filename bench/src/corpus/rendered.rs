//! Rendered files and the differences between two of them.
//!
//! Invariant: images are compared exactly, pixel by pixel; PDF documents by their page count and text, and then by the
//! pixels of their pages.

use std::{fmt, fs, path::Path};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use image::{DynamicImage, RgbaImage};
use platen_harness::pdf_file::{Pdf, without_dates};

use super::page::Format;

/// A parsed file.
#[derive(Debug, Clone)]
pub(super) enum Rendered {
    Image { png: Bytes },
    Document { pdf: Bytes, pages: usize, text: String },
}

/// The difference between two files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Difference {
    Formats,
    Sizes((u32, u32), (u32, u32)),
    Pixels {
        count: usize,
        /// Left, top, right and bottom, inclusive.
        bounds: [u32; 4],
    },
    Pages(usize, usize),
    /// The number of the first page that is drawn differently, from 1.
    Page(usize),
    /// The first line that differs.
    Text {
        line: usize,
        one: String,
        other: String,
    },
}

impl Rendered {
    /// # Errors
    /// When the file does not have the format.
    pub(super) fn parse(file: Bytes, format: Format) -> Result<Self> {
        if format != Format::Pdf {
            ensure!(file.starts_with(b"\x89PNG\r\n\x1a\n"), "the file is not a PNG");
            return Ok(Self::Image { png: file });
        }
        let pdf = Pdf::parse(&file)?;
        Ok(Self::Document { pages: pdf.pages()?.len(), text: pdf.layout()?, pdf: file })
    }

    pub(super) fn difference(&self, other: &Self) -> Result<Option<Difference>> {
        match (self, other) {
            (Self::Image { png: one }, Self::Image { png: other }) if one == other => Ok(None),
            (Self::Image { png: one }, Self::Image { png: other }) => {
                Ok(pixel_difference(&decode(one)?, &decode(other)?))
            }
            (
                Self::Document { pages, text, pdf: one },
                Self::Document { pages: other_pages, text: other_text, pdf: other },
            ) => {
                if pages != other_pages {
                    return Ok(Some(Difference::Pages(*pages, *other_pages)));
                }
                let found = text_difference(text, other_text);
                if found.is_some() || without_dates(one) == without_dates(other) {
                    return Ok(found);
                }
                // A resolution at which text can be told apart.
                Ok(page_difference(&Pdf::parse(one)?.pictures(48)?, &Pdf::parse(other)?.pictures(48)?))
            }
            _ => Ok(Some(Difference::Formats)),
        }
    }

    /// Writes the file, and for a document also the first page as an image.
    pub(super) fn write(&self, directory: &Path, name: &str) -> Result<()> {
        match self {
            Self::Image { png } => fs::write(directory.join(format!("{name}.png")), png)?,
            Self::Document { pdf, .. } => {
                fs::write(directory.join(format!("{name}.pdf")), pdf)?;
                let pages = Pdf::parse(pdf)?.pictures(72)?;
                pages.first().context("no page")?.save(directory.join(format!("{name}.png")))?;
            }
        }
        Ok(())
    }
}

/// Creates a directory, or removes the content of an existing one.
pub(super) fn create_empty_directory(directory: &Path) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    Ok(fs::create_dir_all(directory)?)
}

/// The pixels of a PNG.
pub(super) fn decode(png: &[u8]) -> Result<RgbaImage> {
    Ok(image::load_from_memory_with_format(png, image::ImageFormat::Png)?.into_rgba8())
}

fn pixel_difference(one: &RgbaImage, other: &RgbaImage) -> Option<Difference> {
    if one.dimensions() != other.dimensions() {
        return Some(Difference::Sizes(one.dimensions(), other.dimensions()));
    }
    let mut found: Option<(usize, [u32; 4])> = None;
    for ((x, y, pixel), other) in one.enumerate_pixels().zip(other.pixels()) {
        if pixel != other {
            let (count, [left, top, right, bottom]) = found.unwrap_or((0, [x, y, x, y]));
            found = Some((count + 1, [left.min(x), top.min(y), right.max(x), bottom.max(y)]));
        }
    }
    found.map(|(count, bounds)| Difference::Pixels { count, bounds })
}

fn page_difference(one: &[DynamicImage], other: &[DynamicImage]) -> Option<Difference> {
    let first = one.iter().zip(other).position(|(one, other)| one != other)?;
    Some(Difference::Page(first + 1))
}

fn text_difference(one: &str, other: &str) -> Option<Difference> {
    if one == other {
        return None;
    }
    let (mut lines, mut others) = (one.lines(), other.lines());
    let mut line = 0;
    loop {
        line += 1;
        let (one, other) = (lines.next(), others.next());
        if one != other || one.is_none() {
            let text = |line: Option<&str>| line.unwrap_or_default().trim().chars().take(60).collect();
            return Some(Difference::Text { line, one: text(one), other: text(other) });
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Formats => f.write_str("different file formats"),
            Self::Sizes(one, other) => write!(f, "{}×{} instead of {}×{}", one.0, one.1, other.0, other.1),
            Self::Pixels { count, bounds: [left, top, right, bottom] } => {
                write!(f, "{count} pixels in {left},{top} to {right},{bottom}")
            }
            Self::Pages(one, other) => write!(f, "{one} pages instead of {other}"),
            Self::Page(number) => write!(f, "page {number} is drawn differently"),
            Self::Text { line, one, other } => write!(f, "line {line}: {one:?} instead of {other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use image::Rgba;

    use super::*;

    #[test]
    fn differing_pixels_are_counted_with_their_bounds() {
        let one = RgbaImage::from_pixel(10, 8, Rgba([1, 2, 3, 255]));
        let mut other = one.clone();
        assert_eq!(pixel_difference(&one, &other), None);
        other.put_pixel(7, 2, Rgba([1, 2, 4, 255]));
        other.put_pixel(3, 5, Rgba([1, 2, 3, 254]));
        assert_eq!(
            pixel_difference(&one, &other),
            Some(Difference::Pixels { count: 2, bounds: [3, 2, 7, 5] })
        );
        let larger = RgbaImage::new(10, 9);
        assert_eq!(pixel_difference(&one, &larger), Some(Difference::Sizes((10, 8), (10, 9))));
    }

    #[test]
    fn documents_are_compared_by_page_and_line() {
        assert_eq!(text_difference("a\nb\n", "a\nb\n"), None);
        let difference = Difference::Text { line: 2, one: "b".into(), other: "c".into() };
        assert_eq!(text_difference("a\n b\n", "a\n c\n"), Some(difference));
        let document = |pages| Rendered::Document { pdf: Bytes::new(), pages, text: String::new() };
        assert_eq!(document(1).difference(&document(2)).unwrap(), Some(Difference::Pages(1, 2)));
    }

    #[test]
    fn documents_of_equal_text_are_compared_by_their_pages() {
        let page = DynamicImage::from(RgbaImage::from_pixel(4, 4, Rgba([1, 2, 3, 255])));
        let other = DynamicImage::new_rgba8(4, 4);
        assert_eq!(page_difference(&[page.clone(), other.clone()], &[page.clone(), other.clone()]), None);
        assert_eq!(page_difference(&[page.clone(), page.clone()], &[page, other]), Some(Difference::Page(2)));
    }
}
