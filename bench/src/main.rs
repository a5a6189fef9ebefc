//! Measures Platen, alone and beside its peers, for `bench/RESULTS.md`. Run it through the scripts
//! beside it, which build what it measures in release.
//!
//! Invariant: sends only to 127.0.0.1, a fixed number of requests, and compares only within one
//! run: these figures are about ratios, not about machines.

#![forbid(unsafe_code)]

mod compare;
mod corpus;
mod edge;
mod load;
mod neighbours;
mod raw;
mod usage;

use clap::{Parser, Subcommand};

/// Measures Platen and prints Markdown.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// What the edge costs: a 401, a 400 and a relayed file from a stand-in farm.
    Edge(edge::Options),
    /// Platen beside its peers.
    Compare(compare::Options),
    /// Real pages, rendered in virtual time and by a browser that draws by itself in real time.
    Corpus(corpus::Options),
    /// A good account beside ordinary and beside hostile ones.
    Neighbours(neighbours::Options),
    #[command(hide = true)]
    Raw(raw::Options),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Arguments::parse().what {
        What::Edge(options) => edge::run(options).await,
        What::Compare(options) => compare::run(options).await,
        What::Corpus(options) => corpus::run(options).await,
        What::Neighbours(options) => neighbours::run(options).await,
        What::Raw(options) => raw::run(options).await,
    }
}
