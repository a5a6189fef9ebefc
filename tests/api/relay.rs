//! Large files pass through the server without being buffered.

use std::net::SocketAddr;

use platen_harness::{farm::pattern_byte, raw_connection::authority};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("relay/200_mb_in_little_memory", in_little_memory),
        Case::own_server("relay/nothing_is_buffered_for_a_slow_reader", slow_reader),
        Case::own_server("relay/the_kernel_keeps_little_for_a_slow_reader", kernel_memory)
            .not_on_spin("Spin leaves it to the kernel, which keeps up to 4 MiB"),
    ]
}

const FILE_BYTES: u64 = 200_000_000;
const MAX_GROWTH_BYTES: u64 = 32 * 1024 * 1024;
/// 256 KiB and what the kernel takes in one write.
const MAX_KERNEL_BYTES: u64 = 1024 * 1024;

async fn in_little_memory(stage: Stage) -> Result<()> {
    let (stand_in, before) = with_large_file(&stage).await?;
    let mut response = stand_in.common.minimal().start().await?;
    let length = response.content_length();
    ensure!(length == Some(FILE_BYTES), "content-length {length:?}");
    let mut received = 0;
    while let Some(piece) = response.chunk().await? {
        // The first byte of every piece: checking all bytes would take most of the time of the case.
        ensure!(
            piece.first().is_none_or(|byte| *byte == pattern_byte(received)),
            "other bytes at {received}"
        );
        received += piece.len() as u64;
    }
    ensure!(received == FILE_BYTES, "{received} bytes");
    has_not_grown(&stand_in, before)
}

/// A server for a case only, because other requests change its memory, whose farm answers with a large file; and the memory.
async fn with_large_file(stage: &Stage) -> Result<(StandIn, u64)> {
    let stand_in = stage.start_stand_in(None).await?;
    for _ in 0..3 {
        stand_in.common.renders().await?;
    }
    stand_in.farm.behave(&stand_in.account.id, Behaviour::LongFile(FILE_BYTES));
    let pid = stand_in.app.server_pid();
    procfs::reset_peak_memory(pid)?;
    Ok((stand_in, procfs::memory(pid, "VmRSS")?))
}

fn has_not_grown(stand_in: &StandIn, before: u64) -> Result<()> {
    let grown = procfs::memory(stand_in.app.server_pid(), "VmHWM")?.saturating_sub(before);
    ensure!(grown < MAX_GROWTH_BYTES, "the server grew by {grown} bytes, from {before}");
    Ok(())
}

/// Nothing is buffered for a client that does not read.
async fn slow_reader(stage: Stage) -> Result<()> {
    let (stand_in, before) = with_large_file(&stage).await?;
    let mut response = stand_in.common.minimal().start().await?;
    response.chunk().await?;
    // The server has stopped reading from the farm. It would never stop if it buffered the file.
    let farm = stand_in.farm.address();
    let server_stopped_reading = || {
        let sockets = procfs::sockets(&[std::process::id()]);
        sockets.iter().any(|socket| socket.local == farm && socket.peer_window_is_closed)
    };
    wait::until("the server stops reading from the farm", server_stopped_reading).await?;
    has_not_grown(&stand_in, before)
}

async fn kernel_memory(stage: Stage) -> Result<()> {
    let (stand_in, _) = with_large_file(&stage).await?;
    let mut response = stand_in.common.minimal().start().await?;
    response.chunk().await?;
    let pid = stand_in.app.server_pid();
    let server: SocketAddr = authority(&stand_in.common).parse()?;
    let unacknowledged = || {
        let sockets = procfs::sockets(&[pid]).into_iter();
        sockets
            .filter(|it| it.local == server && it.peer_window_is_closed)
            .map(|it| it.unacknowledged_bytes)
            .max()
    };
    wait::until("the client's window is closed", || unacknowledged().is_some()).await?;
    let bytes = unacknowledged().context("the window is open again")?;
    ensure!(bytes <= MAX_KERNEL_BYTES, "the kernel keeps {bytes} bytes for a client that does not read");
    Ok(())
}
