//! `platen`: Platen on one machine, and the operator's commands.
//!
//! Invariant: standard output has the result of the command only; logs and errors go to standard error, and a
//! failure has a non-zero exit status.

mod admin;
mod bounded_body;
mod cli;
mod db;
mod manifest;
mod metrics;
mod migrate;
mod outbound;
mod runtime;
mod server;
mod variables;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use platen_farm::startup;

/// Renders HTML, URLs and templates to PNG, WebP, JPEG and PDF.
#[derive(Debug, Parser)]
#[command(name = "platen", version)]
struct Platen {
    #[command(flatten)]
    log: startup::LogArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server: the components of spin.toml, the database and the render farm
    Up(cli::up::Up),
    /// Migrate the schema of a database
    Migrate(cli::migrate::MigrateCommand),
    /// Manage accounts and their quotas
    #[command(subcommand)]
    Account(cli::account::AccountCommand),
    /// Manage API keys
    #[command(subcommand)]
    Key(cli::key::KeyCommand),
    /// Manage saved templates
    #[command(subcommand)]
    Template(cli::template::TemplateCommand),
    /// Invite a user to the dashboard: print a one-time link
    Invite(cli::invite::InviteCommand),
    /// Render one page to a file, without a server
    Render(cli::render::RenderCommand),
}

fn main() -> ExitCode {
    let Platen { log, command } = startup::parse();
    log.start(if matches!(command, Command::Up(_)) { "info" } else { "warn" });
    let run = async {
        match command {
            Command::Up(up) => up.run().await,
            Command::Migrate(migrate) => migrate.run().await,
            Command::Account(account) => account.run().await,
            Command::Key(key) => key.run().await,
            Command::Template(template) => template.run().await,
            Command::Invite(invite) => invite.run().await,
            Command::Render(render) => render.run().await,
        }
    };
    let runtime = match tokio::runtime::Runtime::new().context("cannot start the async runtime") {
        Ok(runtime) => runtime,
        Err(error) => return startup::exit_code("platen", Err(error)),
    };
    let result = runtime.block_on(run);
    // Not dropped, which would wait for threads that wait for the database, and would end component instances
    // one by one as failed.
    std::mem::forget(runtime);
    startup::exit_code("platen", result)
}
