//! Chromium's command line.
//!
//! Invariant: every switch stands here with its reason; none of them weakens the sandbox, save the
//! one an operator asks for by name.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use super::Drawing;
use crate::config::Config;

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
    // WebRtcHideLocalIpsWithMdns: would listen on the local network's multicast address, to give
    // names to candidates that the policy below keeps from being made.
    // IsolateOrigins, site-per-process: a page and its frames live in one process, which one
    // session can watch and one signal can end. Two jobs never share a process: each has a browser
    // context of its own. The others talk to services.
    // PaintHolding, BackForwardCache, ProactivelySwapBrowsingInstance, RenderDocument: the next
    // document of a page takes over its process and its frame at once, and nothing of the former one
    // is kept for coming back to.
    "--disable-features=WebRtcHideLocalIpsWithMdns,IsolateOrigins,site-per-process,PaintHolding,BackForwardCache,ProactivelySwapBrowsingInstance,RenderDocument,Translate,MediaRouter,OptimizationHints,AutofillServerCommunication,CertificateTransparencyComponentUpdater",
    "--disable-site-isolation-trials",
    // No UDP: not for HTTP/3, not for WebRTC. (A peer connection binds a port all the same, and sends
    // nothing from it.)
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    // A name is resolved when it is needed; a page's hints do not make requests by themselves.
    "--dns-prefetch-disable",
    // Not even to this machine is there a way past the proxy.
    "--proxy-bypass-list=<-loopback>",
    // Chromium has no name server: names are the proxy's business, and the proxy is found by its
    // address. So nothing that does not know of the proxy finds anything either.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
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
    // What has not changed is drawn again with what has, or its edges depend on what was drawn before.
    "--disable-partial-raster",
];

/// Smaller than this, `/dev/shm` cannot hold a large page's pictures. Containers get 64 MiB of it
/// unless told otherwise.
const ENOUGH_SHARED_MEMORY: u64 = 512 * 1024 * 1024;

/// The command line for a browser whose home is `home`. What it fetches of its own accord, for no
/// page of the farm's, goes to `proxy`.
pub(super) fn for_browser(config: &Config, home: &Path, drawing: Drawing, proxy: &str) -> Vec<String> {
    let mut switches: Vec<String> = ALWAYS.iter().map(ToString::to_string).collect();
    switches.push(format!("--proxy-server={proxy}"));
    switches.push(format!("--user-data-dir={}", home.join("profile").display()));
    if drawing == Drawing::OnDemand {
        switches.extend(ON_DEMAND.iter().map(ToString::to_string));
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
        data.blocks_available().saturating_mul(data.fragment_size()) >= ENOUGH_SHARED_MEMORY
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sandbox_stays_on_unless_told() {
        let has = |config: &Config| {
            for_browser(config, Path::new("/h"), Drawing::OnDemand, "http://127.0.0.1:9")
                .contains(&"--no-sandbox".to_owned())
        };
        assert!(!has(&Config::default()));
        assert!(has(&Config { unsafe_no_sandbox: true, ..Config::default() }));
    }

    #[test]
    fn there_is_one_way_out() {
        let switches =
            for_browser(&Config::default(), Path::new("/h"), Drawing::ByItself, "http://127.0.0.1:9");
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
