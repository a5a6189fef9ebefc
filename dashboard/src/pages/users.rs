//! The pages of users: sign-in, password and sessions, the people of an account, and invites.

use askama::Template;
use platen_shared::id::UserId;
use platen_statements::{CurrentUser, invites::PendingInvite, sessions::Session, users::User};

use super::{Layout, paging::Paging};
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

/// Browser and operating system, guessed from the `User-Agent` header.
fn browser(user_agent: &str) -> String {
    let first = |known: &[(&str, &'static str)]| {
        known.iter().find(|(part, _)| user_agent.contains(part)).map(|(_, name)| *name)
    };
    let browser = first(&[
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
        ("curl/", "curl"),
    ]);
    let system = first(&[
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(name), None) | (None, Some(name)) => name.to_owned(),
        (None, None) => "Unknown browser".to_owned(),
    }
}

#[derive(Debug, Template)]
#[template(path = "profile.html")]
pub(crate) struct ProfilePage {
    pub(crate) layout: Layout,
    pub(crate) user: CurrentUser,
    pub(crate) sessions: Vec<Session>,
    /// The current password: its error only.
    pub(crate) current: Field,
    /// The new password: its error only.
    pub(crate) password: Field,
    /// The repeated password: its error only.
    pub(crate) repeated: Field,
}

/// The changes to a user in a list that would not be refused.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Changes {
    pub(crate) role: bool,
    pub(crate) removal: bool,
}

impl Changes {
    /// The row of a user among the `users` of an account, or among all operators, for the user who views the list.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "templates pass references")]
    pub(crate) fn of(
        user: &User,
        users: &[User],
        are_of_account: &bool,
        viewer: &UserId,
        layout: &Layout,
    ) -> Self {
        let may = layout.is_operator() || !user.operator;
        let is_only_owner = *are_of_account
            && user.role.is_owner()
            && users.iter().filter(|other| other.role.is_owner()).count() == 1;
        // An operator removes the last user of an account.
        let is_needed = is_only_owner && (users.len() > 1 || !layout.is_operator());
        Self {
            role: *are_of_account && may && !is_only_owner,
            removal: user.id != *viewer && may && !is_needed,
        }
    }
}

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
