//! Benchmarks of Platen, alone and compared with other renderers, for `bench/RESULTS.md`. The scripts
//! in `bench/` build what is measured in release and start this program.
//!
//! Invariant: requests go to 127.0.0.1 only and their number is fixed. Figures are comparable only
//! within one run.

#![forbid(unsafe_code)]

mod callers;
mod chaos;
mod checks;
mod claims;
mod client;
mod compare;
mod corpus;
mod costly;
mod cpu_accounting;
mod database;
mod far;
mod farm;
mod farms;
mod fields;
mod http_client;
mod link;
mod neighbours;
mod number_marker;
mod raw;
mod resources;
mod server;
mod soak;
mod statistics;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use tokio::signal::{
    ctrl_c,
    unix::{SignalKind, signal},
};

/// Runs benchmarks of Platen and prints the results as Markdown.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the CPU time of bodies of 1 MiB, by what is in them, with keys that get no render
    Fields(fields::Options),
    /// Compare Platen with other renderers
    Compare(compare::Options),
    /// Measure the capacity of one database, and the latency of an account beside a spent one and of a template with files
    Database(database::Options),
    /// Measure an edge far from its database
    Far(far::Options),
    /// Render real pages in virtual time and compare them with a browser that renders in real time
    Corpus(corpus::Options),
    /// Measure the latency of a well-behaved account beside ordinary and beside hostile accounts
    Neighbours(neighbours::Options),
    /// Measure the throughput of several farms, and how many jobs meet a warm page
    Farms(farms::Options),
    /// Let callers race for a quota at edges that claim ahead, while edges and the database fail
    Claims(claims::Options),
    /// Send a mixed load at twice the capacity while processes are killed and stopped
    Chaos(chaos::Options),
    /// Measure memory, processes, descriptors and files of a server over many jobs
    Soak(soak::Options),
    #[command(hide = true)]
    Link(link::Options),
    #[command(hide = true)]
    Raw(raw::Options),
}

#[tokio::main]
async fn main() -> Result<()> {
    platen_harness::tls::use_ring();
    let command = Arguments::parse().command;
    if let Command::Raw(options) = command {
        return raw::run(options).await;
    }
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        result = run(command) => result,
        // Dropping the run stops and reaps every process it started.
        _ = ctrl_c() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    }
}

async fn run(command: Command) -> Result<()> {
    match command {
        Command::Fields(options) => fields::run(options).await,
        Command::Compare(options) => compare::run(options).await,
        Command::Database(options) => database::run(options).await,
        Command::Far(options) => far::run(options).await,
        Command::Corpus(options) => corpus::run(options).await,
        Command::Neighbours(options) => neighbours::run(options).await,
        Command::Farms(options) => farms::run(options).await,
        Command::Claims(options) => claims::run(options).await,
        Command::Chaos(options) => chaos::run(options).await,
        Command::Soak(options) => soak::run(options).await,
        Command::Link(options) => link::run(options).await,
        Command::Raw(options) => raw::run(options).await,
    }
}
