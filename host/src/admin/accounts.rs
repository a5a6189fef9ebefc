//! Accounts.

use platen_shared::{id::AccountId, name::Name};
use serde::Serialize;

use super::{AdminError, Columns, audit, now, random};
use crate::db::{Database, DbError, Row, Value};

/// An account with this month's use.
#[derive(Debug, Serialize)]
pub(crate) struct Account {
    /// Its id.
    pub(crate) id: AccountId,
    /// Its name.
    pub(crate) name: String,
    /// Attempts a month; `None` is unlimited.
    pub(crate) quota: Option<i64>,
    /// Attempts this month (UTC).
    pub(crate) attempts: i64,
    /// Its keys are refused.
    pub(crate) disabled: bool,
    /// ISO 8601, UTC.
    pub(crate) created_at: String,
}

/// Every account, or the one with id or name `?2`; `?1` is now.
const SELECT: &str = "SELECT id, name, quota, \
    coalesce((SELECT attempts FROM usage WHERE account_id = accounts.id \
        AND month = strftime('%Y-%m', ?1, 'unixepoch')), 0), \
    disabled_at IS NOT NULL, strftime('%Y-%m-%dT%H:%M:%SZ', created_at, 'unixepoch') \
    FROM accounts WHERE ?2 IS NULL OR id = ?2 OR name = ?2 \
    ORDER BY id = ?2 DESC, rowid";

/// Creates an account.
pub(crate) async fn create(
    database: &Database,
    name: &str,
    quota: Option<u32>,
) -> Result<Account, AdminError> {
    let name = Name::parse(name)?;
    let id = AccountId::from_random(random()?);
    let quota = Value::from(quota.map(i64::from));
    let created = database
        .connect()
        .query(
            "INSERT INTO accounts (id, name, quota, created_at) VALUES (?1, ?2, ?3, ?4) \
                ON CONFLICT (name) DO NOTHING RETURNING id",
            vec![id.as_str().into(), name.as_str().into(), quota, now().into()],
        )
        .await?;
    if created.is_empty() {
        return Err(AdminError::NameTaken(name.to_string()));
    }
    audit(&database.connect(), Some(&id), "created account", name.as_str()).await?;
    find(database, id.as_str()).await
}

/// Every account, the oldest first.
pub(crate) async fn list(database: &Database) -> Result<Vec<Account>, AdminError> {
    let rows = database.connect().query(SELECT, vec![now().into(), Value::Null]).await?;
    rows.into_iter().map(read).collect()
}

/// The account with this id or, if there is none, this name.
pub(crate) async fn find(database: &Database, which: &str) -> Result<Account, AdminError> {
    let rows = database.connect().query(SELECT, vec![now().into(), which.into()]).await?;
    rows.into_iter().next().map(read).ok_or_else(|| AdminError::NoAccount(which.to_owned()))?
}

/// Changes a quota; `None` is unlimited.
pub(crate) async fn set_quota(
    database: &Database,
    which: &str,
    quota: Option<u32>,
) -> Result<Account, AdminError> {
    let account = find(database, which).await?;
    let value = Value::from(quota.map(i64::from));
    let update = "UPDATE accounts SET quota = ?2 WHERE id = ?1 RETURNING id";
    changed(database.connect().query(update, vec![account.id.as_str().into(), value]).await, which)?;
    let subject = quota.map_or_else(|| "unlimited".to_owned(), |quota| quota.to_string());
    audit(&database.connect(), Some(&account.id), "changed quota", &subject).await?;
    find(database, account.id.as_str()).await
}

/// Refuses or accepts an account's keys.
pub(crate) async fn set_disabled(
    database: &Database,
    which: &str,
    disabled: bool,
) -> Result<Account, AdminError> {
    let account = find(database, which).await?;
    let at = Value::from(disabled.then(now));
    // The time of the first disabling stays.
    let update = "UPDATE accounts SET disabled_at = CASE WHEN ?2 IS NULL THEN NULL \
        ELSE coalesce(disabled_at, ?2) END WHERE id = ?1 RETURNING id";
    changed(database.connect().query(update, vec![account.id.as_str().into(), at]).await, which)?;
    let action = if disabled { "disabled account" } else { "enabled account" };
    audit(&database.connect(), Some(&account.id), action, &account.name).await?;
    find(database, account.id.as_str()).await
}

fn changed(rows: Result<Vec<Row>, DbError>, which: &str) -> Result<(), AdminError> {
    if rows?.is_empty() { Err(AdminError::NoAccount(which.to_owned())) } else { Ok(()) }
}

fn read(row: Row) -> Result<Account, AdminError> {
    let mut columns = Columns::of(row);
    Ok(Account {
        id: AccountId::from_text(columns.text()?),
        name: columns.text()?,
        quota: columns.optional()?,
        attempts: columns.number()?,
        disabled: columns.flag()?,
        created_at: columns.text()?,
    })
}
