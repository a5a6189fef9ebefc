//! The command line of a browser: the Chromium executable, and its switches with the reason for each.
//!
//! Invariant: only the operator's setting `unsafe_no_sandbox` weakens the sandbox.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use nix::sys::statvfs::statvfs;
use tokio::{process::Command, time::timeout};

use super::HANG_TIMEOUT;
use crate::{config::Config, error::StartError};

/// Paths of packages, cheapest browser first. `chromium-headless-shell` has no browser window and renders
/// the same for less CPU time. `/usr/lib/chromium` comes before `/usr/bin/chromium`, which is a shell
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

/// The version that an executable prints, such as `156.0.8078.79`; `None` if it prints none.
pub(super) async fn version(binary: &Path) -> Option<String> {
    let mut command = Command::new(binary);
    command.arg("--version").env_clear().stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = timeout(HANG_TIMEOUT, command.output()).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_version =
        |word: &&str| word.split('.').count() == 4 && word.split('.').all(|it| it.parse::<u32>().is_ok());
    text.split_whitespace().find(is_version).map(ToOwned::to_owned)
}

const COMMON: &[&str] = &[
    // Commands come through file descriptors 3 and 4, so there is no debugging port for a page to find.
    "--remote-debugging-pipe",
    // Only chromium-headless-shell is headless without this switch.
    "--headless",
    // Only fatal messages: at lower levels Chromium also logs console messages of pages, which must not get
    // into the farm's log.
    "--enable-logging=stderr",
    "--log-level=3",
    // No windows or pages except those that the farm creates.
    "--no-startup-window",
    "--no-first-run",
    "--no-default-browser-check",
    // No requests of the browser itself: updates, metrics, crash reports, field trials, safe browsing, sync.
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-field-trial-config",
    "--disable-sync",
    "--metrics-recording-only",
    "--no-pings",
    // No extensions, including built-in ones with background pages.
    "--disable-extensions",
    "--disable-component-extensions-with-background-pages",
    // WebRtcHideLocalIpsWithMdns: it listens on the local network's multicast address, to name candidates
    // that the WebRTC policy below prevents anyway.
    // IsolateOrigins, site-per-process: without them a page and its frames share one process, which one
    // session observes. Jobs never share a process, because each has its own browser context.
    // PaintHolding, BackForwardCache, ProactivelySwapBrowsingInstance, RenderDocument: without them the next
    // document uses the page's process and frame at once, and the previous document is not kept.
    // The others contact services.
    "--disable-features=WebRtcHideLocalIpsWithMdns,IsolateOrigins,site-per-process,PaintHolding,BackForwardCache,ProactivelySwapBrowsingInstance,RenderDocument,Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,CertificateTransparencyComponentUpdater",
    "--disable-site-isolation-trials",
    // As in Chrome: connections, sessions of TLS, cached files and credentials belong to the site of a document. That of
    // markup is opaque, so they end with the document, and the next job on its page does not meet them.
    "--enable-features=PartitionConnectionsByNetworkIsolationKey,SplitCacheByNetworkIsolationKey,SplitAuthCacheByNetworkIsolationKey",
    // No UDP, neither for HTTP/3 nor for WebRTC. (A peer connection still binds a port, but sends nothing.)
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    // A page's hints do not resolve names.
    "--dns-prefetch-disable",
    // Loopback addresses go through the proxy as well.
    "--proxy-bypass-list=<-loopback>",
    // Chromium resolves no names: the proxy does, and Chromium reaches the proxy by its address. So code in
    // Chromium that bypasses the proxy cannot connect to a host.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    // window.open returns null, as with a popup blocker: the farm would not close a second page.
    "--block-new-web-contents",
    // Permission prompts are denied, because there is no user.
    "--deny-permission-prompts",
    "--disable-notifications",
    "--disable-prompt-on-repost",
    "--disable-hang-monitor",
    "--password-store=basic",
    // No audio output.
    "--mute-audio",
    // Pages without a visible window run at full speed.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    // Pictures do not depend on the machine: no scrollbars, no font hinting, one colour space, one language.
    "--hide-scrollbars",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    // Unchanged areas are rastered again as well: otherwise the edges of changes depend on earlier frames.
    "--disable-partial-raster",
    "--lang=en-US",
    // Servers are sent it, too.
    "--accept-lang=en-US",
];

/// Switches for begin-frame control, and for drawing all of a page in one frame.
const BEGIN_FRAME_CONTROL: &[&str] = &[
    "--enable-begin-frame-control",
    // A frame includes layout, paint and image decoding; no work is left for the next frame.
    "--run-all-compositor-stages-before-draw",
    "--disable-new-content-rendering-timeout",
    "--disable-threaded-animation",
    "--disable-threaded-scrolling",
    "--disable-checker-imaging",
];

/// Space that the images of a large page need in `/dev/shm`. The default of containers is 64 MiB.
const MIN_SHARED_MEMORY_BYTES: u64 = 512 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drawing {
    /// A frame for each command of the farm.
    BeginFrameControl,
    /// Draws 60 frames per second.
    Continuous,
}

/// The switches of a browser. `profile` is its directory, `proxy` the proxy for requests that belong to no page, and
/// `user_agent` that of shared and service workers, whose own one cannot be set.
pub(super) fn switches(
    config: &Config,
    profile: &Path,
    drawing: Drawing,
    proxy: &str,
    user_agent: Option<&str>,
) -> Vec<String> {
    let mut switches: Vec<String> = COMMON.iter().map(ToString::to_string).collect();
    switches.push(format!("--proxy-server={proxy}"));
    switches.push(format!("--user-data-dir={}", profile.join("profile").display()));
    switches.extend(user_agent.map(|user_agent| format!("--user-agent={user_agent}")));
    if drawing == Drawing::BeginFrameControl {
        switches.extend(BEGIN_FRAME_CONTROL.iter().map(ToString::to_string));
    }
    if !has_enough_shared_memory() {
        switches.push("--disable-dev-shm-usage".to_owned());
    }
    if config.unsafe_no_sandbox {
        switches.push("--no-sandbox".to_owned());
    }
    switches
}

fn has_enough_shared_memory() -> bool {
    statvfs("/dev/shm").is_ok_and(|data| {
        data.blocks_available().saturating_mul(data.fragment_size()) >= MIN_SHARED_MEMORY_BYTES
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switches(config: &Config) -> Vec<String> {
        super::switches(config, Path::new("/h"), Drawing::Continuous, "http://127.0.0.1:9", None)
    }

    #[test]
    fn only_its_setting_disables_the_sandbox() {
        let has = |config: &Config| switches(config).contains(&"--no-sandbox".to_owned());
        assert!(!has(&Config::default()));
        assert!(has(&Config { unsafe_no_sandbox: true, ..Config::default() }));
    }

    #[test]
    fn the_proxy_is_the_only_way_to_the_network() {
        let switches = switches(&Config::default());
        for switch in [
            "--proxy-server=http://127.0.0.1:9",
            "--proxy-bypass-list=<-loopback>",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        ] {
            assert_eq!(switches.iter().filter(|has| *has == switch).count(), 1, "{switch}");
        }
        assert!(!switches.contains(&"--no-proxy-server".to_owned()));
    }
}
