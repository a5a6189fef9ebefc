//! The sign-in form and the form of an invite.

use askama::Template;

use super::Layout;
use crate::form::Field;

#[derive(Debug, Template)]
#[template(path = "sign_in.html")]
pub(crate) struct SignInPage {
    pub(crate) layout: Layout,
    /// The e-mail address. Its error is shown for the whole form.
    pub(crate) email: Field,
    /// Where the user goes on; empty for the first page.
    pub(crate) next: String,
    /// The fields of a form that was submitted without a session.
    pub(crate) kept: Vec<(String, String)>,
}

/// The form of an invite link, which sets a password.
#[derive(Debug, Template)]
#[template(path = "invite.html")]
pub(crate) struct InvitePage {
    pub(crate) layout: Layout,
    pub(crate) email: String,
    pub(crate) token: String,
    /// The new password: its error only.
    pub(crate) password: Field,
    /// The repeated password: its error only.
    pub(crate) repeated: Field,
}
