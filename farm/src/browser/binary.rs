//! Which Chromium to run.

use std::path::{Path, PathBuf};

use crate::StartError;

/// Where packages put it, cheapest first. `chromium-headless-shell` does not come with the browser
/// window's machinery and renders the same at a quarter of the cost. `/usr/bin/chromium` comes
/// after `/usr/lib/chromium` because Debian's is a shell script that does not replace itself by
/// the browser.
const USUAL_PLACES: &[&str] = &[
    "/usr/lib/chromium/chromium-headless-shell",
    "/usr/lib64/chromium-browser/headless_shell",
    "/usr/lib/chromium/chromium",
    "/usr/lib/chromium-browser/chromium-browser",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
    "/usr/bin/chromium",
    "/usr/bin/google-chrome",
];

/// The browser's file: the operator's choice, or the first of the usual places.
pub(super) fn find(setting: Option<&Path>) -> Result<PathBuf, StartError> {
    match setting {
        Some(path) if path.is_file() => Ok(path.to_owned()),
        Some(path) => Err(StartError::ChromiumMissing { path: path.to_owned() }),
        None => USUAL_PLACES
            .iter()
            .map(Path::new)
            .find(|path| path.is_file())
            .map(Path::to_owned)
            .ok_or(StartError::NoChromium),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_browser_must_be_there() {
        let here = std::env::current_exe().unwrap();
        assert_eq!(find(Some(&here)).unwrap(), here);
        let error = find(Some(Path::new("/nowhere/chrome"))).unwrap_err();
        assert!(error.to_string().contains("/nowhere/chrome"), "{error}");
    }
}
