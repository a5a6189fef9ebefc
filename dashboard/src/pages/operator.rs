//! The operator's pages: accounts, users, the audit log.

use askama::Template;

use super::Layout;
use crate::{clock::Timestamp, form::Field};

/// An account in the list, and on its page.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Attempts per month; `None` is unlimited.
    pub(crate) quota: Option<u64>,
    pub(crate) attempts: u64,
    pub(crate) disabled: bool,
    pub(crate) created: Timestamp,
    pub(crate) members: u32,
}

impl Account {
    fn quota_text(&self) -> String {
        self.quota.map_or_else(|| "Unlimited".to_owned(), |quota| quota.to_string())
    }
}

/// Parses a quota: a whole number; empty or `unlimited` for no limit. The error is a text for the form.
pub(crate) fn parse_quota(text: &str) -> Result<Option<u32>, &'static str> {
    match text.trim() {
        "" | "unlimited" => Ok(None),
        number => number
            .parse()
            .map(Some)
            .map_err(|_| "Enter a whole number up to 4294967295, or leave the quota empty for no limit"),
    }
}

/// A user of an account, or an operator.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) id: String,
    pub(crate) email: String,
    pub(crate) operator: bool,
    pub(crate) created: Timestamp,
    /// Last use of a session; `None` without sessions.
    pub(crate) last_seen: Option<Timestamp>,
    /// Whether this is the user who views the page.
    pub(crate) is_current: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct AuditEntry {
    /// Position in the log, for paging.
    pub(crate) id: i64,
    pub(crate) at: Timestamp,
    /// E-mail address of the user, or `command line`.
    pub(crate) actor: String,
    /// Name of the account, if the action belongs to one.
    pub(crate) account: Option<String>,
    /// The action, such as `created key`.
    pub(crate) action: String,
    /// Name or address of what was changed.
    pub(crate) subject: String,
}

#[derive(Debug, Template)]
#[template(path = "accounts.html")]
pub(crate) struct AccountsPage {
    pub(crate) layout: Layout,
    /// All accounts, by name.
    pub(crate) accounts: Vec<Account>,
    /// All operators, by e-mail address.
    pub(crate) operators: Vec<User>,
    /// Name of the account to create.
    pub(crate) name: Field,
    /// Quota of the account to create.
    pub(crate) quota: Field,
}

#[derive(Debug, Template)]
#[template(path = "account.html")]
pub(crate) struct AccountPage {
    pub(crate) layout: Layout,
    pub(crate) account: Account,
    /// Its users, by e-mail address.
    pub(crate) members: Vec<User>,
    /// The form that renames it.
    pub(crate) name: Field,
    /// The form that changes its quota.
    pub(crate) quota: Field,
    /// The form that invites a user.
    pub(crate) email: Field,
    /// The link of the invite just created.
    pub(crate) link: Option<String>,
    /// Whether it is the operator's current account.
    pub(crate) is_current: bool,
}

#[derive(Debug, Template)]
#[template(path = "audit_log.html")]
pub(crate) struct AuditLogPage {
    pub(crate) layout: Layout,
    /// One page of entries, newest first.
    pub(crate) entries: Vec<AuditEntry>,
    /// The `before` parameter of the next page, if there is one.
    pub(crate) next: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_a_whole_number_or_unlimited() {
        assert_eq!(parse_quota(" 10 "), Ok(Some(10)));
        assert_eq!(parse_quota(""), Ok(None));
        assert_eq!(parse_quota("unlimited"), Ok(None));
        for bad in ["-1", "1.5", "1e3", "4294967296", "x"] {
            parse_quota(bad).unwrap_err();
        }
    }
}
