//! The operator's pages: accounts, the audit log, retention.

use askama::Template;
use platen_shared::id::UserId;
use platen_statements::{
    CurrentUser, accounts::Account, audit::AuditEntry, invites::PendingInvite, retention::Due, users::User,
};

use super::{Layout, paging::Paging};
use crate::{
    filter::FilterForm,
    form::Field,
    format::{self, csv_line},
};

/// Parses a quota or a limit: a whole number from `min`; empty, `unlimited` or `none` for no limit. The error is a text for the
/// form.
pub(crate) fn parse_limit(text: &str, min: u32) -> Result<Option<u32>, String> {
    match text.trim() {
        "" | "unlimited" | "none" => Ok(None),
        number => number.parse().ok().filter(|number| *number >= min).map(Some).ok_or_else(|| {
            format!("Enter a whole number from {min} to 4,294,967,295, or leave the field empty for no limit")
        }),
    }
}

/// Whether the list of accounts has the disabled ones or the others only; `None` for all.
pub(crate) fn parse_state(text: &str) -> Option<bool> {
    match text {
        "active" => Some(false),
        "disabled" => Some(true),
        _ => None,
    }
}

#[derive(Debug, Template)]
#[template(path = "accounts.html")]
pub(crate) struct AccountsPage {
    pub(crate) layout: Layout,
    /// The text that was searched for.
    pub(crate) search: String,
    /// The state of the accounts in the list, see [`parse_state`].
    pub(crate) disabled: Option<bool>,
    /// One page of the accounts that were found, by name.
    pub(crate) accounts: Vec<Account>,
    pub(crate) paging: Paging,
    /// All operators, by e-mail address.
    pub(crate) operators: Vec<User>,
    /// The user who views the page.
    pub(crate) user: UserId,
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
    /// Its invites that can be used, by e-mail address.
    pub(crate) invites: Vec<PendingInvite>,
    /// The form that renames it.
    pub(crate) name: Field,
    /// The form that changes its quota.
    pub(crate) quota: Field,
    /// The form that changes its limits: requests in a minute, and at once.
    pub(crate) requests_per_minute: Field,
    pub(crate) concurrency: Field,
    /// The form that invites a user.
    pub(crate) email: Field,
    /// The address and the link of the invite just created.
    pub(crate) link: Option<(String, String)>,
    /// The user who views the page.
    pub(crate) user: CurrentUser,
}

#[derive(Debug, Template)]
#[template(path = "audit_log.html")]
pub(crate) struct AuditLogPage {
    pub(crate) layout: Layout,
    pub(crate) form: FilterForm,
    /// One page of entries, newest first.
    pub(crate) entries: Vec<AuditEntry>,
    /// The `before` parameter of the next page, if there is one.
    pub(crate) next: Option<i64>,
}

/// The first line of the audit log's CSV export.
pub(crate) const AUDIT_CSV_HEADER: &str = "time,user,account,action,subject\r\n";

pub(crate) fn audit_csv_line(entry: &AuditEntry) -> String {
    let AuditEntry { at, actor, account, action, subject, .. } = entry;
    csv_line(&[&at.to_string(), actor, account.as_deref().unwrap_or_default(), action, subject])
}

#[derive(Debug, Template)]
#[template(path = "retention.html")]
pub(crate) struct RetentionPage {
    pub(crate) layout: Layout,
    /// What the stored settings have not deleted yet.
    pub(crate) due: Due,
    /// Versions, audit log, attempts.
    pub(crate) fields: [Field; 3],
}

/// What settings delete, for a sentence.
pub(crate) fn due_text(due: &Due) -> String {
    let count = |count: u64, one: &str, many: &str| {
        format!("{} {}", format::number(&count), if count == 1 { one } else { many })
    };
    format!(
        "{} of templates, {} of the audit log and {}",
        count(due.versions, "version", "versions"),
        count(due.audit_entries, "entry", "entries"),
        count(due.attempts, "attempt", "attempts")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_whole_number_or_none() {
        assert_eq!(parse_limit(" 10 ", 0), Ok(Some(10)));
        assert_eq!(parse_limit("0", 0), Ok(Some(0)));
        for none in ["", "unlimited", "none"] {
            assert_eq!(parse_limit(none, 1), Ok(None));
        }
        for bad in ["-1", "0", "1.5", "1e3", "4294967296", "x"] {
            parse_limit(bad, 1).unwrap_err();
        }
    }
}
