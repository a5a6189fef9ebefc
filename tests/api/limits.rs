//! Limits of the operating system on the server: nothing but files and 503, and nothing is counted that did not run.

use std::{fs, process::Command};

use futures::future::join_all;
use platen_harness::raw_connection::{RawConnection, render_head};

use crate::prelude::*;

const ON_SPIN: &str = "the statuses are those of platen up";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("limits/no_memory_for_an_instance", no_memory).not_on_spin(ON_SPIN),
        Case::own_server("limits/no_file_descriptors", no_descriptors).not_on_spin(ON_SPIN),
    ]
}

/// Less than the address space that an instance reserves.
const SPARE_MEMORY: u64 = 128 * 1024 * 1024;

async fn no_memory(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let id = &stand_in.account.id;
    let render = || stand_in.common.minimal().send();
    let size = || procfs::memory(stand_in.app.server_pid(), "VmSize");
    let latch = stand_in.farm.hold(id);
    let held = tokio::spawn(render());
    stand_in.farm.until_received_from(id).await?;
    let with_instance = size()?;
    latch.open();
    held.await??.file("image/png")?;
    let has_ended = || size().is_ok_and(|size| size + SPARE_MEMORY <= with_instance);
    wait::until("the instance ends", has_ended).await?;
    limit(stand_in.app.server_pid(), &format!("--as={}:", size()? + SPARE_MEMORY))?;
    for _ in 0..3 {
        let answer = render().await?;
        answer.error(503, "The server is busy, try again shortly")?;
        ensure!(answer.header("retry-after")? == "1", "{}", answer.summary());
    }
    limit(stand_in.app.server_pid(), "--as=unlimited:")?;
    render().await?.file("image/png")?;
    let log = stand_in.app.process.log();
    let lines = log.matches("a component gave no response").count();
    ensure!(lines == 1, "{lines} equal lines in {log}");
    until_counted(&stand_in, id, 2).await
}

const SPARE_DESCRIPTORS: usize = 16;

async fn no_descriptors(stage: Stage) -> Result<()> {
    let (stand_in, account, target) = stage.start_stand_in_for(Quota::Of(500)).await?;
    let body = r#"{"html":"x"}"#;
    // A connection that is kept open may be closed to make space when the next request is on its way.
    let headers = format!("content-length: {}\r\nconnection: close\r\n", body.len());
    let request = render_head(&target, &headers) + body;
    // A connection without a request for half a second may be closed as well.
    let render =
        async || RawConnection::open_with(&target, request.clone().into_bytes()).await?.answer().await;
    render().await?.file("image/png")?;
    let open = fs::read_dir(format!("/proc/{}/fd", stand_in.app.server_pid()))?.count();
    limit(stand_in.app.server_pid(), &format!("--nofile={}:", open + SPARE_DESCRIPTORS))?;
    let mut files = 1;
    for answer in join_all((0..100).map(|_| render())).await {
        let answer = answer?;
        match answer.status {
            200 => files += 1,
            503 => drop(answer.header("retry-after")?),
            _ => anyhow::bail!("{}; the log:\n{}", answer.summary(), stand_in.app.process.log()),
        }
    }
    until_counted(&stand_in, &account.id, files).await
}

/// Changes a soft limit of a process.
pub(crate) fn limit(pid: u32, limit: &str) -> Result<()> {
    let status = Command::new("prlimit").args(["--pid", &pid.to_string(), limit]).status();
    ensure!(status.context("no prlimit: install util-linux")?.success(), "prlimit {limit} failed");
    Ok(())
}

/// Refunds may be written after the answer.
async fn until_counted(stand_in: &StandIn, account: &str, expected: u64) -> Result<()> {
    wait::until_true(&format!("{expected} attempts count"), async || {
        let attempts = stand_in.app.operator.attempts(account).await?;
        Ok(attempts == expected)
    })
    .await
}
