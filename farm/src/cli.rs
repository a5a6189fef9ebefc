//! The command line of `platen-farm`.

use std::{net::SocketAddr, path::PathBuf};

use platen_program::startup;

use crate::Config;

/// Renders pages to images and PDFs, for callers that present the token from `PLATEN_FARM_TOKEN` or
/// --token-file
#[derive(Debug, clap::Parser)]
#[command(name = "platen-farm", version)]
pub struct Cli {
    /// Address to listen on
    // Loopback by default: a caller with the token can make the farm load any public page.
    #[arg(long, env = "PLATEN_FARM_LISTEN", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3001")]
    pub listen: SocketAddr,

    /// File that holds the token
    // The token is never an argument, because the command lines of processes are readable by every user.
    #[arg(long, env = "PLATEN_FARM_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Check the settings and this machine, print what is missing, and exit: with status 1 if the farm cannot work
    #[arg(long)]
    pub check: bool,

    /// Settings of the check.
    #[command(flatten)]
    pub check_args: CheckArgs,

    /// Settings of the log.
    #[command(flatten)]
    pub log: startup::LogArgs,

    /// Settings of the farm.
    #[command(flatten)]
    pub farm: Config,
}

/// Settings of a check.
#[derive(Debug, Clone, clap::Args)]
pub struct CheckArgs {
    /// URL that a check loads, to see whether pages reach the Internet; empty to load none
    #[arg(long, value_name = "URL", default_value = "https://example.com/")]
    pub outbound: String,
}
