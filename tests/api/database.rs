//! Databases that are down, absent for a moment or frozen: every answer is one of the contract, nothing is rendered
//! without a recorded attempt, and what counts agrees with the answers.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures::future::join_all;
use platen_tests::{
    case::Case,
    client::RENDER,
    database::DatabaseKind,
    operator::Quota,
    suite::{Stage, StandIn},
    wait,
};
use serde_json::json;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("database/is_down", is_down),
        Case::own_server("database/restarts", restarts),
        Case::own_server("database/does_not_answer", does_not_answer),
    ]
}

const UNAVAILABLE: &str = "The service is busy, try again shortly";

async fn is_down(stage: Stage) -> Result<()> {
    let mut stand_in = stage.start_stand_in(None).await?;
    let target = stand_in.common.clone();
    target.render(&json!({ "html": "x" })).send().await?.file("image/png")?;
    let before = stand_in.farm.received_in_all();
    if stage.deployment.database == DatabaseKind::File {
        corrupt_files(&stand_in)?;
    } else {
        stand_in.app.database.kill().await?;
    }
    // A server may be back soon; a file that is damaged stays so.
    let (status, message) = match stage.deployment.database {
        DatabaseKind::File => (500, "Internal error"),
        _ => (503, UNAVAILABLE),
    };
    let (render, template, invalid) = tokio::join!(
        target.render(&json!({ "html": "x" })).send(),
        target.render_template(&json!({ "templateId": target.template_id })).send(),
        // Errors of the body are for valid keys only, and the key cannot be checked.
        target.post(RENDER, "{}").send(),
    );
    render?.error(status, message).context("a render")?;
    template?.error(status, message).context("a template")?;
    invalid?.error(status, message).context("an invalid body")?;
    // Answers that need no database.
    target.render(&json!({ "html": "x" })).key("junk").send().await?.error(401, "Invalid API key")?;
    target.post("/v1/nothing", "").send().await?.error(404, "Not found")?;
    ensure!(stand_in.farm.received_in_all() == before, "something was rendered without a recorded attempt");
    Ok(())
}

/// Overwrites every file of the database in place, because the server may hold it open.
pub(crate) fn corrupt_files(stand_in: &StandIn) -> Result<()> {
    let mut corrupted = 0;
    for entry in std::fs::read_dir(stand_in.app.data_directory())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.contains(".db") || name.contains(".sqlite") {
            std::fs::write(&path, vec![0x5a; 64 * 1024])?;
            corrupted += 1;
        }
    }
    ensure!(corrupted > 0, "no database file in {}", stand_in.app.data_directory().display());
    Ok(())
}

/// The server starts again while a render waits for it.
async fn restarts(stage: Stage) -> Result<()> {
    if stage.deployment.database == DatabaseKind::File {
        return Ok(());
    }
    let mut stand_in = stage.start_stand_in(None).await?;
    let account = stand_in.app.operator.account(Quota::Of(5)).await?;
    let target = stand_in.app.target(&account);
    let render = async || target.render(&json!({ "html": "x" })).send().await;
    render().await?.file("image/png")?;
    rows(&stand_in, 1).await?;
    stand_in.app.database.kill().await?;
    let (answer, restarted) = tokio::join!(render(), async {
        // Long enough that the render finds no server; the result does not depend on it.
        tokio::time::sleep(Duration::from_millis(500)).await;
        stand_in.app.database.start_again().await
    });
    restarted?;
    answer?.file("image/png").context("the render that waited")?;
    rows(&stand_in, 2).await?;
    ensure!(stand_in.app.operator.attempts(&account.id).await? == 2, "two were rendered");
    Ok(())
}

/// The server accepts statements, and answers them only after the requests have been refused.
async fn does_not_answer(stage: Stage) -> Result<()> {
    if stage.deployment.database == DatabaseKind::File {
        return Ok(());
    }
    let stand_in = stage.start_stand_in(Some(2_000)).await?;
    let account = stand_in.app.operator.account(Quota::Of(5)).await?;
    let target = stand_in.app.target(&account);
    let render = || target.render(&json!({ "html": "x" })).send();
    render().await?.file("image/png")?;
    rows(&stand_in, 1).await?;
    stand_in.app.database.pause(true)?;
    for answer in join_all((0..4).map(|_| render())).await {
        answer?.error(503, UNAVAILABLE)?;
    }
    stand_in.app.database.pause(false)?;
    let is_available = async || Ok(render().await?.file("image/png").ok().map(|_| ()));
    wait::until_some("a render succeeds", is_available).await?;
    // An attempt that is recorded late, for a request that was refused, is given back.
    let agree = async || {
        let rendered = stand_in.farm.received_from(&account.id).len() as u64;
        Ok((stand_in.app.operator.attempts(&account.id).await? == rendered).then_some(()))
    };
    wait::until_some("the attempts are those that were rendered", agree).await
}

async fn rows(stand_in: &StandIn, expected: i64) -> Result<()> {
    let are_written = async || {
        Ok((stand_in.app.execute("SELECT count(*) FROM attempts").await? == Some(expected)).then_some(()))
    };
    wait::until_some("the rows of the attempts are written", are_written).await
}
