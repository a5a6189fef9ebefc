//! The filters of the list of requests and of the audit log, as their forms have them.

use platen_statements::{
    Timestamp,
    audit::AuditFilter,
    requests::{Cursor, RequestFilter, StatusFilter},
};

use crate::{
    form::{Field, Form},
    format::DAY_SECONDS,
};

/// The statuses of requests, and each in a word or two.
pub(crate) const STATUSES: [(u16, &str); 12] = [
    (200, "OK"),
    (400, "Invalid"),
    (404, "Not found"),
    (413, "Too large"),
    (415, "Wrong content type"),
    (422, "Page failed"),
    (429, "Over limit"),
    (499, "Cancelled"),
    (500, "Error"),
    (502, "Renderer failed"),
    (503, "Busy"),
    (504, "Timed out"),
];

/// A status in a word or two.
pub(crate) fn status_text(status: u16) -> &'static str {
    STATUSES.iter().find(|(known, _)| *known == status).map_or("Error", |(_, text)| text)
}

/// The values of `status` that are not a single one, and each in words.
const KINDS: [(&str, &str); 3] = [("", "All"), ("ok", "Successful"), ("failed", "Failed or refused")];

/// The values of `status`, and each in words.
pub(crate) fn status_choices() -> Vec<(String, String)> {
    let kinds = KINDS.map(|(value, text)| (value.to_owned(), text.to_owned()));
    let failures =
        STATUSES.iter().skip(1).map(|(status, text)| (status.to_string(), format!("{status} {text}")));
    kinds.into_iter().chain(failures).collect()
}

/// Those of [`status_choices`] that are always one click away, and the one that is chosen.
pub(crate) fn status_chips(chosen: &str) -> Vec<(String, String)> {
    let mut choices = status_choices();
    choices.retain(|(value, _)| value == chosen || KINDS.iter().any(|(kind, _)| kind == value));
    choices
}

/// The fields of the form of requests, in the order of addresses. `status` is empty, `ok`, `failed` or a status, `key` and
/// `template` are ids, and `id` is the beginning of a request id.
pub(crate) const REQUEST_FIELDS: &[&str] = &["status", "key", "template", "from", "to", "id"];
/// The fields of the form of the audit log. `who` is a part of an e-mail address; `what` of an action, a subject or the name of
/// an account.
pub(crate) const AUDIT_FIELDS: &[&str] = &["who", "what", "from", "to"];

/// What was entered into the form of a list.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct FilterForm {
    /// Names and values, without spaces around them.
    fields: Vec<(&'static str, String)>,
    /// The first day (UTC).
    pub(crate) from: Field,
    /// The last day (UTC).
    pub(crate) to: Field,
}

impl FilterForm {
    pub(crate) fn of(query: &Form, names: &[&'static str]) -> Self {
        let text = |name: &str| query.get(name).unwrap_or_default().trim().to_owned();
        let fields = names.iter().map(|name| (*name, text(name))).collect();
        let (from, mut to) = (day(query, "from"), day(query, "to"));
        if since(&to).zip(since(&from)).is_some_and(|(to, from)| to < from) {
            to = Field::invalid(to.value, "the last day is before the first one");
        }
        Self { fields, from, to }
    }

    /// What was entered into a field; empty if nothing was.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.fields.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    fn given(&self, name: &str) -> Option<String> {
        Some(self.value(name).to_owned()).filter(|text| !text.is_empty())
    }

    /// The requests to list, of those since `oldest`, in seconds since 1970. An invalid day has no effect.
    pub(crate) fn requests(&self, oldest: i64) -> RequestFilter {
        RequestFilter {
            since: since(&self.from).unwrap_or(oldest),
            until: until(&self.to),
            status: match self.value("status") {
                "ok" => StatusFilter::Successful,
                "failed" => StatusFilter::Failed,
                status => status.parse().map_or(StatusFilter::Any, StatusFilter::Is),
            },
            key: self.given("key"),
            template: self.given("template"),
            request_id: self.given("id"),
        }
    }

    /// The entries of the audit log to list. An invalid day has no effect.
    pub(crate) fn entries(&self) -> AuditFilter {
        AuditFilter {
            since: since(&self.from).unwrap_or(0),
            until: until(&self.to),
            actor: self.given("who"),
            text: self.given("what"),
        }
    }

    /// Whether nothing was entered.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.iter().all(|(_, value)| value.is_empty())
    }

    /// Whether something was entered into other fields than the status.
    pub(crate) fn has_more_than_status(&self) -> bool {
        !self.with("status", "").is_empty()
    }

    /// The form with another value of a field.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut form = self.clone();
        for (_, known) in form.fields.iter_mut().filter(|(known, _)| *known == name) {
            value.clone_into(known);
        }
        form
    }

    /// An address of the list: `path` with what was entered, and where the list continues, if it does not begin.
    pub(crate) fn address(&self, path: &str, before: Option<String>) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.fields.iter().filter(|(_, value)| !value.is_empty()));
        if let Some(before) = before {
            query.append_pair("before", &before);
        }
        let query = query.finish();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }
}

/// A day of the form.
fn day(query: &Form, name: &str) -> Field {
    let text = query.get(name).unwrap_or_default().trim();
    let is_valid = text.is_empty() || Timestamp::of_day(text).is_some();
    if is_valid { Field::valid(text) } else { Field::invalid(text, "enter a date as YYYY-MM-DD") }
}

/// The first second of a list that begins with this day, if it is valid.
fn since(day: &Field) -> Option<i64> {
    Timestamp::of_day(&day.value).map(|day| day.0)
}

/// The last second of a list that ends with this day.
fn until(day: &Field) -> i64 {
    since(day).map_or(i64::MAX, |day| day + DAY_SECONDS - 1)
}

/// Where the list of requests continues, as [`parse_cursor`] reads it.
pub(crate) fn cursor_text((at, id): Cursor) -> String {
    format!("{at}.{id}")
}

/// Parses the `before` parameter, `AT.ID`.
pub(crate) fn parse_cursor(text: &str) -> Option<Cursor> {
    let (at, id) = text.split_once('.')?;
    Some((at.parse().ok()?, id.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_becomes_a_filter_and_an_address() {
        let form = |query: &str| FilterForm::of(&Form::parse(query.as_bytes()), REQUEST_FIELDS);
        let empty = form("status=&before=1.2&other=x");
        assert!(empty.is_empty());
        assert_eq!(empty.address("/r", None), "/r");
        let all = empty.requests(10_000_000);
        assert_eq!((all.since, all.until, all.status), (10_000_000, i64::MAX, StatusFilter::Any));
        let some = form("status=502&key=key_1&template=t%26&from=2024-02-29&to=2024-02-29&id=+a-+");
        let filter = RequestFilter {
            since: 1_709_164_800,
            until: 1_709_251_199,
            status: StatusFilter::Is(502),
            key: Some("key_1".to_owned()),
            template: Some("t&".to_owned()),
            request_id: Some("a-".to_owned()),
        };
        assert_eq!(some.requests(0), filter);
        let address = "/r?status=502&key=key_1&template=t%26&from=2024-02-29&to=2024-02-29&id=a-&before=5.6";
        assert_eq!(some.address("/r", Some(cursor_text((5, 6)))), address);
        assert_eq!(form("status=ok").requests(0).status, StatusFilter::Successful);
        assert_eq!(form("status=failed").requests(0).status, StatusFilter::Failed);
        for bad in ["-1", "70000", "x", "4e2"] {
            assert_eq!(form(&format!("status={bad}")).requests(0).status, StatusFilter::Any);
        }
        let invalid = form("from=29.02.2024");
        assert_eq!(invalid.from.error, "Enter a date as YYYY-MM-DD.");
        assert_eq!(invalid.requests(7).since, 7);
        let reversed = form("from=2026-11-02&to=2026-11-01").to.error;
        assert_eq!(reversed, "The last day is before the first one.");
        assert!(form("from=2026-11-01&to=2026-11-01").to.error.is_empty());
        assert!(some.has_more_than_status() && !form("status=502").has_more_than_status());
    }

    #[test]
    fn cursors_are_a_time_and_an_id() {
        assert_eq!(parse_cursor("5.6"), Some((5, 6)));
        for bad in ["5.6.7", "5", "", "a.b"] {
            assert_eq!(parse_cursor(bad), None);
        }
    }
}
