//! `platen-farm`: the render farm as a separate program.
//!
//! Invariant: it does not start without a token. The token is never an argument, because the command lines
//! of processes are readable by every user of the machine.

use std::{fs, net::SocketAddr, path::PathBuf, process::ExitCode};

use anyhow::{Context as _, Result};
use clap::Parser;
use platen_farm::{Config, Farm, FarmToken, startup};
use tokio::{net::TcpListener, runtime::Runtime};

/// Renders pages to images and PDFs, for callers that present the token from `PLATEN_FARM_TOKEN` or
/// --token-file.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// Address to listen on
    // Loopback by default: a caller with the token can make the farm load any public page.
    #[arg(long, env = "PLATEN_FARM_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:3001")]
    listen: SocketAddr,

    /// File that holds the token
    #[arg(long, env = "PLATEN_FARM_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,

    #[command(flatten)]
    log: startup::LogArgs,

    #[command(flatten)]
    farm: Config,
}

fn main() -> ExitCode {
    let Cli { listen, token_file, log, farm } = startup::parse();
    log.start("info");
    startup::raise_priority();
    let result = Runtime::new()
        .context("cannot start the async runtime")
        .and_then(|runtime| runtime.block_on(run(listen, token_file, farm)));
    startup::exit_code("platen-farm", result)
}

async fn run(listen: SocketAddr, token_file: Option<PathBuf>, config: Config) -> Result<()> {
    startup::raise_file_limit();
    let token = token(token_file)?;
    let stop = startup::stop_signal()?;
    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    let Some(farm) = stop.run_until_cancelled(Farm::start(config)).await.transpose()? else {
        return Ok(());
    };
    tracing::info!(address = %listener.local_addr()?, "listening");
    farm.serve(listener, token, stop.cancelled_owned()).await.context("the HTTP server failed")
}

fn token(file: Option<PathBuf>) -> Result<FarmToken> {
    let text = match file {
        Some(path) => fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?,
        None => std::env::var("PLATEN_FARM_TOKEN").unwrap_or_default(),
    };
    Ok(FarmToken::new(text)?)
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, CommandFactory as _};
    use platen_tests::{documents::check_section, settings_reference::tables};

    use super::*;

    #[test]
    fn configuration_is_documented() {
        check_section(
            "configuration.md",
            "platen-farm",
            &tables(&Cli::command(), &[&Config::augment_args(clap::Command::new(""))]),
        );
    }
}
