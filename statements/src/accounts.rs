//! Accounts and their quotas.

use std::fmt;

use platen_shared::{id::AccountId, name::Name};
use serde_json::json;

use crate::{
    Backend, Operator, Timestamp,
    backend::{Query as _, record, values},
};

/// Another account has the name, in the same case or another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("another account has this name. Choose a different one")]
pub struct NameTaken;

record! {
    /// An account with its attempts of the month.
    pub struct Account {
        pub id: AccountId,
        pub name: String,
        /// Attempts a month; `None` is unlimited.
        pub quota: Option<u64>,
        /// Attempts of this month (UTC).
        pub attempts: u64,
        pub disabled: bool,
        pub created_at: Timestamp,
        #[serde(skip)]
        pub users: u32,
        /// Requests in a minute; `None` is no limit.
        pub requests_per_minute: Option<u64>,
        /// Requests at once; `None` is no limit.
        pub concurrency: Option<u64>,
    }
}

record! {
    /// What is deleted with an account. `Display` is a list of the numbers.
    #[derive(Default)]
    pub struct AccountContents {
        pub keys: u64,
        pub templates: u64,
        pub links: u64,
        /// Recorded requests that are still kept.
        pub requests: u64,
        /// Its users, except for operators.
        pub members: u64,
        /// Those that can still be accepted.
        pub invites: u64,
    }
}

impl fmt::Display for AccountContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, templates, links, requests, members, invites } = *self;
        let parts = [
            counted(keys, "key"),
            counted(templates, "template"),
            counted(links, "link"),
            counted(requests, "recorded request"),
            counted(members, "member"),
        ];
        write!(f, "{} and {}", parts.join(", "), counted(invites, "invite"))
    }
}

/// A number of things that a question counts, as "1 key" or "0 keys".
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `?1` is now.
macro_rules! select_accounts {
    ($rest:literal) => {
        concat!(
            "SELECT id, name, quota, coalesce((SELECT attempts FROM usage WHERE account_id = accounts.id \
             AND month = strftime('%Y-%m', ?1, 'unixepoch')), 0), disabled_at IS NOT NULL, created_at, \
             (SELECT count(*) FROM users WHERE account_id = accounts.id), requests_per_minute, concurrency \
             FROM accounts ",
            $rest
        )
    };
}

record! {
    /// What accounts are searched by.
    pub struct AccountNames {
        pub id: AccountId,
        pub name: String,
        /// The addresses of its users, separated by spaces.
        pub emails: String,
    }
}

/// `?1` chooses the disabled accounts, the others, or with NULL all of them.
macro_rules! of_state {
    ($columns:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM accounts WHERE (?1 IS NULL OR (disabled_at IS NOT NULL) = ?1) ",
            $rest
        )
    };
}

const COUNT: &str = of_state!("count(*)", "");
const IDS: &str = of_state!("id", "ORDER BY name COLLATE NOCASE, id LIMIT ?2 OFFSET ?3");
const SEARCHED: &str = of_state!(
    "id, name, coalesce((SELECT group_concat(email, ' ') FROM users WHERE account_id = accounts.id), '')",
    "ORDER BY name COLLATE NOCASE, id"
);
const SOME: &str =
    select_accounts!("WHERE id IN (SELECT value FROM json_each(?2)) ORDER BY name COLLATE NOCASE, id");
const BY_AGE: &str = select_accounts!("ORDER BY rowid");
const BY_ID: &str = select_accounts!("WHERE id = ?2");
const BY_ID_OR_NAME: &str = select_accounts!("WHERE id = ?2 OR name = ?2 ORDER BY id = ?2 DESC LIMIT 1");
/// A row with the numbers of enabled accounts that have used at least 80 % of their quota of this month, and all of it.
pub const NEAR_QUOTA: &str = "SELECT count(*) FILTER (WHERE attempts < quota), count(*) FILTER (WHERE attempts >= quota) \
    FROM accounts CROSS JOIN usage ON account_id = id AND month = strftime('%Y-%m', 'now') \
    WHERE disabled_at IS NULL AND attempts >= quota * 0.8";
const EXISTS: &str = "SELECT 1 FROM accounts WHERE id = ?1";
const CREATE: &str = "INSERT INTO accounts (id, name, quota, created_at, last_change) VALUES (?1, ?2, ?3, ?4, ?5) \
    ON CONFLICT (name) DO NOTHING RETURNING id";
const RENAME: &str = "UPDATE accounts SET name = ?2, last_change = ?3 WHERE id = ?1 \
    AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.name = ?2 AND a.id <> ?1) RETURNING id";
const SET_QUOTA: &str = "UPDATE accounts SET quota = ?2, last_change = ?3 WHERE id = ?1 RETURNING id";
// The time of the first disabling is kept.
const SET_DISABLED: &str = "UPDATE accounts SET \
    disabled_at = CASE WHEN ?2 THEN coalesce(disabled_at, ?3) END, last_change = ?4 WHERE id = ?1 RETURNING id";
const CONTENTS: &str = "SELECT (SELECT count(*) FROM api_keys WHERE account_id = ?2 AND kind = 'key'), \
    (SELECT count(*) FROM templates WHERE account_id = ?2), \
    (SELECT count(*) FROM api_keys WHERE account_id = ?2 AND kind = 'link'), \
    (SELECT count(*) FROM attempts WHERE account_id = ?2), \
    (SELECT count(*) FROM users WHERE account_id = ?2 AND NOT operator), \
    (SELECT count(*) FROM invites WHERE account_id = ?2 AND used_at IS NULL AND expires_at > ?1)";
const DELETE_REQUESTS: &str =
    "DELETE FROM attempts WHERE id IN (SELECT id FROM attempts WHERE account_id = ?1 LIMIT ?2) RETURNING id";
const DELETE: &str = "UPDATE accounts SET last_change = ?2 WHERE id = ?1 RETURNING id";

/// Recorded requests that one statement deletes, within about 0.1 s.
const DELETED_REQUESTS: u64 = 1000;

impl<B: Backend> Operator<'_, B> {
    /// The number of accounts that are disabled, or that are not; with `None` of all.
    pub async fn count_accounts(&self, disabled: Option<bool>) -> Result<u64, B::Error> {
        Ok(self.store.backend.first(COUNT, values![disabled]).await?.map_or(0, |(count,)| count))
    }

    /// The ids of accounts of that state by name: at most `limit`, after the first `offset`.
    pub async fn account_ids(
        &self,
        disabled: Option<bool>,
        limit: u64,
        offset: u64,
    ) -> Result<Vec<AccountId>, B::Error> {
        let rows: Vec<(AccountId,)> = self.store.backend.all(IDS, values![disabled, limit, offset]).await?;
        Ok(rows.into_iter().map(|(id,)| id).collect())
    }

    /// What all accounts of that state are searched by, in the order of their names.
    pub async fn account_names(&self, disabled: Option<bool>) -> Result<Vec<AccountNames>, B::Error> {
        self.store.backend.all(SEARCHED, values![disabled]).await
    }

    /// The accounts with these ids, by name.
    pub async fn accounts_of(&self, ids: &[AccountId]) -> Result<Vec<Account>, B::Error> {
        self.store.backend.all(SOME, values![self.store.now, json!(ids).to_string()]).await
    }

    /// Every account, the oldest first.
    pub async fn accounts_by_age(&self) -> Result<Vec<Account>, B::Error> {
        self.store.backend.all(BY_AGE, values![self.store.now]).await
    }

    /// One account.
    pub async fn account(&self, id: &str) -> Result<Option<Account>, B::Error> {
        self.store.backend.first(BY_ID, values![self.store.now, id]).await
    }

    /// The account with this id or, if there is none, with this name.
    pub async fn find_account(&self, id_or_name: &str) -> Result<Option<Account>, B::Error> {
        self.store.backend.first(BY_ID_OR_NAME, values![self.store.now, id_or_name]).await
    }

    /// Creates an account, unless there is one with this name.
    pub async fn create_account(
        &self,
        name: &Name,
        quota: Option<u32>,
    ) -> Result<Result<AccountId, NameTaken>, B::Error> {
        let id = AccountId::from_random(self.store.backend.random()?);
        let change = self.change("created account").account(id.as_str());
        let values = values![&id, name.as_str(), quota, self.store.now, change];
        Ok(if self.store.backend.run(CREATE, values).await? { Ok(id) } else { Err(NameTaken) })
    }

    /// Renames an account, unless another one has this name; `false` if there is no such account.
    pub async fn rename_account(&self, id: &str, name: &Name) -> Result<Result<bool, NameTaken>, B::Error> {
        let change = self.change("renamed account").account(id);
        if self.store.backend.run(RENAME, values![id, name.as_str(), change]).await? {
            return Ok(Ok(true));
        }
        Ok(if self.store.backend.exists(EXISTS, values![id]).await? { Err(NameTaken) } else { Ok(false) })
    }

    /// Changes a quota, `None` being unlimited; `false` if there is no such account.
    pub async fn set_quota(&self, id: &str, quota: Option<u32>) -> Result<bool, B::Error> {
        let subject = quota.map_or_else(|| "unlimited".to_owned(), |quota| quota.to_string());
        let change = self.change("changed quota").account(id).subject(&subject);
        self.store.backend.run(SET_QUOTA, values![id, quota, change]).await
    }

    /// Refuses or accepts an account's keys; `false` if there is no such account.
    pub async fn set_account_disabled(&self, id: &str, disabled: bool) -> Result<bool, B::Error> {
        let action = if disabled { "disabled account" } else { "enabled account" };
        let values = values![id, disabled, self.store.now, self.change(action).account(id)];
        self.store.backend.run(SET_DISABLED, values).await
    }

    /// What is deleted with an account.
    pub async fn account_contents(&self, id: &str) -> Result<AccountContents, B::Error> {
        Ok(self.store.backend.first(CONTENTS, values![self.store.now, id]).await?.unwrap_or_default())
    }

    /// Deletes an account with everything that it has, except for operators, who remain without an account; `false` if
    /// there is no such account.
    pub async fn delete_account(&self, id: &str) -> Result<bool, B::Error> {
        // Most of them before, so that no statement keeps those of other accounts waiting.
        let values = values![id, DELETED_REQUESTS];
        loop {
            let deleted = self.store.backend.change(DELETE_REQUESTS, &values).await?;
            if (deleted.len() as u64) < DELETED_REQUESTS {
                break;
            }
        }
        let change = self.change("deleted account").account(id).deletes();
        self.store.backend.run(DELETE, values![id, change]).await
    }
}
