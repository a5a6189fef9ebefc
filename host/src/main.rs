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
    /// Show or change how long versions of templates, the audit log and attempts are kept
    Retention(cli::retention::RetentionCommand),
    /// Render one page to a file, without a server
    Render(cli::render::RenderCommand),
}

fn main() -> ExitCode {
    let Platen { log, command } = startup::parse();
    if matches!(command, Command::Up(_)) {
        log.start("info");
        startup::raise_priority();
    } else {
        log.start("warn");
    }
    let run = async {
        match command {
            Command::Up(up) => up.run().await,
            Command::Migrate(migrate) => migrate.run().await,
            Command::Account(account) => account.run().await,
            Command::Key(key) => key.run().await,
            Command::Template(template) => template.run().await,
            Command::Invite(invite) => invite.run().await,
            Command::Retention(retention) => retention.run().await,
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

#[cfg(test)]
mod tests {
    use std::{fmt::Write as _, path::Path};

    use clap::CommandFactory as _;
    use platen_tests::{documents::check_section, settings_reference::tables};

    use super::*;
    use crate::manifest::Manifest;

    #[test]
    fn configuration_is_documented() {
        let platen = Platen::command();
        check_section("configuration.md", "platen", &tables(&platen, &[]));
        let up = platen.find_subcommand("up").expect("platen has the command up");
        check_section("configuration.md", "up", &tables(up, &[&platen]));
        let mut commands = String::new();
        document(&platen, "platen", &[&platen, up], &mut commands);
        check_section("configuration.md", "commands", &commands);
    }

    fn document(command: &clap::Command, name: &str, listed: &[&clap::Command], text: &mut String) {
        for command in command.get_subcommands().filter(|command| command.get_name() != "up") {
            let name = format!("{name} {}", command.get_name());
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let table = tables(command, listed);
            if !command.has_subcommands() {
                let _ = write!(text, "\n### `{name}`\n\n{about}.\n{table}");
            }
            document(command, &name, listed, text);
        }
    }

    #[test]
    fn variables_of_the_components_are_documented() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spin.toml");
        let manifest = Manifest::read(&path).unwrap();
        let document = include_str!("../../docs/configuration.md");
        for name in manifest.variables.keys() {
            assert!(document.contains(&format!("| `SPIN_VARIABLE_{}` |", name.to_uppercase())), "{name}");
        }
    }
}
