//! Coming in.

use askama::Template;

use super::Layout;
use crate::form::Field;

/// The sign-in form.
#[derive(Debug, Template)]
#[template(path = "sign_in.html")]
pub struct SignIn {
    /// What surrounds it.
    pub layout: Layout,
    /// The e-mail address; its error is that of the whole form.
    pub email: Field,
}

/// The form behind an invite's link.
#[derive(Debug, Template)]
#[template(path = "invite.html")]
pub struct Invite {
    /// What surrounds it.
    pub layout: Layout,
    /// For whom the invite is.
    pub email: String,
    /// The secret at the end of the link.
    pub token: String,
    /// What is wrong with the password.
    pub password: Field,
    /// What is wrong with its repetition.
    pub again: Field,
}
