//! A link with a delay to an address, for scripts that run programs on several hosts.

use std::{future::pending, net::SocketAddr, time::Duration};

use anyhow::Result;
use platen_harness::delay_proxy::{DelayProxy, Link};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// What is at the other end
    #[arg(long)]
    to: SocketAddr,
    /// Milliseconds of a round trip
    #[arg(long)]
    round_trip: u64,
}

/// Prints the URL of this end, and runs until it is stopped.
pub(crate) async fn run(options: Options) -> Result<()> {
    let link = Link { round_trip: Duration::from_millis(options.round_trip), loss_percent: 0 };
    let proxy = DelayProxy::start(options.to, link).await?;
    println!("{}", proxy.url());
    pending().await
}
