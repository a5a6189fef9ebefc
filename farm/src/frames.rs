//! Frames of a browser that draws only when it is told to.
//!
//! Invariant: one frame at a time in a browser, because two at once crash the process that draws
//! them; so a frame that has begun keeps its turn until it is drawn or its page is gone, also when
//! nobody waits for it any more. Left to others: when a page needs frames (render).

use std::{sync::Arc, time::Duration};

use chromiumoxide_cdp::cdp::browser_protocol::headless_experimental::BeginFrameParams;
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::cdp::{CdpError, Reply, Session};

/// A page whose script never ends never ends its frame either. Layout and painting of the largest
/// pages take about as long, so a neighbour is given this much before it is left behind.
const PATIENCE: Duration = Duration::from_secs(5);

/// The turns at drawing in one browser.
#[derive(Debug, Clone, Default)]
pub(crate) struct Frames {
    turn: Arc<Mutex<()>>,
}

/// Why there is no frame.
#[derive(Debug)]
pub(crate) enum NoFrame {
    /// Another page keeps its turn.
    HeldUp,
    /// The browser said no, or is gone.
    Cdp(CdpError),
}

impl Frames {
    /// Draws one frame of a page. `gone` says when that page is no more: a page that is closed
    /// leaves its frame unanswered.
    pub(crate) async fn draw(
        &self,
        session: &Session,
        gone: &CancellationToken,
        frame: BeginFrameParams,
    ) -> Result<Reply, NoFrame> {
        let turn = self.turn().await.ok_or(NoFrame::HeldUp)?;
        let (session, gone) = (session.clone(), gone.clone());
        // Its own task: whoever stops waiting for a frame does not stop the frame.
        let drawing = tokio::spawn(async move {
            let call = session.start(&frame)?;
            let drawn = tokio::select! {
                reply = call.reply() => reply,
                () = gone.cancelled() => Err(CdpError::Closed),
            };
            drop(turn);
            drawn
        });
        // A task that was lost was lost with the runtime, and the browser with it.
        drawing.await.unwrap_or(Err(CdpError::Closed)).map_err(NoFrame::Cdp)
    }

    /// Waits until the frame under way, if any, is drawn.
    pub(crate) async fn finished(&self) {
        drop(self.turn.lock().await);
    }

    /// A turn, once the frame under way is drawn.
    async fn turn(&self) -> Option<OwnedMutexGuard<()>> {
        timeout(PATIENCE, Arc::clone(&self.turn).lock_owned()).await.ok()
    }
}
