//! SIGTERM: what runs is finished, nothing new is taken, and nothing stays behind.

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use platen_tests::{
    app::Options,
    case::Case,
    image_file::{GREEN, Picture},
    procfs,
    suite::Stage,
};
use serde_json::json;

use crate::crash::{Held, are_gone};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("shutdown/drains_a_running_render", drains),
        Case::own_server("shutdown/with_a_log_that_nobody_reads", unread_log),
    ]
}

async fn drains(stage: Stage) -> Result<()> {
    let mut held = Held::start(&stage, Options::own_farm(stage.database)).await?;
    let render =
        tokio::spawn(held.target.render(&json!({ "url": held.url, "width": 40, "height": 30 })).send());
    held.reached().await;
    let below = procfs::descendants(held.app.process.pid());
    held.app.process.signal(Signal::SIGTERM)?;
    // It stops listening: from then on connections are refused or closed.
    while held.target.post("/v1/nothing", "").start().await.is_ok() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    ensure!(!render.is_finished(), "the running render was not waited for");
    held.latch.open();
    let answer = render.await?.context("the running render was cut off")?;
    Picture::decode(answer.file("image/png")?, "image/png")?.expect(39, 29, GREEN)?;
    let status = held.app.process.ended().await?;
    ensure!(status.success(), "it ended with {status}; it said:\n{}", held.app.process.log());
    are_gone(&below).await
}

/// A collector of logs that died is no reason to stop rendering, nor to stop ending when told.
async fn unread_log(stage: Stage) -> Result<()> {
    let mut stand_in = stage.start_stand_in(None).await?;
    stand_in.app.process.stop_reading_errors();
    for _ in 0..5 {
        stand_in.common.render(&json!({ "html": "x" })).send().await?.file("image/png")?;
    }
    stand_in.app.process.signal(Signal::SIGTERM)?;
    let status = stand_in.app.process.ended().await?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}
