//! The kind of file, with its options.

use serde::{Deserialize, Serialize};

use super::{
    DocumentOptions, HeaderHtml, InvalidOptions, PdfScale, Quality, Selector, Side, Viewport, rounded_pixels,
    yes,
};
use crate::{
    format::{ImageFormat, OutputFormat, PaperSize},
    length::Length,
    limits,
    page_ranges::PageRanges,
};

/// The kind of file, with its options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// An image.
    Image(ImageOptions),
    /// A PDF.
    Pdf(Box<PdfOptions>),
}

/// The options of an image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageOptions {
    /// Encoding of the image.
    pub format: ImageFormat,
    /// Quality of a lossy image.
    #[serde(default)]
    pub quality: Quality,
    /// Whether pixels that the page does not paint are transparent. JPEG has no transparency.
    #[serde(default)]
    pub omit_background: bool,
    /// Whether a PNG is written fast rather than small.
    #[serde(default = "yes")]
    pub optimize_for_speed: bool,
    /// What the image shows.
    #[serde(default)]
    pub region: Region,
}

impl ImageOptions {
    /// An image of the viewport.
    #[must_use]
    pub fn new(format: ImageFormat) -> Self {
        Self {
            format,
            quality: Quality::default(),
            omit_background: false,
            optimize_for_speed: true,
            region: Region::Viewport,
        }
    }
}

/// The part of the page that an image shows.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Region {
    /// The viewport.
    #[default]
    Viewport,
    /// The whole page.
    FullPage,
    /// The border box of the first element that matches.
    Element(Selector),
    /// A rectangle.
    Clip(Clip),
}

/// A rectangle of the page, in CSS pixels from its top left corner.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names describe the fields")]
pub struct Clip {
    pub x: Length,
    pub y: Length,
    pub width: Length,
    pub height: Length,
}

/// The options of a PDF.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the options are independent")]
pub struct PdfOptions {
    /// Size of a sheet of paper, as it is held.
    pub sheet: Sheet,
    /// Whether the orientation of the sheet has precedence over that in the page's `@page` rule.
    pub landscape: bool,
    /// The margins; without them Chromium's 1 cm, or those of the page's `@page` rule.
    pub margins: Option<Margins>,
    /// Whether the size in the page's `@page` rule has precedence over `sheet`.
    pub prefer_css_page_size: bool,
    /// Whether backgrounds are printed.
    pub print_background: bool,
    /// Scale of the content, where 1 is its CSS size.
    pub scale: PdfScale,
    /// Whether content that is wider than the sheet between its margins is scaled down, from `scale`.
    pub fit_to_width: bool,
    /// The pages that the file has.
    pub pages: Pages,
    /// Markup in the top margin of every page.
    pub header: Option<HeaderHtml>,
    /// Markup in the bottom margin of every page.
    pub footer: Option<HeaderHtml>,
    /// Markup in the top margin of the first page, if it is not that of every page; empty for none.
    pub first_header: Option<HeaderHtml>,
    /// Markup in the bottom margin of the first page, if it is not that of every page; empty for none.
    pub first_footer: Option<HeaderHtml>,
    /// Whether the file has a structure tree (tagged PDF), for screen readers.
    pub tagged: bool,
    /// Whether the file has an outline of the page's headings, which needs a structure tree.
    pub outline: bool,
    /// What the file has beyond its pages.
    pub document: DocumentOptions,
}

impl PdfOptions {
    /// A PDF of all pages on this paper, without backgrounds.
    #[must_use]
    pub fn new(sheet: Sheet) -> Self {
        Self { sheet, ..Self::default() }
    }

    /// The margins that the page has without a rule of its own.
    #[must_use]
    pub fn margins_or_default(&self) -> Margins {
        self.margins.unwrap_or(Margins::all(limits::DEFAULT_PDF_MARGIN))
    }

    /// Width of the sheet between the margins in CSS pixels of the content, as far as the options tell it: the page can
    /// have margins and a size of its own. It is a width that a viewport can have.
    #[must_use]
    pub fn content_width(&self) -> Side {
        let Margins { left, right, .. } = self.margins_or_default();
        let width = (self.sheet.width.pixels() - left.pixels() - right.pixels()) / self.scale.get();
        let (min, max) = limits::VIEWPORT_SIDE_RANGE.into_inner();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
        Side((width.round() as u32).clamp(min, max))
    }
}

/// The pages of a PDF.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pages {
    /// All pages.
    #[default]
    All,
    /// One page, as tall as the content.
    Single,
    /// Some pages.
    Ranges(PageRanges),
}

/// The size of a sheet of paper.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names describe the fields")]
pub struct Sheet {
    pub width: Length,
    pub height: Length,
}

impl Sheet {
    /// The sheet with its longer side as the width.
    #[must_use]
    pub fn landscape(self) -> Self {
        let Self { width, height } = self;
        if width < height { Self { width: height, height: width } } else { self }
    }
}

impl Default for Sheet {
    fn default() -> Self {
        PaperSize::default().into()
    }
}

impl From<PaperSize> for Sheet {
    fn from(paper: PaperSize) -> Self {
        let (width, height) = paper.size();
        Self { width, height }
    }
}

/// The margins of a sheet of paper.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the names describe the fields")]
pub struct Margins {
    pub top: Length,
    pub right: Length,
    pub bottom: Length,
    pub left: Length,
}

impl Margins {
    /// One margin for all sides.
    #[must_use]
    pub fn all(length: Length) -> Self {
        Self { top: length, right: length, bottom: length, left: length }
    }
}

impl Output {
    /// The format of the file.
    #[must_use]
    pub fn format(&self) -> OutputFormat {
        match self {
            Self::Image(image) => OutputFormat::Image(image.format),
            Self::Pdf(_) => OutputFormat::Pdf,
        }
    }

    /// Checks the rules that concern several fields. The farm checks the size of an image whose size only the
    /// page decides, and the margins of a sheet whose size the page decides.
    pub(super) fn check(&self, viewport: &Viewport) -> Result<(), InvalidOptions> {
        match self {
            Self::Image(image) => {
                let pixels = match &image.region {
                    // A whole page is at least as large as the viewport.
                    Region::Viewport | Region::FullPage => viewport.device_pixels(),
                    Region::Clip(clip) => {
                        let side =
                            |length: Length| rounded_pixels(length.pixels(), viewport.device_scale_factor);
                        side(clip.width).saturating_mul(side(clip.height))
                    }
                    Region::Element(_) => 0,
                };
                if pixels > limits::MAX_IMAGE_PIXELS {
                    let is_clip = matches!(image.region, Region::Clip(_));
                    return Err(InvalidOptions::TooManyPixels { pixels, is_clip });
                }
            }
            Self::Pdf(pdf) => {
                let margins = pdf.margins.filter(|_| !pdf.prefer_css_page_size).unwrap_or_default();
                let sum = |one: Length, other: Length| one.pixels() + other.pixels();
                let is_single = pdf.pages == Pages::Single;
                if sum(margins.left, margins.right) >= pdf.sheet.width.pixels()
                    || !is_single && sum(margins.top, margins.bottom) >= pdf.sheet.height.pixels()
                {
                    return Err(InvalidOptions::NoSpaceBetweenMargins);
                }
                pdf.document.check()?;
            }
        }
        Ok(())
    }
}
