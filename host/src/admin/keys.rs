//! API keys.

use std::fmt;

use platen_shared::{
    id::{AccountId, KeyId},
    name::Name,
};
use platen_statements::keys;
use serde::Serialize;

use super::{Admin, AdminError, iso_8601};

/// A key's record, as the commands print it.
#[derive(Debug, Serialize)]
pub(crate) struct Key {
    pub(crate) id: KeyId,
    pub(crate) account: AccountId,
    pub(crate) account_name: String,
    pub(crate) name: String,
    /// The key's first characters.
    pub(crate) prefix: String,
    pub(crate) disabled: bool,
    /// ISO 8601, UTC.
    pub(crate) created_at: String,
}

impl From<keys::Key> for Key {
    fn from(key: keys::Key) -> Self {
        let keys::Key { id, account, account_name, name, prefix, disabled, created_at, last_used_at: _ } =
            key;
        Self { id, account, account_name, name, prefix, disabled, created_at: iso_8601(created_at) }
    }
}

/// A new key with its secret, which is stored nowhere.
#[derive(Serialize)]
pub(crate) struct CreatedKey {
    pub(crate) id: KeyId,
    pub(crate) account: AccountId,
    pub(crate) account_name: String,
    pub(crate) name: String,
    pub(crate) prefix: String,
    pub(crate) key: String,
}

impl fmt::Debug for CreatedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreatedKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Admin {
    pub(crate) async fn create_key(&self, account: &str, name: &str) -> Result<CreatedKey, AdminError> {
        let name = Name::parse(name)?;
        let account = self.account(account).await?;
        let (id, key) = self.operator().account_scope(&account.id).create_key(&name).await?;
        Ok(CreatedKey {
            id,
            account: account.id,
            account_name: account.name,
            name: name.to_string(),
            prefix: key.display_prefix().to_owned(),
            key: key.expose().to_owned(),
        })
    }

    /// Every key, or those of one account, the oldest first.
    pub(crate) async fn keys(&self, account: Option<&str>) -> Result<Vec<Key>, AdminError> {
        let keys = match account {
            Some(account) => {
                let id = self.account(account).await?.id;
                let newest_first = self.operator().account_scope(&id).keys().await?;
                newest_first.into_iter().rev().map(Into::into).collect()
            }
            None => self.operator().keys().await?.into_iter().map(Into::into).collect(),
        };
        Ok(keys)
    }

    /// Refuses or accepts a key.
    pub(crate) async fn set_key_disabled(&self, id: &str, disabled: bool) -> Result<Key, AdminError> {
        let no_key = || AdminError::NoKey(id.to_owned());
        let account = self.operator().owner_of_key(id).await?.ok_or_else(no_key)?;
        let owned = self.operator().account_scope(&account);
        owned.set_key_disabled(id, disabled).await?;
        owned.key(id).await?.map(Into::into).ok_or_else(no_key)
    }
}
