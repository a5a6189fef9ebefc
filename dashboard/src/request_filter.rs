//! The filter of the list of requests, as its form has it.

use platen_statements::{
    Timestamp,
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

/// What was entered into the form.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct FilterForm {
    /// Empty, `ok`, `failed`, or a status.
    pub(crate) status: String,
    /// The id of a key; empty for all.
    pub(crate) key: String,
    /// The id of a template; empty for all.
    pub(crate) template: String,
    /// The first day (UTC).
    pub(crate) from: Field,
    /// The last day (UTC).
    pub(crate) to: Field,
    /// The beginning of a request id.
    pub(crate) id: String,
}

impl FilterForm {
    pub(crate) fn of(query: &Form) -> Self {
        let text = |name: &str| query.get(name).unwrap_or_default().trim().to_owned();
        Self {
            status: text("status"),
            key: text("key"),
            template: text("template"),
            from: day(query, "from"),
            to: day(query, "to"),
            id: text("id"),
        }
    }

    /// The requests to list, of those since `oldest`, in seconds since 1970. An invalid day has no effect.
    pub(crate) fn filter(&self, oldest: i64) -> RequestFilter {
        let given = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        RequestFilter {
            since: since(&self.from).unwrap_or(oldest),
            until: until(&self.to),
            status: match self.status.as_str() {
                "ok" => StatusFilter::Successful,
                "failed" => StatusFilter::Failed,
                status => status.parse().map_or(StatusFilter::Any, StatusFilter::Is),
            },
            key: given(&self.key),
            template: given(&self.template),
            request_id: given(&self.id),
        }
    }

    /// Whether nothing was entered.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields().iter().all(|(_, value)| value.is_empty())
    }

    /// An address of the list: `path` with what was entered, and where it continues.
    pub(crate) fn address(&self, path: &str, before: Option<Cursor>) -> String {
        address(path, &self.fields(), before.map(|(at, id)| format!("{at}.{id}")))
    }

    fn fields(&self) -> [(&'static str, &str); 6] {
        [
            ("status", &self.status),
            ("key", &self.key),
            ("template", &self.template),
            ("from", &self.from.value),
            ("to", &self.to.value),
            ("id", &self.id),
        ]
    }
}

/// A day of the form.
pub(crate) fn day(query: &Form, name: &str) -> Field {
    let text = query.get(name).unwrap_or_default().trim();
    let is_valid = text.is_empty() || Timestamp::of_day(text).is_some();
    if is_valid { Field::valid(text) } else { Field::invalid(text, "enter a date as YYYY-MM-DD") }
}

/// The first second of a list that begins with this day, if it is valid.
pub(crate) fn since(day: &Field) -> Option<i64> {
    Timestamp::of_day(&day.value).map(|day| day.0)
}

/// The last second of a list that ends with this day.
pub(crate) fn until(day: &Field) -> i64 {
    since(day).map_or(i64::MAX, |day| day + DAY_SECONDS - 1)
}

/// An address with what was entered, and where the list continues.
pub(crate) fn address(path: &str, fields: &[(&'static str, &str)], before: Option<String>) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(fields.iter().filter(|(_, value)| !value.is_empty()));
    if let Some(before) = before {
        query.append_pair("before", &before);
    }
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
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
        let form = |query: &str| FilterForm::of(&Form::parse(query.as_bytes()));
        let empty = form("status=&before=1.2&other=x");
        assert!(empty.is_empty());
        assert_eq!(empty.address("/r", None), "/r");
        let all = empty.filter(10_000_000);
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
        assert_eq!(some.filter(0), filter);
        let address = "/r?status=502&key=key_1&template=t%26&from=2024-02-29&to=2024-02-29&id=a-&before=5.6";
        assert_eq!(some.address("/r", Some((5, 6))), address);
        assert_eq!(form("status=ok").filter(0).status, StatusFilter::Successful);
        assert_eq!(form("status=failed").filter(0).status, StatusFilter::Failed);
        for bad in ["-1", "70000", "x", "4e2"] {
            assert_eq!(form(&format!("status={bad}")).filter(0).status, StatusFilter::Any);
        }
        let invalid = form("from=29.02.2024");
        assert_eq!(invalid.from.error, "Enter a date as YYYY-MM-DD.");
        assert_eq!(invalid.filter(7).since, 7);
    }

    #[test]
    fn cursors_are_a_time_and_an_id() {
        assert_eq!(parse_cursor("5.6"), Some((5, 6)));
        for bad in ["5.6.7", "5", "", "a.b"] {
            assert_eq!(parse_cursor(bad), None);
        }
    }
}
