//! Databases that cannot write, and outages that last: no caller waits for what will not have changed a moment later,
//! nothing is counted or rendered meanwhile, and no row is lost.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use futures::future::join_all;

use crate::{
    database::{NO_FILE, NO_SERVER, UNAVAILABLE, is_file, is_server, rows},
    limits::limit,
    overload::{BUSY, held_refusal},
    prelude::*,
};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("database/cannot_be_written", cannot_be_written),
        Case::own_server("database/is_read_only", is_read_only)
            .except(is_server, NO_FILE)
            .not_on_spin("Spin keeps files open"),
        Case::own_server("database/an_outage_is_known", |stage| outage_is_known(stage, true))
            .except(is_file, NO_SERVER),
        Case::own_server("database/silence_is_known", |stage| outage_is_known(stage, false))
            .except(is_file, NO_SERVER),
    ]
}

/// Lets each write to a file fail in the process that has the database, with the error of a file that is too large: to SQLite
/// it is an I/O error, as are a failing disk, an exceeded quota and a file system that was mounted again for reading only.
fn let_writes_fail(stand_in: &StandIn, fail: bool) -> Result<()> {
    let pid = stand_in.app.database.server_pid().unwrap_or_else(|| stand_in.app.server_pid());
    // The soft limit only, which any user may raise again.
    limit(pid, if fail { "--fsize=0:" } else { "--fsize=unlimited:" })
}

/// Attempts that were claimed before are answered, and their rows written when it is possible again.
async fn cannot_be_written(stage: Stage) -> Result<()> {
    const JOBS: usize = 10;
    let (stand_in, account, target) = stage.start_stand_in_for(Quota::Of(100)).await?;
    let (other, refused_target) = stand_in.app.account(Quota::Of(100)).await?;
    target.renders().await?;
    refused_target.renders().await?;
    let (rendered, refused) = (stand_in.farm.hold(&account.id), held_refusal(&stand_in, &other));
    let before = stand_in.farm.received_in_all();
    let renders: Vec<_> = (0..JOBS).map(|_| tokio::spawn(target.minimal().send())).collect();
    let refusals: Vec<_> = (0..JOBS).map(|_| tokio::spawn(refused_target.minimal().send())).collect();
    let are_claimed = || stand_in.farm.received_in_all() == before + 2 * JOBS;
    wait::until("the farm has all jobs", are_claimed).await?;
    let_writes_fail(&stand_in, true)?;
    rendered.open();
    refused.open();
    for render in renders {
        render.await??.file("image/png").context("a render of an attempt that was claimed")?;
    }
    for refusal in refusals {
        refusal.await??.error(503, BUSY).context("a refusal of an attempt that was claimed")?;
    }
    for answer in join_all((0..JOBS).map(|_| target.minimal().send())).await {
        answer?.error(503, UNAVAILABLE)?;
    }
    ensure!(
        stand_in.farm.received_in_all() == before + 2 * JOBS,
        "something was rendered without an attempt"
    );
    let_writes_fail(&stand_in, false)?;
    let jobs = i64::try_from(JOBS)?;
    stand_in.app.until_rows(&account, "status = 200 AND counted = 1", jobs + 1).await?;
    let are_refunded = "status = 503 AND counted = 0 AND refunded_month IS NOT NULL";
    stand_in.app.until_rows(&other, are_refunded, jobs).await?;
    ensure!(stand_in.app.operator.attempts(&account.id).await? == 1 + JOBS as u64);
    ensure!(stand_in.app.operator.attempts(&other.id).await? == 1, "refunded attempts are counted");
    target.renders().await
}

/// The file has lost its permission to write, and the connections that were open before are gone.
async fn is_read_only(stage: Stage) -> Result<()> {
    let change = |options| Options { obeys_permissions: true, ..options };
    let stand_in = stage.start_stand_in_with(change).await?;
    let (account, target) = stand_in.app.account(Quota::Of(5)).await?;
    target.renders().await?;
    rows(&stand_in, 1).await?;
    set_mode(&stand_in, 0o444)?;
    let_writes_fail(&stand_in, true)?;
    target.minimal().send().await?.error(503, UNAVAILABLE).context("a write fails")?;
    let_writes_fail(&stand_in, false)?;
    for answer in join_all((0..4).map(|_| target.minimal().send())).await {
        answer?.error(503, UNAVAILABLE).context("the file is read-only")?;
    }
    ensure!(stand_in.farm.received_in_all() == 1, "something was rendered without a recorded attempt");
    set_mode(&stand_in, 0o600)?;
    let renders = async || Ok(target.minimal().send().await?.file("image/png").ok().map(drop));
    wait::until_some("a render succeeds", renders).await?;
    ensure!(stand_in.app.operator.attempts(&account.id).await? == 2, "two were rendered");
    Ok(())
}

fn set_mode(stand_in: &StandIn, mode: u32) -> Result<()> {
    let file = PathBuf::from(&stand_in.app.database.location().address);
    Ok(fs::set_permissions(file, fs::Permissions::from_mode(mode))?)
}

/// Callers after the first one do not wait for a server that does not answer, and are served soon after it does.
async fn outage_is_known(stage: Stage, kills: bool) -> Result<()> {
    let mut stand_in = stage.start_stand_in(Some(15_000)).await?;
    let (_, target) = stand_in.app.account(Quota::Unlimited).await?;
    target.renders().await?;
    rows(&stand_in, 1).await?;
    let timed = async || {
        let began = Instant::now();
        target.minimal().send().await?.error(503, UNAVAILABLE)?;
        anyhow::Ok(began.elapsed())
    };
    if kills {
        stand_in.app.database.kill().await?;
    } else {
        stand_in.app.database.pause(true)?;
    }
    let first = timed().await?;
    ensure!(first > Duration::from_secs(5), "a server that restarts is not waited for: {first:?}");
    for _ in 0..10 {
        let next = timed().await?;
        ensure!(next < first / 4, "{next:?} after {first:?}");
    }
    if kills {
        stand_in.app.database.start_again().await?;
    } else {
        stand_in.app.database.pause(false)?;
    }
    let renders = async || Ok(target.minimal().send().await?.file("image/png").ok().map(drop));
    wait::until_some("a render succeeds", renders).await
}
