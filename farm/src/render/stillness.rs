//! The proof that a loaded page cannot change any more, so that waiting longer gives the same file.
//!
//! A page stands still if all of this holds:
//! 1. No script of it has run. Chromium counts the time that scripts take (`ScriptDuration` of
//!    `Performance.getMetrics`); without a script there is no timer, callback or handler that could run.
//! 2. No animation or transition was ever created, in any tree of the document (`Animation` domain).
//! 3. It has one frame, no request in progress, no worker, no socket, and every image it has requested
//!    is known to have one frame (`page_events`, `still_image`).
//! 4. Its markup holds none of what changes by itself without a script (this file): SMIL, media, a
//!    refresh, a blinking caret, an indeterminate progress bar.
//!
//! Invariant: where one of these is unknown, there is no proof.

use chromiumoxide_cdp::cdp::browser_protocol::{
    page::{GetFrameTreeParams, GetResourceContentParams},
    performance::GetMetricsParams,
};
use platen_cdp::{CdpError, Session};
use platen_shared::job::Source;
use serde::Deserialize;

use super::JobError;

/// Elements that change without a script. `set` and `animate…` are those of SVG.
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
/// Attributes by which an element changes, or by which a tree is hidden from the checks above.
const CHANGING_ATTRIBUTES: &[&[u8]] = &[b"autofocus", b"http-equiv"];

/// Whether markup holds an element or attribute that can change the page without a script. It may find
/// one where there is only text.
pub(super) fn may_change(markup: &str) -> bool {
    let bytes = markup.as_bytes();
    let starts = |at: usize, name: &[u8]| {
        bytes.get(at..at + name.len()).is_some_and(|part| part.eq_ignore_ascii_case(name))
    };
    bytes.iter().enumerate().any(|(at, byte)| match byte {
        b'<' => {
            // A prefix is how XML names an element of SVG.
            let name = &bytes[at + 1..bytes.len().min(at + 32)];
            let local = name.iter().position(|byte| !byte.is_ascii_alphanumeric());
            let local = local.filter(|&end| name[end] == b':').map_or(at + 1, |end| at + 2 + end);
            CHANGING_ELEMENTS.iter().any(|name| starts(local, name))
        }
        b'a' | b'A' | b'h' | b'H' => CHANGING_ATTRIBUTES.iter().any(|name| starts(at, name)),
        _ => false,
    })
}

/// Counters of a page's main thread, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RendererMetrics {
    /// CPU time that scripts of the page have taken.
    pub(super) script: f64,
    /// CPU time that tasks of the main thread have taken.
    pub(super) tasks: f64,
    /// When the main document began, on Chromium's monotonic clock.
    pub(super) navigation_start: f64,
}

/// Asks for the counters. The main thread answers when it has done what it was asked before.
pub(super) async fn metrics(session: &Session) -> Result<RendererMetrics, CdpError> {
    let reply = session.start(&GetMetricsParams {})?.reply().await?;
    let metrics: Metrics<'_> = reply.parse()?;
    let value = |name| {
        let metric = metrics.metrics.iter().find(|metric| metric.name == name);
        // One that is not there equals nothing, not even itself, so there is no proof.
        metric.map_or(f64::NAN, |metric| metric.value)
    };
    Ok(RendererMetrics {
        script: value("ScriptDuration"),
        tasks: value("TaskDuration"),
        navigation_start: value("NavigationStart"),
    })
}

/// Whether the markup of the page's main document is known, and holds nothing that changes by itself.
pub(super) async fn has_still_markup(page: MainDocument<'_>, source: &Source) -> Result<bool, JobError> {
    match source {
        Source::Html(html) => Ok(!may_change(html.as_str())),
        Source::Url(_) => {
            let tree = page.session.call(&GetFrameTreeParams {}).await?;
            let url = tree.frame_tree.frame.url;
            let content = GetResourceContentParams::new(page.main_frame.to_owned(), url);
            match page.session.call(&content).await {
                Ok(content) => Ok(!content.base64_encoded && !may_change(&content.content)),
                Err(CdpError::Refused { .. }) => Ok(false),
                Err(error) => Err(error.into()),
            }
        }
    }
}

/// What identifies the main document of a page.
#[derive(Clone, Copy)]
pub(super) struct MainDocument<'a> {
    pub(super) session: &'a Session,
    pub(super) main_frame: &'a str,
}

#[derive(Deserialize)]
struct Metrics<'a> {
    #[serde(borrow)]
    metrics: Vec<Metric<'a>>,
}

#[derive(Deserialize)]
struct Metric<'a> {
    name: &'a str,
    value: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_that_may_change_is_found() {
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
        ] {
            assert!(may_change(markup), "{markup}");
        }
        for markup in ["", "<", "<p>set video", "<h1>a</h1><table><tr><td>1<img src='a.png'>", "ä<é", "a < b"]
        {
            assert!(!may_change(markup), "{markup}");
        }
    }
}
