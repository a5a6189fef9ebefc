//! The log line of a job, and its response.

use std::{mem, time::Duration};

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
};
use platen_program::telemetry::{self, OpenTelemetrySpanExt as _, Status};
use platen_shared::{
    job::{RenderJob, Source},
    refusal::Refusal,
    wire,
};
use tokio::time::Instant;
use tracing::{Span, info_span};

use crate::{error::Refused, job_progress::JobProgress, metrics, render::Rendered};

/// Writes the log line of a job when it is dropped.
pub(super) struct AccessLog {
    traceparent: String,
    account: String,
    source: &'static str,
    format: &'static str,
    since: Instant,
    bytes: usize,
    status: u16,
    outcome: &'static str,
    pub(super) progress: JobProgress,
    span: Span,
}

impl AccessLog {
    pub(super) fn new(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let request_id =
            Some(text(wire::REQUEST_ID)).filter(|id| wire::is_request_id(id)).unwrap_or_default();
        let span = info_span!(target: telemetry::TARGET, "render", otel.kind = "server");
        let span = telemetry::continued(span, headers);
        Self {
            traceparent: telemetry::traceparent(headers).chars().take(64).collect(),
            account: String::new(),
            source: "",
            format: "",
            since: Instant::now(),
            bytes: 0,
            // The status that nginx logs for a client that disconnected.
            status: 499,
            outcome: metrics::CLIENT_DISCONNECTED,
            progress: JobProgress::of(request_id.to_owned(), telemetry::context(&span)),
            span,
        }
    }

    pub(super) fn describe(&mut self, job: &RenderJob) {
        job.account.as_str().clone_into(&mut self.account);
        self.format = job.options.output.format().extension();
        self.source = match job.source {
            Source::Html(_) => "html",
            Source::Url(_) => "url",
            Source::Jinja(_) => "jinja",
        };
    }

    pub(super) fn rendered(mut self, file: Rendered) -> Response {
        (self.bytes, self.outcome) = (file.bytes.len(), metrics::RENDERED);
        self.status = StatusCode::OK.as_u16();
        let mut response = ([(CONTENT_TYPE, file.format.content_type())], file.bytes).into_response();
        for (name, value) in file.page.headers() {
            let value = HeaderValue::try_from(value);
            response.headers_mut().extend(value.ok().map(|value| (HeaderName::from_static(name), value)));
        }
        self.with_times(response)
    }

    /// The log line is that of a client that disconnected.
    pub(super) fn cancelled(self) -> Response {
        let refusal = Refusal::Cancelled { page_ran: self.progress.page.get() };
        self.with_times(Refused(refusal).into_response())
    }

    /// The job may come again with the contents of its files.
    pub(super) fn contents_needed(mut self) -> Response {
        self.outcome = "contents_needed";
        self.status = wire::CONTENTS_NEEDED;
        StatusCode::from_u16(self.status).unwrap_or_default().into_response()
    }

    pub(super) fn refused(mut self, refusal: Refusal) -> Response {
        self.outcome = refusal.code();
        let response = Refused(refusal).into_response();
        self.status = response.status().as_u16();
        self.with_times(response)
    }

    /// Adds for how long the job waited and had its slot.
    fn with_times(&self, mut response: Response) -> Response {
        let times = [(wire::QUEUED_MS, self.progress.queued()), (wire::RENDER_MS, self.progress.running())];
        for (name, time) in times {
            if let Some(time) = time {
                response.headers_mut().insert(HeaderName::from_static(name), millis(time).into());
            }
        }
        response
    }

    fn end_span(&mut self) {
        let span = mem::replace(&mut self.span, Span::none());
        if span.is_disabled() {
            return;
        }
        for (name, value) in [
            ("platen.request_id", self.progress.name.as_str()),
            ("platen.account", &self.account),
            ("platen.source", self.source),
            ("platen.format", self.format),
            ("platen.outcome", self.outcome),
        ] {
            if !value.is_empty() {
                span.set_attribute(name, value.to_owned());
            }
        }
        span.set_attribute("http.response.status_code", i64::from(self.status));
        if self.outcome != metrics::RENDERED {
            span.set_status(Status::error(self.outcome));
        }
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        self.end_span();
        tracing::info!(
            request_id = self.progress.name,
            traceparent = self.traceparent,
            account = self.account,
            source = self.source,
            format = self.format,
            outcome = self.outcome,
            status = self.status,
            page_ran = self.progress.page.get(),
            bytes = self.bytes,
            waited_ms = millis(self.progress.queued().unwrap_or_default()),
            total_ms = millis(self.since.elapsed()),
            "job"
        );
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
