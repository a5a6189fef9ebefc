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
    /// Markdown; empty if there is none.
    pub default: &'static str,
    /// Markdown.
    pub description: &'static str,
}

/// Defines each variable by name, users, default, description.
macro_rules! variables {
    ($($name:literal $used_by:literal $default:literal $description:literal)*) => {
        &[$(Variable { name: $name, used_by: $used_by, default: $default, description: $description },)*]
    };
}

/// Secrets. They are not flags, because all users of a machine can read command lines.
pub const SECRETS: &[Variable] = variables! {
    "PLATEN_DB_TOKEN" "`up`, `check`, `mcp`, commands, `scripts/spin-up`" ""
        "Token of the libSQL server; instead of `PLATEN_DB_TOKEN_FILE`"
    "PLATEN_FARM_TOKEN" "`up` and `check` with `--farm-url`, `platen-farm`" ""
        "Token between edge and farms; instead of `PLATEN_FARM_TOKEN_FILE`"
    "PLATEN_KEY" "`mcp` with `--url`" ""
        "API key of the server; instead of `PLATEN_KEY_FILE`"
    "PLATEN_LINK_SECRET" "`link sign`, `mcp`" ""
        "Secret of the link; instead of `PLATEN_LINK_SECRET_FILE`"
};

/// Variables of the components, as Spin names them in the environment. They have the same names for `platen up`.
pub const OF_COMPONENTS: &[Variable] = variables! {
    "SPIN_VARIABLE_DEADLINE_MS" "`up`, Spin" "`30000`"
        "Maximum real time of a render in milliseconds, from 1 to 30000"
    "SPIN_VARIABLE_CLAIM_AHEAD" "Spin" "`0`"
        "How long attempts may be used that were claimed ahead, in seconds from 0 to 30; see [operating.md](operating.md#claims-ahead)"
    "SPIN_VARIABLE_SESSION_IDLE_SECONDS" "`up`, Spin" "`86400`"
        "A dashboard session ends after this time without a request"
    "SPIN_VARIABLE_SESSION_SECONDS" "`up`, Spin" "`1209600`"
        "A dashboard session ends at the latest after this time"
    "SPIN_VARIABLE_CLIENT_ADDRESS_HEADER" "`up`, Spin" ""
        "Header in which a reverse proxy sends the client's address; see [dashboard.md](dashboard.md)"
    "SPIN_VARIABLE_DOCS_URL" "Spin" ""
        "Address of the documents, to which the dashboard links. `up` serves them"
    "SPIN_VARIABLE_FARM_URL" "Spin" "`http://127.0.0.1:3001`"
        "The farm, or the proxy in front of several; see [operating.md](operating.md#several-farms). `scripts/spin-up` sets it"
    "SPIN_VARIABLE_FARM_TOKEN" "Spin" ""
        "Token of the farms; required on Spin. `scripts/spin-up` sets it"
};

/// Variables of the scripts of the repository.
pub const OF_SCRIPTS: &[Variable] = variables! {
    "PLATEN_OPERATOR" "`scripts/up`, `scripts/spin-up`" "`operator@localhost`"
        "E-mail address of the first operator"
    "PLATEN_FONTS" "`scripts/up`, `scripts/spin-up`" "`full`"
        "Fonts that are installed: `full`, or `minimal` for those of Latin, Greek and Cyrillic only"
    "PLATEN_BIN_DIR" "`scripts/spin-up`" ""
        "Directory with `platen` and `platen-farm`; nothing is installed or built"
};

/// All names that begin with [`PREFIX`]: settings, as in docs/configuration.md, examples for clients, tests and tools. Both
/// programs, which can share an environment, know all of them.
const NAMES: &str = "
    PLATEN_BIN_DIR PLATEN_BROWSERS PLATEN_BROWSER_USER PLATEN_CHROMIUM PLATEN_CLAIM_AHEAD PLATEN_COMPONENTS PLATEN_DATA PLATEN_DB
    PLATEN_DB_TOKEN PLATEN_DB_TOKEN_FILE PLATEN_DNS PLATEN_DRAIN_TIMEOUT PLATEN_EGRESS_ALLOW
    PLATEN_EGRESS_CONNECTIONS PLATEN_EGRESS_DENY PLATEN_EGRESS_MEGABYTES PLATEN_EGRESS_PORTS
    PLATEN_EGRESS_PROXY PLATEN_EGRESS_PROXY_FILE PLATEN_FARM_LISTEN
    PLATEN_FARM_TOKEN PLATEN_FARM_TOKEN_FILE PLATEN_FARM_URL PLATEN_FONTS PLATEN_LISTEN PLATEN_LOG
    PLATEN_LOG_FORMAT PLATEN_MAX_CONNECTIONS PLATEN_MAX_CONNECTIONS_PER_ADDRESS
    PLATEN_METRICS_LISTEN PLATEN_OPERATOR PLATEN_PAGE_MEMORY PLATEN_QUEUE PLATEN_QUEUE_TIMEOUT
    PLATEN_RECYCLE_AFTER PLATEN_RESOLVE PLATEN_UNSAFE_NO_SANDBOX PLATEN_URL PLATEN_WARM_MEMORY
    PLATEN_KEY PLATEN_KEY_FILE PLATEN_LINK_SECRET PLATEN_LINK_SECRET_FILE PLATEN_SITE PLATEN_TEMPLATE
    PLATEN_AXE PLATEN_BIN PLATEN_CLIENTS PLATEN_CRATES PLATEN_NGINX PLATEN_PICTURES PLATEN_SCREENSHOTS PLATEN_SPIN PLATEN_SQLD
    PLATEN_TEST_BASE_URL PLATEN_TEST_DATABASES PLATEN_TEST_DB PLATEN_TEST_DB_TOKEN PLATEN_TEST_KEY
    PLATEN_TEST_TEMPLATE_ID
";

const PREFIX: &str = "PLATEN_";

/// A name that begins with [`PREFIX`] and is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} is set, but Platen has no setting of this name. Correct it or unset it; docs/configuration.md has all settings. \
     Kubernetes sets variables for its services unless the pod has enableServiceLinks: false"
)]
pub(crate) struct UnknownVariable(String);

pub(crate) fn check_names() -> Result<(), UnknownVariable> {
    check(env::vars_os().filter_map(|(name, _)| name.into_string().ok()))
}

fn check(mut names: impl Iterator<Item = String>) -> Result<(), UnknownVariable> {
    let unknown = names.find(|name| name.starts_with(PREFIX) && !is_known(name));
    unknown.map_or(Ok(()), |name| Err(UnknownVariable(name)))
}

/// Whether the programs start when a variable with this name is set.
#[must_use]
pub fn is_known(name: &str) -> bool {
    NAMES.split_whitespace().any(|known| known == name)
}

/// The variables of the flags of a command and of its subcommands.
#[must_use]
pub fn names_of_flags(command: &Command) -> Vec<String> {
    let own = command.get_arguments().filter_map(|argument| argument.get_env());
    let own = own.map(|name| name.to_string_lossy().into_owned());
    own.chain(command.get_subcommands().flat_map(names_of_flags)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_refused() {
        let check_one = |name: &str| check([name.to_owned()].into_iter()).map_err(|error| error.to_string());
        for name in ["PLATEN_EGRESS_DENIED", "PLATEN_BROWSER", "PLATEN_FARM_SERVICE_HOST", "PLATEN_TEST_X"] {
            let error = check_one(name).unwrap_err();
            assert!(error.starts_with(&format!("{name} is set")), "{error}");
        }
        for name in ["PLATEN_BROWSERS", "PLATEN_TEST_DB", "PATH", "PLATENX"] {
            check_one(name).unwrap();
        }
    }
}
