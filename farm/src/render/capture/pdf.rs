//! A PDF of the page.

mod artifacts;
mod attachments;
mod cells;
mod document;
mod finish;
mod first_page;
mod fit_to_width;
mod language;
mod links;
mod metadata;
mod new_elements;
mod object_streams;
mod origins;
mod own_links;
mod parents;
mod repeated;
mod single_page;
mod standard;
mod structure;
mod texts;
mod tree;
mod untagged;

use bytes::Bytes;
use chromiumoxide_cdp::cdp::{
    browser_protocol::{emulation::SetDeviceMetricsOverrideParams, page::PrintToPdfParams},
    js_protocol::runtime::{CallFunctionOnParams, RemoteObjectId},
};
use platen_cdp::CdpError;
use platen_shared::{
    job::{Margins, MediaType, Pages, PdfOptions, PdfScale, RenderJob, Sheet, Source},
    length::Length,
    refusal::Refusal,
};
use serde_json::Value;

use self::{document::PdfFile, fit_to_width::RootFlow, origins::Printed};
use super::{
    super::{frame_loop, header_templates::HeaderTemplates, prepare, rendering::Rendering},
    page_scripts::disable_scripts,
};
use crate::error::JobError;

/// The texts of the page's headings, which are the titles of the outline.
const HEADINGS: &str = concat!("(", include_str!("pdf/headings.js"), ")()");

/// The amount by which Chromium rounds the sides of a sheet, in CSS pixels.
const SHEET_ROUNDING: f64 = 1.0;

/// Prints the page in its current state. Returns the file and the number of its sheets.
pub(super) async fn capture(
    rendering: &mut Rendering<'_>,
    pdf: &PdfOptions,
) -> Result<(Bytes, Option<u32>), JobError> {
    let job = rendering.job;
    // If nothing was loaded and no script has run, the markup tells what the page may have.
    let may_change = rendering.scripts.ran || rendering.load_state().requests.sent > 0;
    if !pdf.print_background && (may_change || has_any(job, &["text", "controls"])) {
        rendering.evaluate_isolated(SHOW_BACKGROUNDS).await?;
    }
    let flow = if may_change || has_any(job, &["dir", "direction", "writing-mode", "-webkit-writing-mode"]) {
        RootFlow::of(rendering).await?
    } else {
        RootFlow::FromLeft
    };
    let fitted;
    let pdf = if pdf.fit_to_width && flow != RootFlow::Vertical {
        fitted = fit_to_width::fitted(rendering, pdf, &flow).await?;
        &fitted
    } else {
        pdf
    };
    match flow {
        RootFlow::FromRight(rules) if !pdf.fit_to_width => {
            PageStyle::add(rendering, &rules).await?;
        }
        RootFlow::Vertical if pdf.scale != PdfScale::default() => {
            return Err(JobError::Refused(Refusal::VerticalScale));
        }
        _ => {}
    }
    cells::fill(rendering, pdf).await?;
    let first = first_page::options(pdf);
    let (file, first_page, printed) = if pdf.pages == Pages::Single {
        let (file, printed) = single_page::capture(rendering, first.as_ref().unwrap_or(pdf)).await?;
        (file, None, printed)
    } else {
        let (file, first_page) = sheets(rendering, pdf, first.as_ref()).await?;
        (file, first_page, Printed { pdf: pdf.clone(), sheet: pdf.sheet })
    };
    completed(rendering, pdf, file, first_page, &printed).await
}

/// Adds to a file what the browser has not printed.
async fn completed(
    rendering: &mut Rendering<'_>,
    pdf: &PdfOptions,
    file: Bytes,
    first_page: Option<Bytes>,
    printed: &Printed,
) -> Result<(Bytes, Option<u32>), JobError> {
    let language = language::of(rendering, pdf).await?;
    if first_page.is_none() && !finish::is_needed(pdf) {
        let sheets = document::sheets(&file);
        let file = match language {
            Some(language) => PdfFile::parse(&file).await?.with_language(file, &language)?,
            None => file,
        };
        return Ok((file, sheets));
    }
    let headings = if pdf.outline { rendering.evaluate_isolated(HEADINGS).await? } else { None };
    let headings = headings.and_then(|texts| serde_json::from_value(texts).ok()).unwrap_or_default();
    let document = finish::read(file, first_page, pdf, headings).await?;
    let (document, reading) = origins::reading(rendering, document, printed).await?;
    let sheets = u32::try_from(document.page_iter().count()).ok();
    Ok((finish::finish(document, pdf, language, reading).await?, sheets))
}

const END_TRANSITIONS: &str = concat!("(", include_str!("pdf/end_transitions.js"), ")()");

/// Gives the page the layout of print in its viewport, to be measured. Printing shows what transitions end with.
async fn lay_out_as_printed(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    disable_scripts(rendering).await?;
    rendering.evaluate_in_frames(END_TRANSITIONS).await?;
    emulate_print(rendering).await
}

/// Gives the page the media type of print, and keeps its media features.
async fn emulate_print(rendering: &Rendering<'_>) -> Result<(), JobError> {
    let mut media = prepare::media_command(&rendering.job.options);
    if rendering.job.options.environment.media != Some(MediaType::Screen) {
        media.media = Some("print".to_owned());
    }
    rendering.session.call(&media).await?;
    Ok(())
}

async fn set_viewport(rendering: &Rendering<'_>, width: f64, height: f64) -> Result<(), JobError> {
    #[expect(clippy::cast_possible_truncation, reason = "both are at most about ten times the largest sheet")]
    let metrics = SetDeviceMetricsOverrideParams::new(width.round() as i64, height as i64, 1.0, false);
    rendering.session.call(&metrics).await?;
    Ok(())
}

/// Prints the pages, and the first one again with its own options if it has any.
async fn sheets(
    rendering: &mut Rendering<'_>,
    pdf: &PdfOptions,
    first: Option<&PdfOptions>,
) -> Result<(Bytes, Option<Bytes>), JobError> {
    if first.is_some() {
        first_page::freeze(rendering).await?;
    }
    let sheet = (pdf.landscape && !pdf.prefer_css_page_size).then_some(pdf.sheet);
    let style = match page_rule(pdf, sheet) {
        Some(rule) => Some(PageStyle::add(rendering, &rule).await?),
        None => None,
    };
    let file = print(rendering, pdf, pdf.sheet).await?;
    let first_page = match first {
        Some(first) => Some(print(rendering, first, pdf.sheet).await?),
        None => None,
    };
    if let (true, Some(style)) = (pdf.prefer_css_page_size, style) {
        check_margins(rendering, pdf, &style, &file).await?;
    }
    if let Pages::Ranges(ranges) = &pdf.pages
        && PdfFile::parse(&file).await?.page_count() < ranges.count()
    {
        return Err(JobError::Refused(Refusal::PageRangeExceeded));
    }
    Ok((file, first_page))
}

/// Refuses margins that leave no space on the page's own sheet: Chromium then uses the other one, and no margins.
async fn check_margins(
    rendering: &mut Rendering<'_>,
    pdf: &PdfOptions,
    style: &PageStyle,
    file: &Bytes,
) -> Result<(), JobError> {
    let sheet = PdfFile::parse(file).await?.first_sheet()?;
    let is_same = |one: Length, other: Length| (one.pixels() - other.pixels()).abs() <= SHEET_ROUNDING;
    if !is_same(sheet.width, pdf.sheet.width) || !is_same(sheet.height, pdf.sheet.height) {
        return Ok(());
    }
    let margins = Some(Margins::default());
    let without = PdfOptions { margins, header: None, footer: None, pages: Pages::All, ..pdf.clone() };
    style.replace(rendering, &page_rule(&without, None).unwrap_or_default()).await?;
    let file = print(rendering, &without, pdf.sheet).await?;
    if PdfFile::parse(&file).await?.first_sheet()? != sheet {
        return Err(JobError::Refused(Refusal::NoSpaceBetweenMargins));
    }
    style.replace(rendering, &page_rule(pdf, None).unwrap_or_default()).await
}

async fn print(rendering: &mut Rendering<'_>, pdf: &PdfOptions, sheet: Sheet) -> Result<Bytes, JobError> {
    // Printing waits for resources that the page loads for it.
    let mut printing = rendering.session.start(&command(pdf, sheet, rendering.header.templates.as_ref()))?;
    let has_header = pdf.header.is_some() || pdf.footer.is_some();
    rendering.header.is_printing = has_header;
    let printed = frame_loop::while_waiting(rendering, printing.reply()).await?;
    rendering.header.is_printing = false;
    let file = printed.into_file().map_err(|error| refused(error, pdf))?.ok_or(JobError::NoFile)?;
    Ok(if rendering.job.options.has_own_address() { own_links::removed(file) } else { file })
}

/// The refusal for an error of Chromium that the options cause.
fn refused(error: CdpError, pdf: &PdfOptions) -> JobError {
    let CdpError::Refused { source, .. } = &error else { return error.into() };
    let refusal = match source.message.as_str() {
        "Page range exceeds page count" => Refusal::PageRangeExceeded,
        "invalid print parameters: content area is empty" => Refusal::NoSpaceBetweenMargins,
        // A style sheet that a header refers to is never loaded, and Chromium prints no page without it.
        "Printing failed" if pdf.header.is_some() || pdf.footer.is_some() => Refusal::HeaderFailed,
        _ => return error.into(),
    };
    JobError::Refused(refusal)
}

fn command(pdf: &PdfOptions, sheet: Sheet, templates: Option<&HeaderTemplates>) -> PrintToPdfParams {
    let templates = templates.filter(|_| pdf.header.is_some() || pdf.footer.is_some());
    let ranges = match &pdf.pages {
        Pages::Ranges(ranges) => Some(ranges.to_string()),
        Pages::All | Pages::Single => None,
    };
    PrintToPdfParams {
        display_header_footer: Some(templates.is_some()),
        header_template: templates.and_then(|templates| templates.header(pdf.header.as_ref())),
        footer_template: templates.and_then(|templates| templates.footer(pdf.footer.as_ref())),
        print_background: Some(pdf.print_background),
        scale: Some(pdf.scale.get()),
        paper_width: Some(sheet.width.inches()),
        paper_height: Some(sheet.height.inches()),
        margin_top: pdf.margins.map(|margins| margins.top.inches()),
        margin_right: pdf.margins.map(|margins| margins.right.inches()),
        margin_bottom: pdf.margins.map(|margins| margins.bottom.inches()),
        margin_left: pdf.margins.map(|margins| margins.left.inches()),
        page_ranges: ranges,
        prefer_css_page_size: Some(pdf.prefer_css_page_size),
        // Tags are Chromium's default, and take up to eight times as long as the rest of the PDF.
        generate_tagged_pdf: Some(pdf.tagged || pdf.document.standard.ua1),
        generate_document_outline: Some(pdf.outline),
        ..Default::default()
    }
}

/// Adopts a style sheet after all others, and returns it.
const ADOPT: &str = "(css => { const sheet = new CSSStyleSheet(); sheet.replaceSync(css);\
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]; return sheet })";

#[derive(Debug)]
struct PageStyle(RemoteObjectId);

impl PageStyle {
    /// Adds a style sheet after those of the page.
    async fn add(rendering: &mut Rendering<'_>, css: &str) -> Result<Self, JobError> {
        let adopt = rendering.script(&format!("{ADOPT}({})", Value::from(css))).await?;
        let mut adopt = adopt.ok_or(JobError::NoFile)?;
        adopt.return_by_value = None;
        let added = rendering.wait_for_page(rendering.session.call(&adopt)).await?;
        added.result.object_id.map(Self).ok_or(JobError::NoFile)
    }

    /// Replaces its rules. Of two `@page` rules that are both important Chromium takes the first one, so a second sheet
    /// would have no effect.
    async fn replace(&self, rendering: &Rendering<'_>, css: &str) -> Result<(), JobError> {
        let replace = CallFunctionOnParams {
            object_id: Some(self.0.clone()),
            ..CallFunctionOnParams::new(format!("function() {{ this.replaceSync({}) }}", Value::from(css)))
        };
        rendering.wait_for_page(rendering.session.call(&replace)).await?;
        Ok(())
    }
}

/// The `@page` rule for the margins of a job and for a size of the paper; `None` if there is neither.
fn page_rule(pdf: &PdfOptions, sheet: Option<Sheet>) -> Option<String> {
    let size = sheet.map(|Sheet { width, height }| format!("size: {width} {height} !important;"));
    let margin = pdf.margins.map(|margins| {
        let sides = [margins.top, margins.right, margins.bottom, margins.left].map(|side| side.to_string());
        format!("margin: {} !important;", sides.join(" "))
    });
    (size.is_some() || margin.is_some())
        .then(|| format!("@page {{ {} {} }}", size.unwrap_or_default(), margin.unwrap_or_default()))
}

const SHOW_BACKGROUNDS: &str = concat!("(", include_str!("pdf/show_backgrounds.js"), ")()");

/// Whether the job's markup or style sheet may have one of the words, which are those of CSS or of attributes.
fn has_any(job: &RenderJob, words: &[&str]) -> bool {
    let Source::Html(html) = &job.source else { return true };
    let css = job.options.css.as_ref().map_or("", |css| css.as_str());
    words.iter().any(|word| [html.as_str(), css].iter().any(|text| has_word(text, word)))
}

fn has_word(text: &str, keyword: &str) -> bool {
    let (bytes, keyword) = (text.as_bytes(), keyword.as_bytes());
    let is_part = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte))
    };
    bytes.windows(keyword.len()).enumerate().any(|(at, word)| {
        word.eq_ignore_ascii_case(keyword)
            && !is_part(at.checked_sub(1))
            && !is_part(Some(at + keyword.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keyword_is_found_as_a_word() {
        let is_found = |text| has_word(text, "text") || has_word(text, "controls");
        for text in [
            "text",
            "<video controls>",
            "background-clip:text",
            "background: red TEXT;",
            "clip:/**/text}",
            "é text é",
        ] {
            assert!(is_found(text), "{text}");
        }
        for text in [
            "",
            "tex",
            "text-align: left",
            "-text",
            "context",
            "<a aria-controls_x",
            "texts",
            "text_1",
            "t ext",
        ] {
            assert!(!is_found(text), "{text}");
        }
    }
}
