//! An account's API keys.
//!
//! Invariant: only a key's hash and first characters are stored. A key for one click is not listed.

use platen_component::{
    database::{Row, Value},
    platform,
};
use platen_shared::{
    id::{KeyId, TemplateId},
    key::ApiKey,
    name::Name,
};

use super::{StoreError, account::Account};
use crate::{
    clock::Timestamp,
    pages::keys::{Key, RENDER_KEY_SECONDS},
    scoped::Scoped,
};

const LIST: Scoped = Scoped::new(
    "SELECT id, name, prefix, created_at, last_used_at, disabled_at IS NOT NULL FROM api_keys \
     WHERE account_id = ?1 AND expires_at IS NULL AND (?2 IS NULL OR id = ?2) ORDER BY rowid DESC",
);
const CREATE: Scoped = Scoped::new(
    "INSERT INTO api_keys (account_id, id, name, prefix, hash, created_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING id",
);
// The time of the first disabling stays.
const SET_DISABLED: Scoped = Scoped::new(
    "UPDATE api_keys SET disabled_at = CASE WHEN ?3 THEN coalesce(disabled_at, ?4) END \
     WHERE account_id = ?1 AND id = ?2 AND expires_at IS NULL RETURNING name",
);
const DELETE: Scoped = Scoped::new(
    "DELETE FROM api_keys WHERE account_id = ?1 AND id = ?2 AND expires_at IS NULL RETURNING name",
);
const CREATE_FOR_ONE_CLICK: Scoped = Scoped::new(
    "INSERT INTO api_keys (account_id, id, name, prefix, hash, created_at, expires_at, template_id) \
     SELECT ?1, ?2, 'Render button', ?3, ?4, ?5, ?6, id FROM templates WHERE account_id = ?1 AND id = ?7 \
     RETURNING id",
);
const DELETE_EXPIRED: Scoped =
    Scoped::new("DELETE FROM api_keys WHERE account_id = ?1 AND expires_at <= ?2 RETURNING id");

impl Account<'_> {
    /// Every key, the newest first.
    pub(crate) async fn keys(&self) -> Result<Vec<Key>, StoreError> {
        self.rows(LIST, [Value::Null]).await?.iter().map(read).collect()
    }

    /// One key.
    pub(crate) async fn key(&self, id: &str) -> Result<Option<Key>, StoreError> {
        self.one_row(LIST, [id.into()]).await?.as_ref().map(read).transpose()
    }

    /// Creates a key.
    pub(crate) async fn create_key(&self, name: &Name) -> Result<ApiKey, StoreError> {
        let (id, key) = (KeyId::from_random(platform::random()), ApiKey::from_random(platform::random()));
        let values = [
            id.as_str().into(),
            name.as_str().into(),
            key.display_prefix().into(),
            key.hash().into(),
            self.now().into(),
        ];
        self.rows(CREATE, values).await?;
        self.audit("created key", name.as_str()).await?;
        Ok(key)
    }

    /// Refuses or accepts a key; `false` if there is none.
    pub(crate) async fn set_key_disabled(&self, id: &str, disabled: bool) -> Result<bool, StoreError> {
        let values = [id.into(), i64::from(disabled).into(), self.now().into()];
        let Some(row) = self.one_row(SET_DISABLED, values).await? else { return Ok(false) };
        let action = if disabled { "disabled key" } else { "enabled key" };
        self.audit(action, &row.text(0)?).await?;
        Ok(true)
    }

    /// Deletes a key; `false` if there is none.
    pub(crate) async fn delete_key(&self, id: &str) -> Result<bool, StoreError> {
        let Some(row) = self.one_row(DELETE, [id.into()]).await? else { return Ok(false) };
        self.audit("deleted key", &row.text(0)?).await?;
        Ok(true)
    }

    /// A key for one click, good for a minute and for this template only; `None` if the account has
    /// no such template.
    pub(crate) async fn create_render_key(
        &self,
        template: &TemplateId,
    ) -> Result<Option<ApiKey>, StoreError> {
        self.rows(DELETE_EXPIRED, [self.now().into()]).await?;
        let (id, key) = (KeyId::from_random(platform::random()), ApiKey::from_random(platform::random()));
        let values = [
            id.as_str().into(),
            key.display_prefix().into(),
            key.hash().into(),
            self.now().into(),
            (self.now() + RENDER_KEY_SECONDS).into(),
            template.as_str().into(),
        ];
        Ok(self.one_row(CREATE_FOR_ONE_CLICK, values).await?.map(|_| key))
    }
}

fn read(row: &Row) -> Result<Key, StoreError> {
    Ok(Key {
        id: row.text(0)?,
        name: row.text(1)?,
        prefix: row.text(2)?,
        created: Timestamp(row.number(3)?),
        last_used: row.optional_number(4)?.map(Timestamp),
        disabled: row.number(5)?,
    })
}
