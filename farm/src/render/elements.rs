//! Finding elements by a CSS selector.

use chromiumoxide_cdp::cdp::js_protocol::runtime::EvaluateParams;
use platen_shared::{
    job::{ImageOptions, Output, Region, RenderOptions, Selector},
    refusal::Refusal,
};
use serde::Deserialize;
use serde_json::Value;

use super::rendering::Rendering;
use crate::{error::JobError, page::Page};

/// Fails if the selector is not valid. It runs in an empty document.
const IS_VALID: &str = "(selector => document.createDocumentFragment().querySelector(selector))";
/// For the scripts below: the elements that match, those of the document before those of its open shadow trees, and the
/// element around another one, across shadow trees.
const SELECT: &str = "const trees = function* (tree) { yield tree; const all = tree.querySelectorAll('*');\
        for (let at = 0; at < all.length; at++) { const inner = all[at].shadowRoot;\
            if (inner instanceof ShadowRoot) yield* trees(inner) } },\
    select = function* (selector) { for (const tree of trees(document)) yield* tree.querySelectorAll(selector) },\
    around = element => { const { assignedSlot, parentElement, parentNode } = as(Element, element);\
        return assignedSlot ?? parentElement ?? (parentNode instanceof ShadowRoot ? parentNode.host : null) };";
/// Whether an element that matches is visible: it has an area, or what overflows it has, and no style hides it. The root
/// and the body need no area. An element without a box that no style has taken from it is as visible as the element around
/// it.
const IS_VISIBLE: &str = "const isShown = element => as(Element, element).checkVisibility({ visibilityProperty: true }),\
    draws = element => { const { getBoundingClientRect, children } = as(Element, element);\
        const { width, height } = getBoundingClientRect(), { display, overflow } = getComputedStyle(element);\
        if (width > 0 && height > 0) return isShown(element);\
        return display && display !== 'none' && overflow === 'visible' && [...children].some(draws) },\
    isVisible = element => { const { getClientRects, matches } = as(Element, element), outer = around(element);\
        if (!outer || element === document.body) return isShown(element);\
        const { display } = getComputedStyle(element), isUndrawn = display === 'none' &&\
            matches('head, head *, script, style, template, link, meta, base, title');\
        if (!getClientRects().length && (isUndrawn || display && display !== 'none')) return isVisible(outer);\
        return draws(element) };\
    for (const element of select(selector)) if (isVisible(element)) return true; return false";
/// The border box of the first element that matches, in CSS pixels from the top left corner of the page. If scrolling in
/// elements around it hides the element, they are scrolled; the page is not.
const BORDER_BOX: &str = "const [element] = select(selector); if (!element) return null;\
    const { scrollIntoView, getBoundingClientRect } = as(Element, element);\
    const isScrolled = parent => { if (parent === document.scrollingElement || parent === document.body) return false;\
        const { scrollHeight, clientHeight, scrollWidth, clientWidth } = as(Element, parent);\
        return scrollHeight > clientHeight || scrollWidth > clientWidth };\
    for (let parent = around(element); parent; parent = around(parent)) if (isScrolled(parent)) {\
        const left = scrollX, top = scrollY;\
        scrollIntoView({ block: 'nearest', inline: 'nearest', behavior: 'instant' });\
        scrollTo({ left, top, behavior: 'instant' }); break }\
    const { left, top, width, height } = getBoundingClientRect();\
    return { left: left + scrollX, top: top + scrollY, width, height }";

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

/// Checks the syntax of the selectors of a job in the empty document with which it begins.
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
        let checked =
            page.session.call(&EvaluateParams::new(format!("{IS_VALID}({})", literal(selector)))).await?;
        if checked.exception_details.is_some() {
            return Err(JobError::Refused(Refusal::InvalidSelector { field: field.to_owned() }));
        }
    }
    Ok(())
}

pub(super) async fn is_visible(rendering: &mut Rendering<'_>, selector: &Selector) -> Result<bool, JobError> {
    let found = rendering.evaluate_isolated(&of_matches(IS_VISIBLE, selector)).await?;
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
    let found = rendering.evaluate_isolated(&of_matches(BORDER_BOX, selector)).await?;
    let found = found.and_then(|found| serde_json::from_value::<Rectangle>(found).ok());
    match found {
        None => Err(JobError::Refused(Refusal::NoSuchElement)),
        Some(found) if found.width <= 0.0 || found.height <= 0.0 => {
            Err(JobError::Refused(Refusal::EmptyElement))
        }
        Some(found) => Ok(found),
    }
}

/// A script whose statements use the functions of [`SELECT`].
fn of_matches(statements: &str, selector: &Selector) -> String {
    format!("(selector => {{ {SELECT} {statements} }})({})", literal(selector))
}

fn literal(selector: &Selector) -> Value {
    Value::from(selector.as_str())
}
