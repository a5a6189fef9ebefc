//! The filter of the audit log, as its form has it.

use platen_statements::audit::AuditFilter;

use crate::{
    form::{Field, Form},
    request_filter::{address, day, since, until},
};

/// What was entered into the form.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct AuditForm {
    /// A part of an e-mail address.
    pub(crate) who: String,
    /// A part of an action, a subject or the name of an account.
    pub(crate) what: String,
    /// The first day (UTC).
    pub(crate) from: Field,
    /// The last day (UTC).
    pub(crate) to: Field,
}

impl AuditForm {
    pub(crate) fn of(query: &Form) -> Self {
        let text = |name: &str| query.get(name).unwrap_or_default().trim().to_owned();
        Self { who: text("who"), what: text("what"), from: day(query, "from"), to: day(query, "to") }
    }

    /// The entries to list. An invalid day has no effect.
    pub(crate) fn filter(&self) -> AuditFilter {
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        AuditFilter {
            since: since(&self.from).unwrap_or(0),
            until: until(&self.to),
            actor: given(&self.who),
            text: given(&self.what),
        }
    }

    /// Whether nothing was entered.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields().iter().all(|(_, value)| value.is_empty())
    }

    /// An address of the list: `path` with what was entered, and the id of the entry after which it continues.
    pub(crate) fn address(&self, path: &str, before: Option<i64>) -> String {
        address(path, &self.fields(), before.map(|id| id.to_string()))
    }

    fn fields(&self) -> [(&'static str, &str); 4] {
        [("who", &self.who), ("what", &self.what), ("from", &self.from.value), ("to", &self.to.value)]
    }
}
