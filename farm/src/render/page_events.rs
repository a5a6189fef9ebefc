//! Handles the events of a page while a job runs: answers dialogs, records the load state and the requests
//! in progress, and ends the job when the page is gone.
//!
//! Invariant: a dialog is answered while the steps of the job run. Handler and steps are polled in the same
//! future and are dropped together.
//!
//! An event that cannot be parsed does not end a job, except a lifecycle event, without which no page is
//! loaded. Each step of [`PageEventHandler::on_event`] says what it assumes instead.

mod main_document;
mod request_events;
mod requests;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        animation::EventAnimationCreated,
        emulation::{EventVirtualTimeBudgetExpired, SetUserAgentOverrideParams},
        fetch::EventRequestPaused,
        media::EventPlayerCreated,
        network::{EventLoadingFailed, EventLoadingFinished, EventRequestWillBeSent, EventResponseReceived},
        page::{
            DialogType, EventFrameAttached, EventJavascriptDialogOpening, EventLifecycleEvent,
            HandleJavaScriptDialogParams,
        },
        target::{EventAttachedToTarget, EventDetachedFromTarget},
    },
    js_protocol::{
        debugger::{DisableParams, EventScriptParsed},
        runtime::ReleaseObjectGroupParams,
    },
};
use futures::future::OptionFuture;
use platen_cdp::{CdpError, Event, Events, Session};
use platen_shared::{job::Source, refusal::Refusal};
use tokio::{
    sync::watch,
    time::{Instant, interval_at},
};

pub(super) use self::requests::taints;
use self::{
    main_document::MainDocument,
    requests::{OpenRequests, needs_real_time, parse},
};
use super::{
    load_state::{LoadState, PageActivity, PageRecords},
    navigations::{self, Navigations},
    rendering::JobContext,
    site::{self, Answers, Site},
};
use crate::{
    egress::JobEgress,
    error::JobError,
    page::{is_crash, start_worker},
};

/// Chromium keeps the objects that a page throws, or gives to its console, in this group.
const CONSOLE: &str = "console";
const RELEASE_INTERVAL: Duration = Duration::from_secs(1);

/// Handles the events of one page during one job.
pub(super) struct PageEventHandler<'a> {
    session: &'a Session,
    main_frame: &'a str,
    /// Set when the page does something that no reset is known to undo.
    tainted: &'a mut bool,
    /// The command that has set the user agent of the page, for its workers.
    user_agent: &'a SetUserAgentOverrideParams,
    /// The host to name when the main document cannot be fetched: the one of the job's URL, because the
    /// caller must not learn the target of a redirect.
    job_host: Option<&'a str>,
    traffic: &'a JobEgress,
    answers: Answers<'a>,
    records: Arc<PageRecords>,
    state: watch::Sender<LoadState>,
    requests: OpenRequests,
    /// The latest request for a main document.
    document: Option<MainDocument>,
    navigations: Navigations,
}

impl<'a> PageEventHandler<'a> {
    /// A handler for a page that shows an empty document, its load state, and what else it records.
    pub(super) fn new(
        session: &'a Session,
        main_frame: &'a str,
        tainted: &'a mut bool,
        user_agent: &'a SetUserAgentOverrideParams,
        &JobContext { job, site, egress, .. }: &JobContext<'a>,
    ) -> (Self, watch::Receiver<LoadState>, Arc<PageRecords>) {
        let job_host = match &job.source {
            Source::Url(url) => url.as_url().host_str(),
            Source::Html(_) | Source::Jinja(_) => None,
        };
        let (state, watched) = watch::channel(LoadState::empty());
        let records = Arc::<PageRecords>::default();
        records.page.lock().hidden_host = site.and_then(Site::hidden_host);
        let handler = Self {
            session,
            main_frame,
            tainted,
            user_agent,
            job_host,
            traffic: egress,
            answers: Answers::new(site),
            records: Arc::clone(&records),
            state,
            requests: OpenRequests::default(),
            document: None,
            navigations: Navigations::new(job.has_address()),
        };
        (handler, watched, records)
    }

    /// Handles events until one ends the job, and returns the reason.
    pub(super) async fn run(mut self, events: &mut Events) -> JobError {
        let mut starting = None;
        let mut releasing = interval_at(Instant::now() + RELEASE_INTERVAL, RELEASE_INTERVAL);
        loop {
            if !self.navigations.awaits_start() {
                starting = None;
            } else if starting.is_none() {
                starting = Some(Box::pin(navigations::would_have_begun(self.session, self.main_frame)));
            }
            tokio::select! {
                // The events before the answers that tell that it has not begun are received before them.
                biased;
                event = events.next() => {
                    let Some(event) = event else { return ended(events) };
                    self.record(&event);
                    if let Err(error) = self.on_event(&event) {
                        return error;
                    }
                }
                Some(()) = OptionFuture::from(starting.as_mut()) => {
                    self.navigations.give_up();
                    self.state.send_modify(|state| state.navigation.give_up());
                }
                sent = self.answers.sent(self.session) => {
                    if let Err(error) = sent {
                        return error.into();
                    }
                }
                _ = releasing.tick() => {
                    if let Err(error) = self.session.send(&ReleaseObjectGroupParams::new(CONSOLE)) {
                        return error.into();
                    }
                }
            }
        }
    }

    fn on_event(&mut self, event: &Event) -> Result<(), JobError> {
        match event.method() {
            // All its fields are mandatory and none is an enum; without this event no page is loaded.
            EventLifecycleEvent::IDENTIFIER => self.on_lifecycle(&event.parse()?)?,
            EventRequestWillBeSent::IDENTIFIER => self.on_request(event),
            EventResponseReceived::IDENTIFIER => self.on_response(event),
            EventLoadingFinished::IDENTIFIER => self.on_end(parse(event).as_ref()),
            EventLoadingFailed::IDENTIFIER => self.on_failure(event)?,
            EventVirtualTimeBudgetExpired::IDENTIFIER => {
                self.change_activity(|activity| activity.budget_expired = event.sequence);
            }
            EventAttachedToTarget::IDENTIFIER => self.on_worker(event)?,
            EventDetachedFromTarget::IDENTIFIER => self.on_worker_end(event),
            EventRequestPaused::IDENTIFIER => self.on_paused(event)?,
            EventJavascriptDialogOpening::IDENTIFIER => self.on_dialog(event.parse().ok().as_ref())?,
            EventAnimationCreated::IDENTIFIER => self.change_activity(PageActivity::animation_began),
            // Of a media element, whose playback has a clock of its own.
            EventPlayerCreated::IDENTIFIER => self.needs_real_time(),
            EventScriptParsed::IDENTIFIER => self.on_script(event)?,
            EventFrameAttached::IDENTIFIER => self.change_activity(|activity| activity.may_change = true),
            _ if is_crash(event) => return Err(JobError::Crashed),
            _ => {
                if let Some(change) = self.navigations.change(event, self.main_frame) {
                    self.state.send_modify(|state| state.navigation.in_progress = change);
                }
            }
        }
        if needs_real_time(event) {
            *self.tainted = true;
            self.needs_real_time();
        }
        Ok(())
    }

    /// A worker whose session is unknown stays paused; the page may not need it. The page's session does not report the requests
    /// of shared and service workers.
    fn on_worker(&self, event: &Event) -> Result<(), CdpError> {
        let Ok(worker) = event.parse::<EventAttachedToTarget>() else { return Ok(()) };
        if self.answers.site.is_some() && worker.target_info.r#type != "worker" {
            site::intercept(
                &self.session.worker_session(worker.session_id.clone()),
                self.answers.site,
                false,
            )?;
        }
        start_worker(self.session, worker.session_id, self.user_agent)
    }

    fn on_worker_end(&mut self, event: &Event) {
        if let Ok(detached) = event.parse::<EventDetachedFromTarget>() {
            self.requests.end_of_worker(detached.session_id.as_ref());
            self.record_requests(true);
        }
    }

    fn change_activity(&self, change: impl FnOnce(&mut PageActivity)) {
        self.state.send_modify(|state| change(&mut state.activity));
    }

    fn needs_real_time(&self) {
        self.change_activity(|activity| activity.needs_real_time = true);
    }

    /// There is no user who could agree to something, so an unknown dialog is dismissed as well. An alert only has to be seen,
    /// and a page may be left.
    fn on_dialog(&self, dialog: Option<&EventJavascriptDialogOpening>) -> Result<(), CdpError> {
        let accept =
            dialog.is_some_and(|it| matches!(it.r#type, DialogType::Alert | DialogType::Beforeunload));
        self.session.send(&HandleJavaScriptDialogParams::new(accept))?;
        self.state.send_modify(|state| state.document.dialogs += 1);
        Ok(())
    }

    /// Chromium reports scripts while they are searched (`background_work`).
    fn on_script(&mut self, event: &Event) -> Result<(), CdpError> {
        let script = event.parse::<EventScriptParsed>().map(|parsed| parsed.script_id);
        if self.state.borrow().activity.needs_real_time || self.records.scripts.lock().add(script.ok()) {
            return Ok(());
        }
        self.needs_real_time();
        self.session.send(&DisableParams::default())
    }

    fn on_lifecycle(&mut self, event: &EventLifecycleEvent) -> Result<(), CdpError> {
        if event.frame_id.inner() != self.main_frame {
            return Ok(());
        }
        match event.name.as_str() {
            "init" => {
                self.requests.begin_document(event.loader_id.inner());
                let navigated = self.navigations.committed();
                if navigated && self.navigations.are_over() {
                    *self.tainted = true;
                    site::intercept(self.session, self.answers.site, true)?;
                }
                let document = self.document.as_ref();
                let document = document.filter(|it| it.id.inner() == event.loader_id.inner());
                let status = document.and_then(|document| document.status);
                self.state.send_modify(|state| state.begin_document(navigated, status));
                self.record_requests(true);
            }
            "DOMContentLoaded" => self.state.send_modify(|state| state.document.parsed = true),
            "load" => self.state.send_modify(LoadState::load),
            _ => {}
        }
        Ok(())
    }
}

/// Why the events of a page have ended.
fn ended(events: &Events) -> JobError {
    if events.have_overflowed() {
        return JobError::Refused(Refusal::PageCrashed);
    }
    JobError::Cdp(CdpError::PageGone)
}
