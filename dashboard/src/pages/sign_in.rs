//! The sign-in form and the form of an invite.

use askama::Template;

use super::Layout;
use crate::form::Field;

/// The sign-in form.
#[derive(Debug, Template)]
#[template(path = "sign_in.html")]
pub struct SignInPage {
    /// Shared parts.
    pub layout: Layout,
    /// The e-mail address. Its error is shown for the whole form.
    pub email: Field,
}

/// The form of an invite link, which sets a password.
#[derive(Debug, Template)]
#[template(path = "invite.html")]
pub struct InvitePage {
    /// Shared parts.
    pub layout: Layout,
    /// The address of the invited user.
    pub email: String,
    /// The secret in the link.
    pub token: String,
    /// The new password: its error only.
    pub password: Field,
    /// The repeated password: its error only.
    pub repeated: Field,
}
