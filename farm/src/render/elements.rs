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
/// Functions that find elements.
const ELEMENTS: &str = concat!("(", include_str!("elements.js"), ")()");

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
    let found = rendering.evaluate_isolated(&format!("{ELEMENTS}.hasVisible({})", literal(selector))).await?;
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
    let found = rendering.evaluate_isolated(&format!("{ELEMENTS}.borderBox({})", literal(selector))).await?;
    let found = found.and_then(|found| serde_json::from_value::<Rectangle>(found).ok());
    match found {
        None => Err(JobError::Refused(Refusal::NoSuchElement)),
        Some(found) if found.width <= 0.0 || found.height <= 0.0 => {
            Err(JobError::Refused(Refusal::EmptyElement))
        }
        Some(found) => Ok(found),
    }
}

fn literal(selector: &Selector) -> Value {
    Value::from(selector.as_str())
}
