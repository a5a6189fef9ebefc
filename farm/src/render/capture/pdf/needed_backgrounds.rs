//! Backgrounds that a PDF without backgrounds needs: those that text shows (`background-clip: text`), which is mostly
//! transparent, and the controls of video and audio, whose icons are backgrounds. No others are printed.

use platen_shared::job::{RenderJob, Source};

use crate::render::{job_error::JobError, rendering::Rendering};

/// Lets the elements print their backgrounds, but not their children, which would inherit that.
const SHOW: &str = "(() => { const set = value => element => element instanceof HTMLElement &&\
        as(HTMLElement, element).style.setProperty('print-color-adjust', value, 'important');\
    const needed = Array.from(document.querySelectorAll('*')).filter(element =>\
        getComputedStyle(element).backgroundClip.includes('text') || element instanceof HTMLMediaElement && element.controls);\
    const others = needed.flatMap(element => Array.from(as(Element, element).children))\
        .filter(child => getComputedStyle(child).printColorAdjust !== 'exact' && !needed.includes(child));\
    needed.forEach(set('exact')); others.forEach(set('economy')) })()";

/// Shows them. `script_ran` says that a script of the page has run.
pub(super) async fn show(
    rendering: &mut Rendering<'_>,
    job: &RenderJob,
    script_ran: bool,
) -> Result<(), JobError> {
    if script_ran || rendering.load_state().sent > 0 || is_possible(job) {
        rendering.evaluate_isolated(SHOW).await?;
    }
    Ok(())
}

/// Whether the page can have such elements if it has loaded nothing and no script has run. May be true for other markup.
fn is_possible(job: &RenderJob) -> bool {
    let Source::Html(html) = &job.source else { return true };
    has_keyword(html.as_str()) || job.options.css.as_ref().is_some_and(|css| has_keyword(css.as_str()))
}

/// Whether the text contains the keyword `text` of CSS, or the attribute `controls`, as a word.
fn has_keyword(text: &str) -> bool {
    has_word(text, b"text") || has_word(text, b"controls")
}

fn has_word(text: &str, keyword: &[u8]) -> bool {
    let bytes = text.as_bytes();
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
        for text in [
            "text",
            "<video controls>",
            "background-clip:text",
            "background: red TEXT;",
            "clip:/**/text}",
            "é text é",
        ] {
            assert!(has_keyword(text), "{text}");
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
            assert!(!has_keyword(text), "{text}");
        }
    }
}
