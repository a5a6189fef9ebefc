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
    link::LinkId,
    request::{FieldName, TemplateOptions},
    template::{self, DamagedTemplate, Language},
    template_files::TemplateFiles,
};
use serde::Serialize;

use crate::{
    Backend, DataError, Row, Value,
    backend::{FromRow as _, Query as _, record, values},
    claim_sql::{claim_sql, link_day_allows_claim, needed_placeholders, return_seconds},
    limits::{LimitUsage, RunningAttempt, has_no_limits, limit_usage},
};

/// What attempts are recorded for.
#[derive(Debug, Clone, Copy)]
pub enum KeyOrLink<'k> {
    /// The key that a caller presented.
    Key(&'k ApiKey),
    /// The link of an address with a good signature.
    Link(&'k LinkId),
}

impl KeyOrLink<'_> {
    /// What its row has as `hash`: of a link the id, which is no hash of a key.
    #[must_use]
    pub fn hash(self) -> String {
        match self {
            Self::Key(key) => key.hash(),
            Self::Link(link) => link.to_string(),
        }
    }
}

/// A key or a link, and when it was presented.
#[derive(Debug, Clone, Copy)]
pub struct PresentedKey<'k> {
    /// The key or link.
    pub caller: KeyOrLink<'k>,
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

impl Claim {
    pub(crate) fn from_row(row: &mut Row, month: String, has_template: bool) -> Result<Self, DataError> {
        Ok(Self {
            account: row.next()?,
            month,
            attempts: row.next()?,
            quota: row.next()?,
            limits: row.next::<Option<LimitUsage>>()?.map(LimitUsage::with_claim),
            template: has_template.then(|| ClaimedTemplate::from_row(row)).transpose()?,
        })
    }
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
        /// Where all attempts are used, the seconds until some of those end that edges have claimed ahead and may give back.
        pub held_seconds: Option<u64>,
        /// Whether it is a link that has no attempt left of its day.
        pub is_day_exhausted: bool,
    }
}

/// A finished attempt, or a request that was rejected. Its members in JSON are the columns that [`log`] writes.
#[derive(Debug, Clone, Serialize)]
pub struct Attempt {
    /// See [`attempt_id`]. With [`at`](Self::at), it tells one attempt from every other.
    pub id: i64,
    /// [`KeyOrLink::hash`] of the key or link.
    pub key_hash: String,
    /// The account of the key or link.
    pub account_id: AccountId,
    /// `render`, `template` or `link`
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

const CLAIM: &str = claim_sql!(none, one);
const CLAIM_WITH_TEMPLATE: &str = claim_sql!(template, one);
const CLAIM_OF_LINK: &str = claim_sql!(template, of_link);
const KEY_STATUS: &str = concat!(
    "SELECT a.id, coalesce(u.attempts, 0), a.quota, (SELECT (SELECT json_group_array(DISTINCT p.value)",
    needed_placeholders!("?6", "?7"),
    ") FROM templates t WHERE t.id = ?5 AND t.account_id = a.id), \
     (SELECT language FROM templates WHERE id = ?5 AND account_id = a.id), iif(",
    has_no_limits!(),
    ", NULL, ",
    limit_usage!(),
    "), iif(coalesce(u.attempts, 0) >= a.quota, (SELECT max(1, min(c.ends_at) - unixepoch() - ",
    return_seconds!(),
    ") FROM claims_ahead c \
     WHERE c.account_id = a.id AND c.month = ?2 AND c.ends_at > unixepoch() AND c.granted > 1 AND c.returned IS NULL), \
     NULL), NOT (",
    link_day_allows_claim!(),
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
/// `None` if the key or link, the template, its variables, the quota or a limit forbids it. A link has a template.
pub fn claim<B: Backend>(
    backend: B,
    key: PresentedKey<'_>,
    attempt: RunningAttempt,
    template: Option<RequestedTemplate<'_>>,
) -> impl Future<Output = Result<Option<Claim>, B::Error>> + use<B> {
    let (month, values) = (key.month.to_owned(), claim_values(key, attempt, template));
    let has_template = template.is_some();
    let sql = match (key.caller, has_template) {
        (KeyOrLink::Key(_), false) => CLAIM,
        (KeyOrLink::Key(_), true) => CLAIM_WITH_TEMPLATE,
        (KeyOrLink::Link(_), _) => CLAIM_OF_LINK,
    };
    async move {
        let row = backend.change(sql, &values).await?.into_iter().next();
        Ok(row.map(|mut row| Claim::from_row(&mut row, month, has_template)).transpose()?)
    }
}

/// The first ten values of a claim, or five for one without a template.
pub(crate) fn claim_values(
    key: PresentedKey<'_>,
    attempt: RunningAttempt,
    template: Option<RequestedTemplate<'_>>,
) -> Vec<Value> {
    let mut values = key.values();
    values.extend(values![attempt.id, attempt.max_seconds]);
    if let Some(template) = template {
        let names: Vec<&String> = template.variables.keys().collect();
        values.extend(template.values());
        values.extend(values![serde_json::json!(names).to_string(), template.has_data]);
    }
    values
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
        values![self.caller.hash(), self.month, self.now]
    }
}
