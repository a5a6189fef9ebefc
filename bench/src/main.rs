//! Benchmarks of Platen, alone and compared with other renderers, for `bench/RESULTS.md`. The scripts
//! in `bench/` build what is measured in release and start this program.
//!
//! Invariant: requests go to 127.0.0.1 only and their number is fixed. Figures are comparable only
//! within one run.

#![forbid(unsafe_code)]

mod compare;
mod corpus;
mod cpu_accounting;
mod edge;
mod farm;
mod http_client;
mod neighbours;
mod platforms;
mod raw;
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
    /// Measure the cost of the edge: a 401, a 400 and a file relayed from a stub farm
    Edge(edge::Options),
    /// Compare Platen with other renderers
    Compare(compare::Options),
    /// Render real pages in virtual time and compare them with a browser that renders in real time
    Corpus(corpus::Options),
    /// Measure the latency of a well-behaved account beside ordinary and beside hostile accounts
    Neighbours(neighbours::Options),
    /// Compare `platen up` with Spin: latency, races, faults, large files
    Platforms(platforms::Options),
    #[command(hide = true)]
    Raw(raw::Options),
}

#[tokio::main]
async fn main() -> Result<()> {
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
        Command::Edge(options) => edge::run(options).await,
        Command::Compare(options) => compare::run(options).await,
        Command::Corpus(options) => corpus::run(options).await,
        Command::Neighbours(options) => neighbours::run(options).await,
        Command::Platforms(options) => platforms::run(options).await,
        Command::Raw(options) => raw::run(options).await,
    }
}
