//! The audit log. The schema's triggers write it from `last_change`.

use crate::{
    Backend, Operator, Timestamp,
    backend::{Query as _, record, values},
};

record! {
    /// An entry of the audit log.
    pub struct AuditEntry {
        pub at: Timestamp,
        /// An e-mail address, or `command line`.
        pub actor: String,
        /// The name of the account that the change is about.
        pub account: Option<String>,
        /// Such as `created key`.
        pub action: String,
        /// The changed row's name or address, or its new value.
        pub subject: String,
        pub id: i64,
    }
}

/// Which entries a list has. Texts are found without regard to the case of ASCII letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditFilter {
    /// The first time, in whole seconds since 1970.
    pub since: i64,
    /// The last time, included.
    pub until: i64,
    /// A part of the actor.
    pub actor: Option<String>,
    /// A part of the action, of its subject, or of the account's name.
    pub text: Option<String>,
}

const LOG: &str = "SELECT l.at, l.actor, a.name, l.action, l.subject, l.id FROM audit l \
    LEFT JOIN accounts a ON a.id = l.account_id WHERE l.id < ?1 AND l.at >= ?3 AND l.at <= ?4 \
    AND (?5 IS NULL OR instr(lower(l.actor), lower(?5))) \
    AND (?6 IS NULL OR instr(lower(l.action || char(10) || l.subject || char(10) || coalesce(a.name, '')), lower(?6))) \
    ORDER BY l.id DESC LIMIT ?2";

impl<B: Backend> Operator<'_, B> {
    /// The entries of a filter before the one with this id, or all, the newest first.
    pub async fn log(
        &self,
        filter: &AuditFilter,
        before: Option<i64>,
        max: u32,
    ) -> Result<Vec<AuditEntry>, B::Error> {
        let AuditFilter { since, until, actor, text } = filter;
        let values =
            values![before.unwrap_or(i64::MAX), max, *since, *until, actor.as_deref(), text.as_deref()];
        self.store.backend.all(LOG, values).await
    }
}
