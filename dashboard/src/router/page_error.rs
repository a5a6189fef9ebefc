//! Errors of requests, and the pages that report them.
//!
//! Invariant: only this file maps errors to HTTP statuses. A page never shows the cause of an error or text
//! from the request; only the log holds the cause.

use std::error::Error;

use platen_spin::{database::DatabaseError, platform::with_causes};

use super::{response::PageResponse, settings::SettingsError};
use crate::{
    pages::{Layout, MessagePage},
    throttle,
};

const INTERNAL: &str = "An internal error occurred. Try again; if it persists, contact your operator.";

const UNAVAILABLE: &str = "The database is busy or cannot be reached. Try again shortly.";

/// Why a request was not carried out.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    /// No such page, or the account owns nothing with this id.
    #[error("This page does not exist, or you do not have access to it.")]
    NotFound,
    #[error("This address accepts only GET and POST requests.")]
    Method,
    #[error("Sign in first.")]
    SignInFirst,
    #[error("This form was sent from another site. Open the dashboard and submit the form there.")]
    CrossSite,
    /// The form token is missing or belongs to another session.
    #[error("This form has expired. Go back, reload the page and submit it again.")]
    StaleForm,
    /// No cookie: browsers do not store a `Secure` cookie that a site sets over plain HTTP.
    #[error(
        "Your browser did not send the cookie that protects this form. Allow cookies for this site, and open the \
         dashboard over https:// (http:// works only on localhost)."
    )]
    NoCookie,
    #[error("The content type must be application/x-www-form-urlencoded.")]
    ContentType,
    #[error("The form is too large. Shorten its fields and submit it again.")]
    TooLarge,
    #[error("Too many large forms were received from your network without a session. {}", throttle::wait_message(*.0))]
    TooManyForms(u64),
    #[error("The form was not received completely. Submit it again.")]
    Incomplete,
    #[error("This invite link is invalid, used or expired. Ask for a new one.")]
    InvalidInvite,
    #[error("This invite was revoked. Ask for a new one if you need it.")]
    RevokedInvite,
    /// The user is a member of the account, but no owner.
    #[error(
        "Only an owner of this account may do this. Nothing was changed. The People page lists the owners."
    )]
    NotOwner,
    #[error("You have no current account. Open the Operator page and switch to an account.")]
    NoAccount,
    #[error("The request took too long. Try again shortly.")]
    TimedOut,
    #[error("{}", if matches!(.0, DatabaseError::Unavailable(..)) { UNAVAILABLE } else { INTERNAL })]
    Store(#[from] DatabaseError),
    #[error("{INTERNAL}")]
    Settings(#[from] SettingsError),
    #[error("{INTERNAL}")]
    Page(#[from] askama::Error),
}

/// What a handler returns.
pub(super) type PageResult = Result<PageResponse, PageError>;

impl PageError {
    /// The HTTP status, and the title of the page.
    fn status_and_title(&self) -> (u16, &'static str) {
        match self {
            Self::NotFound => (404, "Page not found"),
            Self::Method => (405, "Invalid request"),
            Self::SignInFirst => (303, "Invalid request"),
            Self::CrossSite | Self::StaleForm | Self::NoCookie => (403, "Form not accepted"),
            Self::ContentType => (415, "Invalid request"),
            Self::TooLarge => (413, "Form too large"),
            Self::TooManyForms(_) => (429, "Form not accepted"),
            Self::Incomplete => (400, "Invalid request"),
            Self::InvalidInvite => (410, "Invalid invite link"),
            Self::RevokedInvite => (410, "Revoked invite"),
            Self::NotOwner => (403, "Not allowed"),
            Self::NoAccount => (409, "No current account"),
            Self::TimedOut | Self::Store(DatabaseError::Unavailable(..)) => (503, "Not available"),
            Self::Store(_) | Self::Settings(_) | Self::Page(_) => (500, "Internal error"),
        }
    }

    /// The chain of causes, for the log only.
    pub(super) fn cause(&self) -> Option<String> {
        self.source().map(with_causes)
    }

    pub(super) fn status(&self) -> u16 {
        self.status_and_title().0
    }

    /// The title of the page.
    pub(super) fn title(&self) -> &'static str {
        self.status_and_title().1
    }

    /// Whether the same request may be carried out later.
    pub(super) fn is_unavailable(&self) -> bool {
        self.status() == 503
    }

    /// The page of the error. The layout gets the error's title.
    pub(super) fn to_response(&self, layout: Layout) -> PageResponse {
        let (status, title) = self.status_and_title();
        let link = match self {
            Self::NoAccount => ("/dashboard/operator", "Open the Operator page"),
            Self::NotOwner => ("/dashboard/people", "Open the People page"),
            _ if layout.user.is_none() => ("/dashboard/sign-in", "Sign in"),
            _ => ("/dashboard", "Open the dashboard"),
        };
        let layout = Layout { title: title.to_owned(), ..layout };
        let page = MessagePage { layout, text: self.to_string(), link };
        PageResponse::page(&page)
            .map_or_else(|_| PageResponse::text(500, "Internal error"), |page| page.with_status(status))
    }
}
