//! Claims of several attempts, which an edge then uses for some seconds without asking, and what it gives back.
//!
//! Invariant: [`claim`] counts all of its attempts in the one statement that decides about the quota. An edge keeps those that it
//! has not used in a counter: each is taken by subtracting one from it, and none after [`CLOSING`] was subtracted. What was left
//! is given back once, by the claim's id: [`give_back`] for an id that is not there yet voids the claim.

use std::collections::BTreeMap;

use platen_shared::format::OutputFormat;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{
    Backend, DataError, Row, Value,
    attempts::{Claim, ClaimedTemplate, PresentedKey, RequestedTemplate, claim_values},
    backend::{FromValue, Query as _, values},
    claim_sql::claim_sql,
    limits::RunningAttempt,
};

const CLAIM: &str = claim_sql!(none, ahead);
const CLAIM_WITH_TEMPLATE: &str = claim_sql!(template, ahead);
/// Parameters of a claim before those of [`Terms`].
const CLAIM_VALUES: usize = 10;
/// Columns of a claim without a template, and of its template.
const COLUMNS: usize = 4;
const TEMPLATE_COLUMNS: usize = 6;
/// The account of an id that is not there is that of the key.
const GIVE_BACK: &str = "INSERT INTO claims_ahead (id, account_id, month, granted, returned, ends_at) \
    SELECT ?1, account_id, ?3, 0, 0, unixepoch() FROM (SELECT account_id FROM claims_ahead WHERE id = ?1 \
    UNION ALL SELECT account_id FROM api_keys WHERE hash = ?2) WHERE true LIMIT 1 \
    ON CONFLICT (id) DO UPDATE SET returned = min(?4, granted) WHERE returned IS NULL";

/// What is subtracted from a counter so that no more attempts are taken: more than all callers together subtract.
pub const CLOSING: i64 = 1 << 40;

/// The attempts that are left in a counter from which one was just subtracted; `None` if there was none to take, also where the
/// counter is closed or was missing.
#[must_use]
pub fn left_after_taking(counter: i64) -> Option<u64> {
    counter.try_into().ok()
}

/// The attempts that were left in a counter from which [`CLOSING`] was just subtracted; `None` if it had been closed before.
#[must_use]
pub fn left_after_closing(counter: i64) -> Option<u64> {
    (counter >= -CLOSING - CLOSING / 2).then(|| u64::try_from(counter + CLOSING).unwrap_or(0))
}

/// Whether no more attempts are taken from a counter with this value.
#[must_use]
pub fn is_closed(counter: i64) -> bool {
    counter < -CLOSING / 2
}

/// What an edge asks for.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// 63 random bits, other than those of all other claims.
    pub id: i64,
    /// The number of attempts, at least one. The statement may grant fewer.
    pub attempts: u64,
    /// The number of which one less is of no use to it: one, or two where no request waits for one.
    pub min_attempts: u64,
    /// How long they may be used.
    pub seconds: u64,
    /// The id of a claim that is given back when this one is recorded; 0 is none.
    pub replaced: i64,
}

/// The attempts that one claim has recorded, for one key and one template or none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    /// [`Terms::id`]
    pub id: i64,
    /// The charged month, `YYYY-MM` (UTC).
    pub month: String,
    /// When the claim was sent, in milliseconds since 1970 (UTC); see [`lasting`](Self::lasting).
    from_ms: u64,
    /// The time from which on no more attempts are used.
    pub until_ms: u64,
    /// The number of attempts.
    pub attempts: u64,
    /// The columns of the [`Claim`], without the markup of its template.
    columns: Vec<Json>,
    /// Those of the template, by field.
    placeholders: BTreeMap<String, Vec<String>>,
    #[serde(skip)]
    packed_html: Option<Vec<u8>>,
}

/// Records several attempts, in a grant that lasts for no time yet; `None` if the key, the template, its variables, the quota or a limit forbids even one.
pub fn claim<B: Backend>(
    backend: B,
    key: PresentedKey<'_>,
    attempt: RunningAttempt,
    template: Option<RequestedTemplate<'_>>,
    terms: Terms,
) -> impl Future<Output = Result<Option<Grant>, B::Error>> + use<B> {
    let mut values = claim_values(key, attempt, template);
    values.resize(CLAIM_VALUES, Value::Null);
    values.extend(values![terms.attempts, terms.id, terms.seconds, terms.min_attempts, terms.replaced]);
    let (sql, has_template) = template.map_or((CLAIM, false), |_| (CLAIM_WITH_TEMPLATE, true));
    let grant = Grant::of_one(terms.id, key.month);
    async move {
        let row = backend.change(sql, &values).await?.into_iter().next();
        Ok(row.map(|row| grant.with_row(row, has_template)).transpose()?)
    }
}

/// Gives back attempts of a claim that were not used, at most all of them, or voids a claim that has not been made. Repeating it has
/// no effect.
pub async fn give_back<B: Backend>(
    backend: &B,
    key_hash: &str,
    month: &str,
    id: i64,
    attempts: u64,
) -> Result<(), B::Error> {
    backend.repeat(GIVE_BACK, values![id, key_hash, month, attempts]).await
}

impl Grant {
    /// The record of a claim of one attempt, of which nothing is left.
    #[must_use]
    pub fn of_one(id: i64, month: &str) -> Self {
        Self {
            id,
            month: month.to_owned(),
            from_ms: 0,
            until_ms: 0,
            attempts: 1,
            columns: Vec::new(),
            placeholders: BTreeMap::new(),
            packed_html: None,
        }
    }

    /// The grant of a claim that was sent at this time, in milliseconds since 1970 (UTC), and lasts for this long from then on.
    #[must_use]
    pub fn lasting(self, from_ms: u64, seconds: u64) -> Self {
        Self { from_ms, until_ms: from_ms.saturating_add(seconds * 1000), ..self }
    }

    /// Whether half of its time is over, at this time.
    #[must_use]
    pub fn is_half_over(&self, now_ms: u64) -> bool {
        now_ms >= self.from_ms.midpoint(self.until_ms)
    }

    fn with_row(mut self, row: Row, has_template: bool) -> Result<Self, DataError> {
        let mut columns = row.into_columns();
        if has_template {
            let placeholders = columns.pop().and_then(String::from_value).ok_or(DataError::Row)?;
            self.placeholders = serde_json::from_str(&placeholders).map_err(|_| DataError::Row)?;
        }
        self.attempts = columns.pop().and_then(u64::from_value).ok_or(DataError::Row)?;
        if has_template {
            self.packed_html = Some(columns.pop().and_then(Vec::from_value).ok_or(DataError::Row)?);
        }
        self.columns = columns.into_iter().map(to_json).collect::<Option<_>>().ok_or(DataError::Row)?;
        Ok(self)
    }

    /// Whether its attempts may be used for this month at this time, in milliseconds since 1970 (UTC).
    #[must_use]
    pub fn is_valid(&self, month: &str, now_ms: u64) -> bool {
        self.month == month && (self.from_ms..self.until_ms).contains(&now_ms)
    }

    /// The claim of one of the attempts, after which this many are left.
    pub fn claim(&self, left: u64) -> Result<Claim, DataError> {
        let columns = self.columns.iter().map(from_json).chain(self.packed_html.clone().map(Value::Blob));
        let mut row = Row::new(columns.collect());
        let claim = Claim::from_row(&mut row, self.month.clone(), self.packed_html.is_some())?;
        Ok(Claim { attempts: claim.attempts.saturating_sub(left), ..claim })
    }

    /// The placeholders of its template that need a value of this request.
    #[must_use]
    pub fn needed_placeholders(
        &self,
        saved: &ClaimedTemplate,
        request: &RequestedTemplate<'_>,
    ) -> Vec<String> {
        let is_pdf = request.format.or_else(|| saved.options.format()) == Some(OutputFormat::Pdf);
        let is_replaced = |field: &str| request.replaced.iter().any(|replaced| replaced.as_str() == field);
        let needs = |field: &str| field == "html" || is_pdf && !is_replaced(field);
        let needed = self.placeholders.iter().filter(|(field, _)| needs(field));
        needed.flat_map(|(_, names)| names.clone()).collect()
    }

    /// The record for a key-value store.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = serde_json::json!(self).to_string().into_bytes();
        if let Some(html) = &self.packed_html {
            // JSON has no such byte.
            bytes.push(b'\n');
            bytes.extend(html);
        }
        bytes
    }

    /// Reads a record; `None` for one of another version.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (json, packed_html) = match end {
            Some(end) => (&bytes[..end], Some(bytes[end + 1..].to_vec())),
            None => (bytes, None),
        };
        let grant: Self = serde_json::from_slice(json).ok()?;
        let columns = if packed_html.is_some() { COLUMNS + TEMPLATE_COLUMNS - 1 } else { COLUMNS };
        let is_whole = grant.columns.is_empty() || grant.columns.len() == columns;
        is_whole.then_some(Self { packed_html, ..grant })
    }
}

/// `None` for a column that no claim has.
fn to_json(value: Value) -> Option<Json> {
    match value {
        Value::Null => Some(Json::Null),
        Value::Integer(number) => Some(number.into()),
        Value::Text(text) => Some(text.into()),
        Value::Real(_) | Value::Blob(_) => None,
    }
}

fn from_json(json: &Json) -> Value {
    match json {
        Json::String(text) => Value::Text(text.clone()),
        json => json.as_i64().map_or(Value::Null, Value::Integer),
    }
}

#[cfg(test)]
mod tests {
    use platen_shared::{id::TemplateId, request::FieldName};

    use super::*;

    #[test]
    fn a_counter_is_closed_once_and_gives_nothing_after_that() {
        assert_eq!([2, 0, -1, -CLOSING].map(left_after_taking), [Some(2), Some(0), None, None]);
        // With attempts, empty, after takers that found it empty, and closed.
        for (before, left) in [(3, Some(3)), (0, Some(0)), (-1_000_000, Some(0)), (-CLOSING - 7, None)] {
            assert_eq!(left_after_closing(before - CLOSING), left, "{before}");
            assert_eq!(is_closed(before), left.is_none(), "{before}");
            assert!(is_closed(before - CLOSING));
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let one = Grant::of_one(i64::MAX, "2026-11").lasting(1_000, 5);
        assert!(one.is_half_over(3_500) && !one.is_half_over(3_499));
        assert_eq!(Grant::from_bytes(&one.to_bytes()), Some(one.clone()));
        assert!(one.is_valid("2026-11", 1_000) && one.is_valid("2026-11", 5_999));
        assert!(
            !one.is_valid("2026-12", 1_000)
                && !one.is_valid("2026-11", 999)
                && !one.is_valid("2026-11", 6_000)
        );
        let row =
            ["acc", "12", "100", "null", "3", "a\nb", "jinja", "{}", "{}"].map(|text| match text.parse() {
                Ok(number) => Value::Integer(number),
                Err(_) if text == "null" => Value::Null,
                Err(_) => text.into(),
            });
        let rest =
            [Value::Blob(vec![b'\n', 0]), Value::Integer(4), r#"{"html":["a"],"footerHtml":["b"]}"#.into()];
        let grant = one.with_row(Row::new(row.into_iter().chain(rest).collect()), true).unwrap();
        assert_eq!(Grant::from_bytes(&grant.to_bytes()), Some(grant.clone()));
        assert_eq!(grant.attempts, 4);
        let claim = grant.claim(3).unwrap();
        assert_eq!((claim.account.as_str(), claim.attempts, claim.quota), ("acc", 9, Some(100)));
        let saved = claim.template.unwrap();
        assert_eq!((saved.version, saved.name.as_str()), (3, "a\nb"));
        let variables = BTreeMap::new();
        let needed = |replaced: &[FieldName], format| {
            let request = RequestedTemplate {
                id: &TemplateId::from_text("tpl"),
                variables: &variables,
                has_data: false,
                replaced,
                format,
            };
            grant.needed_placeholders(&saved, &request)
        };
        assert_eq!(needed(&[], None), ["a"]);
        assert_eq!(needed(&[], Some(OutputFormat::Pdf)), ["b", "a"]);
        assert_eq!(needed(&[FieldName::FooterHtml], Some(OutputFormat::Pdf)), ["a"]);
    }
}
