//! Documents that begin at the right: Chromium moves their content to the left by the width of the sheet for each part by which
//! the scale differs from 1, so that little or nothing of it is on the sheet.

use platen_shared::refusal::Refusal;

use super::PageStyle;
use crate::{error::JobError, render::rendering::Rendering};

/// `vertical` if the document has vertical lines that begin at the right, which the root or the body decides; otherwise the
/// rules with which it begins at the left and its body keeps its direction and its place, if it begins at the right.
const FLOW: &str = "(() => { const root = window.document.documentElement, body = window.document.body;\
    if (!root) return '';\
    const styles = [root, body].filter(it => it).map(it => getComputedStyle(it));\
    if (styles.some(it => /-rl$/.test(it.writingMode))) return 'vertical';\
    if (styles[0].direction !== 'rtl') return '';\
    const narrow = body && ['width', 'max-width'].some(it => !/^(auto|none)$/.test(body.computedStyleMap().get(it)));\
    return `:root { direction: ltr !important } :root > body { direction: ${styles[1]?.direction};\
        ${narrow ? 'margin-left: auto !important' : ''} }` })()";
const VERTICAL: &str = "vertical";

/// Whether the document has vertical lines that begin at the right, such as Japanese: its width is divided into sheets.
pub(super) async fn is_vertical(rendering: &mut Rendering<'_>) -> Result<bool, JobError> {
    Ok(flow(rendering).await? == VERTICAL)
}

/// Makes the document one that can be printed at another scale than 1.
///
/// # Errors
/// [`Refusal::VerticalScale`] if that is not possible.
pub(super) async fn prepare_for_scale(rendering: &mut Rendering<'_>) -> Result<(), JobError> {
    match flow(rendering).await?.as_str() {
        VERTICAL => return Err(JobError::Refused(Refusal::VerticalScale)),
        "" => {}
        rules => {
            PageStyle::add(rendering, rules).await?;
        }
    }
    Ok(())
}

async fn flow(rendering: &mut Rendering<'_>) -> Result<String, JobError> {
    let flow = rendering.evaluate_isolated(FLOW).await?;
    Ok(flow.as_ref().and_then(|flow| flow.as_str()).unwrap_or_default().to_owned())
}
