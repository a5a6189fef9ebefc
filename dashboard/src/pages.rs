//! The pages as typed askama templates (`dashboard/templates/`).
//!
//! Invariant: askama escapes all text; no text is marked as safe.

pub mod keys;
pub mod operator;
pub mod profile;
pub mod sign_in;
pub mod templates;
pub mod usage;

use askama::Template;

/// What all pages share: head, navigation, notice.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The title of the document.
    pub title: String,
    /// The value of [`crate::csrf::FIELD`] in every form of the page.
    pub form_token: String,
    /// The signed-in user.
    pub user: Option<HeaderUser>,
    /// The confirmation of the last action.
    pub notice: Option<&'static str>,
    /// The navigation entry to highlight.
    pub section: Section,
}

/// The signed-in user, as the header shows them.
#[derive(Debug, Clone)]
pub struct HeaderUser {
    /// Shown as the tooltip of “Profile”.
    pub email: String,
    /// Name of the current account.
    pub account: Option<String>,
    /// Whether that account is disabled.
    pub account_disabled: bool,
    /// Whether the operator's pages are shown.
    pub operator: bool,
}

/// An entry of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// API keys.
    Keys,
    /// Templates.
    Templates,
    /// Usage.
    Usage,
    /// Accounts, operators and the audit log.
    Operator,
    /// The user's password and sessions.
    Profile,
    /// No entry: sign-in, invites, errors.
    None,
}

impl Layout {
    /// The value of `aria-current` for the entry of this name in [`Section`].
    fn current(&self, entry: &str) -> &'static str {
        if format!("{:?}", self.section) == entry { "page" } else { "false" }
    }
}

/// A page with one message, such as an error.
#[derive(Debug, Template)]
#[template(path = "message.html")]
pub struct MessagePage {
    /// Shared parts.
    pub layout: Layout,
    /// The message.
    pub text: String,
    /// Path and text of the link.
    pub link: (&'static str, &'static str),
}

/// A page that asks for confirmation before something is deleted.
#[derive(Debug, Template)]
#[template(path = "confirm.html")]
pub struct ConfirmPage {
    /// Shared parts.
    pub layout: Layout,
    /// The heading.
    pub question: String,
    /// What the action does.
    pub consequence: &'static str,
    /// Text of the button.
    pub button: &'static str,
    /// Path that the form is posted to.
    pub action: String,
    /// Path of “Cancel”.
    pub cancel: String,
}
