//! A page in a browser context of its own.
//!
//! Invariant: a page that [`Page::open`] returns shows an empty document, tells all that the farm needs to
//! know of it, and has no way to the network but its own gate; one that cannot be opened is closed
//! again. Left to others: whose page it is, and closing it in the end (pool, lease).

use std::{io, time::Duration};

use chromiumoxide_cdp::cdp::browser_protocol::{
    browser::{BrowserContextId, SetDownloadBehaviorBehavior, SetDownloadBehaviorParams},
    inspector::{self, EventTargetCrashed},
    network,
    page::{self, EventLifecycleEvent, SetLifecycleEventsEnabledParams},
    target::{
        AttachToTargetParams, CreateBrowserContextParams, CreateTargetParams, DisposeBrowserContextParams,
        SetAutoAttachParams,
    },
};
use serde::Deserialize;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    browser::Browser,
    cdp::{CdpError, Events, Session},
    clock::Clock,
    egress::Gate,
    frames::Frames,
};

/// Opening takes 30 ms, and up to a second on a machine that is short of CPU. A browser that takes
/// longer has lost the process it forks pages from, or hangs.
pub(crate) const OPEN_LIMIT: Duration = Duration::from_secs(10);
/// Closing takes 10 ms even when the page's script never returns.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// One page. Whoever drops it without closing it leaves it to its browser's end.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) session: Session,
    pub(crate) events: Events,
    /// The main frame, whose id is that of the page's target.
    pub(crate) main_frame: String,
    /// The frames of a browser that draws on demand.
    pub(crate) frames: Option<Frames>,
    /// Cancelled when the page is no more.
    pub(crate) gone: CancellationToken,
    /// Its own clock, if a job has waited on it in virtual time.
    pub(crate) clock: Option<Clock>,
    /// Jobs it has had.
    pub(crate) jobs: u32,
    /// It has done something that no reset is known to undo.
    pub(crate) touched: bool,
    /// Its way to the network.
    pub(crate) gate: Gate,
    context: BrowserContextId,
}

/// Why a page could not be opened or closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// The browser said no, or is gone.
    #[error("the browser failed")]
    Cdp(#[from] CdpError),
    /// There is no port for its gate.
    #[error("no port for the page's requests")]
    Gate(#[source] io::Error),
    /// It died before it was there.
    #[error("the page crashed while it was opened")]
    Crashed,
    /// The browser takes too long.
    #[error("the browser hangs")]
    Hangs,
}

impl Page {
    /// Opens a page. Must be polled to its end.
    pub(crate) async fn open(browser: &Browser) -> Result<Self, PageError> {
        let connection = browser.connection();
        let gate = browser.egress().gate().await.map_err(PageError::Gate)?;
        let create = CreateBrowserContextParams {
            dispose_on_detach: Some(true),
            proxy_server: Some(gate.address()),
            // Not even to this machine is there a way past it.
            proxy_bypass_list: Some("<-loopback>".to_owned()),
            ..Default::default()
        };
        let created = timeout(OPEN_LIMIT, connection.call(&create)).await.map_err(|_| PageError::Hangs)?;
        let context = created?.browser_context_id;
        match timeout(OPEN_LIMIT, Self::open_in(browser, context.clone(), gate)).await {
            Ok(Ok(page)) => Ok(page),
            failed => {
                connection.send(&DisposeBrowserContextParams::new(context))?;
                Err(failed.map_or(PageError::Hangs, |opened| opened.expect_err("matched above")))
            }
        }
    }

    async fn open_in(browser: &Browser, context: BrowserContextId, gate: Gate) -> Result<Self, PageError> {
        let connection = browser.connection();
        let mut download = SetDownloadBehaviorParams::new(SetDownloadBehaviorBehavior::Deny);
        download.browser_context_id = Some(context.clone());
        connection.send(&download)?;
        let frames = browser.frames().cloned();
        let mut target = CreateTargetParams::new("about:blank");
        target.browser_context_id = Some(context.clone());
        target.enable_begin_frame_control = Some(frames.is_some());
        let target = connection.call(&target).await?.target_id;
        let mut attach = AttachToTargetParams::new(target.clone());
        attach.flatten = Some(true);
        let session = connection.call(&attach).await?.session_id;
        let (session, events) = Session::new(connection.clone(), session);
        let main_frame = target.inner().clone();
        let gone = CancellationToken::new();
        let mut page = Self {
            session,
            events,
            main_frame,
            frames,
            gone,
            clock: None,
            jobs: 0,
            touched: false,
            gate,
            context,
        };
        page.listen().await?;
        Ok(page)
    }

    /// Enables what brings events, and waits for the empty document, so that it is not taken for
    /// a job's.
    async fn listen(&mut self) -> Result<(), PageError> {
        let session = &self.session;
        // Bodies are never asked for, so none is kept.
        let network = session.start(&network::EnableParams {
            max_total_buffer_size: Some(0),
            max_resource_buffer_size: Some(0),
            ..Default::default()
        })?;
        // Workers make themselves known.
        let mut attach = SetAutoAttachParams::new(true, false);
        attach.flatten = Some(true);
        session.send(&attach)?;
        session.send(&inspector::EnableParams {})?;
        session.send(&page::EnableParams::default())?;
        session.send(&SetLifecycleEventsEnabledParams::new(true))?;
        network.await?;
        while let Some(event) = self.events.next().await {
            if event.is::<EventTargetCrashed>() {
                return Err(PageError::Crashed);
            }
            if event.is::<EventLifecycleEvent>() {
                let lifecycle: Lifecycle<'_> = event.parse()?;
                if lifecycle.name == "load" && lifecycle.frame == self.main_frame {
                    return Ok(());
                }
            }
        }
        Err(CdpError::Closed.into())
    }

    /// Whether it lives, as far as is known.
    pub(crate) fn lives(&mut self) -> bool {
        std::iter::from_fn(|| self.events.try_next()).all(|event| !event.is::<EventTargetCrashed>())
    }

    /// Whether its dates are near enough to the real ones.
    pub(crate) fn is_on_time(&self) -> bool {
        self.clock.as_ref().is_none_or(|clock| clock.is_right(Instant::now()))
    }

    /// Closes it, and with it its renderer process however busy, its cookies, caches and storage.
    pub(crate) async fn close(self, browser: &Browser) -> Result<(), PageError> {
        let dispose = DisposeBrowserContextParams::new(self.context);
        let disposed = timeout(CLOSE_LIMIT, browser.connection().call(&dispose)).await;
        self.gone.cancel();
        match disposed {
            Ok(Ok(_) | Err(CdpError::Closed)) => Ok(()),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(PageError::Hangs),
        }
    }
}

#[derive(Deserialize)]
struct Lifecycle<'a> {
    #[serde(rename = "frameId")]
    frame: &'a str,
    name: &'a str,
}
