//! The limits of an account beside its quota: requests in a minute, and attempts at once.
//!
//! Invariant: the conditions are part of the claim, and what counts is changed by triggers in its transaction, so the
//! limits are never exceeded. The time is that of the database, which all edges share. An account without limits costs
//! the claim two comparisons with NULL.

use platen_shared::id::AccountId;
use serde::{Deserialize, Serialize};

use crate::{
    AccountScope, Backend, Operator, Value,
    backend::{FromValue, Query as _, record, values},
    scope::Scoped,
};

/// The attempt that a claim is for. Accounts with a limit of attempts at once have a row of it while it runs.
#[derive(Debug, Clone, Copy)]
pub struct RunningAttempt {
    /// See [`attempt_id`](crate::attempts::attempt_id).
    pub id: i64,
    /// The time after which it no longer runs, whatever has become of it, in seconds.
    pub max_seconds: u64,
}

/// The limits of an account that has any, and what counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct LimitUsage {
    /// Allowed requests in a minute; `None` is no limit.
    pub requests_per_minute: Option<u64>,
    /// Admitted requests of the current minute.
    pub requests: u64,
    /// Seconds until the current minute ends: 1 to 60, and up to 119 after the clock was set back.
    pub seconds_left: u64,
    /// Allowed attempts at once; `None` is no limit.
    pub concurrency: Option<u64>,
    /// Attempts that run.
    pub running: u64,
}

impl LimitUsage {
    /// The usage with one more request, which was found just before it was counted.
    #[must_use]
    pub(crate) fn with_claim(self) -> Self {
        Self { requests: self.requests + 1, running: self.running + 1, ..self }
    }

    /// Whether the current minute has no request left.
    #[must_use]
    pub fn is_minute_exhausted(&self) -> bool {
        self.requests_per_minute.is_some_and(|limit| self.requests >= limit)
    }

    /// Whether no further attempt may run now.
    #[must_use]
    pub fn is_concurrency_exhausted(&self) -> bool {
        self.concurrency.is_some_and(|limit| self.running >= limit)
    }
}

impl FromValue for LimitUsage {
    fn from_value(value: Value) -> Option<Self> {
        serde_json::from_str(&String::from_value(value)?).ok()
    }
}

/// Admitted requests of the current minute of the account `a`. A minute whose beginning is in the future is the current
/// one too: the clock was set back.
macro_rules! requests_of_minute {
    () => {
        "coalesce((SELECT m.requests FROM usage_minutes m WHERE m.account_id = a.id \
         AND abs(unixepoch() - m.began_at) < 60), 0)"
    };
}
pub(crate) use requests_of_minute;

/// Attempts of the account `a` that run.
macro_rules! running {
    () => {
        "(SELECT count(*) FROM running_attempts r WHERE r.account_id = a.id AND r.ends_at > unixepoch())"
    };
}
pub(crate) use running;

/// Whether the account `a` has no limits.
macro_rules! has_no_limits {
    () => {
        "a.requests_per_minute IS NULL AND a.concurrency IS NULL"
    };
}
pub(crate) use has_no_limits;

/// The condition of a claim on the account `a`.
macro_rules! limits_allow_claim {
    () => {
        concat!(
            "AND (a.requests_per_minute IS NULL OR a.requests_per_minute > ",
            $crate::limits::requests_of_minute!(),
            ") AND (a.concurrency IS NULL OR a.concurrency > ",
            $crate::limits::running!(),
            ") "
        )
    };
}
pub(crate) use limits_allow_claim;

/// The [`LimitUsage`] of the account `a`. `RETURNING` sees it as it was before the triggers of the statement.
macro_rules! limit_usage {
    () => {
        concat!(
            "json_object('requests_per_minute', a.requests_per_minute, 'requests', ",
            $crate::limits::requests_of_minute!(),
            ", 'seconds_left', coalesce((SELECT m.began_at + 60 - unixepoch() FROM usage_minutes m \
             WHERE m.account_id = a.id AND abs(unixepoch() - m.began_at) < 60), 60), \
             'concurrency', a.concurrency, 'running', ",
            $crate::limits::running!(),
            ")"
        )
    };
}
pub(crate) use limit_usage;

const END: &str = "DELETE FROM running_attempts WHERE account_id = ?1 AND attempt_id = ?2";
const SET: &str = "UPDATE accounts SET requests_per_minute = iif(?2, ?3, requests_per_minute), \
    concurrency = iif(?4, ?5, concurrency), last_change = ?6 WHERE id = ?1 RETURNING id";
const OF_ACCOUNT: Scoped = Scoped::new(
    "SELECT requests_per_minute, concurrency, (SELECT count(*) FROM running_attempts \
     WHERE account_id = ?1 AND ends_at > unixepoch()) FROM accounts WHERE id = ?1",
);

/// Ends a running attempt. Its row in the log ends it too, if this statement fails.
pub async fn end<B: Backend>(backend: &B, account: &AccountId, attempt_id: i64) -> Result<(), B::Error> {
    backend.run(END, values![account, attempt_id]).await?;
    Ok(())
}

/// A change of the limits: of each `None` keeps it, and `Some(None)` removes it.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewLimits {
    /// Requests in a minute.
    pub requests_per_minute: Option<Option<u32>>,
    /// Attempts at once.
    pub concurrency: Option<Option<u32>>,
}

impl NewLimits {
    /// The text in the audit log.
    fn subject(self) -> String {
        let text = |limit: Option<Option<u32>>, what: &str| {
            limit.map(|limit| match limit {
                Some(limit) => format!("{limit} {what}"),
                None => format!("any number of {what}"),
            })
        };
        let parts =
            [text(self.requests_per_minute, "requests a minute"), text(self.concurrency, "requests at once")];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

record! {
    /// The limits of an account.
    pub struct Limits {
        /// Requests in a minute; `None` is no limit.
        pub requests_per_minute: Option<u64>,
        /// Attempts at once; `None` is no limit.
        pub concurrency: Option<u64>,
        /// Attempts that run, if they are limited.
        pub running: u64,
    }
}

impl<B: Backend> Operator<'_, B> {
    /// Changes the limits of an account; `false` if there is no such account.
    pub async fn set_limits(&self, id: &str, limits: NewLimits) -> Result<bool, B::Error> {
        let change = self.change("changed limits").account(id).subject(&limits.subject());
        let NewLimits { requests_per_minute, concurrency } = limits;
        let values = values![
            id,
            requests_per_minute.is_some(),
            requests_per_minute.flatten(),
            concurrency.is_some(),
            concurrency.flatten(),
            change
        ];
        self.store.backend.run(SET, values).await
    }
}

impl<B: Backend> AccountScope<'_, B> {
    /// The limits.
    pub async fn limits(&self) -> Result<Option<Limits>, B::Error> {
        self.first(OF_ACCOUNT, Vec::new()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_what_it_changes() {
        let subject =
            |requests_per_minute, concurrency| NewLimits { requests_per_minute, concurrency }.subject();
        assert_eq!(subject(Some(Some(60)), None), "60 requests a minute");
        assert_eq!(subject(Some(None), Some(Some(5))), "any number of requests a minute, 5 requests at once");
    }
}
