//! API keys.

use std::fmt;

use platen_shared::{
    id::{AccountId, KeyId},
    name::Name,
};
use platen_statements::keys::Key;
use serde::Serialize;

use super::{Admin, AdminError};

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
        let Some(account) = account else { return self.operator().keys().await };
        let id = self.account(account).await?.id;
        let mut keys = self.operator().account_scope(&id).keys().await?;
        keys.reverse();
        Ok(keys)
    }

    /// Refuses or accepts a key.
    pub(crate) async fn set_key_disabled(&self, id: &str, disabled: bool) -> Result<Key, AdminError> {
        let no_key = || AdminError::NoKey(id.to_owned());
        let account = self.operator().owner_of_key(id).await?.ok_or_else(no_key)?;
        let owned = self.operator().account_scope(&account);
        owned.set_key_disabled(id, disabled).await?;
        owned.key(id).await?.ok_or_else(no_key)
    }
}
