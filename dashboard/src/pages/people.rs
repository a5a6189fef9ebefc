//! The people of an account, and invites.

use askama::Template;
use platen_shared::id::UserId;
use platen_statements::{invites::PendingInvite, users::User};

use super::{Layout, paging::Paging};
use crate::form::Field;

#[derive(Debug, Template)]
#[template(path = "people.html")]
pub(crate) struct PeoplePage {
    pub(crate) layout: Layout,
    /// The users of the account, by e-mail address.
    pub(crate) people: Vec<User>,
    /// Its invites that can be used, by e-mail address.
    pub(crate) invites: Vec<PendingInvite>,
    /// The form that invites a user.
    pub(crate) email: Field,
    /// The address and the link of the invite just created.
    pub(crate) link: Option<(String, String)>,
    /// The user who views the page.
    pub(crate) user: UserId,
}

/// The invites of all accounts.
#[derive(Debug, Template)]
#[template(path = "invites.html")]
pub(crate) struct InvitesPage {
    pub(crate) layout: Layout,
    /// One page of the invites that can be used, the newest first.
    pub(crate) invites: Vec<PendingInvite>,
    pub(crate) paging: Paging,
}
