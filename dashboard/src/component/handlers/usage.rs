//! The usage page and its CSV export.

use platen_statements::Timestamp;

use crate::{
    chart::{self, Chart},
    component::{
        context::{Context, last_of_full_page},
        page_error::PageResult,
        response::PageResponse,
    },
    pages::{
        Section,
        usage::{CSV_HEADER, MonthlyUsage, UsagePage, csv_line, parse_cursor},
    },
};

/// Seconds in a day.
pub(super) const DAY: i64 = 86_400;
/// Days of the charts and counts.
pub(super) const DAYS_SHOWN: i64 = 30;
/// Templates in the table of those with the most attempts.
const MAX_PARTS: u32 = 20;
/// Attempts on one page.
const PAGE_ROWS: u32 = 50;
/// Attempts in an export, which is then a few megabytes.
const MAX_EXPORT_ROWS: u32 = 50_000;

pub(crate) async fn page(context: &Context<'_>) -> PageResult {
    let account = context.account()?;
    let failures_only = failures_only(context);
    let before = context.head.query.get("before").and_then(parse_cursor);
    let now = account.now();
    let (quota, attempts) = account.month().await?;
    let month = MonthlyUsage { now: Timestamp(now), quota, attempts };
    let since = now - (DAYS_SHOWN - 1) * DAY;
    let days = account.days(since).await?;
    let (by_key, by_template) =
        (account.usage_by_key(since).await?, account.usage_by_template(since, MAX_PARTS).await?);
    let chart = Chart::new(chart::last_days(now, DAYS_SHOWN, &days));
    let kept_days = i64::from(context.store.retention().await?.attempt_days);
    let mut attempts = account.attempts(failures_only, now - kept_days * DAY, before, PAGE_ROWS + 1).await?;
    let next = last_of_full_page(&mut attempts, PAGE_ROWS).map(|last| (last.at.0, last.id));
    let layout = context.layout("Usage", Section::Usage);
    context.page(&UsagePage {
        layout,
        month,
        chart,
        by_key,
        by_template,
        attempts,
        kept_days,
        failures_only,
        has_newer: before.is_some(),
        next,
    })
}

pub(crate) async fn export(context: &Context<'_>) -> PageResult {
    let account = context.account()?;
    let kept_days = i64::from(context.store.retention().await?.attempt_days);
    let since = account.now() - kept_days * DAY;
    let attempts = account.attempts(failures_only(context), since, None, MAX_EXPORT_ROWS).await?;
    let lines = attempts.iter().map(csv_line).fold(CSV_HEADER.to_owned(), |lines, line| lines + &line);
    Ok(PageResponse::download("text/csv; charset=utf-8", "platen-usage.csv", lines.into_bytes()))
}

fn failures_only(context: &Context<'_>) -> bool {
    context.head.query.get("failures") == Some("1")
}
