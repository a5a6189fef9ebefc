//! The usage page and its CSV export.

use crate::{
    component::{context::Context, page_error::PageError, response::PageResponse},
    pages::{
        Section,
        usage::{Attempt, Cursor, UsagePage, csv_header},
    },
};

/// Attempts on one page.
const PAGE_ROWS: u32 = 50;
/// Attempts in an export, which is then a few megabytes.
const MAX_EXPORT_ROWS: u32 = 50_000;

pub(crate) async fn page(context: &Context<'_>) -> Result<PageResponse, PageError> {
    let account = context.account()?;
    let failures_only = failures_only(context);
    let before = context.head.query.get("before").and_then(Cursor::parse);
    let (month, chart) = (account.month().await?, account.days().await?);
    let mut attempts = account.attempts(failures_only, before, PAGE_ROWS + 1).await?;
    let has_older = attempts.len() > PAGE_ROWS as usize;
    attempts.truncate(PAGE_ROWS as usize);
    let next = attempts.last().filter(|_| has_older).map(|last| Cursor { at: last.at.0, id: last.id });
    let layout = context.layout("Usage", Section::Usage);
    context.page(&UsagePage {
        layout,
        month,
        chart,
        attempts,
        failures_only,
        has_newer: before.is_some(),
        next,
    })
}

pub(crate) async fn export(context: &Context<'_>) -> Result<PageResponse, PageError> {
    let attempts = context.account()?.attempts(failures_only(context), None, MAX_EXPORT_ROWS).await?;
    let lines: String = std::iter::once(csv_header()).chain(attempts.iter().map(Attempt::csv)).collect();
    Ok(PageResponse::download("text/csv; charset=utf-8", "platen-usage.csv", lines.into_bytes()))
}

fn failures_only(context: &Context<'_>) -> bool {
    context.head.query.get("failures") == Some("1")
}
