//! The rate of error responses of one client.

use std::{
    thread::available_parallelism,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use futures::future::{try_join, try_join_all};
use platen_tests::{case::Case, client::Target, operator::Quota, suite::Stage};
use serde_json::json;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("error_rate/clients_that_retry_at_once_are_slowed_down", retry_at_once)
            .not_on_spin("a limit of platen up")
            .once_per_platform(),
    ]
}

async fn status(target: &Target) -> Result<u16> {
    Ok(target.render(&json!({ "html": "x" })).send().await?.status)
}

/// Those of another account are not.
async fn retry_at_once(stage: Stage) -> Result<()> {
    const CALLERS: usize = 20;
    let stand_in = stage.start_stand_in(None).await?;
    let (hot, other) = (
        stand_in.app.operator.account(Quota::Of(0)).await?,
        stand_in.app.operator.account(Quota::Of(0)).await?,
    );
    let (hot, other) = (stand_in.app.target(&hot), stand_in.app.target(&other));
    // The burst, and what takes four seconds.
    let rounds = (300 + 400) * available_parallelism()?.get() / CALLERS;
    let began = Instant::now();
    let hot_client = async {
        for _ in 0..rounds {
            let statuses = try_join_all((0..CALLERS).map(|_| status(&hot))).await?;
            ensure!(statuses.iter().all(|status| *status == 429), "{statuses:?}");
        }
        Ok(began.elapsed())
    };
    let other_client = async {
        for _ in 0..20 {
            ensure!(status(&other).await? == 429, "the quota is not spent");
        }
        Ok(began.elapsed())
    };
    let (slowed, not_slowed) = try_join(hot_client, other_client).await?;
    ensure!(slowed >= Duration::from_secs(4), "{} errors in {slowed:?}", rounds * CALLERS);
    ensure!(not_slowed < slowed, "another account waited for {not_slowed:?} of {slowed:?}");
    Ok(())
}
