//! Errors of starting the farm and its browsers, why a job has no file, and the HTTP response of a refusal.

use std::{io, path::PathBuf, time::Duration};

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use hickory_resolver::net::NetError;
use nix::errno::Errno;
use platen_cdp::CdpError;
use platen_program::SecretError;
use platen_shared::refusal::Refusal;
use tokio::task::JoinError;

use crate::egress_config::InvalidUpstream;

/// Why [`crate::Farm::start`] failed. The message names the setting to change.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe them")]
pub enum StartError {
    #[error(
        "no Chromium was found; install one (apt-get install chromium-headless-shell) or set its path with --chromium"
    )]
    NoChromium,
    #[error("no Chromium at {0}; check --chromium or PLATEN_CHROMIUM")]
    ChromiumMissing(PathBuf),
    #[error("no user {0:?}; check --browser-user or PLATEN_BROWSER_USER")]
    NoSuchUser(String),
    #[error("the user {0:?} cannot be looked up")]
    Users(String, #[source] Errno),
    #[error("browsers do not run as root; set another user with --browser-user")]
    BrowserAsRoot,
    #[error("only root can run browsers as {0:?}; omit --browser-user or start the farm as root")]
    CannotBecome(String),
    #[error("no directory for browser profiles can be created under {0}; check TMPDIR")]
    Workspace(PathBuf, #[source] io::Error),
    #[error("the egress guard cannot listen on a loopback port")]
    ProxyPort(#[source] io::Error),
    #[error("the kernel does not answer for the routes of addresses (netlink, RTM_GETROUTE)")]
    OwnAddresses(#[source] Errno),
    #[error("no name server can be used; check --dns or PLATEN_DNS, or the system's resolv.conf")]
    Resolver(#[source] NetError),
    #[error("--egress-proxy or PLATEN_EGRESS_PROXY cannot be used: {0}")]
    EgressProxy(#[from] InvalidUpstream),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("no browser could be started")]
    Launch(#[source] LaunchError),
}

/// Why a browser could not be started.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe them")]
pub enum LaunchError {
    #[error("the browser's process cannot be started")]
    Spawn(#[source] io::Error),
    #[error("the farm is shut down")]
    Closed,
    /// The text is the end of its standard error.
    #[error("the browser exited at start{}{}", if .0.is_empty() { "" } else { ": " }, .0)]
    Exited(String),
    #[error(
        "Chromium cannot set up its sandbox. It needs unprivileged user namespaces: \
         sysctl kernel.unprivileged_userns_clone=1 (Debian), \
         sysctl kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), or, in a container, \
         a seccomp profile that allows clone and unshare. If all pages are your own, \
         --unsafe-no-sandbox starts Chromium without it"
    )]
    NoSandbox,
    #[error("the browser did not answer within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("the browser does not answer the DevTools protocol")]
    Protocol(#[source] CdpError),
}

/// The HTTP response of a refusal: its status, `retry-after`, and `{"code": "…", …}` as the body.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) Refusal);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self(refusal) = self;
        let mut response = (status(&refusal), Json(&refusal)).into_response();
        if let Some(seconds) = refusal.retry_after() {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// The status from farm to edge: the public one, except for the edge's own mistakes, which callers do not
/// see.
fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::Unauthorized => StatusCode::UNAUTHORIZED,
        Refusal::InvalidJob => StatusCode::BAD_REQUEST,
        refusal => StatusCode::from_u16(refusal.reason().status()).unwrap_or(StatusCode::BAD_GATEWAY),
    }
}

/// Why a job has no file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    /// The caller receives the reason; a retry would not help. It is no source, because logs have the texts of sources.
    #[error("refused")]
    Refused(Refusal),
    #[error("the page's renderer crashed")]
    Crashed,
    /// No page could be opened, or its renderer crashed, before the job started.
    #[error("no page is available")]
    NoPage,
    /// The page does not complete a step in virtual time, or uses something that virtual time does not
    /// control.
    #[error("the page needs real time")]
    NeedsRealTime,
    /// The page has another document, or is about to have one.
    #[error("the page navigates")]
    Navigates,
    /// A frame of the page does not end although its main thread responds.
    #[error("a frame does not end")]
    FrameStalled,
    #[error("the page crashed its browser")]
    BrowserCrashed,
    /// The browser exited, or answered with an error.
    #[error("the browser failed")]
    Cdp(#[from] CdpError),
    #[error("the browser's network service exited")]
    NetworkServiceExited,
    /// A network error of Chromium that no host causes; its name.
    #[error("the browser has no network: {0}")]
    NoNetwork(String),
    #[error("no port for the page's proxy")]
    ProxyPort(#[source] io::Error),
    /// An empty page does not answer.
    #[error("the browser does not respond")]
    Unresponsive,
    /// The task that opens a page panicked or was aborted.
    #[error("the task that opens a page failed")]
    Opening(#[source] JoinError),
    #[error("the browser returned no file")]
    NoFile,
    #[error("the browser's PDF cannot be read")]
    InvalidPdf(#[from] lopdf::Error),
}

impl JobError {
    /// Whether the page has caused it and would do so in the next browser as well.
    pub(crate) fn is_of_page(&self) -> bool {
        matches!(self, Self::BrowserCrashed | Self::Cdp(CdpError::TooLarge { .. }))
    }

    /// The page breaks a rule of the PDF standard that its file must conform to.
    pub(crate) fn standard_not_met(rule: &str) -> Self {
        Self::Refused(Refusal::StandardNotMet { rule: rule.into() })
    }

    /// The refusal of a job that is not tried again.
    pub(crate) fn into_refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Crashed | Self::BrowserCrashed | Self::Cdp(CdpError::TooLarge { .. }) => {
                Refusal::PageCrashed
            }
            Self::FrameStalled => Refusal::Deadline,
            _ => Refusal::Broken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_its_status_and_the_time_for_another_try() {
        let respond = |refusal: Refusal| Refused(refusal).into_response();
        let busy = respond(Refusal::QueueFull);
        assert_eq!((busy.status().as_u16(), busy.headers()[RETRY_AFTER].to_str().unwrap()), (503, "5"));
        let late = respond(Refusal::Deadline);
        assert_eq!((late.status().as_u16(), late.headers().get(RETRY_AFTER)), (504, None));
        assert_eq!(respond(Refusal::Unauthorized).status().as_u16(), 401);
        assert_eq!(respond(Refusal::InvalidJob).status().as_u16(), 400);
    }
}
