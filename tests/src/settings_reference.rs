//! The tables of `docs/configuration.md`, which are those of the command lines of the programs.

use std::fmt::Write as _;

use clap::{Arg, Command};

/// Tables of the options of a command, one for each help heading, without those in `listed` before.
#[must_use]
pub fn tables(command: &Command, listed: &[&Command]) -> String {
    let is_new = |argument: &&Arg| {
        let known =
            |command: &&Command| command.get_arguments().any(|other| other.get_id() == argument.get_id());
        argument.get_long().is_some_and(|long| !matches!(long, "help" | "version"))
            && !argument.is_hide_set()
            && !listed.iter().any(known)
    };
    let arguments: Vec<_> = command.get_arguments().filter(is_new).collect();
    let mut headings: Vec<_> = arguments.iter().map(|argument| argument.get_help_heading()).collect();
    headings.dedup();
    let mut text = String::new();
    for heading in headings {
        if let Some(heading) = heading {
            let _ = write!(text, "\n{heading}:\n");
        }
        text.push_str("\n| flag | variable | default | |\n| --- | --- | --- | --- |\n");
        for argument in arguments.iter().filter(|argument| argument.get_help_heading() == heading) {
            text.push_str(&row(argument));
        }
    }
    text
}

fn row(argument: &Arg) -> String {
    let long = argument.get_long().expect("only long options are listed");
    let value = argument.get_value_names().filter(|_| argument.get_action().takes_values());
    let value = value.and_then(|names| names.first()).map_or(String::new(), |name| format!(" {name}"));
    let variable = argument.get_env().map_or(String::new(), |name| format!("`{}`", name.display()));
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default().replace('\n', " ");
    let values = argument.get_default_values().iter().map(|value| format!("`{}`", value.display()));
    let values = values.filter(|_| argument.get_action().takes_values()).collect::<Vec<_>>().join(", ");
    // The help contains the default that the code computes.
    let (help, default) = help.split_once(" [default: ").unwrap_or((&help, &values));
    let default = default.trim_end_matches(']');
    let flag = format!("`--{long}{value}`").replace('|', "\\|");
    format!("| {flag} | {variable} | {default} | {} |\n", help.replace('|', "\\|"))
}
