//! The environment variables of Platen that are not those of a flag, and the check for unknown names.
//!
//! Invariant: a variable whose name begins with `PLATEN_` is known, or the program does not start: a misspelled name
//! would otherwise leave a setting at its default without a sign of it.

use std::env;

use clap::Command;

/// A variable that no flag has.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The programs and scripts that read it.
    pub used_by: &'static str,
    /// In Markdown; empty if there is none.
    pub default: &'static str,
    /// In Markdown.
    pub description: &'static str,
}

const fn variable(
    name: &'static str,
    used_by: &'static str,
    default: &'static str,
    description: &'static str,
) -> Variable {
    Variable { name, used_by, default, description }
}

/// Secrets. They are not flags, because all users of a machine can read command lines.
pub const SECRETS: &[Variable] = &[
    variable(
        "PLATEN_DB_TOKEN",
        "`up`, `check`, commands, `scripts/spin-up`",
        "",
        "Token of the libSQL server; instead of `PLATEN_DB_TOKEN_FILE`",
    ),
    variable(
        "PLATEN_FARM_TOKEN",
        "`up` and `check` with `--farm-url`, `platen-farm`",
        "",
        "Token between edge and farms; instead of `PLATEN_FARM_TOKEN_FILE`",
    ),
];

/// Variables of the components, as Spin names them in the environment. They have the same names for `platen up`.
pub const OF_COMPONENTS: &[Variable] = &[
    variable(
        "SPIN_VARIABLE_DEADLINE_MS",
        "`up`, Spin",
        "`30000`",
        "Maximum real time of a render in milliseconds, from 1 to 30000",
    ),
    variable(
        "SPIN_VARIABLE_SESSION_IDLE_SECONDS",
        "`up`, Spin",
        "`86400`",
        "A dashboard session ends after this time without a request",
    ),
    variable(
        "SPIN_VARIABLE_SESSION_SECONDS",
        "`up`, Spin",
        "`1209600`",
        "A dashboard session ends at the latest after this time",
    ),
    variable(
        "SPIN_VARIABLE_CLIENT_ADDRESS_HEADER",
        "`up`, Spin",
        "",
        "Header in which a reverse proxy sends the client's address; see [dashboard.md](dashboard.md)",
    ),
    variable(
        "SPIN_VARIABLE_FARM_URL",
        "Spin",
        "`http://127.0.0.1:3001`",
        "The farm, or the proxy in front of several; see [operating.md](operating.md#several-farms). `scripts/spin-up` sets it",
    ),
    variable(
        "SPIN_VARIABLE_FARM_TOKEN",
        "Spin",
        "",
        "Token of the farms; required on Spin. `scripts/spin-up` sets it",
    ),
];

/// Variables of the scripts of the repository.
pub const OF_SCRIPTS: &[Variable] = &[
    variable(
        "PLATEN_OPERATOR",
        "`scripts/up`, `scripts/spin-up`",
        "`operator@localhost`",
        "E-mail address of the first operator",
    ),
    variable(
        "PLATEN_FONTS",
        "`scripts/up`, `scripts/spin-up`",
        "`full`",
        "Fonts that are installed: `full`, or `minimal` for those of Latin, Greek and Cyrillic only",
    ),
    variable(
        "PLATEN_BIN_DIR",
        "`scripts/spin-up`",
        "",
        "Directory with `platen` and `platen-farm`; nothing is installed or built",
    ),
];

/// Names that examples, tests and tools of the repository use, and those of the respective other program's flags, which
/// an environment that both programs share contains.
const OTHER_NAMES: &[&str] = &[
    "PLATEN_DATA",
    "PLATEN_DB",
    "PLATEN_DB_TOKEN_FILE",
    "PLATEN_FARM_LISTEN",
    "PLATEN_FARM_TOKEN_FILE",
    "PLATEN_FARM_URL",
    "PLATEN_LISTEN",
    "PLATEN_MANIFEST",
    "PLATEN_MAX_CONNECTIONS",
    "PLATEN_MAX_CONNECTIONS_PER_ADDRESS",
    "PLATEN_METRICS_LISTEN",
    "PLATEN_URL",
    // Examples for clients.
    "PLATEN_KEY",
    "PLATEN_SITE",
    "PLATEN_TEMPLATE",
    // Tests and tools.
    "PLATEN_AXE",
    "PLATEN_BIN",
    "PLATEN_CLIENTS",
    "PLATEN_PICTURES",
    "PLATEN_SCREENSHOTS",
    "PLATEN_SPIN",
    "PLATEN_SQLD",
];

const PREFIX: &str = "PLATEN_";
const TEST_PREFIX: &str = "PLATEN_TEST_";

/// A name that no setting has, of those that begin with `PLATEN_`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name} is set, but Platen has no setting of this name{}. Correct it or unset it; docs/configuration.md has all \
     settings",
    .similar.as_ref().map_or(String::new(), |similar| format!("; {similar} is similar"))
)]
pub struct UnknownVariable {
    name: String,
    similar: Option<String>,
}

/// Checks the names of the environment.
pub(super) fn check_names(command: &Command) -> Result<(), UnknownVariable> {
    let variables = env::vars_os().filter_map(|(name, value)| {
        Some((name.into_string().ok()?, value.into_string().unwrap_or_default()))
    });
    check(command, variables)
}

fn check(
    command: &Command,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<(), UnknownVariable> {
    for (name, value) in variables {
        let concerns = name.starts_with(PREFIX) && !name.starts_with(TEST_PREFIX);
        if concerns && !is_known(command, &name) && !is_service_link(&name, &value) {
            return Err(UnknownVariable { similar: similar(&name, &known(command)), name });
        }
    }
    Ok(())
}

/// Whether a program with this command line starts when a variable with this name is set.
#[must_use]
pub fn is_known(command: &Command, name: &str) -> bool {
    known(command).iter().any(|known| known == name)
}

fn known(command: &Command) -> Vec<String> {
    let others = [SECRETS, OF_SCRIPTS].into_iter().flatten().map(|variable| variable.name);
    let others = others.chain(OTHER_NAMES.iter().copied()).map(str::to_owned);
    names_of_flags(command).into_iter().chain(others).collect()
}

/// The variables of the flags of a command and of its subcommands.
#[must_use]
pub fn names_of_flags(command: &Command) -> Vec<String> {
    let own = command.get_arguments().filter_map(|argument| argument.get_env());
    let own = own.map(|name| name.to_string_lossy().into_owned());
    own.chain(command.get_subcommands().flat_map(names_of_flags)).collect()
}

/// Whether Kubernetes set the variable, which it does in all containers of a namespace for each of its services. Those of
/// a service with the name `platen` or `platen-farm` begin with the same prefix as settings.
/// <https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables>
fn is_service_link(name: &str, value: &str) -> bool {
    let is_port = |text: &str| text.parse::<u16>().is_ok();
    let is_url = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    let protocol = |text: &str| matches!(text, "TCP" | "UDP" | "SCTP");
    if name.ends_with("_SERVICE_HOST") {
        return value.parse::<std::net::IpAddr>().is_ok();
    }
    if name.contains("_SERVICE_PORT") {
        return is_port(value);
    }
    if name.ends_with("_PORT") {
        return is_url;
    }
    // NAME_PORT_80_TCP, and with _PROTO, _PORT or _ADDR
    let Some((_, rest)) = name.split_once("_PORT_") else { return false };
    let mut parts = rest.split('_');
    parts.next().is_some_and(is_port) && parts.next().is_some_and(protocol)
}

/// The known name with the fewest edits, if there are few.
fn similar(name: &str, known: &[String]) -> Option<String> {
    let distance = |other: &String| strsim::damerau_levenshtein(name, other);
    known.iter().min_by_key(|other| distance(other)).filter(|other| distance(other) <= 3).cloned()
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    fn check_one(name: &str, value: &str) -> Result<(), String> {
        let flag = Arg::new("browsers").long("browsers").env("PLATEN_BROWSERS");
        let command = Command::new("platen").subcommand(Command::new("up").arg(flag));
        check(&command, [(name.to_owned(), value.to_owned())].into_iter()).map_err(|error| error.to_string())
    }

    #[test]
    fn an_unknown_name_is_refused_with_a_similar_one() {
        let error = check_one("PLATEN_BROWSER", "4").unwrap_err();
        assert!(error.starts_with("PLATEN_BROWSER is set") && error.contains("PLATEN_BROWSERS is similar"));
        let error = check_one("PLATEN_SOMETHING_ELSE", "").unwrap_err();
        assert!(!error.contains("similar"), "{error}");
        for name in
            ["PLATEN_BROWSERS", "PLATEN_DB_TOKEN", "PLATEN_OPERATOR", "PLATEN_TEST_DB", "PATH", "PLATENX"]
        {
            check_one(name, "x").unwrap();
        }
    }

    #[test]
    fn the_variables_of_services_of_kubernetes_are_no_settings() {
        for (name, value) in [
            ("PLATEN_SERVICE_HOST", "10.0.0.7"),
            ("PLATEN_SERVICE_PORT", "80"),
            ("PLATEN_FARM_SERVICE_PORT_HTTP", "3001"),
            ("PLATEN_FARM_PORT", "tcp://10.0.0.7:3001"),
            ("PLATEN_FARM_PORT_3001_TCP", "tcp://10.0.0.7:3001"),
            ("PLATEN_FARM_PORT_3001_TCP_ADDR", "10.0.0.7"),
            ("PLATEN_FARM_PORT_3001_TCP_PROTO", "tcp"),
        ] {
            check_one(name, value).unwrap();
        }
        for (name, value) in
            [("PLATEN_PORT", "8080"), ("PLATEN_SERVICE_HOST", "example"), ("PLATEN_PORT_RANGE", "1-2")]
        {
            check_one(name, value).unwrap_err();
        }
    }
}
