//! Finding elements by a CSS selector.

use chromiumoxide_cdp::cdp::js_protocol::runtime::EvaluateParams;
use platen_shared::{
    job::{ImageOptions, Output, Region, RenderOptions, Selector},
    refusal::Refusal,
};
use serde::Deserialize;
use serde_json::Value;

use super::{job_error::JobError, rendering::Rendering};
use crate::page::Page;

/// Fails if the selector is not valid.
const IS_VALID: &str = "(selector => document.createDocumentFragment().querySelector(selector))";
/// Whether an element that matches is visible: it has an area, and no style hides it.
const IS_VISIBLE: &str = "(selector => { for (const element of document.querySelectorAll(selector)) {\
    const { width, height } = element.getBoundingClientRect();\
    if (width > 0 && height > 0 && element.checkVisibility({ visibilityProperty: true })) return true\
    } return false })";
/// The border box of the first element that matches, in CSS pixels from the top left corner of the page. If scrolling in
/// elements around it hides the element, they are scrolled; the page is not.
const BORDER_BOX: &str = "(selector => { const element = document.querySelector(selector); if (!element) return null;\
    const root = document.scrollingElement, isScrolled = parent => parent !== root && parent !== document.body &&\
        (parent.scrollHeight > parent.clientHeight || parent.scrollWidth > parent.clientWidth);\
    for (let parent = element.parentElement; parent; parent = parent.parentElement) if (isScrolled(parent)) {\
        const left = scrollX, top = scrollY;\
        element.scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' });\
        scrollTo({ left, top, behavior: 'instant' }); break }\
    const { left, top, width, height } = element.getBoundingClientRect();\
    return { left: left + scrollX, top: top + scrollY, width, height } })";

/// A rectangle in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
pub(super) struct Rectangle {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Rectangle {
    pub(super) fn bottom(self) -> f64 {
        self.top + self.height
    }
}

/// Checks the syntax of the selectors of a job, before its page runs.
///
/// # Errors
/// [`Refusal::InvalidSelector`].
pub(super) async fn check_selectors(page: &Page, options: &RenderOptions) -> Result<(), JobError> {
    let element = match &options.output {
        Output::Image(ImageOptions { region: Region::Element(selector), .. }) => Some(selector),
        _ => None,
    };
    let selectors = [("selector", element), ("waitForSelector", options.wait_for_selector.as_ref())];
    for (field, selector) in selectors {
        let Some(selector) = selector else { continue };
        let checked = page.session.call(&EvaluateParams::new(call(IS_VALID, selector))).await?;
        if checked.exception_details.is_some() {
            return Err(JobError::Refused(Refusal::InvalidSelector { field: field.to_owned() }));
        }
    }
    Ok(())
}

/// Whether an element that matches is visible.
pub(super) async fn is_visible(rendering: &mut Rendering<'_>, selector: &Selector) -> Result<bool, JobError> {
    let found = rendering.evaluate_isolated(&call(IS_VISIBLE, selector)).await?;
    Ok(found == Some(Value::Bool(true)))
}

/// The border box of the first element that matches.
///
/// # Errors
/// [`Refusal::NoSuchElement`], and [`Refusal::EmptyElement`] if the box has no area.
pub(super) async fn border_box(
    rendering: &mut Rendering<'_>,
    selector: &Selector,
) -> Result<Rectangle, JobError> {
    let found = rendering.evaluate_isolated(&call(BORDER_BOX, selector)).await?;
    let found = found.and_then(|found| serde_json::from_value::<Rectangle>(found).ok());
    match found {
        None => Err(JobError::Refused(Refusal::NoSuchElement)),
        Some(found) if found.width <= 0.0 || found.height <= 0.0 => {
            Err(JobError::Refused(Refusal::EmptyElement))
        }
        Some(found) => Ok(found),
    }
}

fn call(function: &str, selector: &Selector) -> String {
    format!("{function}({})", Value::from(selector.as_str()))
}
