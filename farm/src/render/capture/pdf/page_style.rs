//! The style sheet with the `@page` rule of options that have precedence over that of the page.

use chromiumoxide_cdp::cdp::js_protocol::runtime::{CallFunctionOnParams, RemoteObjectId};
use platen_shared::job::{PdfOptions, Sheet};
use serde_json::Value;

use crate::render::{job_error::JobError, rendering::Rendering};

/// Adopts a style sheet after all others, and returns it.
const ADOPT: &str = "(css => { const sheet = new CSSStyleSheet(); sheet.replaceSync(css);\
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]; return sheet })";

/// A style sheet of the page.
#[derive(Debug)]
pub(super) struct PageStyle(RemoteObjectId);

impl PageStyle {
    /// Adds a style sheet after those of the page.
    pub(super) async fn add(rendering: &mut Rendering<'_>, css: &str) -> Result<Self, JobError> {
        let adopt = rendering.script(&format!("{ADOPT}({})", Value::from(css))).await?;
        let mut adopt = adopt.ok_or(JobError::NoFile)?;
        adopt.return_by_value = None;
        let added = rendering.wait_for_page(rendering.session.call(&adopt)).await?;
        added.result.object_id.map(Self).ok_or(JobError::NoFile)
    }

    /// Replaces its rules. Of two `@page` rules that are both important Chromium takes the first one, so a second sheet
    /// would have no effect.
    pub(super) async fn replace(&self, rendering: &Rendering<'_>, css: &str) -> Result<(), JobError> {
        let replace = CallFunctionOnParams {
            object_id: Some(self.0.clone()),
            ..CallFunctionOnParams::new(format!("function() {{ this.replaceSync({}) }}", Value::from(css)))
        };
        rendering.wait_for_page(rendering.session.call(&replace)).await?;
        Ok(())
    }
}

/// The `@page` rule for the margins of a job and for a size of the paper; `None` if there is neither.
pub(super) fn rule(pdf: &PdfOptions, sheet: Option<Sheet>) -> Option<String> {
    let size = sheet.map(|Sheet { width, height }| format!("size: {width} {height} !important;"));
    let margin = pdf.margins.map(|margins| {
        let sides = [margins.top, margins.right, margins.bottom, margins.left].map(|side| side.to_string());
        format!("margin: {} !important;", sides.join(" "))
    });
    (size.is_some() || margin.is_some())
        .then(|| format!("@page {{ {} {} }}", size.unwrap_or_default(), margin.unwrap_or_default()))
}
