//! The settings of a run, from environment variables. Every variable of the suite is read here.

use std::{env, ffi::OsString, path::PathBuf};

use anyhow::{Context as _, Result, bail};

/// A kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DatabaseKind {
    /// A SQLite-format file under the server's data directory.
    File,
    /// `sqld` without authentication.
    Sqld,
    /// `sqld` that requires a signed token.
    SqldJwt,
}

impl DatabaseKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[Self::File, Self::Sqld, Self::SqldJwt];

    /// Its name in the report and in `PLATEN_TEST_DATABASES`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Sqld => "sqld",
            Self::SqldJwt => "sqld-jwt",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// An external server (`PLATEN_TEST_BASE_URL`).
#[derive(Debug, Clone)]
pub struct External {
    /// Where it listens, without a slash at the end.
    pub base_url: String,
    /// A valid key of an account with enough quota left (`PLATEN_TEST_KEY`).
    pub key: String,
    /// The id of that account's template with the markup of `fixtures/template.html` and the name `Fixture
    /// Template` (`PLATEN_TEST_TEMPLATE_ID`); without it, cases that need it are ignored.
    pub template_id: Option<String>,
}

/// The settings of one run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server under test (`PLATEN_BIN`), by default the `platen` beside this test binary.
    pub platen: PathBuf,
    /// Its application manifest (`PLATEN_MANIFEST`), by default the workspace's.
    pub manifest: PathBuf,
    /// The libSQL server (`PLATEN_SQLD`).
    pub sqld: Option<PathBuf>,
    /// The accessibility rules (`PLATEN_AXE`).
    pub axe: Option<PathBuf>,
    /// Where screenshots of the dashboard are saved (`PLATEN_SCREENSHOTS`), by default nowhere.
    pub screenshots: Option<PathBuf>,
    /// The databases to run on (`PLATEN_TEST_DATABASES`, separated by commas), by default all.
    pub databases: Vec<DatabaseKind>,
    /// A server to test instead of starting one.
    pub external: Option<External>,
}

impl Settings {
    /// Reads the environment.
    pub fn from_env() -> Result<Self> {
        Self::from_lookup(|name| env::var_os(name))
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Self> {
        let text = |name: &str| -> Result<Option<String>> {
            let value = lookup(name).filter(|value| !value.is_empty());
            value
                .map(|value| value.into_string().ok().with_context(|| format!("{name} is not UTF-8")))
                .transpose()
        };
        let databases = match text("PLATEN_TEST_DATABASES")? {
            None => DatabaseKind::ALL.to_vec(),
            Some(names) => names
                .split(',')
                .map(|name| DatabaseKind::parse(name.trim()).with_context(|| unknown_database(name)))
                .collect::<Result<_>>()?,
        };
        let external = match (text("PLATEN_TEST_BASE_URL")?, text("PLATEN_TEST_KEY")?) {
            (Some(base_url), Some(key)) => Some(External {
                base_url: base_url.trim_end_matches('/').to_owned(),
                key,
                template_id: text("PLATEN_TEST_TEMPLATE_ID")?,
            }),
            (None, None) => None,
            _ => bail!("PLATEN_TEST_BASE_URL and PLATEN_TEST_KEY must both be set or both be unset"),
        };
        let path = |name: &str| lookup(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Ok(Self {
            platen: path("PLATEN_BIN").unwrap_or_else(platen_beside_this_binary),
            manifest: path("PLATEN_MANIFEST").unwrap_or_else(|| crate_dir().join("../spin.toml")),
            sqld: path("PLATEN_SQLD"),
            axe: path("PLATEN_AXE"),
            screenshots: path("PLATEN_SCREENSHOTS"),
            databases,
            external,
        })
    }
}

/// The directory of this crate, which has the golden cases and the fixtures.
#[must_use]
pub fn crate_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// `target/debug/platen` for a test binary `target/debug/deps/api-…`.
fn platen_beside_this_binary() -> PathBuf {
    let mut path = env::current_exe().unwrap_or_default();
    path.pop();
    path.pop();
    path.join("platen")
}

fn unknown_database(name: &str) -> String {
    let known = DatabaseKind::ALL.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
    format!("PLATEN_TEST_DATABASES has {name:?}; valid are {known}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)]) -> Result<Settings> {
        Settings::from_lookup(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        })
    }

    #[test]
    fn an_empty_environment_means_all_databases_and_no_external_server() {
        let settings = settings(&[]).unwrap();
        assert_eq!(settings.databases, DatabaseKind::ALL);
        assert!(settings.external.is_none());
        assert!(settings.platen.ends_with("debug/platen") || settings.platen.ends_with("release/platen"));
    }

    #[test]
    fn databases_are_chosen_by_name() {
        let chosen = settings(&[("PLATEN_TEST_DATABASES", "sqld-jwt, file")]).unwrap().databases;
        assert_eq!(chosen, [DatabaseKind::SqldJwt, DatabaseKind::File]);
        settings(&[("PLATEN_TEST_DATABASES", "mysql")]).unwrap_err();
    }

    #[test]
    fn a_base_url_needs_a_key() {
        settings(&[("PLATEN_TEST_BASE_URL", "http://127.0.0.1:1")]).unwrap_err();
        let both = [("PLATEN_TEST_BASE_URL", "http://127.0.0.1:1/"), ("PLATEN_TEST_KEY", "k")];
        assert_eq!(settings(&both).unwrap().external.unwrap().base_url, "http://127.0.0.1:1");
    }
}
