//! The last change of a row, from which the schema's triggers write the audit entry.

use platen_shared::id::SessionId;
use serde_json::{Value as Json, json};

use crate::Value;

/// What the column `last_change` is set to: a statement that sets it also writes an audit entry.
#[derive(Debug, Clone)]
pub(crate) struct Change(Json);

impl Change {
    pub(crate) fn new(at: i64, actor: &str, action: &str) -> Self {
        Self(json!({ "at": at, "actor": actor, "action": action }))
    }

    pub(crate) fn account(mut self, account: &str) -> Self {
        self.0["account"] = account.into();
        self
    }

    /// Replaces the row's name or e-mail address.
    pub(crate) fn subject(mut self, subject: &str) -> Self {
        self.0["subject"] = subject.into();
        self
    }

    /// The trigger lets another key expire at this time.
    pub(crate) fn rolls(mut self, key: &str, until: i64) -> Self {
        self.0["rolls"] = key.into();
        self.0["rolled_until"] = until.into();
        self
    }

    /// The trigger deletes the row once the entry is written.
    pub(crate) fn deletes(mut self) -> Self {
        self.0["deletes"] = true.into();
        self
    }

    /// The trigger ends the user's sessions, except for this one.
    pub(crate) fn ends_sessions_except(mut self, session: &SessionId) -> Self {
        self.0["ends_sessions"] = true.into();
        self.0["kept_session"] = session.as_str().into();
        self
    }
}

impl From<Change> for Value {
    fn from(change: Change) -> Self {
        change.0.to_string().into()
    }
}
