//! The settings of a command, with where each is from.
//!
//! Invariant: the value of a secret is not shown.

use std::{env, fmt};

use clap::{Arg, ArgMatches, Command, parser::ValueSource};
use platen_farm::startup;
use serde::Serialize;

/// A setting that does not have its default.
#[derive(Debug, Serialize)]
pub(super) struct Setting {
    /// The flag, or the variable if there is none.
    name: String,
    value: String,
    /// The variable or "command line".
    source: String,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} ({})", self.name, self.value, self.source)
    }
}

const SECRET: &str = "(secret)";

/// The settings that are given by flags or variables.
pub(super) fn all(command: &Command, matches: &ArgMatches) -> Vec<Setting> {
    let of_flags = command.get_arguments().filter_map(|argument| of_flag(argument, matches));
    let secrets = startup::SECRETS.iter().map(|variable| (variable, true));
    let of_components = startup::OF_COMPONENTS.iter().map(|variable| (variable, false));
    let of_components = of_components.filter(|(variable, _)| variable.used_by.contains("`up`"));
    let others = secrets.chain(of_components).filter_map(|(variable, is_secret)| {
        let value = env::var(variable.name).ok().filter(|value| !value.is_empty())?;
        let value = if is_secret { SECRET.to_owned() } else { value };
        Some(Setting { name: variable.name.to_owned(), value, source: "environment".to_owned() })
    });
    of_flags.chain(others).collect()
}

fn of_flag(argument: &Arg, matches: &ArgMatches) -> Option<Setting> {
    let variable = argument.get_env();
    let source = match matches.value_source(argument.get_id().as_str())? {
        ValueSource::EnvVariable => variable?.to_string_lossy().into_owned(),
        ValueSource::CommandLine => "command line".to_owned(),
        _ => return None,
    };
    // Of the options, only settings have variables.
    variable?;
    let name = format!("--{}", argument.get_long()?);
    let value = if argument.is_hide_env_values_set() {
        SECRET.to_owned()
    } else {
        let values = matches.get_raw(argument.get_id().as_str())?;
        values.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(",")
    };
    Some(Setting { name, value, source })
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;
    use crate::cli::check::Check;

    #[test]
    fn given_settings_are_listed_without_secrets() {
        let command = Check::augment_args(Command::new("check")).no_binary_name(true);
        let arguments = ["--browsers", "3", "--egress-proxy", "http://u:s3cret@proxy.example:1", "--json"];
        let matches = command.clone().try_get_matches_from(arguments).unwrap();
        Check::from_arg_matches(&matches).unwrap();
        let settings: Vec<String> = all(&command, &matches).iter().map(Setting::to_string).collect();
        assert!(settings.contains(&"--browsers = 3 (command line)".to_owned()), "{settings:?}");
        assert!(settings.contains(&"--egress-proxy = (secret) (command line)".to_owned()), "{settings:?}");
        assert!(!settings.iter().any(|setting| setting.contains("--queue")));
    }
}
