//! The style sheet of a job, which is the last one of the document.
//!
//! A script in an isolated world adopts it: the page's content security policy does not hold for it, and it works when
//! no script of the page runs.

use chromiumoxide_cdp::cdp::browser_protocol::page::AddScriptToEvaluateOnNewDocumentParams;
use platen_shared::job::StyleText;
use serde_json::Value;

use super::{job_error::JobError, rendering::Rendering, script};

/// Adopts the sheet unless it is the last one, and returns whether it was not.
const ADOPT: &str = "(css => { if (window !== top) return false;\
    if (!own.style) { own.style = new CSSStyleSheet(); own.style.replaceSync(css) }\
    const sheets = [...document.adoptedStyleSheets]; if (sheets.at(-1) === own.style) return false;\
    document.adoptedStyleSheets = [...sheets.filter(sheet => sheet !== own.style), own.style]; return true })";

/// The command that adds the sheet to the next documents of a page, before their first script.
pub(super) fn of_next_documents(css: &StyleText) -> AddScriptToEvaluateOnNewDocumentParams {
    script::of_next_documents(&adopt(css))
}

/// Puts the sheet after those that scripts of the page have adopted; `true` if that has changed the page.
pub(super) async fn put_last(rendering: &mut Rendering<'_>, css: &StyleText) -> Result<bool, JobError> {
    Ok(rendering.evaluate_isolated(&adopt(css)).await? == Some(Value::Bool(true)))
}

fn adopt(css: &StyleText) -> String {
    format!("{ADOPT}({})", Value::from(css.as_str()))
}
