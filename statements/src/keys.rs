//! API keys.
//!
//! Invariant: a key's hash and first characters are stored, never the key. Keys with an expiry,
//! which the dashboard makes for one render, are neither listed nor changed.

use platen_shared::{
    id::{AccountId, KeyId, TemplateId},
    key::ApiKey,
    name::Name,
};

use crate::{
    AccountScope, Backend, Operator, Timestamp,
    backend::{Query as _, record, values},
    scoped::Scoped,
};

record! {
    /// A key's record.
    pub struct Key {
        pub id: KeyId,
        pub account: AccountId,
        pub account_name: String,
        pub name: String,
        /// The key's first characters.
        pub prefix: String,
        pub disabled: bool,
        pub created_at: Timestamp,
        #[serde(skip)]
        pub last_used_at: Option<Timestamp>,
    }
}

macro_rules! select_keys {
    ($rest:literal) => {
        concat!(
            "SELECT k.id, account_id, a.name, k.name, prefix, k.disabled_at IS NOT NULL, k.created_at, \
             last_used_at FROM api_keys k JOIN accounts a ON a.id = account_id WHERE expires_at IS NULL ",
            $rest
        )
    };
}

const EVERY: &str = select_keys!("ORDER BY k.rowid");
const OWNER: &str = "SELECT account_id FROM api_keys WHERE id = ?1 AND expires_at IS NULL";
const LIST: Scoped = Scoped::new(select_keys!("AND account_id = ?1 ORDER BY k.rowid DESC"));
const GET: Scoped = Scoped::new(select_keys!("AND account_id = ?1 AND k.id = ?2"));
const CREATE: Scoped = Scoped::new(
    "INSERT INTO api_keys (account_id, id, name, prefix, hash, created_at, last_change) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id",
);
// The time of the first disabling is kept.
const SET_DISABLED: Scoped = Scoped::new(
    "UPDATE api_keys SET disabled_at = CASE WHEN ?3 THEN coalesce(disabled_at, ?4) END, last_change = ?5 \
     WHERE account_id = ?1 AND id = ?2 AND expires_at IS NULL RETURNING id",
);
const DELETE: Scoped = Scoped::new(
    "UPDATE api_keys SET last_change = ?3 WHERE account_id = ?1 AND id = ?2 AND expires_at IS NULL RETURNING id",
);
const CREATE_FOR_TEMPLATE: Scoped = Scoped::new(
    "INSERT INTO api_keys (account_id, id, name, prefix, hash, created_at, expires_at, template_id) \
     SELECT ?1, ?2, 'Render button', ?3, ?4, ?5, ?6, id FROM templates WHERE account_id = ?1 AND id = ?7 \
     RETURNING id",
);
const DELETE_EXPIRED: Scoped =
    Scoped::new("DELETE FROM api_keys WHERE account_id = ?1 AND expires_at <= ?2 RETURNING id");

impl<B: Backend> Operator<'_, B> {
    /// The keys of all accounts, the oldest first.
    pub async fn keys(&self) -> Result<Vec<Key>, B::Error> {
        self.store.backend.all(EVERY, values![]).await
    }

    /// The account that owns a key.
    pub async fn owner_of_key(&self, id: &str) -> Result<Option<AccountId>, B::Error> {
        Ok(self.store.backend.first(OWNER, values![id]).await?.map(|(account,)| account))
    }
}

impl<B: Backend> AccountScope<'_, B> {
    /// Every key, the newest first.
    pub async fn keys(&self) -> Result<Vec<Key>, B::Error> {
        self.all(LIST, values![]).await
    }

    /// One key.
    pub async fn key(&self, id: &str) -> Result<Option<Key>, B::Error> {
        self.first(GET, values![id]).await
    }

    /// Creates a key.
    pub async fn create_key(&self, name: &Name) -> Result<(KeyId, ApiKey), B::Error> {
        let (id, key) = self.random_key()?;
        let change = self.change("created key");
        let values = values![&id, name.as_str(), key.display_prefix(), key.hash(), self.now(), change];
        self.run(CREATE, values).await?;
        Ok((id, key))
    }

    /// Refuses or accepts a key; `false` if there is no such key.
    pub async fn set_key_disabled(&self, id: &str, disabled: bool) -> Result<bool, B::Error> {
        let action = if disabled { "disabled key" } else { "enabled key" };
        self.run(SET_DISABLED, values![id, disabled, self.now(), self.change(action)]).await
    }

    /// Deletes a key; `false` if there is no such key.
    pub async fn delete_key(&self, id: &str) -> Result<bool, B::Error> {
        self.run(DELETE, values![id, self.change("deleted key").deletes()]).await
    }

    /// Creates a key that is valid for a number of seconds and for one template only; `None` if the
    /// account has no such template. Expired keys of the account are deleted first, which
    /// the next call does if this one is interrupted.
    pub async fn create_render_key(
        &self,
        template: &TemplateId,
        seconds: i64,
    ) -> Result<Option<ApiKey>, B::Error> {
        self.run(DELETE_EXPIRED, values![self.now()]).await?;
        let (id, key) = self.random_key()?;
        let expires_at = self.now() + seconds;
        let values = values![&id, key.display_prefix(), key.hash(), self.now(), expires_at, template];
        Ok(self.run(CREATE_FOR_TEMPLATE, values).await?.then_some(key))
    }

    fn random_key(&self) -> Result<(KeyId, ApiKey), B::Error> {
        Ok((KeyId::from_random(self.random()?), ApiKey::from_random(self.random()?)))
    }
}
