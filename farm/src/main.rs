//! `platen-farm`: the render farm as a separate program.
//!
//! Invariant: it does not start without a token.

use std::{net::SocketAddr, path::Path, process::ExitCode};

use anyhow::{Context as _, Result, ensure};
use platen_farm::{
    CheckArgs, Cli, Config, Farm, FarmToken,
    check::{self, Finding},
};
use platen_program::{MetricsRegistry, startup, telemetry};
use secrecy::ExposeSecret as _;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    platen_farm::fill_template_if_asked();
    let (Cli { listen, token_file, check, check_args, log, farm }, _) = startup::parse_with_matches();
    let log = if check { log.start("warn", None) } else { log.start("info", Some("platen-farm")) };
    let started = log.map_err(anyhow::Error::from).and_then(|()| {
        platen_farm::separate_browsers();
        Runtime::new().context("cannot start the async runtime")
    });
    let result = started.and_then(|runtime| {
        runtime.block_on(async {
            if check {
                run_check(token_file.as_deref(), farm, &check_args).await
            } else {
                run(listen, token_file.as_deref(), farm).await
            }
        })
    });
    startup::exit_code("platen-farm", result)
}

async fn run(listen: SocketAddr, token_file: Option<&Path>, config: Config) -> Result<()> {
    startup::raise_file_limit();
    let token = token(token_file)?;
    let registry = MetricsRegistry::default();
    let stop = startup::stop_signal()?;
    let cannot_listen = || format!("cannot listen on {listen}");
    let socket = startup::reserve(listen).with_context(cannot_listen)?;
    let Some(farm) =
        stop.run_until_cancelled(Farm::start_with_metrics(config, registry)).await.transpose()?
    else {
        return Ok(());
    };
    let listener = startup::listen(socket).with_context(cannot_listen)?;
    tracing::info!(address = %listener.local_addr()?, "listening");
    let served = farm.serve(listener, token, stop).await;
    telemetry::stop().await;
    served.context("the HTTP server failed")
}

fn token(file: Option<&Path>) -> Result<FarmToken> {
    let token = platen_program::secret("PLATEN_FARM_TOKEN", file)?;
    Ok(FarmToken::new(token.as_ref().map_or("", |token| token.expose_secret()))?)
}

async fn run_check(token_file: Option<&Path>, config: Config, args: &CheckArgs) -> Result<()> {
    let token = match token(token_file) {
        Ok(_) => Finding::ok("token", "it is set"),
        Err(error) => Finding::failed("token", &error),
    };
    let findings = [vec![token], check::check(&config, args).await].concat();
    for finding in &findings {
        startup::announce(&finding.to_string());
    }
    let (summary, works) = check::summary(&findings);
    startup::announce(&summary);
    ensure!(works, "the farm cannot work with these settings on this machine");
    Ok(())
}
