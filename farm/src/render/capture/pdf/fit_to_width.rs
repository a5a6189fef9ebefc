//! The scale at which the content of a page is as wide as its sheet between the margins.
//!
//! Chromium makes content that is too wide smaller by itself, but only to two thirds, and cuts what is still outside. The
//! width is found in a viewport as wide as the sheet at each scale, because text takes the wider lines of a smaller scale.
//! Chromium knows neither how far content is beyond the side at which it begins, nor where fixed content ends.
//!
//! If Chromium prints a document that begins at the right smaller or larger, on request or because its content is too wide,
//! it moves it sideways by as much as the sheet becomes wider or narrower, off the sheet.

use platen_shared::{
    job::{Pages, PdfOptions, PdfScale},
    limits,
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    super::scroll::content_size, PageStyle, document::PdfFile, lay_out_as_printed, page_rule, print,
    set_viewport,
};
use crate::{error::JobError, render::rendering::Rendering};

/// Defines `own.sides`.
const SIDES: &str = concat!("(", include_str!("fit_to_width.js"), ")()");
/// Whether the page's own rules for sheets set a size, and their widest left and right margins in CSS pixels, `null` for
/// those that they do not set; percentages are of a width.
const PAGE_RULES: &str = concat!("(", include_str!("page_rules.js"), ")");

/// The options of a PDF with the scale at which its content fits, which is 1 at most. Scripts of the page do not run
/// afterwards.
pub(super) async fn fitted(
    rendering: &mut Rendering<'_>,
    pdf: &PdfOptions,
    flow: &RootFlow,
) -> Result<PdfOptions, JobError> {
    lay_out_as_printed(rendering).await?;
    let sheet = content_width(rendering, pdf).await?;
    let height = f64::from(rendering.job.options.viewport.height.get());
    set_viewport(rendering, sheet, height).await?;
    if let RootFlow::FromRight(rules) = flow {
        PageStyle::add(rendering, rules).await?;
    }
    rendering.evaluate_isolated(&format!("{SIDES}, own.sides.show()")).await?;
    let mut fitted = needed_width(rendering, (sheet, height), sheet, true).await?;
    // A place in percent follows the viewport in ever smaller steps.
    if fitted.outside.fixed > 1.0 {
        fitted = needed_width(rendering, (sheet, height), sheet, false).await?;
    }
    if fitted.outside.left > 0.0 && fitted.width < sheet / limits::PDF_SCALE_RANGE.start() {
        // It does not follow the width of the page.
        rendering.evaluate_isolated(&format!("own.sides.move({})", fitted.outside.left)).await?;
        fitted = needed_width(rendering, (fitted.width, height), sheet, false).await?;
    }
    let scale = PdfScale::try_from(sheet / fitted.width).unwrap_or_default();
    Ok(PdfOptions { scale, ..pdf.clone() })
}

struct Fitted {
    /// The width of the viewport.
    width: f64,
    outside: Outside,
}

/// How much of the content is outside of the viewport, in CSS pixels.
#[derive(Default, Deserialize)]
struct Outside {
    left: f64,
    #[serde(skip)]
    right: f64,
    /// What is fixed, at the right.
    fixed: f64,
}

/// The width of a viewport in which the content fits, from that of `(width, height)` up to that at the smallest scale.
async fn needed_width(
    rendering: &mut Rendering<'_>,
    (mut width, height): (f64, f64),
    sheet: f64,
    with_fixed: bool,
) -> Result<Fitted, JobError> {
    let widest = sheet / limits::PDF_SCALE_RANGE.start();
    let mut last_excess = f64::INFINITY;
    loop {
        set_viewport(rendering, width, height).await?;
        let outside = rendering.evaluate_isolated("own.sides.outside()").await?;
        let mut outside: Outside =
            outside.and_then(|outside| serde_json::from_value(outside).ok()).unwrap_or_default();
        outside.right = content_size(rendering).await?.0 - width.round();
        if !with_fixed {
            outside.fixed = 0.0;
        }
        let excess = outside.left + outside.right.max(outside.fixed);
        // Content that follows the viewport never fits.
        if excess <= 0.0 || excess >= last_excess || width >= widest {
            return Ok(Fitted { width, outside });
        }
        last_excess = excess;
        width = (width.round() + excess).min(widest);
    }
}

/// The width in which the content is laid out at a scale of 1, in CSS pixels: that of the sheet of the page's own rules, if
/// they have one, between the margins. Chromium lays out the page on that sheet also where the file has another one.
async fn content_width(rendering: &mut Rendering<'_>, pdf: &PdfOptions) -> Result<f64, JobError> {
    let rules = rendering.evaluate_isolated(&format!("{PAGE_RULES}({})", pdf.sheet.width.pixels())).await?;
    let rule = |name: &str| rules.as_ref().and_then(|rules| rules.get(name));
    let mut sheet = pdf.sheet.width;
    if pdf.prefer_css_page_size || !pdf.landscape && rule("size").and_then(Value::as_bool) == Some(true) {
        if let Some(rule) = page_rule(pdf, None) {
            PageStyle::add(rendering, &rule).await?;
        }
        let first = PdfOptions {
            pages: Pages::All,
            header: None,
            footer: None,
            prefer_css_page_size: true,
            ..pdf.clone()
        };
        sheet = PdfFile::parse(&print(rendering, &first, pdf.sheet).await?).await?.first_sheet()?.width;
    }
    let margins = pdf.margins_or_default();
    let (mut left, mut right) = (margins.left.pixels(), margins.right.pixels());
    if pdf.margins.is_none() {
        let own = |side: &str| rule(side).and_then(Value::as_f64);
        (left, right) = (own("left").unwrap_or(left), own("right").unwrap_or(right));
    }
    Ok((sheet.pixels() - left - right).max(1.0))
}

/// `vertical`, or the rules with which a document begins at the left that begins at the right.
const FLOW: &str = concat!("(", include_str!("root_flow.js"), ")()");

/// Where the lines of a document begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RootFlow {
    /// Sheets begin at the left.
    FromLeft,
    /// Sheets begin at the right, such as those of Arabic, with the rules that let the document begin at the left.
    FromRight(String),
    /// They are vertical, and the first one is at the right: the width of the content is divided into sheets.
    Vertical,
}

impl RootFlow {
    pub(super) async fn of(rendering: &mut Rendering<'_>) -> Result<Self, JobError> {
        let flow = rendering.evaluate_isolated(FLOW).await?;
        Ok(match flow.as_ref().and_then(|flow| flow.as_str()) {
            None | Some("") => Self::FromLeft,
            Some("vertical") => Self::Vertical,
            Some(rules) => Self::FromRight(rules.to_owned()),
        })
    }
}
