//! The components of `platen up`, and the settings that they read.
//!
//! Invariant: a component has the route, the variables and the hosts that `spin.toml` gives it. A test compares them.

use std::{
    collections::BTreeMap,
    env,
    num::NonZeroU32,
    path::{Path, PathBuf},
    str::FromStr,
};

use http::HeaderName;
use platen_shared::{farm_address::FarmAddress, limits::RENDER_TIMEOUT_MS};
use secrecy::SecretString;

/// Where `platen up` serves its documents.
const DOCS_URL: &str = "/docs";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Component {
    Dashboard,
    /// The API.
    Edge,
}

/// There is no file of a component.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no {0}: build it with scripts/build-components, and set --components to the directory that has it"
)]
pub(crate) struct MissingComponent(PathBuf);

impl Component {
    /// All, in the order in which their routes are compared with a path.
    pub(crate) const ALL: [Self; 2] = [Self::Dashboard, Self::Edge];

    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Dashboard => "dashboard",
            Self::Edge => "edge",
        }
    }

    /// The route in the form of `spin.toml`.
    pub(crate) fn route(self) -> &'static str {
        match self {
            Self::Dashboard => "/dashboard/...",
            Self::Edge => "/...",
        }
    }

    /// Whether a path is below the route.
    pub(crate) fn has(self, path: &str) -> bool {
        let rest = path.strip_prefix(self.route().trim_end_matches("/..."));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Its `.wasm` file in a directory.
    pub(crate) fn file(self, directory: &Path) -> Result<PathBuf, MissingComponent> {
        let path = directory.join(format!("platen_{}.wasm", self.id()));
        if path.is_file() { Ok(path) } else { Err(MissingComponent(path)) }
    }
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{name} is {value:?}, but must be {expected}")]
pub(crate) struct InvalidSetting {
    name: &'static str,
    value: String,
    expected: &'static str,
}

/// What the components read. Each value except the farm's is set by the variable of the environment that Spin has for it.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) farm_url: FarmAddress,
    farm_token: SecretString,
    deadline_ms: u64,
    /// Seconds; 0 claims each attempt by itself.
    pub(crate) claim_ahead: u64,
    session_idle_seconds: NonZeroU32,
    session_seconds: NonZeroU32,
    /// The header in which a reverse proxy sends the address of its client.
    pub(crate) client_address_header: Option<HeaderName>,
}

impl Settings {
    /// The settings in the environment, or their defaults.
    pub(crate) fn read(farm_url: FarmAddress, farm_token: SecretString) -> Result<Self, InvalidSetting> {
        Self::from_lookup(farm_url, farm_token, |name| env::var(name).ok())
    }

    fn from_lookup(
        farm_url: FarmAddress,
        farm_token: SecretString,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, InvalidSetting> {
        let value = |name, default: &str| (name, lookup(name).unwrap_or_else(|| default.to_owned()));
        let seconds = "a whole number of seconds, 1 or more";
        let deadline = value("SPIN_VARIABLE_DEADLINE_MS", "30000");
        let expected = "a whole number of milliseconds from 1 to 30000";
        let header = value("SPIN_VARIABLE_CLIENT_ADDRESS_HEADER", "");
        Ok(Self {
            farm_url,
            farm_token,
            claim_ahead: 0,
            deadline_ms: parse(deadline, expected, |ms| (1..=RENDER_TIMEOUT_MS).contains(ms))?,
            session_idle_seconds: parse(
                value("SPIN_VARIABLE_SESSION_IDLE_SECONDS", "86400"),
                seconds,
                |_| true,
            )?,
            session_seconds: parse(value("SPIN_VARIABLE_SESSION_SECONDS", "1209600"), seconds, |_| true)?,
            client_address_header: match header {
                (_, value) if value.is_empty() => None,
                header => Some(parse(header, "the name of a header", |_| true)?),
            },
        })
    }

    /// The variables of one component.
    pub(crate) fn variables(&self, component: Component) -> BTreeMap<&'static str, SecretString> {
        match component {
            Component::Edge => BTreeMap::from([
                ("farm_url", self.farm_url.to_string().into()),
                ("farm_token", self.farm_token.clone()),
                ("deadline_ms", self.deadline_ms.to_string().into()),
                ("claim_ahead", self.claim_ahead.to_string().into()),
            ]),
            Component::Dashboard => BTreeMap::from([
                ("farm_url", self.farm_url.to_string().into()),
                ("farm_token", self.farm_token.clone()),
                ("session_idle_seconds", self.session_idle_seconds.to_string().into()),
                ("session_seconds", self.session_seconds.to_string().into()),
                (
                    "client_address_header",
                    self.client_address_header.as_ref().map_or("", HeaderName::as_str).into(),
                ),
                ("docs_url", DOCS_URL.into()),
            ]),
        }
    }
}

fn parse<T: FromStr>(
    (name, value): (&'static str, String),
    expected: &'static str,
    is_valid: impl Fn(&T) -> bool,
) -> Result<T, InvalidSetting> {
    let parsed = value.parse().ok().filter(is_valid);
    parsed.ok_or(InvalidSetting { name, value, expected })
}

/// The names in the environment that only components could read, and that none reads.
pub(crate) fn unknown_variables() -> impl Iterator<Item = String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(|name| {
        name.starts_with("SPIN_VARIABLE_")
            && platen_program::OF_COMPONENTS.iter().all(|variable| variable.name != name)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use secrecy::ExposeSecret as _;
    use toml::{Table, Value};

    use super::*;

    fn settings(environment: &[(&str, &str)]) -> Result<Settings, InvalidSetting> {
        Settings::from_lookup("http://127.0.0.1:3001".parse().unwrap(), "t0ken".into(), |name| {
            environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn a_path_belongs_to_the_first_route_that_has_it() {
        for (path, expected) in [
            ("/", Some(Component::Edge)),
            ("/v1/render", Some(Component::Edge)),
            ("/dashboards", Some(Component::Edge)),
            ("/dashboard", Some(Component::Dashboard)),
            ("/dashboard/keys", Some(Component::Dashboard)),
            ("*", None),
        ] {
            assert_eq!(Component::ALL.into_iter().find(|component| component.has(path)), expected, "{path}");
        }
    }

    #[test]
    fn settings_are_those_of_the_environment() {
        let settings = settings(&[
            ("SPIN_VARIABLE_DEADLINE_MS", "5000"),
            ("SPIN_VARIABLE_CLIENT_ADDRESS_HEADER", "X-Forwarded-For"),
            ("SPIN_VARIABLE_FARM_URL", "http://other.example"),
        ])
        .unwrap();
        let value = |component, name| settings.variables(component)[name].expose_secret().to_owned();
        assert_eq!(value(Component::Edge, "deadline_ms"), "5000");
        assert_eq!(value(Component::Edge, "farm_url"), "http://127.0.0.1:3001");
        assert_eq!(value(Component::Dashboard, "client_address_header"), "x-forwarded-for");
        assert!(!format!("{settings:?}").contains("t0ken"));
    }

    #[test]
    fn a_value_that_a_component_could_not_use_is_refused() {
        for (name, value) in [
            ("SPIN_VARIABLE_DEADLINE_MS", "30001"),
            ("SPIN_VARIABLE_DEADLINE_MS", "0"),
            ("SPIN_VARIABLE_SESSION_SECONDS", "0"),
            ("SPIN_VARIABLE_SESSION_IDLE_SECONDS", "a day"),
            ("SPIN_VARIABLE_CLIENT_ADDRESS_HEADER", "x forwarded for"),
        ] {
            let error = settings(&[(name, value)]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name} is {value:?}, but must be ")), "{error}");
        }
    }

    /// Removes a table and returns it.
    fn take(table: &mut Table, name: &str) -> Table {
        let Some(Value::Table(table)) = table.remove(name) else { panic!("{name} is no table") };
        table
    }

    fn list(values: &[&str]) -> Value {
        Value::Array(values.iter().copied().map(Value::from).collect())
    }

    #[test]
    fn spin_has_the_same_components() {
        let mut manifest: Table = toml::from_str(include_str!("../../spin.toml")).unwrap();
        let mut components = take(&mut manifest, "component");
        let routes = take(&mut manifest, "trigger");
        let expected = Component::ALL.map(|component| {
            let route = [("route", component.route()), ("component", component.id())];
            route.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect::<Table>()
        });
        let http = routes["http"].as_array().unwrap();
        assert!(routes.len() == 1 && http.len() == expected.len(), "{routes}");
        assert!(expected.into_iter().all(|route| http.contains(&Value::Table(route))), "{routes}");

        let declared = take(&mut manifest, "variables");
        let settings = settings(&[]).unwrap();
        let mut names = BTreeSet::new();
        for component in Component::ALL {
            let mut table = take(&mut components, component.id());
            let source = format!("target/wasm32-wasip2/component/platen_{}.wasm", component.id());
            assert_eq!(table.remove("source"), Some(Value::from(source)));
            assert_eq!(table.remove("sqlite_databases"), Some(list(&["default"])));
            let stores = (component == Component::Edge).then(|| list(&["default"]));
            assert_eq!(table.remove("key_value_stores"), stores);
            assert_eq!(table.remove("allowed_outbound_hosts"), Some(list(&["{{ farm_url }}"])));
            let given = take(&mut table, "variables");
            let own = settings.variables(component);
            assert!(given.keys().eq(own.keys()), "{given}");
            for (name, value) in own {
                assert_eq!(given[name], Value::from(format!("{{{{ {name} }}}}")));
                let mut variable = declared[name].as_table().unwrap().clone();
                let default = match name {
                    "farm_token" => {
                        assert_eq!(variable.remove("required"), Some(true.into()));
                        assert_eq!(variable.remove("secret"), Some(true.into()));
                        None
                    }
                    "docs_url" => Some(""),
                    _ => Some(value.expose_secret()),
                };
                assert_eq!(variable.remove("default"), default.map(Value::from), "{name}");
                variable.remove("description");
                assert!(variable.is_empty(), "{variable}");
                let documented = platen_program::OF_COMPONENTS
                    .iter()
                    .find(|variable| variable.name == format!("SPIN_VARIABLE_{}", name.to_ascii_uppercase()));
                let documented = documented.map(|variable| variable.default.trim_matches('`'));
                assert_eq!(documented, Some(default.unwrap_or_default()), "{name}");
                names.insert(name);
            }
            // What is left is for `spin build`.
            table.remove("build");
            table.remove("description");
            assert!(table.is_empty(), "{table}");
        }
        assert!(components.is_empty() && names.len() == declared.len(), "{components} {declared}");
        assert_eq!(names.len(), platen_program::OF_COMPONENTS.len());
        assert!(manifest.keys().eq(["application", "spin_manifest_version"]), "{manifest}");
    }
}
