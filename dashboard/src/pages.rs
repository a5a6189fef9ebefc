//! Every page, as a typed template: what it shows, nothing about where that comes from.
//!
//! Invariant: whatever somebody typed is escaped by the template engine; nothing here marks a text
//! as safe. The templates are in `templates/`.

pub mod entry;
pub mod keys;
pub mod operator;
pub mod person;
pub mod templates;
pub mod usage;

use askama::Template;

/// What surrounds every page.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The page's title.
    pub title: String,
    /// The token of every form on the page.
    pub form_token: String,
    /// Who is signed in.
    pub person: Option<Person>,
    /// The confirmation of what was just done.
    pub notice: Option<&'static str>,
    /// Where in the menu the page is.
    pub section: Section,
}

/// Who is signed in, for the page's head.
#[derive(Debug, Clone)]
pub struct Person {
    /// The e-mail address.
    pub email: String,
    /// The account's name.
    pub account: Option<String>,
    /// The account is disabled.
    pub account_disabled: bool,
    /// May see the operator's pages.
    pub operator: bool,
}

/// The entries of the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// API Keys.
    Keys,
    /// Templates.
    Templates,
    /// Usage.
    Usage,
    /// Accounts and the audit log.
    Operator,
    /// The person's own page.
    You,
    /// None of them.
    Outside,
}

impl Layout {
    /// The value of `aria-current` for an entry of the menu, by its name in [`Section`].
    fn current(&self, entry: &str) -> &'static str {
        if format!("{:?}", self.section) == entry { "page" } else { "false" }
    }
}

/// A page that says one thing, such as an error.
#[derive(Debug, Template)]
#[template(path = "message.html")]
pub struct Message {
    /// What surrounds it.
    pub layout: Layout,
    /// What it says.
    pub text: String,
    /// Where to go from here, and what the link says.
    pub onward: (&'static str, &'static str),
}

/// A page that asks before something is deleted.
#[derive(Debug, Template)]
#[template(path = "confirm.html")]
pub struct Confirm {
    /// What surrounds it.
    pub layout: Layout,
    /// What is asked.
    pub question: String,
    /// What will follow.
    pub consequence: &'static str,
    /// What the button says.
    pub button: &'static str,
    /// Where the answer goes.
    pub action: String,
    /// Where to go instead.
    pub back: String,
}
