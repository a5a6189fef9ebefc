//! Finds scripts that use what Chromium does beside a page's main thread: cryptography, databases, decoding, compilation. The
//! virtual clock of a page does not stop for that, so a page with such a script waits in real time.
//!
//! They are found by the names of these interfaces in their text. A name that is not used costs a page the time of its wait;
//! one that a script puts together from parts is not seen.

use chromiumoxide_cdp::cdp::js_protocol::debugger::{
    DisableParams, EnableParams, ResumeParams, SearchInContentParams, SetSkipAllPausesParams,
};
use platen_cdp::CdpError;
use tokio::task::yield_now;

use super::rendering::{Rendering, unless_refused};
use crate::error::JobError;

/// Interfaces whose work takes longer than a few steps of virtual time, or many answers of other processes.
const INTERFACES: &str = r"\b(?:indexedDB|caches\??\.(?:open|match|has|keys|delete)|subtle|getDirectory|WebAssembly|addModule|requestAdapter|createImageBitmap|toBlob|convertToBlob|OfflineAudioContext|decodeAudioData|(?:Image|Video|Audio)(?:De|En)coder|MediaRecorder|captureStream)\b|\.decode\(\)";

/// Whether a script of the page names one of [`INTERFACES`], or there are too many to be searched. If not, Chromium reports later
/// scripts.
pub(super) async fn is_used(rendering: &Rendering<'_>) -> Result<bool, JobError> {
    let session = rendering.session;
    let enabling = session.start(&EnableParams::default())?;
    session.send(&SetSkipAllPausesParams::new(true))?;
    // A `debugger` statement may have been reached between these commands.
    session.send(&ResumeParams::default())?;
    if unless_refused(enabling.await)?.is_none() {
        return Ok(false);
    }
    // Lets the event handler process the events before this answer, which are the scripts.
    yield_now().await;
    let is_used = rendering.load_state().activity.needs_real_time || is_used_by_new(rendering).await?;
    if is_used {
        session.send(&DisableParams::default())?;
    }
    Ok(is_used)
}

/// Whether a script that was not searched yet names one of [`INTERFACES`]. One after the other, because an answer has the whole
/// line of a name, which may be a script of many megabytes.
pub(super) async fn is_used_by_new(rendering: &Rendering<'_>) -> Result<bool, JobError> {
    let scripts = std::mem::take(&mut rendering.scripts.records.scripts.lock().unsearched);
    for script in scripts {
        let mut search = SearchInContentParams::new(script, INTERFACES);
        (search.is_regex, search.case_sensitive) = (Some(true), Some(true));
        match rendering.session.call(&search).await {
            Ok(found) if found.result.is_empty() => {}
            // The script is gone.
            Err(CdpError::Refused { .. }) => {}
            Ok(_) | Err(CdpError::TooLarge { .. }) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}
