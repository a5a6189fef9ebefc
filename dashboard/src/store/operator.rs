//! What operators do: accounts, people, invites, the audit log.
//!
//! Invariant: exists only for a current_user who is an operator; every change is written down.

use platen_component::{
    database::{Row, Value, number_or_null},
    platform,
};
use platen_shared::{email::Email, id::AccountId, name::Name, token::Token};

use super::{CurrentUser, Store, StoreError};
use crate::{
    clock::{DAY, Timestamp},
    pages::operator::{Account, AuditEntry, User},
};

const ACCOUNTS: &str = "SELECT id, name, quota, coalesce((SELECT attempts FROM usage \
    WHERE account_id = accounts.id AND month = ?2), 0), disabled_at IS NOT NULL, created_at, \
    (SELECT count(*) FROM users WHERE account_id = accounts.id) \
    FROM accounts WHERE ?1 IS NULL OR id = ?1 ORDER BY name COLLATE NOCASE LIMIT 1000";
const CREATE: &str = "INSERT INTO accounts (id, name, quota, created_at) VALUES (?1, ?2, ?3, ?4) \
    ON CONFLICT (name) DO NOTHING RETURNING id";
const RENAME: &str = "UPDATE OR IGNORE accounts SET name = ?2 WHERE id = ?1 RETURNING id";
const SET_QUOTA: &str = "UPDATE accounts SET quota = ?2 WHERE id = ?1 RETURNING name";
const SET_DISABLED: &str = "UPDATE accounts SET disabled_at = CASE WHEN ?2 THEN coalesce(disabled_at, ?3) END \
    WHERE id = ?1 RETURNING name";
const PEOPLE: &str = "SELECT id, email, operator, created_at, \
    (SELECT max(seen_at) FROM sessions WHERE user_id = users.id) FROM users WHERE account_id = ?1 ORDER BY email";
const OPERATORS: &str = "SELECT id, email, operator, created_at, \
    (SELECT max(seen_at) FROM sessions WHERE user_id = users.id) FROM users WHERE operator ORDER BY email";
const REMOVE_OPERATOR: &str = "DELETE FROM users WHERE id = ?1 AND operator AND id IS NOT ?2 RETURNING email";
const REMOVE_PERSON: &str =
    "DELETE FROM users WHERE id = ?1 AND account_id = ?2 AND id IS NOT ?3 RETURNING email";
const END_SESSIONS: &str = "DELETE FROM sessions WHERE user_id = ?1 RETURNING id";
const ACCOUNT_OF: &str = "SELECT account_id FROM users WHERE email = ?1";
const DROP_INVITES: &str = "DELETE FROM invites WHERE email = ?1 AND used_at IS NULL RETURNING hash";
const INVITE: &str = "INSERT INTO invites (hash, email, account_id, operator, created_at, expires_at) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING hash";
const JOIN: &str = "UPDATE users SET account_id = ?2 WHERE id = ?1 \
    AND EXISTS (SELECT 1 FROM accounts WHERE id = ?2) RETURNING id";
const LOG: &str = "SELECT l.at, l.actor, a.name, l.action, l.subject, l.id FROM audit l \
    LEFT JOIN accounts a ON a.id = l.account_id WHERE l.id < ?1 ORDER BY l.id DESC LIMIT ?2";

/// What came of an invite.
pub(crate) enum Invited {
    /// The secret at the end of the link.
    Done(Token),
    NoSuchAccount,
    OtherAccount,
}

/// An operator at work.
pub(crate) struct Operator<'s> {
    store: &'s Store,
    current_user: &'s CurrentUser,
}

impl<'s> Operator<'s> {
    pub(super) fn new(store: &'s Store, current_user: &'s CurrentUser) -> Self {
        Self { store, current_user }
    }

    /// Every account, by name.
    pub(crate) async fn accounts(&self) -> Result<Vec<Account>, StoreError> {
        let values = vec![Value::Null, Timestamp(self.store.now).month().into()];
        self.store.rows(ACCOUNTS, values).await?.iter().map(read).collect()
    }

    /// One account.
    pub(crate) async fn account(&self, id: &str) -> Result<Option<Account>, StoreError> {
        let values = vec![id.into(), Timestamp(self.store.now).month().into()];
        self.store.one_row(ACCOUNTS, values).await?.as_ref().map(read).transpose()
    }

    /// Creates an account; `None` if there is one of that name.
    pub(crate) async fn create(
        &self,
        name: &Name,
        quota: Option<u32>,
    ) -> Result<Option<AccountId>, StoreError> {
        let id = AccountId::from_random(platform::random());
        let quota = number_or_null(quota.map(i64::from));
        let values = vec![id.as_str().into(), name.as_str().into(), quota, self.store.now.into()];
        if self.store.one_row(CREATE, values).await?.is_none() {
            return Ok(None);
        }
        self.audit(id.as_str(), "created account", name.as_str()).await?;
        Ok(Some(id))
    }

    /// Renames an account; `false` if another has that name.
    pub(crate) async fn rename(&self, id: &str, name: &Name) -> Result<bool, StoreError> {
        if self.store.one_row(RENAME, vec![id.into(), name.as_str().into()]).await?.is_none() {
            return Ok(false);
        }
        self.audit(id, "renamed account", name.as_str()).await?;
        Ok(true)
    }

    /// Changes a quota; `None` is unlimited.
    pub(crate) async fn set_quota(&self, id: &str, quota: Option<u32>) -> Result<(), StoreError> {
        let values = vec![id.into(), number_or_null(quota.map(i64::from))];
        self.store.rows(SET_QUOTA, values).await?;
        let subject = quota.map_or_else(|| "unlimited".to_owned(), |quota| quota.to_string());
        self.audit(id, "changed quota", &subject).await
    }

    /// Refuses or accepts an account's keys.
    pub(crate) async fn set_disabled(&self, id: &str, disabled: bool) -> Result<(), StoreError> {
        let values = vec![id.into(), i64::from(disabled).into(), self.store.now.into()];
        let Some(row) = self.store.one_row(SET_DISABLED, values).await? else { return Ok(()) };
        let action = if disabled { "disabled account" } else { "enabled account" };
        self.audit(id, action, &row.text(0)?).await
    }

    /// The people of an account.
    pub(crate) async fn people(&self, id: &str) -> Result<Vec<User>, StoreError> {
        self.persons(PEOPLE, vec![id.into()]).await
    }

    /// All operators, whatever account they work in.
    pub(crate) async fn operators(&self) -> Result<Vec<User>, StoreError> {
        self.persons(OPERATORS, Vec::new()).await
    }

    async fn persons(&self, sql: &str, values: Vec<Value>) -> Result<Vec<User>, StoreError> {
        let mut people = Vec::new();
        for row in self.store.rows(sql, values).await? {
            let id = row.text(0)?;
            people.push(User {
                is_current: id == self.current_user.user.as_str(),
                id,
                email: row.text(1)?,
                operator: row.number(2)?,
                created: Timestamp(row.number(3)?),
                last_seen: row.optional_number(4)?.map(Timestamp),
            });
        }
        Ok(people)
    }

    /// Removes a person, not oneself; `false` if the account has none of that id.
    pub(crate) async fn remove_person(&self, account: &str, user: &str) -> Result<bool, StoreError> {
        let values = vec![user.into(), account.into(), self.current_user.user.as_str().into()];
        let Some(row) = self.store.one_row(REMOVE_PERSON, values).await? else { return Ok(false) };
        self.store.rows(END_SESSIONS, vec![user.into()]).await?;
        self.audit(account, "removed person", &row.text(0)?).await?;
        Ok(true)
    }

    /// Removes an operator, not oneself; `false` if there is none of that id.
    pub(crate) async fn remove_operator(&self, user: &str) -> Result<bool, StoreError> {
        let values = vec![user.into(), self.current_user.user.as_str().into()];
        let Some(row) = self.store.one_row(REMOVE_OPERATOR, values).await? else { return Ok(false) };
        self.store.rows(END_SESSIONS, vec![user.into()]).await?;
        self.store.audit(&self.current_user.email, None, "removed operator", &row.text(0)?).await?;
        Ok(true)
    }

    /// Invites somebody into an account; an unused invite of theirs is gone.
    pub(crate) async fn invite(
        &self,
        account: &str,
        email: &Email,
        operator: bool,
    ) -> Result<Invited, StoreError> {
        if self.account(account).await?.is_none() {
            return Ok(Invited::NoSuchAccount);
        }
        let there = self.store.one_row(ACCOUNT_OF, vec![email.as_str().into()]).await?;
        if let Some(row) = there
            && row.optional_text(0)?.is_some_and(|other| other != account)
        {
            return Ok(Invited::OtherAccount);
        }
        self.store.rows(DROP_INVITES, vec![email.as_str().into()]).await?;
        let token = Token::from_random(platform::random());
        let values = vec![
            token.hash().into(),
            email.as_str().into(),
            account.into(),
            i64::from(operator).into(),
            self.store.now.into(),
            (self.store.now + DAY).into(),
        ];
        self.store.rows(INVITE, values).await?;
        let action = if operator { "invited operator" } else { "invited" };
        self.audit(account, action, email.as_str()).await?;
        Ok(Invited::Done(token))
    }

    /// Makes this account the one the operator works in; `false` if there is none.
    pub(crate) async fn join(&self, account: &str) -> Result<bool, StoreError> {
        let values = vec![self.current_user.user.as_str().into(), account.into()];
        if self.store.one_row(JOIN, values).await?.is_none() {
            return Ok(false);
        }
        self.audit(account, "works in account", &self.current_user.email).await?;
        Ok(true)
    }

    /// Who did what, the newest first, before an entry.
    pub(crate) async fn log(&self, before: Option<i64>, most: u32) -> Result<Vec<AuditEntry>, StoreError> {
        let values = vec![before.unwrap_or(i64::MAX).into(), most.into()];
        let read = |row: &Row| -> Result<AuditEntry, StoreError> {
            Ok(AuditEntry {
                at: Timestamp(row.number(0)?),
                actor: row.text(1)?,
                account: row.optional_text(2)?,
                action: row.text(3)?,
                subject: row.text(4)?,
                id: row.number(5)?,
            })
        };
        self.store.rows(LOG, values).await?.iter().map(read).collect()
    }

    async fn audit(&self, account: &str, action: &str, subject: &str) -> Result<(), StoreError> {
        let account = AccountId::from_text(account);
        self.store.audit(&self.current_user.email, Some(&account), action, subject).await
    }
}

fn read(row: &Row) -> Result<Account, StoreError> {
    Ok(Account {
        id: row.text(0)?,
        name: row.text(1)?,
        quota: row.optional_number(2)?,
        attempts: row.number(3)?,
        disabled: row.number(4)?,
        created: Timestamp(row.number(5)?),
        members: row.number(6)?,
    })
}
