//! The list of requests, the page of one, the CSV export, and usage.

use platen_statements::{
    CurrentUser, Timestamp,
    requests::{RequestEntry, RequestFilter},
};

use super::export::{self, List};
use crate::{
    chart::{self, Chart, DAYS_SHOWN},
    filter::{FilterForm, REQUEST_FIELDS, cursor_text, parse_cursor},
    format::DAY_SECONDS,
    pages::{
        Section,
        requests::{CSV_HEADER, RequestPage, RequestsPage, csv_line},
        usage::{MonthlyUsage, UsagePage},
    },
    router::{
        context::{Context, Store, last_of_full_page},
        page_error::{PageError, PageResult},
    },
};

/// Requests on one page.
const PAGE_ROWS: u32 = 50;
/// Templates in the filter's list.
const MAX_TEMPLATES: u64 = 500;
/// Templates in the table of those with the most attempts.
const MAX_PARTS: u32 = 20;

pub(crate) async fn list(context: &Context<'_>) -> PageResult {
    let account = context.account()?;
    let query = &context.head.query;
    let form = FilterForm::of(query, REQUEST_FIELDS);
    let before = query.get("before").and_then(parse_cursor);
    let kept_days = context.store.retention().await?.attempt_days;
    let oldest = oldest(account.now(), kept_days);
    let mut requests = account.requests(&form.requests(oldest), before, PAGE_ROWS + 1).await?;
    let next = last_of_full_page(&mut requests, PAGE_ROWS).map(|last| cursor_text((last.at.0, last.id)));
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
    let account = context.account()?;
    let request = account.request(id).await?.ok_or(PageError::NotFound)?;
    let template = request.template_id.as_deref().filter(|_| request.template_name.is_some());
    let version = match template.zip(request.template_version) {
        Some((id, number)) => Some((number, account.version_place(id, number).await?)),
        None => None,
    };
    context.page(&RequestPage { layout: context.layout("Request", Section::Requests), request, version })
}

pub(crate) async fn export(context: &Context<'_>) -> PageResult {
    let oldest = oldest(context.account()?.now(), context.store.retention().await?.attempt_days);
    export::export(context, Requests(FilterForm::of(&context.head.query, REQUEST_FIELDS).requests(oldest)))
        .await
}

/// The requests of the user's account.
struct Requests(RequestFilter);

impl List for Requests {
    type Row = RequestEntry;
    const SECTION: &'static str = "requests.csv";
    const FILE_NAME: &'static str = "platen-requests.csv";
    const HEADER: &'static str = CSV_HEADER;

    async fn rows(
        &self,
        store: &Store,
        user: &CurrentUser,
        last: Option<&RequestEntry>,
        max: u32,
    ) -> Result<Vec<RequestEntry>, PageError> {
        let account = store.account(user).ok_or(PageError::NoAccount)?;
        Ok(account.requests(&self.0, last.map(|last| (last.at.0, last.id)), max).await?)
    }

    fn line(row: &RequestEntry) -> String {
        csv_line(row)
    }
}

pub(crate) async fn usage(context: &Context<'_>) -> PageResult {
    let account = context.account()?;
    let now = account.now();
    let (quota, attempts, last) = account.months().await?;
    let month = MonthlyUsage { now: Timestamp(now), quota, attempts, last };
    let limits = account.limits().await?;
    let since = chart::first_day(now);
    let days = account.days(since).await?;
    let (by_key, by_template) =
        (account.usage_by_key(since).await?, account.usage_by_template(since, MAX_PARTS).await?);
    let chart = Chart::new(chart::last_days(now, DAYS_SHOWN, &days));
    let layout = context.layout("Usage", Section::Usage);
    context.page(&UsagePage { layout, month, limits, chart, by_key, by_template })
}
