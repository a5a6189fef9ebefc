//! API keys.
//!
//! Invariant: a key's secret is in [`Created`] and nowhere else; the database holds its hash.

use std::fmt;

use platen_shared::{
    id::{AccountId, KeyId},
    key::ApiKey,
    name::Name,
};
use serde::Serialize;

use super::{AdminError, Columns, accounts, audit, now, random};
use crate::db::{Database, Row, Value};

/// A key's record.
#[derive(Debug, Serialize)]
pub(crate) struct Key {
    /// Its id.
    pub(crate) id: KeyId,
    /// Its account.
    pub(crate) account: AccountId,
    /// Its account's name.
    pub(crate) account_name: String,
    /// Its name.
    pub(crate) name: String,
    /// Its first characters.
    pub(crate) prefix: String,
    /// It is refused.
    pub(crate) disabled: bool,
    /// ISO 8601, UTC.
    pub(crate) created_at: String,
}

/// A key just made, with its secret.
#[derive(Serialize)]
pub(crate) struct Created {
    /// Its id.
    pub(crate) id: KeyId,
    /// Its account.
    pub(crate) account: AccountId,
    /// Its account's name.
    pub(crate) account_name: String,
    /// Its name.
    pub(crate) name: String,
    /// Its first characters.
    pub(crate) prefix: String,
    /// The key itself.
    pub(crate) key: String,
}

impl fmt::Debug for Created {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Created").field("id", &self.id).finish_non_exhaustive()
    }
}

const COLUMNS: &str = "SELECT api_keys.id, account_id, accounts.name, api_keys.name, prefix, \
    api_keys.disabled_at IS NOT NULL, strftime('%Y-%m-%dT%H:%M:%SZ', api_keys.created_at, 'unixepoch') \
    FROM api_keys JOIN accounts ON accounts.id = account_id";

/// Creates a key for an account, named by name or id.
pub(crate) async fn create(database: &Database, account: &str, name: &str) -> Result<Created, AdminError> {
    let name = Name::parse(name)?;
    let account = accounts::find(database, account).await?;
    let (id, key) = (KeyId::from_random(random()?), ApiKey::from_random(random()?));
    database
        .connect()
        .query(
            "INSERT INTO api_keys (id, account_id, name, prefix, hash, created_at) \
                VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING id",
            vec![
                id.as_str().into(),
                account.id.as_str().into(),
                name.as_str().into(),
                key.display_prefix().into(),
                key.hash().into(),
                now().into(),
            ],
        )
        .await?;
    audit(&database.connect(), Some(&account.id), "created key", name.as_str()).await?;
    Ok(Created {
        id,
        account: account.id,
        account_name: account.name,
        name: name.to_string(),
        prefix: key.display_prefix().to_owned(),
        key: key.expose().to_owned(),
    })
}

/// Every key, or those of one account; the oldest first.
pub(crate) async fn list(database: &Database, account: Option<&str>) -> Result<Vec<Key>, AdminError> {
    let account = match account {
        Some(account) => Some(accounts::find(database, account).await?.id.as_str().to_owned()),
        None => None,
    };
    let sql = format!(
        "{COLUMNS} WHERE (?1 IS NULL OR account_id = ?1) AND expires_at IS NULL ORDER BY api_keys.rowid"
    );
    database.connect().query(&sql, vec![account.into()]).await?.into_iter().map(read).collect()
}

/// Refuses or accepts a key.
pub(crate) async fn set_disabled(database: &Database, id: &str, disabled: bool) -> Result<Key, AdminError> {
    // The time of the first disabling stays.
    let update = "UPDATE api_keys SET disabled_at = CASE WHEN ?2 IS NULL THEN NULL \
        ELSE coalesce(disabled_at, ?2) END WHERE id = ?1 RETURNING id";
    let connection = database.connect();
    connection.query(update, vec![id.into(), Value::from(disabled.then(now))]).await?;
    let rows = connection.query(&format!("{COLUMNS} WHERE api_keys.id = ?1"), vec![id.into()]).await?;
    let key = rows.into_iter().next().map(read).ok_or_else(|| AdminError::NoKey(id.to_owned()))??;
    let action = if disabled { "disabled key" } else { "enabled key" };
    audit(&connection, Some(&key.account), action, &key.name).await?;
    Ok(key)
}

fn read(row: Row) -> Result<Key, AdminError> {
    let mut columns = Columns::of(row);
    Ok(Key {
        id: KeyId::from_text(columns.text()?),
        account: AccountId::from_text(columns.text()?),
        account_name: columns.text()?,
        name: columns.text()?,
        prefix: columns.text()?,
        disabled: columns.flag()?,
        created_at: columns.text()?,
    })
}
