//! The proof that a loaded page is static: it cannot change any more, so waiting gives the same file.
//!
//! A page is static if all of these conditions hold:
//! 1. No script of it has run (`ScriptDuration` of `Performance.getMetrics` has not grown). Without a script
//!    it has no timers, callbacks or handlers. Or those that have run cannot run again (`static_scripts`).
//! 2. No animation or transition was created in any tree of the document (`Animation` domain).
//! 3. It has one frame, no request in progress, no worker and no socket, and all its images are known to have
//!    one frame (`page_events`, `still_image`).
//! 4. Its markup has nothing that changes without a script (this file): SMIL, media, a refresh, a blinking
//!    caret, an indeterminate progress bar, an event handler.
//!
//! Invariant: if one of these is unknown, the page counts as one that may change.

use std::borrow::Cow;

use chromiumoxide_cdp::cdp::browser_protocol::page::{GetFrameTreeParams, GetResourceContentParams};
use platen_cdp::CdpError;
use platen_shared::job::Source;

use super::rendering::Rendering;
use crate::error::JobError;

/// Elements that change without a script. `animate` (as a prefix), `set` and `discard` are SVG elements.
const CHANGING_ELEMENTS: &[&[u8]] = &[
    b"animate",
    b"set",
    b"discard",
    b"video",
    b"audio",
    b"marquee",
    b"progress",
    b"iframe",
    b"frame",
    b"object",
    b"embed",
    b"portal",
    b"fencedframe",
    b"bgsound",
    b"applet",
];
/// Attributes that change the page: a focused field has a blinking caret, and `http-equiv` can refresh the
/// page.
const CHANGING_ATTRIBUTES: &[&[u8]] = &[b"autofocus", b"http-equiv"];

/// Whether markup has an element or attribute that can change the page without a script, or the handler of an event. May be
/// true for text that looks like one.
pub(super) fn may_change(markup: &str) -> bool {
    has_changing_part(markup) || has_handler(markup)
}

/// Whether markup has an element or attribute that can change the page without a script.
pub(super) fn has_changing_part(markup: &str) -> bool {
    let bytes = markup.as_bytes();
    let starts = |at: usize, name: &[u8]| {
        bytes.get(at..at + name.len()).is_some_and(|part| part.eq_ignore_ascii_case(name))
    };
    bytes.iter().enumerate().any(|(at, byte)| match byte {
        b'<' => {
            // In XML the name of an SVG element may have a namespace prefix.
            let name = &bytes[at + 1..bytes.len().min(at + 32)];
            let local = name.iter().position(|byte| !byte.is_ascii_alphanumeric());
            let local = local.filter(|&end| name[end] == b':').map_or(at + 1, |end| at + 2 + end);
            CHANGING_ELEMENTS.iter().any(|name| starts(local, name))
        }
        b'a' | b'A' | b'h' | b'H' => CHANGING_ATTRIBUTES.iter().any(|name| starts(at, name)),
        _ => false,
    })
}

/// Whether markup has an attribute with the name of the handler of an event, such as `onresize`.
pub(super) fn has_handler(markup: &str) -> bool {
    markup.match_indices('=').any(|(at, _)| {
        let text = markup.as_bytes()[..at].trim_ascii_end();
        let start =
            text.iter().rposition(|byte| !byte.is_ascii_alphanumeric()).map_or(0, |before| before + 1);
        let name = &text[start..];
        name.len() > 2 && name[..2].eq_ignore_ascii_case(b"on")
    })
}

/// The markup of the main document, as the server sent it; `None` if it is not known.
pub(super) async fn markup<'a>(rendering: &Rendering<'a>) -> Result<Option<Cow<'a, str>>, JobError> {
    let Rendering { job, session, main_frame, .. } = *rendering;
    match &job.source {
        Source::Html(html) => Ok(Some(html.as_str().into())),
        Source::Url(_) => {
            let tree = session.call(&GetFrameTreeParams {}).await?;
            let url = tree.frame_tree.frame.url;
            let content = GetResourceContentParams::new(main_frame.to_owned(), url);
            match session.call(&content).await {
                Ok(content) => Ok((!content.base64_encoded).then_some(content.content.into())),
                Err(CdpError::Refused { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_that_can_change_without_a_script_is_detected() {
        for markup in [
            "<svg><animate attributeName=x></svg>",
            "<svg><animateTransform/></svg>",
            "<SVG><SET/></SVG>",
            "<svg:animate/>",
            "<x xmlns:s='http://www.w3.org/2000/svg'><s:set/></x>",
            "<video src=a>",
            "<AUDIO>",
            "<marquee>x",
            "<progress>",
            "<iframe>",
            "<frameset><frame></frameset>",
            "<object data=x>",
            "<embed>",
            "<meta HTTP-EQUIV=refresh content=1>",
            "<input AutoFocus>",
            "x<set",
            "<body onresize='x()'>",
            "<img src=a OnLoad\n= x()>",
        ] {
            assert!(may_change(markup), "{markup}");
        }
        for markup in [
            "",
            "<",
            "<p>set video",
            "<h1>a</h1><table><tr><td>1<img src='a.png'>",
            "ä<é",
            "a < b",
            "<a href=on>",
            "on=",
            "=",
        ] {
            assert!(!may_change(markup), "{markup}");
        }
    }
}
