//! API keys.
//!
//! Invariant: a key's hash and first characters are stored, never the key. Temporary keys, which the dashboard
//! makes for one render, are neither listed nor changed; nor are links, which the same table has ([`links`](crate::links)).

use platen_shared::{
    id::{AccountId, KeyId, TemplateId},
    key::ApiKey,
    name::Name,
};

use crate::{
    AccountScope, Backend, Operator, OwnerScope, Timestamp,
    backend::{Query as _, record, values},
    scope::Scoped,
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
        /// The time from which it is refused; `None` if it does not expire.
        pub expires_at: Option<Timestamp>,
    }
}

/// Whether requests with a key are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// They are.
    Active,
    /// A user has disabled the key.
    Disabled,
    /// The time of its expiry is over.
    Expired,
}

impl KeyState {
    /// The status in one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disabled => "disabled",
            Self::Expired => "expired",
        }
    }
}

impl Key {
    /// The state at a time in whole seconds since 1970 (UTC).
    #[must_use]
    pub fn state(&self, now: i64) -> KeyState {
        match self.expires_at {
            Some(expires_at) if expires_at.0 <= now => KeyState::Expired,
            _ if self.disabled => KeyState::Disabled,
            _ => KeyState::Active,
        }
    }
}

macro_rules! select_keys {
    ($rest:literal) => {
        concat!(
            "SELECT k.id, account_id, a.name, k.name, prefix, k.disabled_at IS NOT NULL, k.created_at, \
             last_used_at, expires_at FROM api_keys k JOIN accounts a ON a.id = account_id WHERE kind = 'key' ",
            $rest
        )
    };
}

const EVERY: &str = select_keys!("AND (?1 IS NULL OR account_id = ?1) ORDER BY k.rowid");
const OWNER: &str = "SELECT account_id FROM api_keys WHERE id = ?1 AND kind = 'key'";
const OWNER_BY_HASH: &str = "SELECT account_id FROM api_keys WHERE hash = ?1 AND kind = 'key'";
const LIST: Scoped = Scoped::new(select_keys!("AND account_id = ?1 ORDER BY k.rowid DESC"));
const GET: Scoped = Scoped::new(select_keys!("AND account_id = ?1 AND k.id = ?2"));
const CREATE: Scoped = Scoped::new(
    "INSERT INTO api_keys (account_id, id, name, prefix, hash, created_at, last_change, expires_at) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) RETURNING id",
);
// The new key has the name and the lifetime of the other one, which the trigger `api_keys_rolled` lets expire.
const ROLL: Scoped = Scoped::new(
    "INSERT INTO api_keys (account_id, id, name, prefix, hash, created_at, last_change, expires_at) \
     SELECT ?1, ?2, name, ?3, ?4, ?5, ?6, ?5 + expires_at - created_at FROM api_keys \
     WHERE account_id = ?1 AND id = ?7 AND kind = 'key' RETURNING id",
);
const RENAME: Scoped = Scoped::new(
    "UPDATE api_keys SET name = ?3, last_change = ?4 WHERE account_id = ?1 AND id = ?2 AND kind = 'key' RETURNING id",
);
const SET_EXPIRY: Scoped = Scoped::new(
    "UPDATE api_keys SET expires_at = ?3, last_change = ?4 \
     WHERE account_id = ?1 AND id = ?2 AND kind = 'key' RETURNING id",
);
// The time of the first disabling is kept.
const SET_DISABLED: Scoped = Scoped::new(
    "UPDATE api_keys SET disabled_at = CASE WHEN ?3 THEN coalesce(disabled_at, ?4) END, last_change = ?5 \
     WHERE account_id = ?1 AND id = ?2 AND kind = 'key' RETURNING id",
);
const DELETE: Scoped = Scoped::new(
    "UPDATE api_keys SET last_change = ?3 WHERE account_id = ?1 AND id = ?2 AND kind = 'key' RETURNING id",
);
const CREATE_TEMPORARY: Scoped = Scoped::new(
    "INSERT INTO api_keys (account_id, id, name, prefix, hash, created_at, expires_at, template_id, kind) \
     SELECT ?1, ?2, 'Render button', ?3, ?4, ?5, ?6, ?7, 'temporary' \
     WHERE ?7 IS NULL OR EXISTS (SELECT 1 FROM templates WHERE account_id = ?1 AND id = ?7) RETURNING id",
);
const DELETE_EXPIRED: Scoped = Scoped::new(
    "DELETE FROM api_keys WHERE account_id = ?1 AND kind = 'temporary' AND expires_at <= ?2 RETURNING id",
);

impl<B: Backend> Operator<'_, B> {
    /// The keys of all accounts or of one, the oldest first.
    pub async fn keys(&self, account: Option<&AccountId>) -> Result<Vec<Key>, B::Error> {
        self.store.backend.all(EVERY, values![account]).await
    }

    /// The account that owns a key.
    pub async fn owner_of_key(&self, id: &str) -> Result<Option<AccountId>, B::Error> {
        Ok(self.store.backend.first(OWNER, values![id]).await?.map(|(account,)| account))
    }

    /// The account of a key, whether the key is accepted or not.
    pub async fn account_of_key(&self, key: &ApiKey) -> Result<Option<AccountId>, B::Error> {
        Ok(self.store.backend.first(OWNER_BY_HASH, values![key.hash()]).await?.map(|(account,)| account))
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

    /// Creates a key that expires at a time, or does not expire.
    pub async fn create_key(
        &self,
        name: &Name,
        expires_at: Option<i64>,
    ) -> Result<(KeyId, ApiKey), B::Error> {
        let (id, key) = self.random_key()?;
        let (change, now) = (self.change("created key"), self.now());
        let values = values![&id, name.as_str(), key.display_prefix(), key.hash(), now, change, expires_at];
        self.run(CREATE, values).await?;
        Ok((id, key))
    }

    /// Renames a key; `false` if there is no such key.
    pub async fn rename_key(&self, id: &str, name: &Name) -> Result<bool, B::Error> {
        self.run(RENAME, values![id, name.as_str(), self.change("renamed key")]).await
    }

    /// Creates a key that is valid for a number of seconds, and with a template for that one only; `None` if the
    /// account has no such template. Expired keys of the account are deleted first, which
    /// the next call does if this one is interrupted.
    pub async fn create_render_key(
        &self,
        template: Option<&TemplateId>,
        seconds: i64,
    ) -> Result<Option<ApiKey>, B::Error> {
        self.run(DELETE_EXPIRED, values![self.now()]).await?;
        let (id, key) = self.random_key()?;
        let expires_at = self.now() + seconds;
        let values = values![&id, key.display_prefix(), key.hash(), self.now(), expires_at, template];
        Ok(self.run(CREATE_TEMPORARY, values).await?.then_some(key))
    }

    fn random_key(&self) -> Result<(KeyId, ApiKey), B::Error> {
        Ok((KeyId::from_random(self.random()?), ApiKey::from_random(self.random()?)))
    }
}

/// What takes a key away, now or later.
impl<B: Backend> OwnerScope<'_, B> {
    /// Creates a key in place of another one, which expires at `until` if not earlier; `None` if there is no such
    /// key. The new key has the name of the other one, and if that one expires, its lifetime.
    pub async fn roll_key(&self, id: &str, until: i64) -> Result<Option<(KeyId, ApiKey)>, B::Error> {
        let (new_id, key) = self.random_key()?;
        let change = self.change("rolled key").rolls(id, until);
        let values = values![&new_id, key.display_prefix(), key.hash(), self.now(), change, id];
        Ok(self.run(ROLL, values).await?.then_some((new_id, key)))
    }

    /// Sets when a key expires, or that it does not; `false` if there is no such key.
    pub async fn set_key_expiry(&self, id: &str, expires_at: Option<i64>) -> Result<bool, B::Error> {
        self.run(SET_EXPIRY, values![id, expires_at, self.change("changed expiry of key")]).await
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
}
