//! Finding the Chromium executable.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{process::Command, time::timeout};

use crate::StartError;

/// Paths of packages, cheapest browser first. `chromium-headless-shell` has no browser window and renders
/// the same at a quarter of the cost. `/usr/lib/chromium` comes before `/usr/bin/chromium`, which is a shell
/// script on Debian that does not `exec` the browser.
const DEFAULT_PATHS: &[&str] = &[
    "/usr/lib/chromium/chromium-headless-shell",
    "/usr/lib64/chromium-browser/headless_shell",
    "/usr/lib/chromium/chromium",
    "/usr/lib/chromium-browser/chromium-browser",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/opt/google/chrome/chrome",
    "/usr/bin/chromium",
    "/usr/bin/google-chrome",
];

/// The configured executable, or the first default path that exists.
pub(crate) fn find(setting: Option<&Path>) -> Result<PathBuf, StartError> {
    match setting {
        Some(path) if path.is_file() => Ok(path.to_owned()),
        Some(path) => Err(StartError::ChromiumMissing(path.to_owned())),
        None => DEFAULT_PATHS
            .iter()
            .map(Path::new)
            .find(|path| path.is_file())
            .map(Path::to_owned)
            .ok_or(StartError::NoChromium),
    }
}

/// How long an executable may take to print its version: 20 ms with warm caches.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// The version that an executable prints, such as `156.0.8078.79`; `None` if it prints none.
pub(super) async fn version(binary: &Path) -> Option<String> {
    let mut command = Command::new(binary);
    command.arg("--version").env_clear().stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = timeout(VERSION_TIMEOUT, command.output()).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_version =
        |word: &&str| word.split('.').count() == 4 && word.split('.').all(|it| it.parse::<u32>().is_ok());
    text.split_whitespace().find(is_version).map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_browser_must_exist() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(find(Some(&own)).unwrap(), own);
        let error = find(Some(Path::new("/nowhere/chrome"))).unwrap_err();
        assert!(error.to_string().contains("/nowhere/chrome"), "{error}");
    }
}
