//! Documents that begin at the right. If Chromium prints them smaller or larger, on request or because their content is too
//! wide, it moves them sideways by as much as the sheet becomes wider or narrower, off the sheet.

use crate::{error::JobError, render::rendering::Rendering};

/// `vertical` if the document has vertical lines that begin at the right, which the root or the body decides; otherwise the
/// rules with which it begins at the left and its body keeps its direction and its place, if it begins at the right. With
/// containment the document does not take the direction of its body.
const FLOW: &str = "(() => { const root = window.document.documentElement, body = window.document.body;\
    if (!root) return '';\
    const styles = [root, body].filter(it => it).map(it => getComputedStyle(it));\
    if (styles.some(it => /-rl$/.test(it.writingMode))) return 'vertical';\
    if (styles[0].direction !== 'rtl') return '';\
    const is = (...values) => it => values.includes(`${body?.computedStyleMap().get(it)}`);\
    const isAtRight = !['width', 'max-width'].every(is('auto', 'none')) && !['margin-left', 'margin-right'].some(is('auto'));\
    return `:root { direction: ltr !important; contain: style } :root > body { direction: ${styles[1]?.direction};\
        ${isAtRight ? 'margin-left: auto !important' : ''} }` })()";

/// Where the lines of a document begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RootFlow {
    /// At the left.
    FromLeft,
    /// At the right, such as those of Arabic, with the rules that let the document begin at the left.
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
