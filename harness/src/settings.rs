//! The settings of a run, from environment variables. Every variable of the suite is read here.

use std::{env, ffi::OsString, path::PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::{
    deployment::{DatabaseKind, Deployment, Platform},
    service::DatabaseLocation,
};

/// An external server (`PLATEN_TEST_BASE_URL`). It has a key, a database or both.
#[derive(Debug, Clone)]
pub struct External {
    /// Where it listens, without a slash at the end.
    pub base_url: String,
    /// A valid key of an account with enough quota left (`PLATEN_TEST_KEY`). Not used if there is a database.
    pub key: Option<String>,
    /// The id of that account's template with the markup of `fixtures/template.html` and the name `Fixture
    /// Template` (`PLATEN_TEST_TEMPLATE_ID`); without it, cases that need it are ignored.
    pub template_id: Option<String>,
    /// Its database (`PLATEN_TEST_DB`, `PLATEN_TEST_DB_TOKEN`), in which cases create accounts; without it, cases
    /// that need it are ignored.
    pub database: Option<DatabaseLocation>,
}

impl External {
    fn from_lookup(text: impl Fn(&str) -> Result<Option<String>>) -> Result<Option<Self>> {
        let (key, address) = (text("PLATEN_TEST_KEY")?, text("PLATEN_TEST_DB")?);
        let Some(base_url) = text("PLATEN_TEST_BASE_URL")? else {
            let is_unused = key.is_none() && address.is_none();
            ensure!(is_unused, "PLATEN_TEST_DB and PLATEN_TEST_KEY need PLATEN_TEST_BASE_URL");
            return Ok(None);
        };
        let is_usable = key.is_some() || address.is_some();
        ensure!(is_usable, "PLATEN_TEST_BASE_URL needs PLATEN_TEST_DB or PLATEN_TEST_KEY");
        let token = text("PLATEN_TEST_DB_TOKEN")?;
        Ok(Some(Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            key,
            template_id: text("PLATEN_TEST_TEMPLATE_ID")?,
            database: address.map(|address| DatabaseLocation { address, token }),
        }))
    }
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// The server under test (`PLATEN_BIN`), by default the `platen` beside this test binary. A farm for Spin is
    /// the `platen-farm` in the same directory.
    pub platen: PathBuf,
    /// The directory of its components (`PLATEN_COMPONENTS`), by default the one in which they are built.
    pub components: PathBuf,
    /// Spin (`PLATEN_SPIN`).
    pub spin: Option<PathBuf>,
    /// The libSQL server (`PLATEN_SQLD`).
    pub sqld: Option<PathBuf>,
    /// The accessibility rules (`PLATEN_AXE`).
    pub axe: Option<PathBuf>,
    /// nginx (`PLATEN_NGINX`).
    pub nginx: Option<PathBuf>,
    /// The generators of clients (`PLATEN_CLIENTS`).
    pub clients: Option<PathBuf>,
    /// Where screenshots of the dashboard are saved (`PLATEN_SCREENSHOTS`), by default nowhere.
    pub screenshots: Option<PathBuf>,
    /// What to run on (`PLATEN_TEST_DATABASES`, separated by commas), by default `platen up` with every database
    /// and, if there is a Spin, Spin with a file and with `sqld`.
    pub deployments: Vec<Deployment>,
    /// A server to test instead of starting one.
    pub external: Option<External>,
}

impl Settings {
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
        let external = External::from_lookup(text)?;
        let path = |name: &str| lookup(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let spin = path("PLATEN_SPIN");
        let deployments = match text("PLATEN_TEST_DATABASES")? {
            None => default_deployments(spin.is_some()),
            Some(names) => names
                .split(',')
                .map(|name| Deployment::parse(name.trim()).with_context(|| unknown_deployment(name)))
                .collect::<Result<_>>()?,
        };
        Ok(Self {
            platen: path("PLATEN_BIN").unwrap_or_else(platen_beside_this_binary),
            components: path("PLATEN_COMPONENTS").unwrap_or_else(built_components),
            spin,
            sqld: path("PLATEN_SQLD"),
            axe: path("PLATEN_AXE"),
            nginx: path("PLATEN_NGINX"),
            clients: path("PLATEN_CLIENTS"),
            screenshots: path("PLATEN_SCREENSHOTS"),
            deployments,
            external,
        })
    }
}

/// `tests/`, which has the golden cases and the fixtures.
pub fn tests_dir() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests"))
}

/// Where `scripts/build-components` leaves them.
pub fn built_components() -> PathBuf {
    tests_dir().join("../target/wasm32-wasip2/component")
}

/// `target/debug/platen` for a test binary `target/debug/deps/api-…`.
fn platen_beside_this_binary() -> PathBuf {
    let mut path = env::current_exe().unwrap_or_default();
    path.pop();
    path.pop();
    path.join("platen")
}

fn default_deployments(has_spin: bool) -> Vec<Deployment> {
    let is_default = |it: &Deployment| match it.platform {
        Platform::PlatenUp => true,
        Platform::Spin => has_spin && it.database != DatabaseKind::SqldJwt,
    };
    Deployment::all().filter(is_default).collect()
}

fn unknown_deployment(name: &str) -> String {
    let known = Deployment::all().map(Deployment::name).collect::<Vec<_>>().join(", ");
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

    fn names(settings: &Settings) -> Vec<&str> {
        settings.deployments.iter().map(|deployment| deployment.name()).collect()
    }

    #[test]
    fn an_empty_environment_means_platen_up_and_no_external_server() {
        let settings = settings(&[("PLATEN_SPIN", "")]).unwrap();
        assert_eq!(names(&settings), ["file", "sqld", "sqld-jwt"]);
        assert!(settings.external.is_none());
        assert!(settings.platen.ends_with("debug/platen") || settings.platen.ends_with("release/platen"));
    }

    #[test]
    fn spin_adds_a_file_and_sqld() {
        let settings = settings(&[("PLATEN_SPIN", "/bin/spin")]).unwrap();
        assert_eq!(names(&settings), ["file", "sqld", "sqld-jwt", "spin-file", "spin-sqld"]);
    }

    #[test]
    fn an_external_server_needs_a_key_or_a_database() {
        const URL: (&str, &str) = ("PLATEN_TEST_BASE_URL", "http://127.0.0.1:1/");
        settings(&[URL]).unwrap_err();
        settings(&[("PLATEN_TEST_KEY", "k")]).unwrap_err();
        settings(&[("PLATEN_TEST_DB", "file")]).unwrap_err();
        let with_key = settings(&[URL, ("PLATEN_TEST_KEY", "k")]).unwrap().external.unwrap();
        assert_eq!((with_key.base_url.as_str(), with_key.database), ("http://127.0.0.1:1", None));
        let database = [URL, ("PLATEN_TEST_DB", "http://db"), ("PLATEN_TEST_DB_TOKEN", "t")];
        let location = settings(&database).unwrap().external.unwrap().database.unwrap();
        assert_eq!((location.url(), location.token.as_deref()), (Some("http://db"), Some("t")));
    }
}
