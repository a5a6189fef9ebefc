//! The statements of a render: claim, reason of a refused claim, log.
//!
//! Invariant: [`claim`] is one atomic statement that authenticates, checks the quota and the template's
//! variables, records the attempt and fetches the template. [`log`] refunds an attempt once, however often it is
//! repeated.

use std::collections::BTreeMap;

use platen_shared::{
    format::OutputFormat,
    id::{AccountId, TemplateId},
    job::Variable,
    key::ApiKey,
    request::{FieldName, TemplateOptions},
    template::{self, DamagedTemplate, Language},
    template_files::TemplateFiles,
};
use serde::Serialize;

use crate::{
    Backend, Value,
    backend::{FromRow as _, Query as _, record, values},
    limits::{LimitUsage, RunningAttempt, has_no_limits, limit_usage, limits_allow_claim},
};

/// A key that a caller presented, and when.
#[derive(Debug, Clone, Copy)]
pub struct PresentedKey<'k> {
    /// The key.
    pub key: &'k ApiKey,
    /// The month that is charged, `YYYY-MM` (UTC).
    pub month: &'k str,
    /// Whole seconds since 1970 (UTC).
    pub now: u64,
}

/// What a key must be valid for. A key of the dashboard's “Render” button is valid for one template.
#[derive(Debug, Clone, Copy)]
pub enum KeyPurpose<'k> {
    /// Anything: the body of the request could not be read.
    Any,
    /// A render of the caller's own markup or URL.
    Source,
    /// A render of a template.
    Template(RequestedTemplate<'k>),
}

/// A request for a template.
#[derive(Debug, Clone, Copy)]
pub struct RequestedTemplate<'k> {
    /// The template.
    pub id: &'k TemplateId,
    /// The values by name.
    pub variables: &'k BTreeMap<String, Variable>,
    /// Whether there are values that only a template in Jinja can have.
    pub has_data: bool,
    /// Fields with placeholders that the request has in place of those of the template.
    pub replaced: &'k [FieldName],
    /// The format of the file; `None` if it is that of the template.
    pub format: Option<OutputFormat>,
}

impl RequestedTemplate<'_> {
    /// The last values of a statement with `needed_placeholders`.
    fn values(&self) -> Vec<Value> {
        let replaced: Vec<&str> = self.replaced.iter().map(|field| field.as_str()).collect();
        let format = self.format.map(OutputFormat::extension);
        values![self.id, serde_json::json!(replaced).to_string(), format]
    }
}

/// A recorded attempt.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The key's account.
    pub account: AccountId,
    /// The charged month, `YYYY-MM` (UTC).
    pub month: String,
    /// Attempts of the month, with this one.
    pub attempts: u64,
    /// Allowed attempts; `None` is unlimited.
    pub quota: Option<u64>,
    /// The account's other limits, if it has any, and what counts with this attempt.
    pub limits: Option<LimitUsage>,
    /// The requested template.
    pub template: Option<ClaimedTemplate>,
}

record! {
    /// The template that was fetched with a claim.
    pub struct ClaimedTemplate {
        /// The number that its content has among its versions, when a save has replaced it.
        pub version: u32,
        /// The name from which the file takes its own.
        pub name: String,
        /// What it is written in.
        pub language: Language,
        /// The render options.
        pub options: TemplateOptions,
        /// The files, without their contents.
        pub files: TemplateFiles,
        packed_html: Vec<u8>,
    }
}

impl ClaimedTemplate {
    /// The markup.
    pub fn html(&self) -> Result<String, DamagedTemplate> {
        template::unpack(&self.packed_html)
    }
}

record! {
    /// A valid key's account and its usage.
    pub struct KeyStatus {
        pub account: AccountId,
        /// Attempts of the month.
        pub attempts: u64,
        /// Allowed attempts; `None` is unlimited.
        pub quota: Option<u64>,
        /// The placeholder names of the template that need a value, if the account has it.
        pub placeholders: Option<Vec<String>>,
        /// What the template is written in, if the account has it.
        pub language: Option<Language>,
        /// The account's other limits, if it has any, and what counts.
        pub limits: Option<LimitUsage>,
    }
}

/// A finished attempt, or a request that was rejected. Its members in JSON are the columns that [`log`] writes.
#[derive(Debug, Clone, Serialize)]
pub struct Attempt {
    /// See [`attempt_id`]. With [`at`](Self::at), it tells one attempt from every other.
    pub id: i64,
    /// [`ApiKey::hash`] of the key.
    pub key_hash: String,
    /// The key's account.
    pub account_id: AccountId,
    /// `render` or `template`
    pub endpoint: &'static str,
    /// Extension of the requested format; empty for a body that could not be read.
    pub format: &'static str,
    /// HTTP status of the response.
    pub status: u16,
    /// Whether it counts against the quota.
    pub counted: bool,
    /// Whether it was refused before an attempt was recorded, because of the request itself or its quota.
    pub rejected: bool,
    /// Milliseconds until the response began.
    pub ms: u64,
    /// Milliseconds for which the job waited for a slot of the farm, if the farm says so.
    pub queued_ms: Option<u64>,
    /// Milliseconds for which the job had its slot, if it had one.
    pub render_ms: Option<u64>,
    /// Size of the file, if one was sent.
    pub bytes: Option<i64>,
    /// Number of errors of the page, if a file was sent.
    pub page_errors: Option<u32>,
    /// Number of failed requests of the page, if a file was sent.
    pub failed_requests: Option<u32>,
    /// Host of the document that the file shows, if a URL was requested.
    pub page_host: Option<String>,
    /// When it began, in whole seconds since 1970 (UTC).
    pub at: u64,
    /// [`Claim::month`] of an attempt that is refunded.
    pub refunded_month: Option<String>,
    /// The reason of a failure.
    pub code: Option<&'static str>,
    /// The name of the request's field that is the cause.
    pub field: Option<String>,
    /// The id of the request.
    pub request_id: String,
    /// The requested template.
    pub template_id: Option<TemplateId>,
    /// [`ClaimedTemplate::version`], of an attempt that was recorded.
    pub template_version: Option<u32>,
    /// The host of the requested URL.
    pub host: Option<String>,
}

/// One account's count of one month goes up by one if its quota allows it. SQLite evaluates the upsert's
/// `WHERE` and those of the `SELECT` under the write lock, so concurrent attempts never exceed the quota and the limits.
/// `?3` is now, for keys that expire; `?4` and `?5` are the attempt and its duration, for accounts with limits.
macro_rules! claim_sql {
    ($join:literal, $condition:expr, $columns:literal) => {
        concat!(
            "INSERT INTO usage (account_id, month, attempts, attempt_id, ends_at) SELECT a.id, ?2, 1, iif(",
            has_no_limits!(),
            ", NULL, ?4), iif(a.concurrency IS NULL, NULL, unixepoch() + ?5) \
             FROM api_keys k JOIN accounts a ON a.id = k.account_id ",
            $join,
            " WHERE k.hash = ?1 AND k.disabled_at IS NULL AND a.disabled_at IS NULL \
             AND (k.expires_at IS NULL OR k.expires_at > ?3) \
             AND (a.quota IS NULL OR a.quota > 0) ",
            limits_allow_claim!(),
            $condition,
            " ON CONFLICT (account_id, month) DO UPDATE SET attempts = attempts + 1, \
             attempt_id = excluded.attempt_id, ends_at = excluded.ends_at \
             WHERE attempts < coalesce((SELECT quota FROM accounts WHERE id = account_id), 9223372036854775807) \
             RETURNING account_id, attempts, (SELECT quota FROM accounts WHERE id = account_id), \
             iif(attempt_id IS NULL, NULL, (SELECT ",
            limit_usage!(),
            " FROM accounts a WHERE a.id = account_id))",
            $columns
        )
    };
}

/// The placeholders of a template `t` that need a value: those of its markup, and those of header and footer that the
/// request does not replace, if the file is a PDF. The arguments are the parameters of [`RequestedTemplate::values`].
macro_rules! needed_placeholders {
    ($replaced:literal, $format:literal) => {
        concat!(
            " FROM json_each(t.placeholders) f, json_each(f.value) p WHERE (f.key = 'html' OR coalesce(",
            $format,
            ", t.options ->> 'format') = 'pdf' AND f.key NOT IN (SELECT value FROM json_each(",
            $replaced,
            ")))"
        )
    };
}

const CLAIM: &str = claim_sql!("", "AND k.template_id IS NULL", "");
const CLAIM_WITH_TEMPLATE: &str = claim_sql!(
    "JOIN templates t ON t.account_id = a.id AND t.id = ?6",
    concat!(
        "AND (k.template_id IS NULL OR k.template_id = ?6) AND NOT EXISTS (SELECT 1",
        needed_placeholders!("?7", "?8"),
        " AND p.value NOT IN (SELECT value FROM json_each(?9))) AND (t.language = 'jinja' OR NOT ?10)"
    ),
    ", (SELECT 1 + coalesce(max(number), 0) FROM template_versions WHERE template_id = ?6), \
     (SELECT name FROM templates WHERE id = ?6), (SELECT language FROM templates WHERE id = ?6), (SELECT options FROM templates WHERE id = ?6), \
     (SELECT files FROM templates WHERE id = ?6), (SELECT packed_html FROM templates WHERE id = ?6)"
);
const KEY_STATUS: &str = concat!(
    "SELECT a.id, coalesce(u.attempts, 0), a.quota, (SELECT (SELECT json_group_array(DISTINCT p.value)",
    needed_placeholders!("?6", "?7"),
    ") FROM templates t WHERE t.id = ?5 AND t.account_id = a.id), \
     (SELECT language FROM templates WHERE id = ?5 AND account_id = a.id), iif(",
    has_no_limits!(),
    ", NULL, ",
    limit_usage!(),
    ") FROM api_keys k JOIN accounts a ON a.id = k.account_id \
     LEFT JOIN usage u ON u.account_id = a.id AND u.month = ?2 \
     WHERE k.hash = ?1 AND k.disabled_at IS NULL AND a.disabled_at IS NULL \
     AND (k.expires_at IS NULL OR k.expires_at > ?3) \
     AND (k.template_id IS NULL OR k.template_id = ?5 OR ?4)"
);
/// The schema's triggers refund the attempt, set the key's last use, count the day, delete old attempts and limit the rows
/// of rejected requests. They run for rows that are inserted, so a repetition has no effect. An account that was deleted
/// has no rows.
const LOG: &str = "INSERT INTO attempts (attempt_id, account_id, key_id, key_name, endpoint, format, status, counted, ms, \
    bytes, at, refunded_month, code, request_id, template_id, host, rejected, field, queued_ms, render_ms, page_errors, failed_requests, page_host, \
    template_version) \
    SELECT value ->> 'id', a.id, k.id, k.name, value ->> 'endpoint', value ->> 'format', value ->> 'status', \
    value ->> 'counted', value ->> 'ms', value ->> 'bytes', value ->> 'at', value ->> 'refunded_month', \
    value ->> 'code', value ->> 'request_id', value ->> 'template_id', value ->> 'host', value ->> 'rejected', \
    value ->> 'field', value ->> 'queued_ms', value ->> 'render_ms', value ->> 'page_errors', \
    value ->> 'failed_requests', value ->> 'page_host', value ->> 'template_version' \
    FROM json_each(?1) JOIN accounts a ON a.id = value ->> 'account_id' \
    LEFT JOIN api_keys k ON k.hash = value ->> 'key_hash' \
    WHERE true ON CONFLICT (at, attempt_id) DO NOTHING";

/// Records an attempt, at a template or at the caller's own markup or URL;
/// `None` if the key, the template, its variables, the quota or a limit forbids it.
pub fn claim<B: Backend>(
    backend: B,
    key: PresentedKey<'_>,
    attempt: RunningAttempt,
    template: Option<RequestedTemplate<'_>>,
) -> impl Future<Output = Result<Option<Claim>, B::Error>> + use<B> {
    let (month, mut values) = (key.month.to_owned(), key.values());
    values.extend(values![attempt.id, attempt.max_seconds]);
    let has_template = template.is_some();
    let sql = match template {
        None => CLAIM,
        Some(template) => {
            let names: Vec<&String> = template.variables.keys().collect();
            values.extend(template.values());
            values.extend(values![serde_json::json!(names).to_string(), template.has_data]);
            CLAIM_WITH_TEMPLATE
        }
    };
    async move {
        let Some(mut row) = backend.change(sql, &values).await?.into_iter().next() else { return Ok(None) };
        Ok(Some(Claim {
            account: row.next()?,
            month,
            attempts: row.next()?,
            quota: row.next()?,
            limits: row.next::<Option<LimitUsage>>()?.map(LimitUsage::with_claim),
            template: has_template.then(|| ClaimedTemplate::from_row(&mut row)).transpose()?,
        }))
    }
}

/// The account and usage of a key; `None` if the key is not valid for this purpose.
pub async fn key_status<B: Backend>(
    backend: &B,
    key: PresentedKey<'_>,
    purpose: KeyPurpose<'_>,
) -> Result<Option<KeyStatus>, B::Error> {
    let mut values = key.values();
    values.extend(values![matches!(purpose, KeyPurpose::Any)]);
    values.extend(match purpose {
        KeyPurpose::Template(template) => template.values(),
        KeyPurpose::Any | KeyPurpose::Source => vec![Value::Null; 3],
    });
    backend.first(KEY_STATUS, values).await
}

/// The id of an attempt: 63 random bits. Two attempts of one second have the same with a probability of 10⁻¹⁹.
#[must_use]
pub fn attempt_id(random: [u8; 8]) -> i64 {
    i64::from_le_bytes(random) & i64::MAX
}

/// Writes finished attempts to the log, and refunds those that have a [`Attempt::refunded_month`]. Repeating it has no
/// effect.
pub async fn log<B: Backend>(backend: &B, attempts: &[Attempt]) -> Result<(), B::Error> {
    backend.repeat(LOG, values![serde_json::json!(attempts).to_string()]).await
}

impl PresentedKey<'_> {
    fn values(self) -> Vec<Value> {
        values![self.key.hash(), self.month, self.now]
    }
}
