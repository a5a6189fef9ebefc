//! `spin.toml`, manifest version 2: the part of it that `platen up` provides.
//!
//! Invariant: a [`Manifest`] has no key that is not provided. Such a key is an error, because a component
//! that lacks what it requested would fail later with an unrelated error.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Error, Result, bail, ensure};
use serde::{Deserialize, de::IgnoredAny};

/// The name of the database that components can use.
pub(crate) const DEFAULT_DATABASE: &str = "default";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    spin_manifest_version: u8,
    pub(crate) application: Application,
    #[serde(default)]
    pub(crate) variables: BTreeMap<String, Variable>,
    trigger: Triggers,
    #[serde(default, rename = "component")]
    pub(crate) components: BTreeMap<String, Component>,
}

// A field of type `Option<IgnoredAny>` is a key that is accepted and has no effect here.

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Application {
    pub(crate) name: String,
    #[serde(rename = "version")]
    _version: Option<IgnoredAny>,
    #[serde(rename = "description")]
    _description: Option<IgnoredAny>,
    #[serde(rename = "authors")]
    _authors: Option<IgnoredAny>,
    /// Settings of other programs, which Spin does not read either.
    #[serde(rename = "tool")]
    _tool: Option<IgnoredAny>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variable {
    pub(crate) default: Option<String>,
    #[serde(default)]
    required: bool,
    #[serde(rename = "secret")]
    _secret: Option<IgnoredAny>,
    #[serde(rename = "description")]
    _description: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Triggers {
    #[serde(default)]
    http: Vec<HttpTrigger>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpTrigger {
    /// `/path` or `/path/...`
    pub(crate) route: String,
    /// The id of the component at this route.
    pub(crate) component: String,
    #[serde(rename = "id")]
    _id: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Component {
    /// The `.wasm` file, relative to the working directory once the manifest is read.
    pub(crate) source: PathBuf,
    /// Templates of the values of the component's variables.
    #[serde(default)]
    pub(crate) variables: BTreeMap<String, String>,
    /// Templates of rules for [`crate::outbound`].
    #[serde(default)]
    pub(crate) allowed_outbound_hosts: Vec<String>,
    #[serde(default)]
    sqlite_databases: Vec<String>,
    build: Option<Build>,
    #[serde(rename = "description")]
    _description: Option<IgnoredAny>,
    #[serde(rename = "tool")]
    _tool: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Build {
    command: Commands,
    #[serde(rename = "workdir")]
    _workdir: Option<IgnoredAny>,
    #[serde(rename = "watch")]
    _watch: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Commands {
    One(String),
    Many(Vec<String>),
}

impl Component {
    pub(crate) fn uses_database(&self) -> bool {
        !self.sqlite_databases.is_empty()
    }

    /// The manifest's command that builds the `.wasm` file.
    pub(crate) fn build_command(&self) -> Option<String> {
        self.build.as_ref().map(|build| match &build.command {
            Commands::One(command) => command.clone(),
            Commands::Many(commands) => commands.join(" && "),
        })
    }
}

impl Manifest {
    /// Reads and checks a manifest.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                bail!(
                    "there is no {}: run platen where spin.toml is, or name it with --manifest",
                    path.display()
                )
            }
            other => other.with_context(|| format!("{} cannot be read", path.display()))?,
        };
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

    fn parse(text: &str, path: &Path) -> Result<Self> {
        let manifest: Self = toml::from_str(text).map_err(|error| {
            let text = format!("{} is not a manifest that platen up can use: {error}", path.display());
            Error::new(error).context(text)
        })?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<()> {
        ensure!(self.spin_manifest_version == 2, "spin.toml: spin_manifest_version must be 2");
        for (name, variable) in &self.variables {
            check_variable_name(name)?;
            ensure!(
                variable.default.is_some() != variable.required,
                "spin.toml: variable {name:?} needs either a default or required = true"
            );
        }
        for (id, component) in &self.components {
            component.variables.keys().try_for_each(|name| check_variable_name(name))?;
            if let Some(name) = component.sqlite_databases.iter().find(|name| *name != DEFAULT_DATABASE) {
                bail!(
                    "spin.toml: component {id:?} asks for the database {name:?}; platen up has one, \"default\""
                );
            }
        }
        ensure!(!self.trigger.http.is_empty(), "spin.toml: there is no [[trigger.http]]");
        for (index, HttpTrigger { route, component, .. }) in self.trigger.http.iter().enumerate() {
            ensure!(
                is_route(route),
                "spin.toml: {route:?} is not a route: it begins with a slash, and only \"/...\" at its end is a \
                 wildcard"
            );
            let earlier = &self.trigger.http[..index];
            ensure!(
                earlier.iter().all(|earlier| earlier.route != *route),
                "spin.toml: the route {route:?} is defined twice"
            );
            ensure!(
                self.components.contains_key(component),
                "spin.toml: the route {route:?} leads to component {component:?}, which does not exist"
            );
        }
        Ok(())
    }
}

fn check_variable_name(name: &str) -> Result<()> {
    let good = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !name.ends_with('_')
        && !name.contains("__");
    ensure!(
        good,
        "spin.toml: {name:?} is not a variable's name: lower-case letters, digits and single underscores"
    );
    Ok(())
}

/// Spin's named segments (`/:name`) and `/*` are not provided.
fn is_route(route: &str) -> bool {
    let path = route.strip_suffix("/...").unwrap_or(route);
    (route.starts_with('/'))
        && !path.contains(['*', ':', '?', '#'])
        && !path.split('/').any(|segment| segment == "...")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
spin_manifest_version = 2
[application]
name = "platen"
version = "0.1.0"
[variables]
farm_url = { default = "http://127.0.0.1:3001" }
farm_token = { required = true, secret = true }
[[trigger.http]]
route = "/..."
component = "edge"
[component.edge]
source = "edge.wasm"
allowed_outbound_hosts = ["{{ farm_url }}"]
sqlite_databases = ["default"]
[component.edge.variables]
farm_url = "{{ farm_url }}"
[component.edge.build]
command = "cargo build"
watch = ["edge/src/**/*.rs"]
"#;

    fn parse(text: &str) -> Result<Manifest> {
        Manifest::parse(text, Path::new("spin.toml"))
    }

    #[test]
    fn a_valid_manifest_is_read() {
        let manifest = parse(GOOD).unwrap();
        assert_eq!(manifest.application.name, "platen");
        assert_eq!(manifest.routes()[0].route, "/...");
        let edge = &manifest.components["edge"];
        assert!(edge.uses_database());
        assert_eq!(edge.build_command().as_deref(), Some("cargo build"));
    }

    #[test]
    fn a_manifest_with_a_key_or_value_that_is_not_provided_is_refused() {
        for (from, to, message) in [
            (
                "sqlite_databases = [\"default\"]",
                "key_value_stores = [\"default\"]",
                "unknown field `key_value_stores`",
            ),
            (
                "[component.edge.build]",
                "[component.edge.environment]\n[component.edge.build]",
                "unknown field `environment`",
            ),
            ("sqlite_databases = [\"default\"]", "files = [\"a\"]", "unknown field `files`"),
            ("[[trigger.http]]", "[[trigger.redis]]\n[[trigger.http]]", "unknown field `redis`"),
            ("component = \"edge\"", "component = \"edge\"\nexecutor = {}", "unknown field `executor`"),
            ("required = true", "requird = true", "unknown field `requird`"),
            ("[variables]", "[extra]\n[variables]", "unknown field `extra`"),
            ("\"edge.wasm\"", "{ url = \"https://x\" }", "line 13"),
            ("[\"default\"]", "[\"default\", \"audit\"]", "asks for the database \"audit\""),
            ("version = 2", "version = 1", "spin_manifest_version must be 2"),
            ("required = true, ", "", "variable \"farm_token\" needs either a default or required = true"),
            ("farm_token", "Farm__Token", "\"Farm__Token\" is not a variable's name"),
            ("component = \"edge\"", "component = \"egde\"", "component \"egde\", which does not exist"),
            ("\"/...\"", "\"/:user/...\"", "\"/:user/...\" is not a route"),
            (
                "[component.edge]",
                "[[trigger.http]]\nroute = \"/...\"\ncomponent = \"edge\"\n[component.edge]",
                "the route \"/...\" is defined twice",
            ),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = parse(&GOOD.replacen(from, to, 1)).map(drop).unwrap_err().to_string();
            assert!(error.starts_with("spin.toml") && error.contains(message), "{to}: {error}");
        }
    }

    #[test]
    fn only_spins_forms_of_routes_are_valid() {
        for route in ["/", "/...", "/a", "/a/b/...", "/.well/x.y"] {
            assert!(is_route(route), "{route}");
        }
        for route in ["", "a", "/*", "/:a", "/a/.../b", "/a?b"] {
            assert!(!is_route(route), "{route}");
        }
    }
}
