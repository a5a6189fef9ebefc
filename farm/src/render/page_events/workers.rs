//! Workers of a page, which start when they are prepared.

use chromiumoxide_cdp::cdp::{
    browser_protocol::{emulation::SetUserAgentOverrideParams, target::SessionId},
    js_protocol::runtime::{EvaluateParams, RunIfWaitingForDebuggerParams},
};
use platen_cdp::{CdpError, Session};

use crate::page::{auto_attach, network_events};

/// Animation frames of a worker by its timers, in real time like all of a worker. Chromium's own need frames of the page,
/// and the page's frame after a worker's last one never ends, because the worker does not answer it. The properties that
/// it calls are not defined before the worker starts.
const ANIMATION_FRAMES: &str = "if (self.requestAnimationFrame) {\
    self.requestAnimationFrame = function requestAnimationFrame(callback) {\
        return setTimeout(() => callback(performance.now()), 1000 / 60) };\
    self.cancelAnimationFrame = function cancelAnimationFrame(handle) { clearTimeout(handle) } }";

/// Starts a worker that waits for it.
pub(super) fn start(
    page: &Session,
    id: SessionId,
    user_agent: &SetUserAgentOverrideParams,
) -> Result<(), CdpError> {
    let worker = page.worker_session(id);
    worker.send(&network_events())?;
    // A worker has the language of the browser, and a shared or service worker its client hints.
    worker.send(user_agent)?;
    worker.send(&auto_attach())?;
    worker.send(&EvaluateParams::new(ANIMATION_FRAMES))?;
    worker.send(&RunIfWaitingForDebuggerParams {})
}
