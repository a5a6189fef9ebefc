//! The operator's pages: accounts, users, the audit log.

use askama::Template;

use super::Layout;
use crate::{clock::Timestamp, form::Field};

/// An account in the list, and on its page.
#[derive(Debug, Clone)]
pub struct Account {
    /// Id for addresses.
    pub id: String,
    /// Unique name.
    pub name: String,
    /// Attempts per month; `None` is unlimited.
    pub quota: Option<u64>,
    /// Attempts this month.
    pub attempts: u64,
    /// Whether its keys are refused.
    pub disabled: bool,
    /// Time of creation.
    pub created: Timestamp,
    /// Number of its users.
    pub members: u32,
}

impl Account {
    fn quota_text(&self) -> String {
        self.quota.map_or_else(|| "unlimited".to_owned(), |quota| quota.to_string())
    }
}

/// Parses a quota: a whole number; empty or `unlimited` for no limit.
///
/// # Errors
/// The error text for the form.
pub fn parse_quota(text: &str) -> Result<Option<u32>, &'static str> {
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
pub struct User {
    /// Id for addresses.
    pub id: String,
    /// Address that they sign in with.
    pub email: String,
    /// Whether they are an operator.
    pub operator: bool,
    /// Time of creation.
    pub created: Timestamp,
    /// Last use of a session; `None` without sessions.
    pub last_seen: Option<Timestamp>,
    /// Whether this is the user who views the page.
    pub is_current: bool,
}

/// An entry of the audit log.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// Position in the log, for paging.
    pub id: i64,
    /// Time of the action.
    pub at: Timestamp,
    /// E-mail address of the user, or `command line`.
    pub actor: String,
    /// Name of the account, if the action belongs to one.
    pub account: Option<String>,
    /// The action, such as `created key`.
    pub action: String,
    /// Name or address of what was changed.
    pub subject: String,
}

/// The list of accounts and operators.
#[derive(Debug, Template)]
#[template(path = "accounts.html")]
pub struct AccountsPage {
    /// Shared parts.
    pub layout: Layout,
    /// All accounts, by name.
    pub accounts: Vec<Account>,
    /// All operators, by e-mail address.
    pub operators: Vec<User>,
    /// Name of the account to create.
    pub name: Field,
    /// Quota of the account to create.
    pub quota: Field,
}

/// The page of one account.
#[derive(Debug, Template)]
#[template(path = "account.html")]
pub struct AccountPage {
    /// Shared parts.
    pub layout: Layout,
    /// The account as stored.
    pub account: Account,
    /// Its users, by e-mail address.
    pub members: Vec<User>,
    /// The form that renames it.
    pub name: Field,
    /// The form that changes its quota.
    pub quota: Field,
    /// The form that invites a user.
    pub email: Field,
    /// The link of the invite just created.
    pub link: Option<String>,
    /// Whether it is the operator's current account.
    pub is_current: bool,
}

/// The audit log.
#[derive(Debug, Template)]
#[template(path = "audit_log.html")]
pub struct AuditLogPage {
    /// Shared parts.
    pub layout: Layout,
    /// One page of entries, newest first.
    pub entries: Vec<AuditEntry>,
    /// The `before` parameter of the next page, if there is one.
    pub next: Option<i64>,
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
