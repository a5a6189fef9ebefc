//! `platen-farm`: the render farm as a program of its own.
//!
//! Invariant: it runs only with a token, which never stands on its command line, where everybody
//! on the machine could read it.

use std::{fs, io::IsTerminal as _, net::SocketAddr, path::PathBuf};

use anyhow::Context as _;
use clap::Parser;
use platen_farm::{Config, Farm, FarmToken};
use tokio::{
    net::TcpListener,
    signal::unix::{Signal, SignalKind, signal},
};
use tracing_subscriber::EnvFilter;

/// Renders pages to pictures and PDFs for holders of a token, taken from `PLATEN_FARM_TOKEN` or
/// --token-file.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// Where to listen
    // Not every interface: whoever can reach a farm and has its token can make it fetch pages.
    #[arg(long, env = "PLATEN_FARM_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:3001")]
    listen: SocketAddr,

    /// A file that holds the token
    #[arg(long, env = "PLATEN_FARM_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// What to log, such as warn or debug
    #[arg(long, env = "PLATEN_LOG", value_name = "FILTER", default_value = "info")]
    log: EnvFilter,

    /// How to log
    // A collector reads JSON; people at a terminal read text.
    #[arg(long, env = "PLATEN_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,

    #[command(flatten)]
    farm: Config,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    start_log(cli.log, cli.log_format);
    let token = token(cli.token_file)?;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let listener =
        TcpListener::bind(cli.listen).await.with_context(|| format!("cannot listen on {}", cli.listen))?;
    let farm = tokio::select! {
        farm = Farm::start(cli.farm) => farm?,
        () = either(&mut terminate, &mut interrupt) => return Ok(()),
    };
    tracing::info!(address = %listener.local_addr()?, "listening");
    let (first, second) = tokio::sync::oneshot::channel::<()>();
    tokio::spawn(async move {
        either(&mut terminate, &mut interrupt).await;
        let _ = first.send(());
        either(&mut terminate, &mut interrupt).await;
        // The kernel takes the browsers down with us, and the next farm sweeps their homes.
        tracing::warn!("told twice: leaving at once");
        std::process::exit(1);
    });
    let shutdown = async {
        let _ = second.await;
    };
    farm.serve(listener, token, shutdown).await.context("the listener broke")
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

fn token(file: Option<PathBuf>) -> anyhow::Result<FarmToken> {
    let text = match file {
        Some(path) => fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?,
        None => std::env::var("PLATEN_FARM_TOKEN").unwrap_or_default(),
    };
    Ok(FarmToken::new(text)?)
}

fn start_log(filter: EnvFilter, format: LogFormat) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // Or else a log that nobody reads any more would be a panic where a line is written.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}
