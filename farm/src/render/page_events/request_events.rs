//! What the handler does with the events of requests, errors and addresses.

use chromiumoxide_cdp::cdp::{
    browser_protocol::{
        network::{EventResponseReceived, RequestId},
        page::{EventFrameNavigated, EventNavigatedWithinDocument},
    },
    js_protocol::runtime::{EventExceptionRevoked, EventExceptionThrown},
};
use platen_cdp::{CdpError, Event};
use tokio::time::Instant;

use super::{
    PageEventHandler,
    main_document::MainDocument,
    requests::{
        EndedRequest, Received, SentRequest, is_drawn, leaves_nothing, loads_asset, loads_origin, may_change,
        parse,
    },
};
use crate::{error::JobError, render::static_page};

impl PageEventHandler<'_> {
    pub(super) fn on_response(&mut self, event: &Event) {
        if let Some(Received { request_id, response }) = event.read() {
            self.records.page.lock().responded(request_id.inner(), response.status);
        }
        let received = event.parse::<EventResponseReceived>();
        let received = received.as_ref().ok();
        // A page whose response cannot be read is not proven to be still.
        if received.is_none_or(may_change) {
            self.change_activity(|activity| activity.may_change = true);
        }
        if let (Some(received), Some(document)) = (received, &mut self.document)
            && document.id == received.request_id
            && received.response.url.starts_with("http")
        {
            document.status = u16::try_from(received.response.status).ok();
        }
    }

    pub(super) fn on_end(&mut self, ended: Option<&EndedRequest>) {
        let Some(ended) = ended else {
            // None is waited for, because one would be waited for until the deadline.
            self.requests.end_all();
            return self.record_requests(true);
        };
        // A navigation that is one too many is stopped by the farm.
        let is_forbidden = self.navigations.are_over()
            && self.document.as_ref().is_some_and(|document| document.id == ended.request_id);
        let error = ended.error().filter(|_| !is_forbidden);
        self.records.page.lock().ended(ended.request_id.inner(), error, self.traffic);
        if let Some(counted) = self.requests.end(&ended.request_id) {
            self.record_requests(counted);
        }
    }

    pub(super) fn on_request(&mut self, event: &Event) {
        let Some(sent) = &parse::<SentRequest>(event) else { return self.on_unknown_request() };
        let worker = event.worker.as_deref();
        let url = &sent.request.url;
        *self.tainted |= match self.answers.site {
            Some(site) => worker.is_some() || !leaves_nothing(sent, self.main_frame, site),
            None => loads_origin(sent) && (worker.is_some() || !loads_asset(sent, self.main_frame)),
        };
        if !sent.is_preflight() {
            self.records.page.lock().sent(sent.request_id.inner(), &sent.request.method, url, self.traffic);
        }
        let resource_type = &*sent.r#type;
        let is_document = resource_type == "Document";
        let is_main_document = is_document && sent.frame_id.as_deref() == Some(self.main_frame);
        if worker.is_none() && is_main_document {
            self.on_document(&sent.request_id, url);
        }
        // An event stream stays open, so it is not waited for.
        if resource_type == "EventSource" {
            return self.needs_real_time();
        }
        // Chromium reports the main script of a worker in the session of its page, without a document.
        let is_worker_script = worker.is_none() && sent.loader_id.is_empty();
        let may_change = match resource_type {
            "Image" => url.starts_with("data:") && !static_page::is_still(url),
            "Document" => !is_main_document,
            "Stylesheet" | "Font" | "Ping" => false,
            _ => true,
        };
        self.change_activity(|activity| {
            activity.may_change |= may_change;
            activity.needs_real_time |= is_worker_script;
        });
        // Chromium never reports the end of such a script if it comes from memory.
        if is_worker_script && !url.starts_with("http") {
            return;
        }
        let number = self.state.borrow().requests.sent + 1;
        let drawn = (worker.is_none() && is_drawn(sent, is_main_document)).then_some(number);
        let is_late = self.state.borrow().is_loaded();
        let counts = self.requests.add(worker, sent, is_worker_script, drawn, is_late);
        self.state.send_modify(|state| state.requests.sent = number);
        self.record_requests(counts);
    }

    fn on_document(&mut self, id: &RequestId, url: &str) {
        self.traffic.document_requested(url);
        match &mut self.document {
            Some(document) if document.id == *id => url.clone_into(&mut document.last),
            document => *document = Some(MainDocument::new(id.clone(), url.to_owned())),
        }
    }

    /// A request that cannot be read is not waited for, because its end would not be recognised. It may be
    /// for anything.
    fn on_unknown_request(&mut self) {
        *self.tainted = true;
        self.change_activity(|activity| (activity.may_change, activity.needs_real_time) = (true, true));
    }

    pub(super) fn on_failure(&mut self, event: &Event) -> Result<(), JobError> {
        let failed = parse::<EndedRequest>(event);
        failed.iter().try_for_each(|failed| self.on_document_failure(failed))?;
        self.on_end(failed.as_ref());
        Ok(())
    }

    /// A page whose main document is missing or incomplete is not the requested page.
    fn on_document_failure(&self, failed: &EndedRequest) -> Result<(), JobError> {
        let Some(document) = self.document.as_ref().filter(|document| document.id == failed.request_id)
        else {
            return Ok(());
        };
        if failed.canceled || self.navigations.are_over() {
            // The previous document stays, and does not finish loading.
            self.state.send_modify(|state| state.navigation.cancelled = true);
            return Ok(());
        }
        document.error(&failed.error_text, self.job_host, self.traffic).map_or(Ok(()), Err)
    }

    /// Chromium waits for what is to become of a request.
    pub(super) fn on_paused(&mut self, event: &Event) -> Result<(), CdpError> {
        let forbidden_in = self.navigations.are_over().then_some(self.main_frame);
        self.answers.on_paused(self.session, event.worker.as_deref(), forbidden_in, &event.parse()?)
    }

    /// `counts` says that the change is one for which the network is not idle.
    pub(super) fn record_requests(&mut self, counts: bool) {
        self.state.send_modify(|state| {
            self.requests.record(&mut state.requests);
            if counts {
                state.requests.since = Some(Instant::now());
            }
        });
    }

    /// Records an error, or the address of the main document.
    pub(super) fn record(&self, event: &Event) {
        match event.method() {
            EventExceptionThrown::IDENTIFIER => self.records.page.lock().thrown(event),
            EventExceptionRevoked::IDENTIFIER => {
                event.parse().iter().for_each(|revoked| self.records.page.lock().revoked(revoked));
            }
            EventFrameNavigated::IDENTIFIER | EventNavigatedWithinDocument::IDENTIFIER => {
                self.on_address(event);
            }
            _ => {}
        }
    }

    /// The address of the main document has changed, with or without a navigation.
    fn on_address(&self, event: &Event) {
        let fields = event.fields();
        let (frame, url) = if event.is::<EventFrameNavigated>() {
            (&fields["frame"]["id"], &fields["frame"]["url"])
        } else {
            (&fields["frameId"], &fields["url"])
        };
        if self.job_host.is_some()
            && event.worker.is_none()
            && frame == self.main_frame
            && let Some(url) = url.as_str()
        {
            self.records.page.lock().shows(url);
        }
    }
}
