//! SIGTERM: running renders finish, no new request is accepted, and no process is left.

use nix::sys::signal::Signal;
use platen_harness::raw_connection::{RawConnection, render_head};

use crate::prelude::*;
use crate::{
    crash::{HeldRender, have_ended},
    database::Outage,
};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("shutdown/drains_a_running_render", drains)
            .not_on_spin("SIGTERM breaks requests off"),
        Case::own_server("shutdown/with_a_closed_standard_error", closed_stderr),
        Case::own_server("shutdown/answers_the_backlog", backlog).not_on_spin(NO_DRAIN),
        Case::own_server("shutdown/closes_connections_without_a_request", idle).not_on_spin(NO_DRAIN),
        Case::own_server("shutdown/writes_rows_of_renders", rows).not_on_spin(NO_DRAIN),
        Case::own_server("shutdown/ends_after_the_drain_timeout", drain_timeout).not_on_spin(NO_DRAIN),
        Case::own_server("shutdown/a_second_signal_ends_it_at_once", second_signal).not_on_spin(NO_DRAIN),
        Case::own_server("shutdown/a_second_signal_writes_rows_of_attempts", second_signal_rows)
            .not_on_spin(NO_DRAIN),
    ]
}

const NO_DRAIN: &str = "Spin does not drain";

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
        stand_in.common.renders().await?;
    }
    stand_in.app.process.signal(Signal::SIGTERM)?;
    let status = stand_in.app.process.ended().await?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}

/// Connections that the kernel has accepted and the server has not.
async fn backlog(stage: Stage) -> Result<()> {
    let StandIn { mut app, common, farm: _farm, .. } = stage.start_stand_in(None).await?;
    app.process.signal(Signal::SIGSTOP)?;
    let mut connections = Vec::new();
    for _ in 0..60 {
        let mut connection = RawConnection::open(&common).await?;
        connection.send(format!("{}{{}}", render_head(&common, "content-length: 2\r\n"))).await?;
        connections.push(connection);
    }
    app.process.signal(Signal::SIGTERM)?;
    app.process.signal(Signal::SIGCONT)?;
    for mut connection in connections {
        let answer = connection.answer().await?;
        ensure!(answer.status == 400, "{}", answer.summary());
        // Answers of requests that were read before the signal do not announce it.
        connection.closed().await?;
    }
    ends_successfully(&mut app).await
}

/// Nothing is waited for: the server would drain for ten minutes. SIGHUP drains as SIGTERM does.
async fn idle(stage: Stage) -> Result<()> {
    let start = stage.start_stand_in_with(|options| options.arguments(&["--drain-timeout", "600"]));
    let StandIn { mut app, common, farm: _farm, .. } = start.await?;
    let mut silent = RawConnection::open(&common).await?;
    let mut kept_alive = RawConnection::open(&common).await?;
    kept_alive.send("GET /nowhere HTTP/1.1\r\nhost: a\r\n\r\n").await?;
    ensure!(kept_alive.answer().await?.status == 404, "no such path");
    let mut within_a_head = RawConnection::open(&common).await?;
    within_a_head.send("GET / HTTP/1.1\r\n").await?;
    let mut lingering = RawConnection::open(&common).await?;
    lingering.send("POST /nowhere HTTP/1.1\r\nhost: a\r\ncontent-length: 2000000\r\n\r\n").await?;
    ensure!(lingering.answer().await?.status == 404, "no such path");
    app.until_metric("platen_http_connections", 4).await?;
    app.process.signal(Signal::SIGHUP)?;
    silent.closed().await?;
    kept_alive.closed().await?;
    within_a_head.closed().await?;
    lingering.closed().await?;
    ends_successfully(&mut app).await
}

/// Renders are answered before their rows are written. The rows are in the file when the server has ended, even if
/// another process has locked it.
async fn rows(stage: Stage) -> Result<()> {
    const RENDERS: usize = 50;
    for is_locked in [false, true] {
        let mut stand_in = stage.start_stand_in(None).await?;
        let latch = Latch::closed();
        let id = stand_in.account.id.clone();
        stand_in.farm.behave(&id, Behaviour::Held(latch.waiter()));
        let render = || stand_in.common.minimal().send();
        let renders: Vec<_> = (0..RENDERS).map(|_| tokio::spawn(render())).collect();
        let are_claimed = || stand_in.farm.received_from(&id).len() == RENDERS;
        wait::until("the farm has all jobs", are_claimed).await?;
        let kind = stage.deployment.database;
        let outage = if is_locked { Some(Outage::begin(&mut stand_in, kind, false).await?) } else { None };
        latch.open();
        for render in renders {
            render.await??.file("image/png")?;
        }
        stand_in.app.process.signal(Signal::SIGTERM)?;
        if let Some(outage) = outage {
            // Less than a server waits for its instances.
            tokio::time::sleep(Duration::from_secs(2)).await;
            outage.end(&mut stand_in, false).await?;
        }
        ends_successfully(&mut stand_in.app).await?;
        let sql = format!("SELECT count(*) FROM attempts WHERE account_id = '{id}' AND status = 200");
        let rows = stand_in.app.execute(&sql).await?.context("a count")?;
        ensure!(rows == i64::try_from(RENDERS)?, "{rows} rows of {RENDERS} renders; locked: {is_locked}");
    }
    Ok(())
}

/// A server with a render that does not end.
async fn start_stalled(stage: &Stage, drain_timeout: &str) -> Result<StandIn> {
    let start = stage.start_stand_in_with(|options| options.arguments(&["--drain-timeout", drain_timeout]));
    let stand_in = start.await?;
    stand_in.farm.behave(&stand_in.account.id, Behaviour::Stall);
    tokio::spawn(stand_in.common.minimal().send());
    stand_in.farm.until_received_from(&stand_in.account.id).await?;
    Ok(stand_in)
}

async fn drain_timeout(stage: Stage) -> Result<()> {
    let mut stand_in = start_stalled(&stage, "1").await?;
    stand_in.app.process.signal(Signal::SIGTERM)?;
    ends_successfully(&mut stand_in.app).await?;
    let log = stand_in.app.process.log();
    ensure!(log.contains("aborting requests that did not end in time"), "{log}");
    Ok(())
}

async fn second_signal(stage: Stage) -> Result<()> {
    let mut stand_in = start_stalled(&stage, "600").await?;
    two_signals(&mut stand_in.app).await
}

/// The rows of attempts that run, and of finished ones, are written.
async fn second_signal_rows(stage: Stage) -> Result<()> {
    const RENDERS: i64 = 4;
    let start = stage.start_stand_in_with(|options| options.arguments(&["--drain-timeout", "600"]));
    let mut stand_in = start.await?;
    let id = stand_in.account.id.clone();
    stand_in.farm.behave(&id, Behaviour::Stall);
    let mut renders = Vec::new();
    for _ in 0..RENDERS {
        renders.push(tokio::spawn(stand_in.common.minimal().send()));
    }
    let are_claimed = || i64::try_from(stand_in.farm.received_from(&id).len()) == Ok(RENDERS);
    wait::until("the farm has all jobs", are_claimed).await?;
    stand_in.farm.behave(&id, Behaviour::File);
    stand_in.common.renders().await?;
    two_signals(&mut stand_in.app).await?;
    for (condition, expected) in [("status = 499 AND counted", RENDERS), ("status = 200", 1)] {
        let sql = format!("SELECT count(*) FROM attempts WHERE account_id = '{id}' AND {condition}");
        let rows = stand_in.app.execute(&sql).await?.context("a count")?;
        ensure!(rows == expected, "{rows} rows with {condition}");
    }
    let sql = format!("SELECT attempts FROM usage WHERE account_id = '{id}'");
    let attempts = stand_in.app.execute(&sql).await?.context("a count")?;
    ensure!(attempts == RENDERS + 1, "{attempts} attempts count");
    Ok(())
}

/// Sends the second signal when the first one has been noticed, and waits until the server ends.
async fn two_signals(app: &mut TestApp) -> Result<()> {
    for (signal, line) in [(Signal::SIGINT, "shutting down"), (Signal::SIGTERM, "second signal")] {
        app.process.signal(signal)?;
        app.process.wait_for(|log| log.contains(line).then_some(())).await?;
    }
    let status = app.process.ended().await?;
    ensure!(status.code() == Some(1), "it ended with {status}");
    Ok(())
}

async fn ends_successfully(app: &mut TestApp) -> Result<()> {
    let status = app.process.ended().await?;
    ensure!(status.success(), "it ended with {status}; its log:\n{}", app.process.log());
    Ok(())
}
