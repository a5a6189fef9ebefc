//! The operator's pages.

use askama::Template;

use super::Layout;
use crate::{clock::Timestamp, form::Field};

/// An account.
#[derive(Debug, Clone)]
pub struct Account {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Attempts a month; `None` is unlimited.
    pub quota: Option<u64>,
    /// Attempts this month.
    pub attempts: u64,
    /// Its keys are refused.
    pub disabled: bool,
    /// When it was made.
    pub created: Timestamp,
    /// How many people are in it.
    pub people: u32,
}

impl Account {
    fn quota_text(&self) -> String {
        self.quota.map_or_else(|| "unlimited".to_owned(), |quota| quota.to_string())
    }
}

/// Reads a quota: a whole number, or nothing or `unlimited` for none.
///
/// # Errors
/// What is wrong, for the page.
pub fn parse_quota(text: &str) -> Result<Option<u32>, &'static str> {
    match text.trim() {
        "" | "unlimited" => Ok(None),
        number => number
            .parse()
            .map(Some)
            .map_err(|_| "A quota is a whole number up to 4294967295, or empty for unlimited"),
    }
}

/// Somebody in an account.
#[derive(Debug, Clone)]
pub struct Person {
    /// Their id.
    pub id: String,
    /// Their e-mail address.
    pub email: String,
    /// They are an operator.
    pub operator: bool,
    /// When they came.
    pub since: Timestamp,
    /// When they were last seen.
    pub seen: Option<Timestamp>,
    /// It is who looks at the page.
    pub is_you: bool,
}

/// A line of the audit log.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its place in the log.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// In which account.
    pub account: Option<String>,
    /// Did what.
    pub action: String,
    /// To what.
    pub subject: String,
}

/// The list of accounts.
#[derive(Debug, Template)]
#[template(path = "accounts.html")]
pub struct Accounts {
    /// What surrounds it.
    pub layout: Layout,
    /// The accounts.
    pub accounts: Vec<Account>,
    /// Everybody who sees this page.
    pub operators: Vec<Person>,
    /// The name of the one to make.
    pub name: Field,
    /// Its quota.
    pub quota: Field,
}

/// One account.
#[derive(Debug, Template)]
#[template(path = "account.html")]
pub struct OneAccount {
    /// What surrounds it.
    pub layout: Layout,
    /// The account.
    pub account: Account,
    /// Its people.
    pub people: Vec<Person>,
    /// Its name, to be changed.
    pub name: Field,
    /// Its quota, to be changed.
    pub quota: Field,
    /// Whom to invite.
    pub email: Field,
    /// The link of an invite just made.
    pub link: Option<String>,
    /// The operator works in this account.
    pub is_joined: bool,
}

/// The audit log.
#[derive(Debug, Template)]
#[template(path = "audit.html")]
pub struct Audit {
    /// What surrounds it.
    pub layout: Layout,
    /// The entries, the newest first.
    pub entries: Vec<Entry>,
    /// Where the next page begins.
    pub next: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_numbers_or_nothing() {
        assert_eq!(parse_quota(" 10 "), Ok(Some(10)));
        assert_eq!(parse_quota(""), Ok(None));
        assert_eq!(parse_quota("unlimited"), Ok(None));
        for bad in ["-1", "1.5", "1e3", "4294967296", "x"] {
            parse_quota(bad).unwrap_err();
        }
    }
}
