//! A page in a browser context of its own.
//!
//! Invariant: a page that [`Page::open`] returns shows an empty document, reports every event that the
//! farm needs, and reaches the network through its own proxy port only; one that cannot be opened is
//! closed again.

use std::{io, time::Duration};

use chromiumoxide_cdp::cdp::browser_protocol::{
    animation,
    browser::{
        Bounds, BrowserContextId, GetWindowForTargetParams, SetDownloadBehaviorBehavior,
        SetDownloadBehaviorParams,
    },
    inspector::{self, EventTargetCrashed},
    network,
    page::{self, EventLifecycleEvent, SetLifecycleEventsEnabledParams},
    performance::{self, EnableTimeDomain},
    target::{
        AttachToTargetParams, CreateBrowserContextParams, CreateTargetParams, DisposeBrowserContextParams,
        SetAutoAttachParams, TargetId,
    },
};
use platen_cdp::{CdpError, Events, Session};
use platen_shared::job::DeviceScaleFactor;
use tokio::time::timeout;

use crate::{begin_frames::BeginFrames, browser::Browser, egress::PageProxy};

/// Opening takes 30 ms, and up to a second on a machine that is short of CPU. A browser that takes
/// longer has lost the process it forks renderers from, or hangs.
pub(crate) const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// Closing takes 10 ms even when the page's script never returns.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// One page. A page that is dropped without being closed lives until its browser ends.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) session: Session,
    pub(crate) events: Events,
    /// The main frame, whose id is that of the page's target.
    pub(crate) main_frame: String,
    /// Its frames, if its browser draws on command.
    pub(crate) frames: Option<BeginFrames>,
    /// Jobs it has had.
    pub(crate) jobs: u32,
    /// It has done something that no reset is known to undo, or was in virtual time.
    pub(crate) tainted: bool,
    /// The device scale factor of its jobs. A page that had jobs of two measures some text differently.
    pub(crate) scale_factor: Option<DeviceScaleFactor>,
    /// Its way to the network.
    pub(crate) proxy: PageProxy,
    /// Position and size of its window when it was opened.
    pub(crate) window: Option<Bounds>,
    target: TargetId,
    context: BrowserContextId,
}

/// Why a page could not be opened or closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// The browser said no, or is gone.
    #[error("the browser failed")]
    Cdp(#[from] CdpError),
    /// There is no port for its proxy.
    #[error("no port for the page's requests")]
    PageProxy(#[source] io::Error),
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
        let proxy = browser.egress().proxy().await.map_err(PageError::PageProxy)?;
        let create = CreateBrowserContextParams {
            dispose_on_detach: Some(true),
            proxy_server: Some(proxy.address()),
            // Not even to this machine is there a way past it.
            proxy_bypass_list: Some("<-loopback>".to_owned()),
            ..Default::default()
        };
        let created = timeout(OPEN_TIMEOUT, connection.call(&create)).await.map_err(|_| PageError::Hangs)?;
        let context = created?.browser_context_id;
        match timeout(OPEN_TIMEOUT, Self::open_in(browser, context.clone(), proxy)).await {
            Ok(Ok(page)) => Ok(page),
            failed => {
                connection.send(&DisposeBrowserContextParams::new(context))?;
                Err(failed.map_or(PageError::Hangs, |opened| opened.expect_err("matched above")))
            }
        }
    }

    async fn open_in(
        browser: &Browser,
        context: BrowserContextId,
        proxy: PageProxy,
    ) -> Result<Self, PageError> {
        let connection = browser.connection();
        let mut download = SetDownloadBehaviorParams::new(SetDownloadBehaviorBehavior::Deny);
        download.browser_context_id = Some(context.clone());
        connection.send(&download)?;
        let on_command = browser.draws_on_command();
        let mut target = CreateTargetParams::new("about:blank");
        target.browser_context_id = Some(context.clone());
        target.enable_begin_frame_control = Some(on_command);
        let target = connection.call(&target).await?.target_id;
        let mut attach = AttachToTargetParams::new(target.clone());
        attach.flatten = Some(true);
        let session = connection.call(&attach).await?.session_id;
        let (session, events) = Session::new(connection.clone(), session);
        let main_frame = target.inner().clone();
        let mut page = Self {
            session,
            events,
            main_frame,
            frames: on_command.then(BeginFrames::default),
            jobs: 0,
            tainted: false,
            scale_factor: None,
            proxy,
            window: None,
            target,
            context,
        };
        page.listen().await?;
        page.window = page.window_bounds(browser).await?;
        Ok(page)
    }

    /// Position and size of its window, which a script can change; none where there is no window.
    pub(crate) async fn window_bounds(&self, browser: &Browser) -> Result<Option<Bounds>, CdpError> {
        let window = GetWindowForTargetParams { target_id: Some(self.target.clone()) };
        match browser.connection().call(&window).await {
            Ok(window) => Ok(Some(window.bounds)),
            Err(CdpError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
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
        session.send(&auto_attach())?;
        // What the proof that a page stands still is made of, see render/stillness.rs.
        let thread_ticks = performance::EnableParams { time_domain: Some(EnableTimeDomain::ThreadTicks) };
        session.send(&thread_ticks)?;
        session.send(&animation::EnableParams {})?;
        session.send(&inspector::EnableParams {})?;
        session.send(&page::EnableParams::default())?;
        session.send(&SetLifecycleEventsEnabledParams::new(true))?;
        let loaded = loaded(&mut self.events, &self.main_frame);
        // A renderer that has died answers nothing, so its end is watched for at the same time.
        tokio::try_join!(async { Ok(network.await?) }, loaded)?;
        Ok(())
    }

    /// Whether it is alive, as far as is known.
    pub(crate) fn is_alive(&mut self) -> bool {
        std::iter::from_fn(|| self.events.try_next()).all(|event| !event.is::<EventTargetCrashed>())
    }

    /// Closes it, and with it its renderer process however busy, its cookies, caches and storage.
    pub(crate) async fn close(self, browser: &Browser) -> Result<(), PageError> {
        let dispose = DisposeBrowserContextParams::new(self.context);
        let disposed = timeout(CLOSE_TIMEOUT, browser.connection().call(&dispose)).await;
        match disposed {
            Ok(Ok(_) | Err(CdpError::Closed)) => Ok(()),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(PageError::Hangs),
        }
    }
}

/// Waits for the `load` of the empty document.
async fn loaded(events: &mut Events, main_frame: &str) -> Result<(), PageError> {
    while let Some(event) = events.next().await {
        if event.is::<EventTargetCrashed>() {
            return Err(PageError::Crashed);
        }
        if event.is::<EventLifecycleEvent>() {
            let lifecycle: EventLifecycleEvent = event.parse()?;
            if lifecycle.name == "load" && lifecycle.frame_id.inner() == main_frame {
                return Ok(());
            }
        }
    }
    Err(CdpError::Closed.into())
}

/// Attaches to workers, which wait until their own network events are enabled.
pub(crate) fn auto_attach() -> SetAutoAttachParams {
    let mut attach = SetAutoAttachParams::new(true, true);
    attach.flatten = Some(true);
    attach
}
