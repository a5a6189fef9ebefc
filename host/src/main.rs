//! `platen`: Platen on one machine, and the operator's commands.
//!
//! Invariant: standard output has the result of the command only; logs and errors go to standard error, and a
//! failure has a non-zero exit status.

mod admin;
mod cli;
mod components;
mod db;
mod metrics;
mod migrate;
mod runtime;
mod server;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser, Subcommand};
use platen_program::startup;

/// What follows the options in the help.
const EXAMPLES: &str = "\
Examples:
  platen render page.html -o page.pdf
      Renders a page with the files of its folder, without a server
  platen up
      Starts the server at http://127.0.0.1:3000, with the documents at /docs and the dashboard at /dashboard
  platen key create --account default
      Creates an API key

platen COMMAND --help has the options of a command, -h one line each. The documents are at /docs of a server, in
docs/ of the source, and in /usr/share/doc/platen of the package.";

/// Renders HTML, URLs and templates to PNG, WebP, JPEG and PDF.
#[derive(Debug, Parser)]
#[command(name = "platen", version, after_help = EXAMPLES)]
struct Platen {
    #[command(flatten)]
    log: startup::LogArgs,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the server: the components, the database and the render farm
    Up(cli::up::Up),
    /// Create the schema of a database that has none
    Migrate(cli::database::Migrate),
    /// Manage accounts and their quotas
    #[command(subcommand)]
    Account(cli::account::AccountCommand),
    /// Manage API keys
    #[command(subcommand)]
    Key(cli::key::KeyCommand),
    /// Manage links: signed addresses of a template's files, and sign one
    #[command(subcommand)]
    Link(cli::link::LinkCommand),
    /// Manage saved templates
    #[command(subcommand)]
    Template(cli::template::TemplateCommand),
    /// Invite a user to the dashboard: print a one-time link
    Invite(cli::invite::InviteCommand),
    /// Manage users of the dashboard and their invites
    #[command(subcommand)]
    User(cli::user::UserCommand),
    /// Print the attempts of an account by day, key and template
    Usage(cli::usage::UsageCommand),
    /// List the requests of an account
    Requests(cli::usage::RequestsCommand),
    /// Show or change how long versions of templates, the audit log and attempts are kept
    Retention(cli::retention::RetentionCommand),
    Render(cli::render::RenderCommand),
    Mcp(cli::mcp::McpCommand),
    Backup(cli::database::Backup),
    Check(cli::check::Check),
    /// Print the completions of a shell
    Completions(cli::completions::Completions),
    /// Write the manual pages
    Man(cli::completions::Man),
}

/// The command lines of both programs, for completions and manual pages.
fn programs() -> [clap::Command; 2] {
    [Platen::command(), platen_farm::Cli::command()].map(startup::without_markdown)
}

fn main() -> ExitCode {
    platen_farm::fill_template_if_asked();
    let (Platen { log, command }, matches) = startup::parse_with_matches();
    let is_server = matches!(command, Command::Up(_));
    let log = if is_server { log.start("info", Some("platen")) } else { log.start("warn", None) };
    if let Err(error) = log {
        return startup::exit_code("platen", Err(error.into()));
    }
    if is_server {
        platen_farm::separate_browsers();
    }
    let run = async {
        match command {
            Command::Up(up) => up.run().await,
            Command::Migrate(migrate) => migrate.run().await,
            Command::Account(account) => account.run().await,
            Command::Key(key) => key.run().await,
            Command::Link(link) => link.run().await,
            Command::Template(template) => template.run().await,
            Command::Invite(invite) => invite.run().await,
            Command::User(user) => user.run().await,
            Command::Usage(usage) => usage.run().await,
            Command::Requests(requests) => requests.run().await,
            Command::Retention(retention) => retention.run().await,
            Command::Render(render) => render.run().await,
            Command::Mcp(mcp) => Box::pin(mcp.run()).await,
            Command::Backup(backup) => backup.run().await,
            Command::Check(check) => check.run(matches.subcommand().map_or(&matches, |(_, own)| own)).await,
            Command::Completions(completions) => completions.run(programs()),
            Command::Man(man) => man.run(programs()),
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
    startup::exit_code_of("platen", result, cli::exit_status)
}

#[cfg(test)]
mod tests {
    use std::{fmt::Write as _, path::Path};

    use platen_harness::{
        documents::check_section,
        settings_reference::{OPTIONS, Setting, options, settings, settings_table},
    };

    use super::*;

    #[test]
    fn configuration_is_documented() {
        let platen = Platen::command();
        let farm = platen_farm::Cli::command();
        let up = platen.find_subcommand("up").expect("platen has the command up");
        check_section("configuration.md", "settings", &settings_table(&all_settings(&platen, up, &farm)));
        let mut commands = OPTIONS.to_owned();
        document(&platen, "platen", &[&platen, up], &mut commands);
        check_section("configuration.md", "commands", &commands);
        let of_farm = OPTIONS.to_owned() + &options(&farm, &[&platen, up]);
        check_section("configuration.md", "platen-farm", &of_farm);
    }

    fn all_settings(platen: &clap::Command, up: &clap::Command, farm: &clap::Command) -> Vec<Setting> {
        let names = |command: &clap::Command| -> Vec<String> { platen_program::names_of_flags(command) };
        let others: Vec<&clap::Command> =
            leaves(platen).into_iter().filter(|command| command.get_name() != "up").collect();
        let mut users = vec![("`up`, `check`", up)];
        for (text, name) in [("`render`", "render"), ("`mcp`", "mcp")] {
            users.extend(platen.find_subcommand(name).map(|command| (text, command)));
        }
        let commands =
            others.iter().filter(|command| !matches!(command.get_name(), "check" | "render" | "mcp"));
        users.extend(commands.map(|command| ("commands", *command)));
        users.push(("`platen-farm`", farm));
        let mut all = settings(up, &users, &[]);
        all.extend(settings(farm, &users, &all));
        for command in others {
            all.extend(settings(command, &users, &all));
        }
        for setting in settings(platen, &[], &all) {
            all.push(Setting { used_by: "all".to_owned(), ..setting });
        }
        for setting in &mut all {
            if setting.variable.starts_with("PLATEN_LOG") {
                "all".clone_into(&mut setting.used_by);
            }
        }
        let variables =
            [platen_program::SECRETS, platen_program::OF_COMPONENTS, platen_program::OF_SCRIPTS].concat();
        all.extend(variables.into_iter().map(|variable| Setting {
            variable: variable.name.to_owned(),
            flag: String::new(),
            used_by: variable.used_by.to_owned(),
            default: variable.default.to_owned(),
            description: variable.description.to_owned(),
        }));
        for name in names(platen).into_iter().chain(names(farm)) {
            assert!(all.iter().any(|setting| setting.variable == name), "{name} is not in the table");
        }
        all
    }

    /// The commands without subcommands.
    fn leaves(command: &clap::Command) -> Vec<&clap::Command> {
        command
            .get_subcommands()
            .flat_map(|command| if command.has_subcommands() { leaves(command) } else { vec![command] })
            .collect()
    }

    #[test]
    fn all_settings_are_known() {
        let (platen, farm) = (Platen::command(), platen_farm::Cli::command());
        let up = platen.find_subcommand("up").expect("platen has the command up");
        let names = all_settings(&platen, up, &farm).into_iter().map(|setting| setting.variable);
        for name in names.filter(|name| name.starts_with("PLATEN_")) {
            assert!(platen_program::is_known(&name), "{name} is missing in the list of names");
        }
    }

    /// Finds in the code blocks the words of the commands of `platen`, without comments, pipes and redirections.
    fn commands(document: &str) -> Vec<Vec<String>> {
        let mut commands = Vec::new();
        for (index, block) in document.split("```").enumerate() {
            for line in block.lines().filter(|_| index % 2 == 1) {
                let line = line.split(" #").next().unwrap_or_default();
                let line = line.split(['|', '>', '<', ';']).next().unwrap_or_default();
                let mut words = Vec::new();
                // Quoted text is a word.
                for (index, part) in line.split('\'').enumerate() {
                    if index % 2 == 1 {
                        words.push(part.to_owned());
                    } else {
                        words.extend(part.split_whitespace().map(|word| word.trim_matches('"').to_owned()));
                    }
                }
                // Variables of the environment come before the program.
                let program = words.iter().position(|word| !word.contains('='));
                let words = words.split_off(program.unwrap_or_default());
                let name = words.first().map(|word| word.rsplit('/').next().unwrap_or_default());
                if matches!(name, Some("platen" | "platenctl"))
                    && words.last().is_none_or(|last| last != "\\")
                {
                    commands.push(words);
                }
            }
        }
        commands
    }

    #[test]
    fn the_commands_in_the_documents_are_valid() {
        let documents = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let files = std::fs::read_dir(documents).unwrap().map(|entry| entry.unwrap().path());
        let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
        let mut count = 0;
        for file in files.chain([readme]).filter(|path| path.is_file()) {
            let Ok(text) = std::fs::read_to_string(&file) else { continue };
            for words in commands(&text) {
                let command =
                    Platen::command().mut_args(|argument| argument.env(clap::builder::Resettable::Reset));
                let parsed = command.try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{}: {words:?}: {}", file.display(), parsed.unwrap_err());
                count += 1;
            }
        }
        assert!(count > 40, "{count} commands were found");
    }

    #[test]
    fn helps_are_plain_text() {
        fn helps(command: &clap::Command, texts: &mut Vec<String>) {
            texts.extend(
                [command.get_about(), command.get_long_about()]
                    .into_iter()
                    .flatten()
                    .map(ToString::to_string),
            );
            for argument in command.get_arguments() {
                texts.extend(
                    [argument.get_help(), argument.get_long_help()]
                        .into_iter()
                        .flatten()
                        .map(ToString::to_string),
                );
            }
            command.get_subcommands().for_each(|command| helps(command, texts));
        }
        let mut texts = Vec::new();
        for program in programs() {
            helps(&program, &mut texts);
        }
        assert!(texts.len() > 100, "{}", texts.len());
        for text in texts {
            assert!(
                !text.contains('`')
                    && !text.contains("**")
                    && !text.contains("<http")
                    && !text.contains("]("),
                "{text}"
            );
        }
    }

    #[test]
    fn the_arguments_are_consistent() {
        programs().into_iter().for_each(clap::Command::debug_assert);
    }

    fn document(command: &clap::Command, name: &str, listed: &[&clap::Command], text: &mut String) {
        for command in command.get_subcommands().filter(|command| command.get_name() != "up") {
            let name = format!("{name} {}", command.get_name());
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            if !command.has_subcommands() {
                let _ = write!(text, "| **`{name}`** | | {about} |\n{}", options(command, listed));
            }
            document(command, &name, listed, text);
        }
    }
}
