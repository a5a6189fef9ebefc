//! `spin.toml`, manifest version 2: the part of it that `platen up` provides.
//!
//! Invariant: a [`Manifest`] that was read asks for nothing that is not provided; every other key
//! is refused by name, because a component that silently lacks what it asked for fails later and
//! far away. Left to others: values of variables ([`crate::variables`]), what an outbound host
//! means ([`crate::outbound`]).

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use serde::Deserialize;

/// The database every component may ask for by this name.
pub(crate) const DEFAULT_DATABASE: &str = "default";

/// Why a manifest cannot be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
    /// No file.
    #[error("there is no {0}: run platen where spin.toml is, or name it with --manifest")]
    Missing(PathBuf),
    /// The file cannot be read.
    #[error("{path} cannot be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Not TOML, or a key's value is not what it must be.
    #[error("{path} is not a Spin manifest: {source}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// Another manifest version.
    #[error("spin.toml: spin_manifest_version must be 2")]
    Version,
    /// A key that is not provided.
    #[error("spin.toml: {whose} asks for {key:?}, which platen up does not provide")]
    NotProvided {
        /// The part of the manifest.
        whose: String,
        /// The key.
        key: String,
    },
    /// A database of another name.
    #[error(
        "spin.toml: component {component:?} asks for the database {name:?}; platen up has one, \"default\""
    )]
    Database {
        /// The component.
        component: String,
        /// The database's name.
        name: String,
    },
    /// A name that is not `lower_snake_case`.
    #[error("spin.toml: {0:?} is not a variable's name: lower-case letters, digits and single underscores")]
    VariableName(String),
    /// Neither a default nor required, or both.
    #[error("spin.toml: variable {0:?} needs either a default or required = true")]
    VariableValue(String),
    /// A trigger for a component that is not there.
    #[error("spin.toml: the route {route:?} leads to component {component:?}, which is not there")]
    NoComponent {
        /// The route.
        route: String,
        /// The component.
        component: String,
    },
    /// A route that is no route.
    #[error(
        "spin.toml: {0:?} is not a route: it begins with a slash, and only \"/...\" at its end is a wildcard"
    )]
    Route(String),
    /// Two triggers for one route.
    #[error("spin.toml: the route {0:?} is there twice")]
    SameRoute(String),
    /// Nothing to serve.
    #[error("spin.toml: there is no [[trigger.http]]")]
    NoTrigger,
}

/// A manifest.
#[derive(Debug, Deserialize)]
pub(crate) struct Manifest {
    spin_manifest_version: u8,
    /// `[application]`
    pub(crate) application: Application,
    /// `[variables]`
    #[serde(default)]
    pub(crate) variables: BTreeMap<String, Variable>,
    trigger: Triggers,
    /// `[component.<id>]`
    #[serde(default, rename = "component")]
    pub(crate) components: BTreeMap<String, Component>,
}

/// `[application]`
#[derive(Debug, Deserialize)]
pub(crate) struct Application {
    /// The application's name.
    pub(crate) name: String,
}

/// One of `[variables]`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Variable {
    /// The value nobody overrode.
    pub(crate) default: Option<String>,
    #[serde(default)]
    required: bool,
}

#[derive(Debug, Deserialize)]
struct Triggers {
    #[serde(default)]
    http: Vec<HttpTrigger>,
}

/// One `[[trigger.http]]`.
#[derive(Debug, Deserialize)]
pub(crate) struct HttpTrigger {
    /// `/path` or `/path/...`
    pub(crate) route: String,
    /// The component that answers there.
    pub(crate) component: String,
}

/// One `[component.<id>]`.
#[derive(Debug, Deserialize)]
pub(crate) struct Component {
    /// The `.wasm` file; after reading, relative to nothing but the working directory.
    pub(crate) source: PathBuf,
    /// Templates of the component's own variables.
    #[serde(default)]
    pub(crate) variables: BTreeMap<String, String>,
    /// Templates of where it may connect to.
    #[serde(default)]
    pub(crate) allowed_outbound_hosts: Vec<String>,
    #[serde(default)]
    sqlite_databases: Vec<String>,
    build: Option<Build>,
}

/// `[component.<id>.build]`
#[derive(Debug, Deserialize)]
struct Build {
    command: Commands,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Commands {
    One(String),
    Many(Vec<String>),
}

impl Component {
    /// Whether it may use the database.
    pub(crate) fn uses_database(&self) -> bool {
        !self.sqlite_databases.is_empty()
    }

    /// The command that makes its `.wasm` file, if the manifest has one.
    pub(crate) fn build_command(&self) -> Option<String> {
        self.build.as_ref().map(|build| match &build.command {
            Commands::One(command) => command.clone(),
            Commands::Many(commands) => commands.join(" && "),
        })
    }
}

impl Manifest {
    /// Reads and checks a manifest.
    pub(crate) fn read(path: &Path) -> Result<Self, ManifestError> {
        let text = fs::read_to_string(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => ManifestError::Missing(path.to_owned()),
            _ => ManifestError::Unreadable { path: path.to_owned(), source },
        })?;
        let mut manifest = Self::parse(&text, path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for component in manifest.components.values_mut() {
            component.source = folder.join(&component.source);
        }
        Ok(manifest)
    }

    /// The routes, in the manifest's order.
    pub(crate) fn routes(&self) -> &[HttpTrigger] {
        &self.trigger.http
    }

    fn parse(text: &str, path: &Path) -> Result<Self, ManifestError> {
        let syntax = |source| ManifestError::Syntax { path: path.to_owned(), source: Box::new(source) };
        let table: toml::Table = text.parse().map_err(syntax)?;
        keys::check(&table)?;
        let manifest: Self = toml::from_str(text).map_err(syntax)?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), ManifestError> {
        if self.spin_manifest_version != 2 {
            return Err(ManifestError::Version);
        }
        for (name, variable) in &self.variables {
            check_variable_name(name)?;
            if variable.default.is_some() == variable.required {
                return Err(ManifestError::VariableValue(name.clone()));
            }
        }
        for (id, component) in &self.components {
            component.variables.keys().try_for_each(|name| check_variable_name(name))?;
            if let Some(name) = component.sqlite_databases.iter().find(|name| *name != DEFAULT_DATABASE) {
                return Err(ManifestError::Database { component: id.clone(), name: name.clone() });
            }
        }
        if self.trigger.http.is_empty() {
            return Err(ManifestError::NoTrigger);
        }
        for (index, HttpTrigger { route, component }) in self.trigger.http.iter().enumerate() {
            if !is_route(route) {
                return Err(ManifestError::Route(route.clone()));
            }
            if self.trigger.http[..index].iter().any(|earlier| earlier.route == *route) {
                return Err(ManifestError::SameRoute(route.clone()));
            }
            if !self.components.contains_key(component) {
                let (route, component) = (route.clone(), component.clone());
                return Err(ManifestError::NoComponent { route, component });
            }
        }
        Ok(())
    }
}

fn check_variable_name(name: &str) -> Result<(), ManifestError> {
    let good = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !name.ends_with('_')
        && !name.contains("__");
    if good { Ok(()) } else { Err(ManifestError::VariableName(name.to_owned())) }
}

/// Spin's named segments (`/:name`) and `/*` are not provided.
fn is_route(route: &str) -> bool {
    let path = route.strip_suffix("/...").unwrap_or(route);
    (route.starts_with('/'))
        && !path.contains(['*', ':', '?', '#'])
        && !path.split('/').any(|segment| segment == "...")
}

mod keys;

#[cfg(test)]
mod tests;
