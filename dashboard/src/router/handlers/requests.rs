//! The list of requests, the page of one, the CSV export, and usage.

use std::time::Duration;

use platen_shared::log_line::{LogLevel, LogLine};
use platen_spin::{body::BodyWriter, platform};
use platen_statements::{
    CurrentUser, Timestamp,
    requests::{RequestEntry, RequestFilter},
};

use crate::{
    chart::{self, Chart, DAYS_SHOWN},
    format::DAY_SECONDS,
    pages::{
        Section,
        requests::{CSV_HEADER, RequestPage, RequestsPage, csv_line},
        usage::{MonthlyUsage, UsagePage},
    },
    request_filter::{FilterForm, parse_cursor},
    router::{
        context::{Context, Store, last_of_full_page},
        page_error::{PageError, PageResult},
        response::PageResponse,
    },
};

/// Requests on one page.
const PAGE_ROWS: u32 = 50;
/// Templates in the filter's list.
const MAX_TEMPLATES: u64 = 500;
/// Templates in the table of those with the most attempts.
const MAX_PARTS: u32 = 20;
/// Rows of one statement of an export; about 300 KB.
const EXPORT_ROWS: u32 = 1_000;
/// After which an export ends without a result of its statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_mins(1);

pub(crate) async fn list(context: &Context<'_>) -> PageResult {
    let account = context.account()?;
    let query = &context.head.query;
    let form = FilterForm::of(query);
    let before = query.get("before").and_then(parse_cursor);
    let kept_days = context.store.retention().await?.attempt_days;
    let oldest = oldest(account.now(), kept_days);
    let mut requests = account.requests(&form.filter(oldest), before, PAGE_ROWS + 1).await?;
    let next = last_of_full_page(&mut requests, PAGE_ROWS).map(|last| (last.at.0, last.id));
    let (keys, templates) = (account.keys().await?, account.template_names(MAX_TEMPLATES, 0).await?);
    let layout = context.layout("Requests", Section::Requests);
    let has_newer = before.is_some();
    context.page(&RequestsPage { layout, form, keys, templates, requests, kept_days, has_newer, next })
}

/// The time of the oldest requests that are kept, in seconds since 1970.
fn oldest(now: i64, kept_days: u32) -> i64 {
    now - i64::from(kept_days) * DAY_SECONDS
}

pub(crate) async fn page(context: &Context<'_>, id: &str) -> PageResult {
    let id = id.parse().map_err(|_| PageError::NotFound)?;
    let request = context.account()?.request(id).await?.ok_or(PageError::NotFound)?;
    context.page(&RequestPage { layout: context.layout("Request", Section::Requests), request })
}

pub(crate) async fn export(context: &Context<'_>) -> PageResult {
    let account = context.account()?;
    let oldest = oldest(account.now(), context.store.retention().await?.attempt_days);
    let filter = FilterForm::of(&context.head.query).filter(oldest);
    // Before the response begins, so that an error has its own.
    let first = account.requests(&filter, None, EXPORT_ROWS).await?;
    let export = Export {
        store: context.store_again(),
        user: context.current_user()?.clone(),
        filter,
        request_id: context.head.request_id.clone(),
    };
    let write = move |body| export.write(first, body);
    Ok(PageResponse::written_download("text/csv; charset=utf-8", "platen-requests.csv", write))
}

/// An export that is being sent. It has what it needs of its request, which has been answered.
struct Export {
    store: Store,
    user: CurrentUser,
    filter: RequestFilter,
    request_id: String,
}

impl Export {
    /// Writes the first rows and all others; whether the export is complete.
    async fn write(self, mut rows: Vec<RequestEntry>, mut body: BodyWriter) -> bool {
        let mut lines = CSV_HEADER.to_owned();
        loop {
            for row in &rows {
                lines.push_str(&csv_line(row));
            }
            if !body.write(std::mem::take(&mut lines).into_bytes()).await {
                return false;
            }
            let Some(last) = rows.get(EXPORT_ROWS as usize - 1) else { return true };
            let (at, id) = (last.at.0, last.id);
            let Some(account) = self.store.account(&self.user) else { return false };
            let next = account.requests(&self.filter, Some((at, id)), EXPORT_ROWS);
            rows = match platform::timeout(STATEMENT_TIMEOUT, next).await {
                Some(Ok(next)) => next,
                Some(Err(error)) => return self.failed(&error.to_string()),
                None => return self.failed("the database did not answer in time"),
            };
        }
    }

    fn failed(&self, cause: &str) -> bool {
        platform::log(&LogLine {
            level: LogLevel::Warn,
            message: "an export was aborted".to_owned(),
            request_id: Some(self.request_id.clone()),
            section: Some("requests.csv".to_owned()),
            cause: Some(cause.to_owned()),
            ..LogLine::default()
        });
        false
    }
}

pub(crate) async fn usage(context: &Context<'_>) -> PageResult {
    let account = context.account()?;
    let now = account.now();
    let (quota, attempts) = account.month().await?;
    let month = MonthlyUsage { now: Timestamp(now), quota, attempts };
    let limits = account.limits().await?;
    let since = chart::first_day(now);
    let days = account.days(since).await?;
    let (by_key, by_template) =
        (account.usage_by_key(since).await?, account.usage_by_template(since, MAX_PARTS).await?);
    let chart = Chart::new(chart::last_days(now, DAYS_SHOWN, &days));
    let layout = context.layout("Usage", Section::Usage);
    context.page(&UsagePage { layout, month, limits, chart, by_key, by_template })
}
