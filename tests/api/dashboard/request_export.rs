//! The CSV export of requests: complete, or visibly incomplete.

use std::collections::BTreeSet;

use platen_harness::{
    database::DatabaseKind,
    deployment::{Deployment, Platform},
};

use super::support::{Person, insert, now};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/requests/an_export_has_every_row", complete),
        Case::own_server("dashboard/requests/an_export_that_fails_is_aborted", aborted),
    ]
}

/// More rows than one statement of the export reads, and on the first deployment more than 50,000.
async fn complete(stage: Stage) -> Result<()> {
    const FILE: Deployment = Deployment { platform: Platform::PlatenUp, database: DatabaseKind::File };
    let rows: u32 = if stage.deployment == FILE { 60_000 } else { 3_000 };
    let (app, account) = stage.account(Quota::Unlimited).await?;
    let person = Person::of(&app, &account).await?;
    // Several of each second.
    let at = format!("{} - i / 7", now()?);
    insert(&app, &account, rows, &[("at", &at)]).await?;
    let response = person.begin("/dashboard/requests.csv").await?;
    ensure!(response.content_length().is_none(), "the length was known before");
    let text = response.text().await?;
    ensure!(text.ends_with("\r\n"), "the last line is incomplete");
    let ids: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split(',').nth(9)).collect();
    ensure!(ids.len() == rows as usize, "{} lines", ids.len());
    ensure!(ids.iter().collect::<BTreeSet<_>>().len() == ids.len(), "a row is there twice");
    // The first page of as many rows as a statement has.
    let filtered = person.begin("/dashboard/requests.csv?id=row-1").await?.text().await?;
    let expected = ids.iter().filter(|id| id.starts_with("row-1")).count();
    ensure!(filtered.lines().count() == expected + 1, "{} lines", filtered.lines().count());
    Ok(())
}

/// The table disappears while a client reads slowly.
async fn aborted(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let app = stand_in.app.service();
    let account = app.operator.account(Quota::Unlimited).await?;
    let person = Person::of(&app, &account).await?;
    // More bytes than buffers take.
    insert(&app, &account, 30_000, &[("host", "printf('%01000d', i)")]).await?;
    let mut response = person.begin("/dashboard/requests.csv").await?;
    let first = response.chunk().await?.context("no bytes")?;
    ensure!(first.starts_with(b"time,key,"), "the first bytes");
    app.execute("ALTER TABLE attempts RENAME TO attempts_gone").await?;
    let mut bytes = first.len();
    let error = loop {
        match response.chunk().await {
            Ok(Some(more)) => bytes += more.len(),
            Ok(None) => anyhow::bail!("an export of {bytes} bytes seems to be complete"),
            Err(error) => break error,
        }
    };
    ensure!(error.is_body() || error.is_decode(), "{error:?}");
    // An export that fails at once is an error page.
    let mut person = person;
    person.get("/dashboard/requests.csv").await?.is(500)?;
    Ok(())
}
