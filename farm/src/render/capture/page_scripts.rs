//! The scripts of the page, which must not see how a capture changes it: they would change the content.

use chromiumoxide_cdp::cdp::browser_protocol::emulation::SetScriptExecutionDisabledParams;

use super::super::rendering::Rendering;
use crate::error::JobError;

/// Keeps the look of a page with scripts in one of its documents.
pub(super) const KEEP_SCRIPTED: &str = concat!("(", include_str!("keep_scripted.js"), ")()");

/// Ends the scripts of the page. The next job must not see how it changes either. Only a capture may follow.
pub(super) async fn disable_scripts(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    rendering.must_close = true;
    if rendering.scripts.enabled {
        rendering.evaluate_in_frames(KEEP_SCRIPTED).await?;
        set_scripts(rendering, false).await?;
    }
    Ok(())
}

pub(super) async fn set_scripts(rendering: &mut Rendering<'_>, run: bool) -> Result<(), JobError> {
    rendering.scripts.enabled = run;
    rendering.wait_for_page(rendering.session.call(&SetScriptExecutionDisabledParams::new(!run))).await?;
    Ok(())
}
