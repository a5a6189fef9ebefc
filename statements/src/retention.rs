//! How long versions of templates, the audit log and attempts are kept.
//!
//! The schema's triggers delete what is due in bounded steps: with each attempt, each save of a template and each
//! entry of the audit log. [`Operator::prune`] is one more step.

use crate::{
    Backend, Operator, Store,
    backend::{Query as _, record, values},
};

record! {
    /// The settings. `None` is no limit.
    #[derive(PartialEq, Eq)]
    pub struct Retention {
        /// Earlier versions of each template.
        pub versions: Option<u32>,
        /// Days for which entries of the audit log are kept.
        pub audit_days: Option<u32>,
        /// Days for which attempts are kept.
        pub attempt_days: u32,
    }
}

record! {
    /// Numbers of records that settings delete.
    #[derive(Copy, PartialEq, Eq)]
    pub struct Due {
        pub versions: u64,
        pub audit_entries: u64,
        pub attempts: u64,
    }
}

/// A setting that is not a number within its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRetention {
    /// The number of versions.
    #[error("the number of versions must be a whole number from 1 to {MAX_VERSIONS}, or unlimited")]
    Versions,
    /// The days of the audit log.
    #[error(
        "the days of the audit log must be a whole number from {MIN_AUDIT_DAYS} to {MAX_DAYS}, or unlimited"
    )]
    AuditDays,
    /// The days of attempts.
    #[error("the days of attempts must be a whole number from 1 to {MAX_DAYS}")]
    AttemptDays,
}

/// Larger numbers of versions are not different from no limit.
const MAX_VERSIONS: u32 = 10_000;
/// About ten years.
const MAX_DAYS: u32 = 3_650;
/// So that recent entries cannot be deleted by a change of the setting.
const MIN_AUDIT_DAYS: u32 = 30;

/// A whole number within bounds.
fn number(text: &str, min: u32, max: u32) -> Option<u32> {
    text.trim().parse().ok().filter(|number| (min..=max).contains(number))
}

fn is_unlimited(text: &str) -> bool {
    matches!(text.trim(), "" | "unlimited")
}

/// Reads a number of versions; empty or `unlimited` for no limit.
pub fn parse_versions(text: &str) -> Result<Option<u32>, InvalidRetention> {
    if is_unlimited(text) {
        return Ok(None);
    }
    number(text, 1, MAX_VERSIONS).map(Some).ok_or(InvalidRetention::Versions)
}

/// Reads the days of the audit log; empty or `unlimited` for no limit.
pub fn parse_audit_days(text: &str) -> Result<Option<u32>, InvalidRetention> {
    if is_unlimited(text) {
        return Ok(None);
    }
    number(text, MIN_AUDIT_DAYS, MAX_DAYS).map(Some).ok_or(InvalidRetention::AuditDays)
}

/// Reads the days of attempts.
pub fn parse_attempt_days(text: &str) -> Result<u32, InvalidRetention> {
    number(text, 1, MAX_DAYS).ok_or(InvalidRetention::AttemptDays)
}

impl Retention {
    /// The settings in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let limit = |number: Option<u32>| number.map_or_else(|| "unlimited".to_owned(), |it| it.to_string());
        format!(
            "versions {}, audit days {}, attempt days {}",
            limit(self.versions),
            limit(self.audit_days),
            self.attempt_days
        )
    }
}

impl Due {
    /// Whether nothing is deleted.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        (self.versions, self.audit_entries, self.attempts) == (0, 0, 0)
    }
}

const GET: &str = "SELECT versions, audit_days, attempt_days FROM retention";
const SET: &str = "UPDATE retention SET versions = ?1, audit_days = ?2, attempt_days = ?3, last_change = ?4 \
    WHERE versions IS NOT ?1 OR audit_days IS NOT ?2 OR attempt_days <> ?3 RETURNING id";
const DUE: &str = "SELECT coalesce((SELECT sum(n - ?1) FROM (SELECT count(*) AS n FROM template_versions GROUP BY template_id) \
    WHERE n > ?1), 0), (SELECT count(*) FROM audit WHERE at < ?4 - 86400 * ?2), \
    (SELECT count(*) FROM attempts WHERE at < ?4 - 86400 * ?3)";
const PRUNE: &str = "UPDATE retention SET pruned_at = ?1 RETURNING EXISTS (SELECT 1 FROM version_excess) \
    OR coalesce((SELECT at FROM audit ORDER BY id LIMIT 1) < ?1 - 86400 * audit_days, 0) \
    OR EXISTS (SELECT 1 FROM template_file_uses WHERE uses = 0 AND put_at < ?1 - 86400) \
    OR EXISTS (SELECT 1 FROM attempts WHERE at < ?1 - 86400 * attempt_days)";

impl<B: Backend> Store<B> {
    /// The settings.
    pub async fn retention(&self) -> Result<Retention, B::Error> {
        let default = Retention { versions: None, audit_days: None, attempt_days: 30 };
        Ok(self.backend.first(GET, values![]).await?.unwrap_or(default))
    }
}

impl<B: Backend> Operator<'_, B> {
    /// The settings.
    pub async fn retention(&self) -> Result<Retention, B::Error> {
        self.store.retention().await
    }

    /// What the settings delete of what is stored now.
    pub async fn due(&self, settings: &Retention) -> Result<Due, B::Error> {
        let Retention { versions, audit_days, attempt_days } = *settings;
        let row = self.store.backend.first(DUE, values![versions, audit_days, attempt_days, self.store.now]);
        Ok(row.await?.unwrap_or(Due { versions: 0, audit_entries: 0, attempts: 0 }))
    }

    /// Changes the settings; `false` if they are the same.
    pub async fn set_retention(&self, settings: &Retention) -> Result<bool, B::Error> {
        let Retention { versions, audit_days, attempt_days } = *settings;
        let change = self.change("changed retention").subject(&settings.summary());
        self.store.backend.run(SET, values![versions, audit_days, attempt_days, change]).await
    }

    /// Deletes some of what is due, at most some hundred records. Returns whether more is due.
    pub async fn prune(&self) -> Result<bool, B::Error> {
        let row = self.store.backend.run_returning(PRUNE, values![self.store.now]).await?;
        Ok(row.is_some_and(|(more,)| more))
    }
}
