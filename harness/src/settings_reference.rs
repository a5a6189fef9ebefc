//! The tables of `docs/configuration.md`, which are those of the command lines of the programs.

use std::fmt::Write as _;

use clap::{Arg, Command};
use platen_shared::request::FieldName;

/// The head of a table of options, whose rows are those of [`options`].
pub const OPTIONS: &str = "\n| | default | |\n| --- | --- | --- |\n";

/// Rows of the options of a command, without those of the commands in `listed` and `--json`. An option that is a field of a
/// request has a link to its description.
pub fn options(command: &Command, listed: &[&Command]) -> String {
    let is_new = |argument: &&Arg| {
        let known =
            |command: &&Command| command.get_arguments().any(|other| other.get_id() == argument.get_id());
        argument.get_long().is_some_and(|long| !matches!(long, "help" | "version" | "json"))
            && !argument.is_hide_set()
            && !listed.iter().any(known)
    };
    command.get_arguments().filter(is_new).map(row).collect()
}

fn row(argument: &Arg) -> String {
    let (default, help) = default_and_help(argument);
    let flag = flag(argument);
    // Fields of a request are no settings, so they have no variable.
    let field = FieldName::all().find(|name| name.as_str() == argument.get_id().as_str());
    match field.filter(|_| argument.get_env().is_none()) {
        Some(name) => {
            format!("| [{flag}](options.md#{}) | {default} | |\n", name.as_str().to_lowercase())
        }
        None => format!("| {flag} | {default} | {help} |\n"),
    }
}

fn flag(argument: &Arg) -> String {
    let long = argument.get_long().expect("only long options are listed");
    let value = argument.get_value_names().filter(|_| argument.get_action().takes_values());
    let value = value.and_then(|names| names.first()).map_or(String::new(), |name| format!(" {name}"));
    format!("`--{long}{value}`").replace('|', "\\|")
}

fn default_and_help(argument: &Arg) -> (String, String) {
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default().replace('\n', " ");
    let values = argument.get_default_values().iter().map(|value| format!("`{}`", value.display()));
    let values = values.filter(|_| argument.get_action().takes_values()).collect::<Vec<_>>().join(", ");
    // The help contains the default that the code computes.
    let (help, default) = help.split_once(" [default: ").unwrap_or((&help, &values));
    // A default that is a list has a bracket of its own.
    (default.strip_suffix(']').unwrap_or(default).to_owned(), help.replace('|', "\\|"))
}

/// A row of the table of all settings.
#[derive(Debug)]
pub struct Setting {
    pub variable: String,
    /// The flag; empty if there is none.
    pub flag: String,
    /// The programs, commands and scripts that read it.
    pub used_by: String,
    /// Markdown; empty if there is none.
    pub default: String,
    /// Markdown.
    pub description: String,
}

/// The settings of a command that are variables, each with the other commands of `users` that have it. Those in
/// `listed` are left out.
pub fn settings(command: &Command, users: &[(&str, &Command)], listed: &[Setting]) -> Vec<Setting> {
    let mut settings = Vec::new();
    for argument in command.get_arguments() {
        let Some(variable) = argument.get_env() else { continue };
        let variable = variable.to_string_lossy().into_owned();
        if listed.iter().any(|setting| setting.variable == variable) {
            continue;
        }
        let has =
            |command: &&Command| command.get_arguments().any(|other| other.get_env() == argument.get_env());
        let mut used_by: Vec<&str> =
            users.iter().filter(|(_, command)| has(command)).map(|(name, _)| *name).collect();
        used_by.dedup();
        let (default, description) = default_and_help(argument);
        settings.push(Setting {
            variable,
            flag: flag(argument),
            used_by: used_by.join(", "),
            default,
            description,
        });
    }
    settings
}

/// One table. It has three columns, because a page has no space for more.
pub fn settings_table(settings: &[Setting]) -> String {
    let mut text = String::from("\n| variable and flag | default | |\n| --- | --- | --- |\n");
    for Setting { variable, flag, used_by, default, description } in settings {
        let flag = if flag.is_empty() { String::new() } else { format!(" {flag}") };
        let _ = writeln!(text, "| `{variable}`{flag} | {default} | {description}. For {used_by} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_is_whole() {
        for (help, expected) in
            [("A list [default: []]", "[]"), ("A text [default: load]", "load"), ("None", "")]
        {
            assert_eq!(default_and_help(&Arg::new("a").help(help)).0, expected, "{help}");
        }
    }
}
