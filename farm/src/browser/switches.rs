//! Chromium's command line.
//!
//! Invariant: every switch stands here with its reason; none of them weakens the sandbox, save the
//! one an operator asks for by name.

use std::{fmt::Write as _, path::Path};

use nix::sys::statvfs::statvfs;

use super::Drawing;
use crate::config::{Config, Resolve};

/// What every browser gets.
const ALWAYS: &[&str] = &[
    // Commands come through descriptors 3 and 4: no port that a page could find.
    "--remote-debugging-pipe",
    // Only chromium-headless-shell is headless by itself.
    "--headless",
    // Fatal messages only, on standard error: at any lower level Chromium writes down what pages
    // log, and nothing of a page may end up in the farm's log.
    "--enable-logging=stderr",
    "--log-level=3",
    // No window, tab or page but those the farm makes.
    "--no-startup-window",
    "--no-first-run",
    "--no-default-browser-check",
    // Nothing calls home: updates, metrics, crash reports, field trials, safe browsing, sync.
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
    // No extensions, and none of the built-in ones that run in the background.
    "--disable-extensions",
    "--disable-component-extensions-with-background-pages",
    // IsolateOrigins, site-per-process: a page and its frames live in one process, which one
    // session can watch and one signal can end. Two jobs never share a process: each has a browser
    // context of its own. The others talk to services.
    // LocalNetworkAccessChecks: the farm is the judge of where a page may go, and the same on a page's
    // first document as on its next.
    // PaintHolding, BackForwardCache, ProactivelySwapBrowsingInstance, RenderDocument: the next
    // document of a page takes over its process and its frame at once, and nothing of the former one
    // is kept for coming back to.
    "--disable-features=IsolateOrigins,site-per-process,LocalNetworkAccessChecks,PaintHolding,BackForwardCache,ProactivelySwapBrowsingInstance,RenderDocument,Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,CertificateTransparencyComponentUpdater",
    "--disable-site-isolation-trials",
    // No UDP: not for HTTP/3, not for WebRTC.
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    // A name is resolved when it is needed; a page's hints do not make requests by themselves.
    "--dns-prefetch-disable",
    // The environment is the farm's business: no proxy but a configured one.
    "--no-proxy-server",
    // window.open gives null, as a popup blocker does: a second page would outlive its use.
    "--block-new-web-contents",
    // A question that nobody can answer is answered with no.
    "--deny-permission-prompts",
    "--disable-notifications",
    "--disable-prompt-on-repost",
    "--disable-hang-monitor",
    "--password-store=basic",
    // A server has no ears.
    "--mute-audio",
    // A page that nobody looks at runs at full speed all the same.
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    // The same picture on every machine: no scrollbars, no hinting, one colour space, one
    // language.
    "--hide-scrollbars",
    "--font-render-hinting=none",
    "--force-color-profile=srgb",
    "--lang=en-US",
];

/// What makes a browser draw on demand, and draw all of a page in one frame.
const ON_DEMAND: &[&str] = &[
    "--enable-begin-frame-control",
    // A frame is the page as it is: layout, paint and decoded pictures, none of it left for the
    // next one.
    "--run-all-compositor-stages-before-draw",
    "--disable-new-content-rendering-timeout",
    "--disable-threaded-animation",
    "--disable-threaded-scrolling",
    "--disable-checker-imaging",
];

/// Smaller than this, `/dev/shm` cannot hold a large page's pictures. Containers get 64 MiB of it
/// unless told otherwise.
const ENOUGH_SHARED_MEMORY: u64 = 512 * 1024 * 1024;

/// The command line for a browser whose home is `home`.
pub(super) fn for_browser(config: &Config, home: &Path, drawing: Drawing) -> Vec<String> {
    let mut switches: Vec<String> = ALWAYS.iter().map(ToString::to_string).collect();
    switches.push(format!("--user-data-dir={}", home.join("profile").display()));
    if drawing == Drawing::OnDemand {
        switches.extend(ON_DEMAND.iter().map(ToString::to_string));
    }
    if !config.resolve.is_empty() {
        switches.push(host_resolver_rules(&config.resolve));
    }
    if !has_enough_shared_memory() {
        switches.push("--disable-dev-shm-usage".to_owned());
    }
    if config.unsafe_no_sandbox {
        switches.push("--no-sandbox".to_owned());
    }
    switches
}

fn host_resolver_rules(resolve: &[Resolve]) -> String {
    let mut switch = String::from("--host-resolver-rules=");
    for (index, rule) in resolve.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let address = match rule.address() {
            std::net::IpAddr::V4(address) => address.to_string(),
            std::net::IpAddr::V6(address) => format!("[{address}]"),
        };
        let _ = write!(switch, "{comma}MAP {} {address}", rule.host());
    }
    switch
}

fn has_enough_shared_memory() -> bool {
    statvfs("/dev/shm").is_ok_and(|data| {
        data.blocks_available().saturating_mul(data.fragment_size()) >= ENOUGH_SHARED_MEMORY
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_stays_on_unless_told() {
        let has = |config: &Config| {
            for_browser(config, Path::new("/h"), Drawing::OnDemand).contains(&"--no-sandbox".to_owned())
        };
        assert!(!has(&Config::default()));
        assert!(has(&Config { unsafe_no_sandbox: true, ..Config::default() }));
    }

    #[test]
    fn names_with_a_given_address_are_mapped() {
        let resolve: Vec<Resolve> =
            ["a.test=127.0.0.1", "b.test=::1"].iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(
            host_resolver_rules(&resolve),
            "--host-resolver-rules=MAP a.test 127.0.0.1,MAP b.test [::1]"
        );
    }
}
