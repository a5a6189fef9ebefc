//! Usage.

use crate::{
    component::{answer::Answer, context::Context, fault::Fault},
    pages::{
        Section,
        usage::{Attempt, Place, Usage, csv_head},
    },
};

/// Attempts on a page.
const LISTED: u32 = 50;
/// Attempts in an export: some megabytes.
const EXPORTED: u32 = 50_000;

pub(in crate::component) async fn page(c: &Context<'_>) -> Result<Answer, Fault> {
    let account = c.account()?;
    let failures = failures(c);
    let before = c.visit.query.get("before").and_then(Place::parse);
    let (month, chart) = (account.month().await?, account.days().await?);
    let mut attempts = account.attempts(failures, before, LISTED + 1).await?;
    let more = attempts.len() > LISTED as usize;
    attempts.truncate(LISTED as usize);
    let next = attempts.last().filter(|_| more).map(|last| Place { at: last.at.0, id: last.id });
    let shell = c.shell("Usage", Section::Usage);
    c.page(&Usage { shell, month, chart, attempts, failures, later: before.is_some(), next })
}

pub(in crate::component) async fn export(c: &Context<'_>) -> Result<Answer, Fault> {
    let attempts = c.account()?.attempts(failures(c), None, EXPORTED).await?;
    let lines: String = std::iter::once(csv_head()).chain(attempts.iter().map(Attempt::csv)).collect();
    Ok(Answer::download("text/csv; charset=utf-8", "platen-usage.csv", lines.into_bytes()))
}

fn failures(c: &Context<'_>) -> bool {
    c.visit.query.get("failures") == Some("1")
}
