//! Links, which are rows of the table of keys, so that attempts, usage and the audit log have them as they have keys.
//!
//! Invariant: no request can present a link as its key: what the table has in place of a key's hash is the link's id, and a hash
//! has another length. The schema checks it. A secret is read to verify or to sign an address, and shown when it is made.

use std::collections::{BTreeMap, BTreeSet};

use platen_shared::{
    id::{AccountId, TemplateId},
    link::{LinkAddress, LinkFormats, LinkId, LinkSecret},
    name::Name,
};

use crate::{
    AccountScope, Backend, DataError, Operator, OwnerScope, Row, Timestamp, Value,
    backend::{FromRow, FromValue, Query as _, record, values},
    scope::Scoped,
};

record! {
    /// A link's record.
    pub struct Link {
        pub id: LinkId,
        pub account: AccountId,
        pub account_name: String,
        pub name: String,
        pub template: TemplateId,
        pub template_name: String,
        /// The formats of its files.
        pub formats: LinkFormats,
        /// Seconds for which a file may be cached.
        pub max_age: u32,
        /// Attempts in a day (UTC); `None` is no limit.
        pub daily_limit: Option<u32>,
        /// Attempts of this day (UTC), with those that have not ended.
        pub attempts_today: u64,
        pub disabled: bool,
        pub created_at: Timestamp,
        #[serde(skip)]
        pub last_used_at: Option<Timestamp>,
        /// The time until which the secret before the last roll is good as well.
        pub old_secret_until: Option<Timestamp>,
    }
}

/// What of a link can be changed, beside its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSettings {
    /// The formats of its files.
    pub formats: LinkFormats,
    /// Seconds for which a file may be cached.
    pub max_age: u32,
    /// Attempts in a day (UTC); `None` is no limit.
    pub daily_limit: Option<u32>,
}

/// What an address of a link is verified with: the link, and what is needed of its template.
#[derive(Debug, Clone)]
pub struct SignedLink {
    /// Its account.
    pub account: AccountId,
    /// Its template.
    pub template: TemplateId,
    /// The formats of its files.
    pub formats: LinkFormats,
    /// Seconds for which a file may be cached.
    pub max_age: u32,
    secret: LinkSecret,
    old_secret: Option<LinkSecret>,
    old_secret_until: Option<Timestamp>,
    /// The placeholders that need a value, by field; see [`TemplateRecord`](platen_shared::template_record::TemplateRecord).
    pub placeholders: BTreeMap<String, Vec<String>>,
    /// The names that values may have.
    pub names: BTreeSet<String>,
}

impl SignedLink {
    /// Whether an address is signed with a secret that is good at this time, in whole seconds since 1970 (UTC).
    #[must_use]
    pub fn has_signed(&self, address: &LinkAddress, now: i64) -> bool {
        let old =
            self.old_secret.as_ref().filter(|_| self.old_secret_until.is_some_and(|until| now < until.0));
        [Some(&self.secret), old].into_iter().flatten().any(|secret| address.is_signed_with(secret))
    }
}

/// A statement that reads links at the time `$now`.
macro_rules! select_links {
    ($now:literal, $rest:literal) => {
        concat!(
            "SELECT k.id, k.account_id, a.name, k.name, t.id, t.name, formats, max_age, daily_limit, \
             coalesce((SELECT d.attempts FROM link_days d WHERE d.link_id = k.id AND d.day = date(",
            $now,
            ", 'unixepoch')), 0), k.disabled_at IS NOT NULL, k.created_at, last_used_at, iif(old_secret_until > ",
            $now,
            ", old_secret_until, NULL) FROM api_keys k JOIN accounts a ON a.id = k.account_id \
             JOIN templates t ON t.id = k.template_id AND t.account_id = k.account_id WHERE k.kind = 'link' ",
            $rest
        )
    };
}

const EVERY: &str = select_links!("?1", "AND (?2 IS NULL OR k.account_id = ?2) ORDER BY k.rowid");
const OWNER: &str = "SELECT account_id FROM api_keys WHERE id = ?1 AND kind = 'link'";
const LIST: Scoped = Scoped::new(select_links!(
    "?2",
    "AND k.account_id = ?1 AND (?3 IS NULL OR t.id = ?3) ORDER BY k.rowid DESC"
));
const GET: Scoped = Scoped::new(select_links!("?2", "AND k.account_id = ?1 AND k.id = ?3"));
const SECRET: Scoped =
    Scoped::new("SELECT secret FROM api_keys WHERE account_id = ?1 AND id = ?2 AND kind = 'link'");
const CREATE: Scoped = Scoped::new(
    "INSERT INTO api_keys (account_id, id, kind, hash, prefix, name, template_id, formats, max_age, daily_limit, secret, \
     created_at, last_change) SELECT ?1, ?2, 'link', ?2, substr(?2, 1, 8), ?3, id, ?5, ?6, ?7, ?8, ?9, ?10 FROM templates \
     WHERE account_id = ?1 AND id = ?4 RETURNING id",
);
const CHANGE: Scoped = Scoped::new(
    "UPDATE api_keys SET name = ?3, formats = ?4, max_age = ?5, daily_limit = ?6, last_change = ?7 \
     WHERE account_id = ?1 AND id = ?2 AND kind = 'link' RETURNING id",
);
const ROLL: Scoped = Scoped::new(
    "UPDATE api_keys SET old_secret = secret, old_secret_until = ?3, secret = ?4, last_change = ?5 \
     WHERE account_id = ?1 AND id = ?2 AND kind = 'link' RETURNING id",
);
// The time of the first disabling is kept.
const SET_DISABLED: Scoped = Scoped::new(
    "UPDATE api_keys SET disabled_at = CASE WHEN ?3 THEN coalesce(disabled_at, ?4) END, last_change = ?5 \
     WHERE account_id = ?1 AND id = ?2 AND kind = 'link' RETURNING id",
);
const DELETE: Scoped = Scoped::new(
    "UPDATE api_keys SET last_change = ?3 WHERE account_id = ?1 AND id = ?2 AND kind = 'link' RETURNING id",
);
const FIND: &str = "SELECT k.account_id, k.template_id, formats, max_age, secret, old_secret, old_secret_until, placeholders, names \
    FROM api_keys k JOIN accounts a ON a.id = k.account_id \
    JOIN templates t ON t.id = k.template_id AND t.account_id = k.account_id \
    WHERE k.hash = ?1 AND k.kind = 'link' AND k.disabled_at IS NULL AND a.disabled_at IS NULL";

/// What the addresses of a link are verified with; `None` if there is no such link, or it or its account is disabled.
pub async fn find<B: Backend>(backend: &B, id: &LinkId) -> Result<Option<SignedLink>, B::Error> {
    backend.first(FIND, values![id]).await
}

impl<B: Backend> Operator<'_, B> {
    /// The links of all accounts or of one, the oldest first.
    pub async fn links(&self, account: Option<&AccountId>) -> Result<Vec<Link>, B::Error> {
        self.store.backend.all(EVERY, values![self.store.now, account]).await
    }

    /// The account that owns a link.
    pub async fn owner_of_link(&self, id: &str) -> Result<Option<AccountId>, B::Error> {
        Ok(self.store.backend.first(OWNER, values![id]).await?.map(|(account,)| account))
    }
}

impl<B: Backend> AccountScope<'_, B> {
    /// Every link, or those of one template, the newest first.
    pub async fn links(&self, template: Option<&str>) -> Result<Vec<Link>, B::Error> {
        self.all(LIST, values![self.now(), template]).await
    }

    /// One link.
    pub async fn link(&self, id: &str) -> Result<Option<Link>, B::Error> {
        self.first(GET, values![self.now(), id]).await
    }

    /// The secret of a link, with which an address is signed for its account.
    pub async fn link_secret(&self, id: &str) -> Result<Option<LinkSecret>, B::Error> {
        Ok(self.first(SECRET, values![id]).await?.map(|(secret,)| secret))
    }

    /// Creates a link for a template; `None` if the account has no such template.
    pub async fn create_link(
        &self,
        template: &TemplateId,
        name: &Name,
        settings: &LinkSettings,
    ) -> Result<Option<(LinkId, LinkSecret)>, B::Error> {
        let (id, secret) = (LinkId::from_random(self.random()?), LinkSecret::from_random(self.random()?));
        let LinkSettings { formats, max_age, daily_limit } = settings;
        let values = values![
            &id,
            name.as_str(),
            template,
            formats,
            *max_age,
            *daily_limit,
            &secret,
            self.now(),
            self.change("created link")
        ];
        Ok(self.run(CREATE, values).await?.then_some((id, secret)))
    }
}

/// What takes a link away, now or later.
impl<B: Backend> OwnerScope<'_, B> {
    /// Changes a link; `false` if there is no such link.
    pub async fn change_link(
        &self,
        id: &str,
        name: &Name,
        settings: &LinkSettings,
    ) -> Result<bool, B::Error> {
        let LinkSettings { formats, max_age, daily_limit } = settings;
        let change = self.change("changed link");
        self.run(CHANGE, values![id, name.as_str(), formats, *max_age, *daily_limit, change]).await
    }

    /// Gives a link a new secret. The one until now is good until a time as well, and one before it no longer. `None` if there
    /// is no such link.
    pub async fn roll_link(&self, id: &str, until: i64) -> Result<Option<LinkSecret>, B::Error> {
        let secret = LinkSecret::from_random(self.random()?);
        let values = values![id, until, &secret, self.change("rolled secret of link")];
        Ok(self.run(ROLL, values).await?.then_some(secret))
    }

    /// Refuses or accepts a link; `false` if there is no such link.
    pub async fn set_link_disabled(&self, id: &str, disabled: bool) -> Result<bool, B::Error> {
        let action = if disabled { "disabled link" } else { "enabled link" };
        self.run(SET_DISABLED, values![id, disabled, self.now(), self.change(action)]).await
    }

    /// Deletes a link; `false` if there is no such link.
    pub async fn delete_link(&self, id: &str) -> Result<bool, B::Error> {
        self.run(DELETE, values![id, self.change("deleted link").deletes()]).await
    }
}

impl FromRow for SignedLink {
    fn from_row(row: &mut Row) -> Result<Self, DataError> {
        Ok(Self {
            account: row.next()?,
            template: row.next()?,
            formats: row.next()?,
            max_age: row.next()?,
            secret: row.next()?,
            old_secret: row.next()?,
            old_secret_until: row.next()?,
            placeholders: row.next()?,
            names: row.next()?,
        })
    }
}

macro_rules! texts {
    ($($type:ty: $read:expr, $written:ident;)*) => { $(
        impl FromValue for $type {
            fn from_value(value: Value) -> Option<Self> {
                $read(&String::from_value(value)?)
            }
        }

        impl From<&$type> for Value {
            fn from(it: &$type) -> Self {
                it.$written().to_string().into()
            }
        }
    )* };
}
texts! {
    LinkId: LinkId::parse, as_str;
    LinkSecret: LinkSecret::parse, expose;
    LinkFormats: |text: &str| text.parse().ok(), to_string;
}
