//! The pages as typed askama templates (`dashboard/templates/`).
//!
//! Invariant: askama escapes all text; no text is marked as safe.

mod diff;
pub(crate) mod keys;
pub(crate) mod links;
pub(crate) mod operator;
pub(crate) mod paging;
pub(crate) mod playground;
pub(crate) mod requests;
pub(crate) mod templates;
pub(crate) mod usage;
pub(crate) mod users;

use askama::Template;
use platen_shared::link::LinkId;
use platen_statements::CurrentUser;

use crate::cookies::Theme;
use usage::MonthlyUsage;

/// What all pages share: head, navigation, notice.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    pub(crate) title: String,
    /// The value of [`crate::csrf::FIELD`] in every form of the page.
    pub(crate) form_token: String,
    /// The signed-in user, whom the header shows.
    pub(crate) user: Option<CurrentUser>,
    pub(crate) notice: Option<&'static str>,
    /// Why the page shows what is not saved.
    pub(crate) warning: Option<&'static str>,
    /// The quota of the current account, which pages warn about.
    pub(crate) month: Option<MonthlyUsage>,
    /// The navigation entry to highlight.
    pub(crate) section: Section,
    pub(crate) theme: Theme,
    /// Path and query of the page.
    pub(crate) address: String,
    /// The address of the documents; empty if the server has none.
    pub(crate) docs_url: &'static str,
}

/// An entry of the navigation.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Section {
    Overview,
    Keys,
    Templates,
    Playground,
    Requests,
    Usage,
    /// The users of the account.
    People,
    /// Accounts, operators and the audit log.
    Operator,
    /// The user's password and sessions.
    Profile,
    /// No entry: sign-in, invites, errors.
    #[default]
    None,
}

impl Layout {
    /// Whether pages show what only owners of the account may do.
    fn is_owner(&self) -> bool {
        self.user.as_ref().is_some_and(CurrentUser::is_owner)
    }

    /// Whether pages show what only operators may do.
    fn is_operator(&self) -> bool {
        self.user.as_ref().is_some_and(CurrentUser::is_operator)
    }

    /// The value of `aria-current` for the entry of this name in [`Section`].
    fn current(&self, entry: &str) -> &'static str {
        if format!("{:?}", self.section) == entry { "page" } else { "false" }
    }
}

/// The section of the pages about a key, or about a link.
pub(crate) fn section_of_key(id: &str) -> &'static str {
    if LinkId::parse(id).is_some() { "links" } else { "keys" }
}

/// A page with one message, such as an error.
#[derive(Debug, Template)]
#[template(path = "message.html")]
pub(crate) struct MessagePage {
    pub(crate) layout: Layout,
    pub(crate) text: String,
    /// Path and text of the link.
    pub(crate) link: (&'static str, &'static str),
}

/// A page that submits a form again.
#[derive(Debug, Template)]
#[template(path = "repeat.html")]
pub(crate) struct RepeatPage<'f> {
    pub(crate) layout: Layout,
    /// Why it was not submitted.
    pub(crate) text: String,
    /// Path that the form is posted to.
    pub(crate) action: String,
    /// Names and values.
    pub(crate) fields: Vec<(&'f str, &'f str)>,
}

/// A page that asks for confirmation before something is taken away.
#[derive(Debug, Template)]
#[template(path = "confirm.html")]
pub(crate) struct ConfirmPage<'c> {
    pub(crate) layout: Layout,
    pub(crate) question: String,
    pub(crate) consequence: &'c str,
    pub(crate) button: &'static str,
    /// Path that the form is posted to.
    pub(crate) action: String,
    /// Names and values that are posted.
    pub(crate) fields: &'c [(&'c str, &'c str)],
    /// Path of “Cancel”.
    pub(crate) cancel: String,
}

/// The confirmation that a page shows after an action with this code; `None` for an unknown code. The address carries only the
/// code, so no other text can be injected.
pub(crate) fn notice(code: &str) -> Option<&'static str> {
    Some(match code {
        "signed-out" => "You are signed out.",
        "password-changed" => "Password changed. Your other sessions are signed out.",
        "session-ended" => "Session signed out.",
        "sessions-ended" => "Other sessions signed out.",
        "key-disabled" => "API key disabled. Requests with it are refused.",
        "key-enabled" => "API key enabled.",
        "key-renamed" => "API key renamed.",
        "key-expiry-changed" => "Expiry of the API key changed.",
        "key-deleted" => "API key deleted.",
        "link-changed" => "Link changed.",
        "link-disabled" => "Link disabled. Its addresses are refused.",
        "link-enabled" => "Link enabled.",
        "link-deleted" => "Link deleted. Its addresses are refused.",
        "template-created" => "Template created.",
        "template-unchanged" => "Nothing has changed since the last save.",
        "template-saved" => "Template saved. The previous version is kept.",
        "template-duplicated" => "Template duplicated. You are editing the copy.",
        "template-deleted" => "Template deleted, including its versions and links.",
        "version-restored" => "Version restored. The content it replaces is kept as a version.",
        "retention-changed" => "Retention changed.",
        "account-created" => "Account created. Invite its first user, who becomes its owner, below.",
        "account-renamed" => "Account renamed.",
        "quota-changed" => "Quota changed.",
        "limits-changed" => "Limits changed.",
        "account-disabled" => "Account disabled. Its API keys are refused.",
        "account-enabled" => "Account enabled.",
        "account-deleted" => "Account deleted.",
        "account-switched" => "This is now your current account.",
        "account-left" => "You left the account.",
        "role-changed" => "Role changed.",
        "invite-revoked" => "Invite revoked. Its link no longer works.",
        "user-removed" => "User removed and signed out.",
        _ => return None,
    })
}
