//! The scale at which the content of a page is as wide as its sheet between the margins.
//!
//! Chromium makes content that is too wide smaller by itself, but only to two thirds, and cuts what is still outside. The
//! width is found in a viewport as wide as the sheet at each scale, because text takes the wider lines of a smaller scale.

use platen_shared::{
    job::{Pages, PdfOptions, PdfScale, RenderOptions},
    limits,
};
use serde_json::Value;

use super::{PageStyle, document::PdfFile, lay_out_as_printed, page_rule, print, set_viewport};
use crate::{error::JobError, render::rendering::Rendering};

/// Shows what elements hide that scroll only sideways, such as a box around a table: a sheet does not scroll.
const SHOW_SCROLLED: &str = "(() => { for (const element of document.querySelectorAll('body *')) {\
    const { scrollWidth, clientWidth, scrollHeight, clientHeight } = as(Element, element);\
    if (element instanceof HTMLElement && scrollWidth > clientWidth && scrollHeight <= clientHeight\
        && /auto|scroll/.test(getComputedStyle(element).overflowX))\
        as(HTMLElement, element).style.setProperty('overflow', 'visible', 'important') } })()";
const CONTENT_WIDTH: &str =
    "window.document.documentElement ? window.document.documentElement.scrollWidth : 0";
/// The widest left and right margins of the page's own rules for sheets, in CSS pixels; `null` for those that it does not
/// set.
const PAGE_MARGINS: &str = "(width => { const widest = { left: null, right: null };\
    const pixels = text => { const length = CSSNumericValue.parse(text);\
        return length.unit === 'percent' ? length.value / 100 * width : length.to('px').value };\
    const read = rules => { for (const rule of rules) {\
        if (rule instanceof CSSPageRule) for (const side of ['left', 'right']) {\
            const margin = rule.style.getPropertyValue(`margin-${side}`);\
            try { widest[side] = Math.max(widest[side] ?? 0, pixels(margin)) } catch {} }\
        if (rule.cssRules) read(rule.cssRules); if (rule.styleSheet) read(rule.styleSheet.cssRules) } };\
    for (const sheet of [...document.styleSheets, ...document.adoptedStyleSheets])\
        try { read(sheet.cssRules) } catch {}\
    return widest })";

/// The options of a PDF with the scale at which its content fits, which is 1 at most. Scripts of the page do not run
/// afterwards.
pub(super) async fn fitted(
    rendering: &mut Rendering<'_>,
    pdf: &PdfOptions,
    options: &RenderOptions,
) -> Result<PdfOptions, JobError> {
    lay_out_as_printed(rendering, options).await?;
    let sheet = content_width(rendering, pdf).await?;
    let height = f64::from(options.viewport.height.get());
    let widest = sheet / limits::PDF_SCALE_RANGE.start();
    let mut width = sheet;
    set_viewport(rendering, width, height).await?;
    rendering.evaluate_isolated(SHOW_SCROLLED).await?;
    let mut last_excess = f64::INFINITY;
    loop {
        let content = rendering.evaluate_isolated(CONTENT_WIDTH).await?.and_then(|it| it.as_f64());
        let excess = content.unwrap_or_default() - width.round();
        // Content that follows the viewport never fits.
        if excess <= 0.0 || excess >= last_excess || width >= widest {
            break;
        }
        last_excess = excess;
        width = (width.round() + excess).min(widest);
        set_viewport(rendering, width, height).await?;
    }
    let scale = PdfScale::try_from(sheet / width).unwrap_or_default();
    Ok(PdfOptions { scale, ..pdf.clone() })
}

/// The width of the sheet between the margins, in CSS pixels.
async fn content_width(rendering: &mut Rendering<'_>, pdf: &PdfOptions) -> Result<f64, JobError> {
    let mut sheet = pdf.sheet.width;
    if pdf.prefer_css_page_size {
        if let Some(rule) = page_rule(pdf, None) {
            PageStyle::add(rendering, &rule).await?;
        }
        let first = PdfOptions { pages: Pages::All, header: None, footer: None, ..pdf.clone() };
        sheet = PdfFile::parse(&print(rendering, &first, pdf.sheet).await?).await?.first_sheet()?.width;
    }
    let margins = pdf.margins_or_default();
    let (mut left, mut right) = (margins.left.pixels(), margins.right.pixels());
    if pdf.margins.is_none() {
        let own = rendering.evaluate_isolated(&format!("{PAGE_MARGINS}({})", sheet.pixels())).await?;
        let of = |side: &str| own.as_ref().and_then(|own| own.get(side)).and_then(Value::as_f64);
        (left, right) = (of("left").unwrap_or(left), of("right").unwrap_or(right));
    }
    Ok((sheet.pixels() - left - right).max(1.0))
}
