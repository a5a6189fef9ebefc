//! A page in its own browser context.
//!
//! Invariant: a page that [`Page::open`] returns shows an empty document, reports the events that the farm
//! needs, and reaches the network only through its own proxy port. A page that fails to open is closed.

use std::{io, sync::Arc};

use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        animation,
        browser::{
            Bounds, BrowserContextId, GetWindowForTargetParams, SetDownloadBehaviorBehavior,
            SetDownloadBehaviorParams,
        },
        emulation::{SetEmulatedMediaParams, SetFocusEmulationEnabledParams, SetUserAgentOverrideParams},
        inspector::{self, EventTargetCrashed},
        media, network,
        page::{self, EventLifecycleEvent, ScriptIdentifier, SetLifecycleEventsEnabledParams},
        performance::{self, EnableTimeDomain},
        target::{
            AttachToTargetParams, CreateBrowserContextParams, CreateTargetParams,
            DisposeBrowserContextParams, SessionId, SetAutoAttachParams, TargetId,
        },
    },
    js_protocol::runtime::{self, EvaluateParams, RunIfWaitingForDebuggerParams},
};
use platen_cdp::{CdpError, Event, Events, Session};
use platen_shared::{
    job::{DeviceScaleFactor, RenderOptions, StyleText, UserAgent},
    locale::{Locale, TimeZone},
};
use tokio::time::timeout;

use crate::{
    begin_frames::BeginFrames,
    browser::{Browser, HANG_TIMEOUT, user_agent},
    egress::PageProxy,
    error::JobError,
};

/// A page. One that is dropped without [`Page::close`] stays open until its browser ends.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) session: Session,
    pub(crate) events: Events,
    /// Id of the main frame, which is also the id of the page's target.
    pub(crate) main_frame: String,
    /// The begin-frame calls; `None` without begin-frame control.
    pub(crate) frames: Option<BeginFrames>,
    /// Jobs so far, including the current one.
    pub(crate) jobs: u32,
    /// It has done something that a reset does not undo, or was in virtual time.
    pub(crate) tainted: bool,
    /// That of its jobs; `None` if it has had none.
    pub(crate) kind: Option<PageKind>,
    pub(crate) overrides: Overrides,
    /// The proxy port of its browser context.
    pub(crate) proxy: PageProxy,
    /// Position and size of the window when it was opened.
    pub(crate) window: Option<Bounds>,
    target: TargetId,
    context: BrowserContextId,
}

/// What the jobs of a page have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PageKind {
    /// A page that has had jobs with two factors measures some text differently.
    pub(crate) scale_factor: DeviceScaleFactor,
    /// Their documents have an address. Other documents may have scripts.
    pub(crate) has_address: bool,
}

/// Why a page could not be opened or closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// The browser answered with an error, or has exited.
    #[error("the browser failed")]
    Cdp(#[from] CdpError),
    /// No port could be opened for the page's proxy.
    #[error("no port for the page's proxy")]
    ProxyPort(#[source] io::Error),
    /// The renderer crashed while the page was opened.
    #[error("the page crashed while it was opened")]
    Crashed,
    /// The browser did not answer in time.
    #[error("the browser does not respond")]
    Timeout,
}

impl From<PageError> for JobError {
    fn from(error: PageError) -> Self {
        match error {
            PageError::ProxyPort(error) => Self::ProxyPort(error),
            // The job has not started, so none of these counts as an attempt.
            PageError::Cdp(_) | PageError::Crashed | PageError::Timeout => Self::NoPage,
        }
    }
}

impl Page {
    /// Opens a page. Must be polled to completion, or the page stays open.
    pub(crate) async fn open(browser: &Browser) -> Result<Self, PageError> {
        let connection = &browser.connection;
        let proxy = browser.egress.page_proxy().await.map_err(PageError::ProxyPort)?;
        let create = CreateBrowserContextParams {
            dispose_on_detach: Some(true),
            proxy_server: Some(proxy.address()),
            // Loopback addresses go through the proxy as well.
            proxy_bypass_list: Some("<-loopback>".to_owned()),
            ..Default::default()
        };
        let created =
            timeout(HANG_TIMEOUT, connection.call(&create)).await.map_err(|_| PageError::Timeout)?;
        let context = created?.browser_context_id;
        match timeout(HANG_TIMEOUT, Self::open_in(browser, context.clone(), proxy)).await {
            Ok(Ok(page)) => Ok(page),
            failed => {
                connection.send(&DisposeBrowserContextParams::new(context))?;
                Err(failed.map_or(PageError::Timeout, |opened| opened.expect_err("matched above")))
            }
        }
    }

    async fn open_in(
        browser: &Browser,
        context: BrowserContextId,
        proxy: PageProxy,
    ) -> Result<Self, PageError> {
        let connection = &browser.connection;
        let mut download = SetDownloadBehaviorParams::new(SetDownloadBehaviorBehavior::Deny);
        download.browser_context_id = Some(context.clone());
        connection.send(&download)?;
        let begin_frame_control = browser.has_begin_frame_control;
        let mut target = CreateTargetParams::new("about:blank");
        target.browser_context_id = Some(context.clone());
        target.enable_begin_frame_control = Some(begin_frame_control);
        let target = connection.call(&target).await?.target_id;
        let mut attach = AttachToTargetParams::new(target.clone());
        attach.flatten = Some(true);
        let session = connection.call(&attach).await?.session_id;
        let (session, events) = Session::new(Arc::clone(connection), session);
        session.receive_workers_of(&context);
        let main_frame = target.inner().clone();
        let mut page = Self {
            session,
            events,
            main_frame,
            frames: begin_frame_control.then(BeginFrames::default),
            jobs: 0,
            tainted: false,
            kind: None,
            overrides: Overrides::new(browser.version()),
            proxy,
            window: None,
            target,
            context,
        };
        page.listen().await?;
        page.window = page.window_bounds(browser).await?;
        Ok(page)
    }

    /// Position and size of the window, which a script can change; `None` if Chromium reports no window.
    pub(crate) async fn window_bounds(&self, browser: &Browser) -> Result<Option<Bounds>, CdpError> {
        let window = GetWindowForTargetParams { target_id: Some(self.target.clone()) };
        match browser.connection.call(&window).await {
            Ok(window) => Ok(Some(window.bounds)),
            Err(CdpError::Refused { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Enables events, and waits until the empty document is loaded, so that its events are not taken for
    /// those of a job.
    async fn listen(&mut self) -> Result<(), PageError> {
        let session = &self.session;
        let network = session.start(&network_events())?;
        session.send(&auto_attach())?;
        // For the proof that a page is static, see render/static_page.rs.
        let thread_ticks = performance::EnableParams { time_domain: Some(EnableTimeDomain::ThreadTicks) };
        session.send(&thread_ticks)?;
        session.send(&animation::EnableParams {})?;
        // For errors.
        session.send(&runtime::EnableParams {})?;
        session.send(&media::EnableParams {})?;
        session.send(&network_state())?;
        session.send(&self.overrides.user_agent)?;
        // Which of several windows Chromium takes for the active one depends on the pages of other jobs.
        session.send(&SetFocusEmulationEnabledParams::new(true))?;
        session.send(&inspector::EnableParams {})?;
        session.send(&page::EnableParams::default())?;
        session.send(&SetLifecycleEventsEnabledParams::new(true))?;
        let loaded = loaded(&mut self.events, &self.main_frame);
        // A crashed renderer answers no command, so its crash event is awaited at the same time.
        tokio::try_join!(async { Ok(network.await?) }, loaded)?;
        Ok(())
    }

    /// Whether no crash of its renderer has been reported.
    pub(crate) fn is_alive(&mut self) -> bool {
        std::iter::from_fn(|| self.events.try_next()).all(|event| !is_crash(&event))
            && !self.events.have_overflowed()
    }

    /// Closes the page with its renderer process, even a busy one, and its cookies, caches and storage.
    pub(crate) async fn close(self, browser: &Browser) -> Result<(), PageError> {
        let dispose = DisposeBrowserContextParams::new(self.context);
        let disposed = timeout(HANG_TIMEOUT, browser.connection.call(&dispose)).await;
        match disposed {
            Ok(Ok(_) | Err(CdpError::Closed)) => Ok(()),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(PageError::Timeout),
        }
    }
}

/// Whether an event reports that the renderer of the page has crashed. A shared worker whose script cannot be loaded reports
/// that as well.
pub(crate) fn is_crash(event: &Event) -> bool {
    event.worker.is_none() && event.is::<EventTargetCrashed>()
}

/// Waits for the `load` event of the empty document.
async fn loaded(events: &mut Events, main_frame: &str) -> Result<(), PageError> {
    while let Some(event) = events.next().await {
        if is_crash(&event) {
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

/// Reports requests. The farm never reads bodies, so Chromium need not keep them.
fn network_events() -> network::EnableParams {
    network::EnableParams {
        max_total_buffer_size: Some(0),
        max_resource_buffer_size: Some(0),
        ..Default::default()
    }
}

/// What `navigator.connection` says: no latency and the largest rate. Chromium's own values are random for each process, and are
/// of earlier requests.
fn network_state() -> network::OverrideNetworkStateParams {
    const BYTES_PER_SECOND: f64 = 125_000_000.0;
    network::OverrideNetworkStateParams::new(false, 0.0, BYTES_PER_SECOND, BYTES_PER_SECOND)
}

/// Attaches to workers; each waits until its network events are enabled.
fn auto_attach() -> SetAutoAttachParams {
    let mut attach = SetAutoAttachParams::new(true, true);
    attach.flatten = Some(true);
    attach
}

/// The overrides of a page, which Chromium keeps for its next documents.
#[derive(Debug)]
pub(crate) struct Overrides {
    /// The command that has set its media type and media features.
    pub(crate) media: SetEmulatedMediaParams,
    pub(crate) reader: Reader,
    /// The command that has set its user agent, for its workers.
    pub(crate) user_agent: SetUserAgentOverrideParams,
    pub(crate) has_scripts_disabled: bool,
    pub(crate) is_transparent: bool,
    pub(crate) style: Option<(StyleText, ScriptIdentifier)>,
}

/// Who reads a page, and with what. A page is not used with two of them: Chromium keeps some formats, fonts and
/// properties of the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reader {
    pub(crate) time_zone: Option<TimeZone>,
    pub(crate) locale: Option<Locale>,
    pub(crate) user_agent: Option<UserAgent>,
    pub(crate) mobile: bool,
}

impl Reader {
    pub(crate) fn of(options: &RenderOptions) -> Self {
        let environment = &options.environment;
        Self {
            time_zone: environment.time_zone.clone(),
            locale: environment.locale.clone(),
            user_agent: environment.user_agent.clone(),
            mobile: options.viewport.mobile,
        }
    }

    /// The command that sets the user agent and the language in a browser of this version.
    pub(crate) fn user_agent_command(&self, browser_version: &str) -> SetUserAgentOverrideParams {
        user_agent::command(self.user_agent.as_ref(), self.mobile, self.locale.as_ref(), browser_version)
    }
}

impl Overrides {
    pub(super) fn new(browser_version: &str) -> Self {
        Self {
            media: SetEmulatedMediaParams { media: Some(String::new()), features: Some(Vec::new()) },
            reader: Reader::default(),
            user_agent: Reader::default().user_agent_command(browser_version),
            has_scripts_disabled: false,
            is_transparent: false,
            style: None,
        }
    }
}

const ANIMATION_FRAMES: &str = concat!("(", include_str!("worker_frames.js"), ")()");

pub(crate) fn start_worker(
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
