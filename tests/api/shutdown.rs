//! SIGTERM: running renders finish, no new request is accepted, and no process is left.

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use platen_tests::{
    app::Options,
    case::Case,
    image_file::{GREEN, Picture},
    procfs,
    suite::Stage,
    wait,
};
use serde_json::json;

use crate::crash::{HeldRender, have_ended};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("shutdown/drains_a_running_render", drains)
            .not_on_spin("SIGTERM breaks requests off"),
        Case::own_server("shutdown/with_a_closed_standard_error", closed_stderr),
    ]
}

async fn drains(stage: Stage) -> Result<()> {
    let mut held = HeldRender::start(&stage, Options::own_farm(stage.deployment)).await?;
    let render =
        tokio::spawn(held.target.render(&json!({ "url": held.url, "width": 40, "height": 30 })).send());
    held.until_loading().await?;
    let below = procfs::descendants(held.app.farm_process().pid());
    held.app.process.signal(Signal::SIGTERM)?;
    // It stops listening: from then on connections are refused or closed.
    let is_refused = async || Ok(held.target.post("/v1/nothing", "").start().await.is_err().then_some(()));
    wait::until_some("the server stops listening", is_refused).await?;
    ensure!(!render.is_finished(), "the server did not wait for the running render");
    held.latch.open();
    let answer = render.await?.context("the running render was aborted")?;
    Picture::decode(answer.file("image/png")?, "image/png")?.expect(39, 29, GREEN)?;
    let status = held.app.process.ended().await?;
    ensure!(status.success(), "it ended with {status}; its log:\n{}", held.app.process.log());
    have_ended(&below).await
}

/// A crashed log collector prevents neither renders nor the shutdown.
async fn closed_stderr(stage: Stage) -> Result<()> {
    let mut stand_in = stage.start_stand_in(None).await?;
    stand_in.app.process.close_stderr();
    for _ in 0..5 {
        stand_in.common.render(&json!({ "html": "x" })).send().await?.file("image/png")?;
    }
    stand_in.app.process.signal(Signal::SIGTERM)?;
    let status = stand_in.app.process.ended().await?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}
