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

const LOG: &str = "SELECT l.at, l.actor, a.name, l.action, l.subject, l.id FROM audit l \
    LEFT JOIN accounts a ON a.id = l.account_id WHERE l.id < ?1 ORDER BY l.id DESC LIMIT ?2";

impl<B: Backend> Operator<'_, B> {
    /// The entries before the one with this id, or all, the newest first.
    pub async fn log(&self, before: Option<i64>, max: u32) -> Result<Vec<AuditEntry>, B::Error> {
        self.store.backend.all(LOG, values![before.unwrap_or(i64::MAX), max]).await
    }
}
