//! A PDF of one sheet that is as tall as its content.
//!
//! Chromium has no such option, and the layout of print is known only from its files: the height is searched for by
//! printing. It begins with the height of the content in a viewport as wide as the sheet. Heights that follow that of
//! the viewport would follow that of the sheet, so the content would never fit: they are fixed before.

use bytes::Bytes;
use platen_shared::{
    job::{Margins, Pages, PdfOptions, Sheet},
    length::Length,
    limits,
    refusal::Refusal,
};
use serde_json::Value;

use super::{
    super::scroll::content_size, PageStyle, document::PdfFile, lay_out_as_printed, origins::Printed,
    page_rule, print, set_viewport,
};
use crate::{error::JobError, render::rendering::Rendering};

/// Keeps the content on one page, which is not taller than it.
const ONE_PAGE: &str = "*, ::before, ::after { break-before: auto !important; break-after: auto !important;\
    break-inside: auto !important; page: auto !important }\
    html, body { height: auto !important; min-height: 0 !important }";
/// Measurements of the height of a single page until it is stable. Content that is sized by the viewport needs two.
const MAX_MEASUREMENTS: usize = 4;
/// The amount by which the sheet of a single page grows if the content does not fit, in CSS pixels; doubled each time. The layout
/// of print may be taller than that of the screen.
const SHEET_GROWTH: f64 = 24.0;
/// How much of the sheet of a single page may be empty then, in CSS pixels.
const SHEET_TOLERANCE: f64 = 8.0;
/// Whether a style sheet has a rule for sheets, which may set their margins, or cannot be read.
const HAS_PAGE_RULE: &str = concat!("(", include_str!("has_page_rule.js"), ")()");
/// Remembers the heights of the elements.
const HEIGHTS: &str = "void (own.heights = Array.from(document.querySelectorAll('body *'),\
    element => ({ element, height: getComputedStyle(element).height })))";
/// Whether the content of an element does not make its document taller, because the element is too low for it.
const CLIPS: &str = "element => { const { localName, scrollHeight, clientHeight } = as(Element, element);\
    return /^(iframe|object|embed|img|video|canvas)$/.test(localName)\
        || getComputedStyle(element).overflowY !== 'visible' && scrollHeight > clientHeight }";
/// Fixes those that have changed, of the elements for which a condition is true.
const FIX_CHANGED: &str = concat!("(", include_str!("fix_heights.js"), ")");

/// Prints all content on one sheet that is as tall as needed.
pub(super) async fn capture(
    rendering: &mut Rendering<'_>,
    pdf: &PdfOptions,
) -> Result<(Bytes, Printed), JobError> {
    lay_out_as_printed(rendering).await?;
    let mut width = pdf.sheet.width;
    if pdf.prefer_css_page_size {
        if let Some(rule) = page_rule(pdf, None) {
            PageStyle::add(rendering, &rule).await?;
        }
        let pages = PdfOptions { pages: Pages::All, ..pdf.clone() };
        let file = print(rendering, &pages, pdf.sheet).await?;
        width = PdfFile::parse(&file).await?.first_sheet()?.width;
    }
    let Margins { top, right, bottom, left } = pdf.margins_or_default();
    let (horizontal, vertical) = (left.pixels() + right.pixels(), top.pixels() + bottom.pixels());
    let scale = pdf.scale.get();
    let own_height = f64::from(rendering.job.options.viewport.height.get());
    let width_without = |horizontal: f64| (width.pixels() - horizontal) / scale;
    remember_heights(rendering, width_without(horizontal), own_height).await?;
    let style = PageStyle::add(rendering, ONE_PAGE).await?;
    fix_changed(rendering, width_without(horizontal), 1.0, CLIPS).await?;
    let height_for = async |rendering: &mut Rendering<'_>, horizontal: f64| {
        let width = width_without(horizontal);
        let mut height = content_height(rendering, width).await?;
        if height.is_none() {
            remember_heights(rendering, width, own_height).await?;
            fix_changed(rendering, width, 2.0 * own_height, "() => true").await?;
            height = content_height(rendering, width).await?;
        }
        Ok::<_, JobError>(height.unwrap_or(own_height) * scale)
    };
    let fits_at = height_for(rendering, horizontal).await? + vertical;
    // The content is taller than this, or the sheet is as tall as expected.
    let mut too_small = fits_at;
    if pdf.margins.is_none() && rendering.evaluate_isolated(HAS_PAGE_RULE).await? != Some(Value::Bool(false))
    {
        too_small = height_for(rendering, 0.0).await? - SHEET_TOLERANCE;
    }
    let pdf = PdfOptions { prefer_css_page_size: false, ..pdf.clone() };
    let search = Search { pdf: &pdf, style, width };
    let (file, height) = search.lowest(rendering, fits_at, too_small).await?;
    let sheet = search.sheet(height);
    // The last one that was tried may have been too small.
    search.show(rendering, sheet).await?;
    Ok((file, Printed { pdf, sheet }))
}

/// Prints on sheets of different heights.
struct Search<'p> {
    pdf: &'p PdfOptions,
    /// That of the sheet, in the page.
    style: PageStyle,
    width: Length,
}

impl Search<'_> {
    /// The file on a sheet of almost the lowest height on which the content fits, and this height in CSS pixels. The search
    /// begins at `fits_at`; the content is taller than `too_small`, or a sheet of this height is as tall as expected.
    async fn lowest(
        &self,
        rendering: &mut Rendering<'_>,
        mut fits_at: f64,
        mut too_small: f64,
    ) -> Result<(Bytes, f64), JobError> {
        let max_height = limits::MAX_PDF_SIDE.pixels();
        let mut growth = SHEET_GROWTH;
        let mut file = loop {
            if too_small >= max_height {
                return Err(JobError::Refused(Refusal::NotOnePage));
            }
            fits_at = fits_at.min(max_height);
            if let Some(file) = self.print(rendering, fits_at).await? {
                break file;
            }
            too_small = fits_at;
            fits_at += growth;
            growth *= 2.0;
        };
        while fits_at - too_small > SHEET_TOLERANCE {
            let middle = f64::midpoint(too_small, fits_at);
            match self.print(rendering, middle).await? {
                Some(smaller) => (file, fits_at) = (smaller, middle),
                None => too_small = middle,
            }
        }
        Ok((file, fits_at))
    }

    fn sheet(&self, height: f64) -> Sheet {
        Sheet { width: self.width, height: Length::try_from(height).unwrap_or(limits::MAX_PDF_SIDE) }
    }

    async fn show(&self, rendering: &mut Rendering<'_>, sheet: Sheet) -> Result<(), JobError> {
        let rule = page_rule(self.pdf, Some(sheet)).unwrap_or_default();
        self.style.replace(rendering, &format!("{ONE_PAGE} {rule}")).await
    }

    /// The file, if the content fits on a sheet of this height.
    async fn print(&self, rendering: &mut Rendering<'_>, height: f64) -> Result<Option<Bytes>, JobError> {
        let sheet = self.sheet(height);
        self.show(rendering, sheet).await?;
        let file = print(rendering, self.pdf, sheet).await?;
        Ok((PdfFile::parse(&file).await?.page_count() == 1).then_some(file))
    }
}

/// The height of the content in a viewport of this width, in CSS pixels; `None` if it grows with the viewport.
async fn content_height(rendering: &Rendering<'_>, width: f64) -> Result<Option<f64>, JobError> {
    let mut height = 1.0;
    for _ in 0..MAX_MEASUREMENTS {
        set_viewport(rendering, width, height).await?;
        let (_, content) = content_size(rendering).await?;
        if content <= height {
            return Ok(Some(height));
        }
        height = content;
    }
    Ok(None)
}

/// Remembers the heights of the elements in a viewport of this size.
async fn remember_heights(rendering: &mut Rendering<'_>, width: f64, height: f64) -> Result<(), JobError> {
    set_viewport(rendering, width, height).await?;
    rendering.evaluate_isolated(HEIGHTS).await?;
    Ok(())
}

/// Gives the elements that have another height in a viewport of this size the one that is remembered, if a condition is
/// true there.
async fn fix_changed(
    rendering: &mut Rendering<'_>,
    width: f64,
    height: f64,
    condition: &str,
) -> Result<(), JobError> {
    set_viewport(rendering, width, height).await?;
    rendering.evaluate_isolated(&format!("{FIX_CHANGED}({condition})")).await?;
    Ok(())
}
