//! Usage.

use crate::{
    component::{answer::Answer, context::Context, page_error::PageError},
    pages::{
        Section,
        usage::{Attempt, Cursor, Usage, csv_head},
    },
};

/// Attempts on a page.
const LISTED: u32 = 50;
/// Attempts in an export: some megabytes.
const EXPORTED: u32 = 50_000;

pub(in crate::component) async fn page(c: &Context<'_>) -> Result<Answer, PageError> {
    let account = c.account()?;
    let failures = failures(c);
    let before = c.head.query.get("before").and_then(Cursor::parse);
    let (month, chart) = (account.month().await?, account.days().await?);
    let mut attempts = account.attempts(failures, before, LISTED + 1).await?;
    let more = attempts.len() > LISTED as usize;
    attempts.truncate(LISTED as usize);
    let next = attempts.last().filter(|_| more).map(|last| Cursor { at: last.at.0, id: last.id });
    let layout = c.layout("Usage", Section::Usage);
    c.page(&Usage { layout, month, chart, attempts, failures, later: before.is_some(), next })
}

pub(in crate::component) async fn export(c: &Context<'_>) -> Result<Answer, PageError> {
    let attempts = c.account()?.attempts(failures(c), None, EXPORTED).await?;
    let lines: String = std::iter::once(csv_head()).chain(attempts.iter().map(Attempt::csv)).collect();
    Ok(Answer::download("text/csv; charset=utf-8", "platen-usage.csv", lines.into_bytes()))
}

fn failures(c: &Context<'_>) -> bool {
    c.head.query.get("failures") == Some("1")
}
