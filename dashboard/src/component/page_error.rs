//! Why a request was not carried out, and what is told of it.
//!
//! Invariant: the only place of the dashboard where statuses of failures are written; what a page
//! says holds neither a cause nor anything of the request.

use std::error::Error;

use super::{answer::Answer, settings::SettingsError};
use crate::{
    pages::{Layout, Message, Section},
    store::StoreError,
};

/// A request that was not carried out.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    /// No such page, or nothing of this account's by that id.
    #[error("There is no such page, or it is not yours.")]
    NotFound,
    /// GET and POST are all there is.
    #[error("This address does not know that method.")]
    Method,
    /// Somebody has to sign in first.
    #[error("Please sign in.")]
    SignInFirst,
    /// Sent from another site's page.
    #[error("This form was sent from another site.")]
    Foreign,
    /// Without a form's token, or with that of another session.
    #[error("This form is out of date. Go back, load the page again and send it once more.")]
    StaleForm,
    /// Without any cookie: a browser keeps none of ours that came over plain HTTP from elsewhere.
    #[error(
        "Your browser did not send the cookie that belongs to this form. Allow cookies for this site, and open \
         the dashboard by https:// (http:// will do on this very machine only)."
    )]
    NoCookie,
    /// Not a form.
    #[error("This is not a form.")]
    ContentType,
    /// Over the limit.
    #[error("This form is too large.")]
    TooLarge,
    /// It broke off.
    #[error("The form could not be read to its end.")]
    Incomplete,
    /// An invite that is used, expired or none.
    #[error("This link is used or no longer good. Ask your operator for a new one.")]
    BadInvite,
    /// Somebody who belongs to no account.
    #[error("You do not work in an account. Choose one on the operator's page.")]
    NoAccount,
    /// Ours.
    #[error("Something went wrong on our side. Please try again.")]
    Store(#[from] StoreError),
    /// Ours.
    #[error("Something went wrong on our side. Please try again.")]
    Settings(#[from] SettingsError),
    /// Ours.
    #[error("Something went wrong on our side. Please try again.")]
    Page(#[from] askama::Error),
}

impl PageError {
    fn status(&self) -> u16 {
        match self {
            Self::NotFound => 404,
            Self::Method => 405,
            Self::SignInFirst => 303,
            Self::Foreign | Self::StaleForm | Self::NoCookie => 403,
            Self::ContentType => 415,
            Self::TooLarge => 413,
            Self::Incomplete => 400,
            Self::BadInvite => 410,
            Self::NoAccount => 409,
            Self::Store(_) | Self::Settings(_) | Self::Page(_) => 500,
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::BadInvite => "This link does not work",
            Self::NoAccount => "No account",
            Self::Foreign | Self::StaleForm | Self::NoCookie => "Not done",
            Self::TooLarge => "Too large",
            Self::Store(_) | Self::Settings(_) | Self::Page(_) => "Sorry",
            _ => "Not understood",
        }
    }

    /// What only the log may say.
    pub(super) fn cause(&self) -> Option<String> {
        let mut error: &dyn Error = self.source()?;
        let mut text = error.to_string();
        while let Some(source) = error.source() {
            text = format!("{text}: {source}");
            error = source;
        }
        Some(text)
    }

    pub(super) fn answer(&self) -> Answer {
        if matches!(self, Self::SignInFirst) {
            return Answer::redirect("/dashboard/sign-in");
        }
        let layout = Layout {
            title: self.title().to_owned(),
            form_token: String::new(),
            person: None,
            notice: None,
            section: Section::Outside,
        };
        let onward = match self {
            Self::NoAccount => ("/dashboard/operator", "Operator’s page"),
            _ => ("/dashboard", "To the dashboard"),
        };
        let page = Message { layout, text: self.to_string(), onward };
        Answer::page(&page)
            .map_or_else(|_| Answer::text(500, "Internal error"), |page| page.status(self.status()))
    }
}
