//! The patient reader of the reference: a script that scrolls through a page with a pause at each viewport.
//!
//! Invariant: it uses none of the farm's mechanisms, and removes its own element before other scripts run.

use anyhow::Result;
use platen_shared::job::{RenderJob, Source, WaitMs};

const SCRIPT: &str = include_str!("reader.js");

/// Whether the page at this path can be given the script: it is markup of HTML.
pub(super) fn can_read(path: &str) -> bool {
    [".html", ".htm"].iter().any(|extension| path.ends_with(extension))
}

/// The markup with the script.
pub(super) fn with_script(markup: &str) -> String {
    with_first(markup, &format!("<script>{SCRIPT}</script>"))
}

/// Changes the job of a page to one that waits until it was read and this many milliseconds have passed after that. A
/// page by URL gets the script from the file server.
pub(super) fn read(job: &mut RenderJob, extra_wait_ms: u32) -> Result<()> {
    if let Source::Html(markup) = &job.source {
        job.source = Source::Html(with_script(markup.as_str()).try_into()?);
    }
    job.options.wait_for_timeout = WaitMs::default();
    job.options.wait_for_selector = Some(format!("html[data-read~=\"{extra_wait_ms}\"]").try_into()?);
    Ok(())
}

/// The markup with a first element of its head.
pub(super) fn with_first(markup: &str, element: &str) -> String {
    let end_of = |text: &str| {
        let start = markup.find(text)?;
        Some(start + markup[start..].find('>')? + 1)
    };
    let position = end_of("<head>").or_else(|| end_of("<!doctype")).or_else(|| end_of("<!DOCTYPE"));
    let (before, rest) = markup.split_at(position.unwrap_or(0));
    format!("{before}{element}{rest}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::farm;

    #[test]
    fn an_element_is_inserted_at_the_start_of_the_head() {
        assert_eq!(with_first("x", "<base>"), "<base>x");
        assert_eq!(with_first("<!doctype html><p>", "<base>"), "<!doctype html><base><p>");
        let with_head = with_first("<!doctype html><html><head><title>", "<base>");
        assert_eq!(with_head, "<!doctype html><html><head><base><title>");
    }

    #[test]
    fn markup_is_read_until_the_end_of_the_wait() {
        let mut job =
            farm::job("acc", &json!({ "html": "<!doctype html><p>", "waitForTimeout": 4_000 })).unwrap();
        read(&mut job, 3_000).unwrap();
        let Source::Html(markup) = &job.source else { panic!("{job:?}") };
        assert!(
            markup.as_str().starts_with("<!doctype html><script>")
                && markup.as_str().ends_with("</script><p>")
        );
        assert_eq!(job.options.wait_for_timeout, WaitMs::default());
        assert_eq!(job.options.wait_for_selector.unwrap().as_str(), "html[data-read~=\"3000\"]");
    }
}
