//! Why the farm does not start, and how a refusal goes over HTTP.
//!
//! Invariant: the only place of this crate that knows HTTP statuses.

use std::{io, path::PathBuf};

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use hickory_resolver::net::NetError;
use nix::errno::Errno;
use platen_shared::refusal::Refusal;

pub use crate::browser::LaunchError;
use crate::config::InvalidUpstream;

/// Why [`crate::Farm::start`] failed. `Display` tells the operator what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No Chromium in the usual places.
    #[error(
        "no Chromium was found; install one (apt-get install chromium-headless-shell) or name it with --chromium"
    )]
    NoChromium,
    /// The Chromium named by the operator is not there.
    #[error("there is no Chromium at {path}; check --chromium or PLATEN_CHROMIUM")]
    ChromiumMissing {
        /// What the setting says.
        path: PathBuf,
    },
    /// The user named by the operator does not exist.
    #[error("there is no user {name:?}; check --browser-user or PLATEN_BROWSER_USER")]
    NoSuchUser {
        /// What the setting says.
        name: String,
    },
    /// Users could not be looked up.
    #[error("the user {name:?} could not be looked up")]
    Users {
        /// Who was looked for.
        name: String,
        /// Why it failed.
        #[source]
        source: Errno,
    },
    /// The browsers' user would be root.
    #[error("browsers do not run as root; name another user with --browser-user")]
    BrowserAsRoot,
    /// Only root can start a process as somebody else.
    #[error("only root can run browsers as {name:?}; leave --browser-user out or start the farm as root")]
    CannotBecome {
        /// What the setting says.
        name: String,
    },
    /// A directory for browser profiles could not be made.
    #[error("no directory for browser profiles could be made under {path}")]
    Workspace {
        /// Where it was tried.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// No port for the guard between pages and the network.
    #[error("the egress guard cannot listen on a port of this machine")]
    PageProxy(#[source] io::Error),
    /// The addresses of this machine, which pages may not reach, are not known.
    #[error("the addresses of this machine's network interfaces cannot be listed")]
    OwnAddresses(#[source] Errno),
    /// Names could not be resolved.
    #[error("no name server can be asked; check --dns or PLATEN_DNS, or the system's resolv.conf")]
    Resolver(#[source] NetError),
    /// The operator's proxy is none.
    #[error("--egress-proxy or PLATEN_EGRESS_PROXY cannot be used: {0}")]
    EgressProxy(#[from] InvalidUpstream),
    /// No browser came up.
    #[error("no browser could be started")]
    Launch(#[source] LaunchError),
}

/// A refusal as the farm answers it: `{"code": "…", …}`.
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

/// The status between farm and edge. It is the public one, except where the mistake is the
/// edge's own, about which the public learns nothing.
fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::Unauthorized => StatusCode::UNAUTHORIZED,
        Refusal::InvalidJob => StatusCode::BAD_REQUEST,
        refusal => StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::BAD_GATEWAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_its_status_and_says_when_to_come_again() {
        let busy = Refused(Refusal::QueueFull { retry_after: 7 }).into_response();
        assert_eq!((busy.status().as_u16(), busy.headers()[RETRY_AFTER].to_str().unwrap()), (503, "7"));
        let late = Refused(Refusal::Deadline).into_response();
        assert_eq!((late.status().as_u16(), late.headers().get(RETRY_AFTER)), (504, None));
        assert_eq!(Refused(Refusal::Unauthorized).into_response().status().as_u16(), 401);
        assert_eq!(Refused(Refusal::InvalidJob).into_response().status().as_u16(), 400);
    }
}
