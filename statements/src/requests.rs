//! The list of an account's requests, whose rows [`attempts`](crate::attempts) writes.
//!
//! Invariant: a list is read through an index that has its order, and continues after the last row of the page before, so
//! that a page costs the same wherever it is. A search by request id orders the rows that it finds.

use crate::{
    AccountScope, Backend, Timestamp,
    backend::{record, values},
    scope::Scoped,
};

record! {
    /// A finished request.
    pub struct RequestEntry {
        pub id: i64,
        pub at: Timestamp,
        /// HTTP status of the response.
        pub status: u16,
        /// Whether it counts against the quota.
        pub counted: bool,
        /// Why it failed; see [`Reason`](platen_shared::reason::Reason).
        pub code: Option<String>,
        /// The name of the request's field that is the cause.
        pub field: Option<String>,
        pub request_id: String,
        /// The name of the key or link at that time; `None` if it was deleted before the row was written.
        pub key_name: Option<String>,
        /// The key or link, if the account still has it and it is not a key of the dashboard.
        pub key_id: Option<String>,
        pub template_id: Option<String>,
        /// The template's name; `None` if there is no such template any more.
        pub template_name: Option<String>,
        /// The number of the template's content that was rendered; `None` if no attempt was recorded.
        pub template_version: Option<u32>,
        /// The host of the requested URL.
        pub host: Option<String>,
        /// `render` or `template`
        pub endpoint: String,
        /// Extension of the requested format; empty if the body could not be read.
        pub format: String,
        /// Milliseconds until the response began.
        pub ms: u64,
        /// Milliseconds for which the job waited for a slot of the farm.
        pub queued_ms: Option<u64>,
        /// Milliseconds for which the job had its slot.
        pub render_ms: Option<u64>,
        /// Size of the file in bytes, if one was sent.
        pub bytes: Option<u64>,
        /// Number of errors of the page, if a file was sent.
        pub page_errors: Option<u64>,
        /// Number of failed requests of the page, if a file was sent.
        pub failed_requests: Option<u64>,
        /// Host of the document that the file shows, if a URL was requested.
        pub page_host: Option<String>,
    }
}

/// Which requests a list has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFilter {
    /// The first time, in whole seconds since 1970.
    pub since: i64,
    /// The last time, included.
    pub until: i64,
    /// Those with such a status.
    pub status: StatusFilter,
    /// Those of the key or link with this id.
    pub key: Option<String>,
    /// Those of the template with this id.
    pub template: Option<String>,
    /// Those whose request id begins with this text.
    pub request_id: Option<String>,
}

/// Statuses of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StatusFilter {
    /// All.
    #[default]
    Any,
    /// Less than 400.
    Successful,
    /// 400 and more.
    Failed,
    /// This one.
    Is(u16),
}

/// Time and id of a row, after which a list continues.
pub type Cursor = (i64, i64);

/// Where the content of a template with a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionPlace {
    /// It is that of the template.
    Current,
    /// A save has replaced it, and it is kept.
    Kept,
    /// A save has replaced it, and it is not kept any more, or the account has no such template.
    Gone,
}

macro_rules! select_requests {
    ($($from:tt)*) => {
        concat!(
            "SELECT id, at, status, counted, code, field, request_id, key_name, \
             (SELECT k.id FROM api_keys k WHERE k.id = key_id AND k.account_id = ?1 AND k.kind <> 'temporary'), \
             template_id, (SELECT t.name FROM templates t WHERE t.id = template_id AND t.account_id = ?1), template_version, \
             host, endpoint, format, ms, queued_ms, render_ms, bytes, page_errors, failed_requests, page_host \
             FROM attempts ",
            $($from)*
        )
    };
}

/// All filters, on rows of an index. SQLite has no statistics, so that it would often choose another one.
macro_rules! list {
    ($index:literal, $condition:literal) => {
        Scoped::new(select_requests!(concat!(
            "INDEXED BY ",
            $index,
            " WHERE account_id = ?1 ",
            $condition,
            "AND at >= ?2 AND at <= ?3 AND (at < ?3 OR id < ?4) \
             AND (?6 IS NULL OR status = ?6) AND (?7 IS NULL OR (status >= 400) = ?7) \
             AND (?8 IS NULL OR key_id = ?8) AND (?9 IS NULL OR template_id = ?9) \
             AND (?10 IS NULL OR (request_id >= ?10 AND request_id < ?11)) \
             ORDER BY at DESC, id DESC LIMIT ?5"
        )))
    };
}

const ALL: Scoped = list!("attempts_by_account", "");
const FAILED: Scoped = list!("attempts_failed", "AND status >= 400 ");
const BY_STATUS: Scoped = list!("attempts_by_status", "AND status = ?6 AND status >= 400 ");
const BY_KEY: Scoped = list!("attempts_by_key", "AND key_id = ?8 ");
const BY_TEMPLATE: Scoped = list!("attempts_by_template", "AND template_id = ?9 ");
const BY_REQUEST_ID: Scoped = list!("attempts_by_request_id", "AND request_id >= ?10 AND request_id < ?11 ");
const GET: Scoped = Scoped::new(select_requests!("WHERE account_id = ?1 AND id = ?2"));

impl RequestFilter {
    /// The statement with the index of the filter that usually has the fewest rows.
    fn statement(&self, is_first_page: bool) -> Scoped {
        match self.status {
            // Of many rows with the same beginning, the next page is found faster by time.
            _ if self.request_id.is_some() && is_first_page => BY_REQUEST_ID,
            StatusFilter::Is(400..) => BY_STATUS,
            StatusFilter::Failed => FAILED,
            _ if self.template.is_some() => BY_TEMPLATE,
            _ if self.key.is_some() => BY_KEY,
            _ => ALL,
        }
    }
}

const VERSION_PLACE: Scoped = Scoped::new(
    "SELECT 1 + coalesce(max(number), 0) = ?3, coalesce(max(number = ?3), 0) \
     FROM templates t LEFT JOIN template_versions v ON v.template_id = t.id \
     WHERE t.account_id = ?1 AND t.id = ?2 GROUP BY t.id",
);

impl<B: Backend> AccountScope<'_, B> {
    /// The requests of a filter, the newest first, at most `max`. `before` continues a list.
    pub async fn requests(
        &self,
        filter: &RequestFilter,
        before: Option<Cursor>,
        max: u32,
    ) -> Result<Vec<RequestEntry>, B::Error> {
        // Of the time of the last row, only rows with a smaller id are left.
        let (until, id) = match before {
            Some((at, id)) if at <= filter.until => (at, id),
            _ => (filter.until, i64::MAX),
        };
        let (status, failed) = match filter.status {
            StatusFilter::Any => (None, None),
            StatusFilter::Successful => (None, Some(false)),
            StatusFilter::Failed => (None, Some(true)),
            StatusFilter::Is(status) => (Some(status), None),
        };
        let (key, template, from) =
            (filter.key.as_deref(), filter.template.as_deref(), filter.request_id.as_deref());
        // Greater than every character of a request id.
        let to = from.map(|from| format!("{from}\u{7f}"));
        let values =
            values![filter.since, until, id, max, status, failed, key, template, from, to.as_deref()];
        self.all(filter.statement(before.is_none()), values).await
    }

    /// A request; `None` if the account has none with this id.
    pub async fn request(&self, id: i64) -> Result<Option<RequestEntry>, B::Error> {
        self.first(GET, values![id]).await
    }

    /// Where the content of a template is that has this number, or will have it when a save replaces it.
    pub async fn version_place(&self, id: &str, number: u32) -> Result<VersionPlace, B::Error> {
        let (is_current, is_kept) =
            self.first(VERSION_PLACE, values![id, number]).await?.unwrap_or((false, false));
        Ok(match (is_current, is_kept) {
            (true, _) => VersionPlace::Current,
            (false, true) => VersionPlace::Kept,
            (false, false) => VersionPlace::Gone,
        })
    }
}
