//! The request for a main document, and the error of a job whose page it cannot become.

use chromiumoxide_cdp::cdp::browser_protocol::network::RequestId;
use url::Url;

use crate::{egress::JobEgress, error::JobError, render::navigations::navigation_error};

/// Replaces a host in a message when the page, not the caller, chose it.
const UNNAMED_HOST: &str = "the page's destination";

pub(super) struct MainDocument {
    pub(super) id: RequestId,
    /// URL before redirects.
    first: String,
    /// URL after the latest redirect.
    pub(super) last: String,
    pub(super) status: Option<u16>,
}

impl MainDocument {
    pub(super) fn new(id: RequestId, url: String) -> Self {
        Self { id, first: url.clone(), last: url, status: None }
    }

    /// The error for the one of Chromium with which the request has failed, if it is one of the job. `job_host` is the host to
    /// name, if the caller knows one.
    pub(super) fn error(
        &self,
        error_text: &str,
        job_host: Option<&str>,
        traffic: &JobEgress,
    ) -> Option<JobError> {
        let host = job_host.map(ToOwned::to_owned).or_else(|| {
            let first = Url::parse(&self.first).ok()?;
            first.domain().map(ToOwned::to_owned)
        });
        let host = host.unwrap_or_else(|| UNNAMED_HOST.to_owned());
        navigation_error(error_text, &Url::parse(&self.last).ok()?, &host, traffic)
    }
}
