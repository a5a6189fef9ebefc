//! `platen`: Platen on one machine, and the operator's commands.
//!
//! Invariant: standard output holds what was asked for and nothing else; logs and errors go to
//! standard error, and a failure is a non-zero exit status. This file is the tree of commands.

mod admin;
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

use clap::{Parser, Subcommand};

/// HTML, a URL or a template in; PNG, WebP, JPEG or PDF out.
#[derive(Debug, Parser)]
#[command(name = "platen", version)]
struct Platen {
    #[command(flatten)]
    log: cli::log::Log,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server: the components of spin.toml, the database and the render farm
    Up(cli::up::Up),
    /// Bring a database's schema up to date
    Migrate(cli::migrate::MigrateCommand),
    /// Accounts and their quotas
    #[command(subcommand)]
    Account(cli::account::AccountCommand),
    /// API keys
    #[command(subcommand)]
    Key(cli::key::KeyCommand),
    /// Saved templates
    #[command(subcommand)]
    Template(cli::template::TemplateCommand),
    /// Let a person into the dashboard: print a link that works once
    Invite(cli::invite::InviteCommand),
    /// Render one page to a file, without a server
    Render(cli::render::RenderCommand),
}

fn main() -> ExitCode {
    let Platen { log, command } = Platen::parse();
    // A command's own errors are printed; what the server does is worth a line.
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
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("platen: the runtime does not start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(run);
    // What still runs ends with the process: a thread that waits for the database does not hold the
    // exit up, and instances are not torn down one by one as if they had failed.
    std::mem::forget(runtime);
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The whole chain: this is the operator's terminal.
            eprintln!("platen: {error:#}");
            ExitCode::FAILURE
        }
    }
}
