//! What one account owns: keys and usage. Templates are in [`super::templates`].

use std::{collections::HashMap, ops::Deref};

use platen_component::database::{Database, DatabaseError};
use platen_statements::{AccountScope, keys, usage::AttemptEntry};

use crate::{
    chart::{Chart, Day},
    clock::{self, DAY, Timestamp},
    pages::{
        keys::Key,
        usage::{Attempt, Cursor, MonthlyUsage},
    },
};

/// Days that the usage page shows. The database keeps attempts for as long.
const DAYS_SHOWN: i64 = 30;

/// The account of the current user.
pub(crate) struct Account<'s>(pub(super) AccountScope<'s, Database>);

impl<'s> Deref for Account<'s> {
    type Target = AccountScope<'s, Database>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Account<'_> {
    /// Every key, the newest first.
    pub(crate) async fn keys(&self) -> Result<Vec<Key>, DatabaseError> {
        Ok(self.0.keys().await?.into_iter().map(key).collect())
    }

    /// One key.
    pub(crate) async fn key(&self, id: &str) -> Result<Option<Key>, DatabaseError> {
        Ok(self.0.key(id).await?.map(key))
    }

    /// The attempts of this month and the quota.
    pub(crate) async fn month(&self) -> Result<MonthlyUsage, DatabaseError> {
        let (quota, attempts) = self.0.month().await?;
        Ok(MonthlyUsage { now: Timestamp(self.now()), quota, attempts })
    }

    /// The attempts of the last days, as bars.
    pub(crate) async fn days(&self) -> Result<Chart, DatabaseError> {
        let counted = self.0.days(self.now() - (DAYS_SHOWN - 1) * DAY).await?.into_iter();
        let mut counted: HashMap<_, _> = counted.map(|day| (day.day, (day.attempts, day.failures))).collect();
        let days = clock::last_days(self.now(), DAYS_SHOWN).into_iter().map(|day| {
            let (attempts, failures) = counted.remove(&day).unwrap_or_default();
            Day { date: day, attempts, failures }
        });
        Ok(Chart::new(days.collect()))
    }

    /// The attempts before a position in the list, the newest first.
    pub(crate) async fn attempts(
        &self,
        failures: bool,
        before: Option<Cursor>,
        max: u32,
    ) -> Result<Vec<Attempt>, DatabaseError> {
        let since = self.now() - DAYS_SHOWN * DAY;
        let before = before.map(|cursor| (cursor.at, cursor.id));
        Ok(self.0.attempts(failures, since, before, max).await?.into_iter().map(attempt).collect())
    }
}

fn key(key: keys::Key) -> Key {
    Key {
        id: key.id.to_string(),
        name: key.name,
        prefix: key.prefix,
        created: Timestamp(key.created_at.0),
        last_used: key.last_used_at.map(|at| Timestamp(at.0)),
        disabled: key.disabled,
    }
}

fn attempt(entry: AttemptEntry) -> Attempt {
    let AttemptEntry { id, at, key_name, endpoint, format, status, counted, ms, bytes } = entry;
    Attempt {
        id,
        at: Timestamp(at.0),
        key_name,
        endpoint,
        format,
        status,
        counted,
        duration_ms: ms,
        size_bytes: bytes,
    }
}
