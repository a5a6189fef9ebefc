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
    #[serde(rename = "application")]
    _application: IgnoredAny,
    #[serde(default)]
    pub(crate) variables: BTreeMap<String, Variable>,
    trigger: Triggers,
    #[serde(rename = "component")]
    pub(crate) components: BTreeMap<String, Component>,
}

/// Without a default it is required.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variable {
    pub(crate) default: Option<String>,
    #[serde(rename = "required")]
    _required: Option<IgnoredAny>,
    #[serde(rename = "secret")]
    _secret: Option<IgnoredAny>,
    #[serde(rename = "description")]
    _description: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Triggers {
    http: Vec<HttpTrigger>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpTrigger {
    /// `/path/...`
    pub(crate) route: String,
    /// The id of the component at this route.
    pub(crate) component: String,
}

impl HttpTrigger {
    /// The route without its wildcard and the slash before it. Spin also has routes without one, and named segments.
    fn prefix(&self) -> Option<&str> {
        self.route.strip_suffix("/...").filter(|prefix| !prefix.contains([':', '*']))
    }

    /// Whether a path is below the route.
    pub(crate) fn has(&self, path: &str) -> bool {
        let rest = self.prefix().and_then(|prefix| path.strip_prefix(prefix));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
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
}

/// Its other keys are those of `spin build`.
#[derive(Debug, Deserialize)]
struct Build {
    command: String,
}

impl Component {
    pub(crate) fn uses_database(&self) -> bool {
        !self.sqlite_databases.is_empty()
    }

    /// The manifest's command that builds the `.wasm` file.
    pub(crate) fn build_command(&self) -> Option<&str> {
        self.build.as_ref().map(|build| build.command.as_str())
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

    /// The routes, a long one before a shorter one, so that the first that has a path is the right one.
    pub(crate) fn routes(&self) -> &[HttpTrigger] {
        &self.trigger.http
    }

    fn parse(text: &str, path: &Path) -> Result<Self> {
        let mut manifest: Self = toml::from_str(text).map_err(|error| {
            let text = format!("{} is not a manifest that platen up can use: {error}", path.display());
            Error::new(error).context(text)
        })?;
        ensure!(manifest.spin_manifest_version == 2, "spin.toml: spin_manifest_version must be 2");
        for (id, component) in &manifest.components {
            if let Some(name) = component.sqlite_databases.iter().find(|name| *name != DEFAULT_DATABASE) {
                bail!(
                    "spin.toml: component {id:?} asks for the database {name:?}; platen up has one, \"default\""
                );
            }
        }
        for trigger in manifest.routes() {
            let HttpTrigger { route, component } = trigger;
            ensure!(
                trigger.prefix().is_some(),
                "spin.toml: {route:?} is not a route of the form \"/path/...\""
            );
            ensure!(
                manifest.components.contains_key(component),
                "spin.toml: the route {route:?} leads to component {component:?}, which does not exist"
            );
        }
        manifest.trigger.http.sort_by_key(|trigger| std::cmp::Reverse(trigger.route.len()));
        Ok(manifest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_route_precedes_a_short_one() {
        let routes = ["/v1/...", "/v1/render/..."];
        let added =
            routes.map(|route| format!("[[trigger.http]]\nroute = \"{route}\"\ncomponent = \"edge\"\n"));
        let manifest = include_str!("../../spin.toml").to_owned() + &added.concat();
        let manifest = Manifest::parse(&manifest, Path::new("spin.toml")).unwrap();
        for (path, route) in [
            ("/", "/..."),
            ("/x", "/..."),
            ("/v1", "/v1/..."),
            ("/v1/", "/v1/..."),
            ("/v1x", "/..."),
            ("/v1/render", "/v1/render/..."),
            ("/v1/render/template", "/v1/render/..."),
            ("/v1/rendering", "/v1/..."),
        ] {
            let found = manifest.routes().iter().find(|trigger| trigger.has(path)).unwrap();
            assert_eq!(found.route, route, "{path}");
        }
    }

    #[test]
    fn a_key_or_value_that_is_not_provided_is_refused() {
        let good = include_str!("../../spin.toml");
        let parse = |text: &str| Manifest::parse(text, Path::new("spin.toml"));
        let manifest = parse(good).unwrap();
        assert_eq!(manifest.routes().last().unwrap().route, "/...");
        assert!(manifest.components["edge"].uses_database());
        assert_eq!(manifest.components["edge"].build_command(), Some("scripts/build-components"));
        for (from, to, message) in [
            (
                "sqlite_databases = [\"default\"]",
                "key_value_stores = [\"default\"]",
                "unknown field `key_value_stores`",
            ),
            ("[[trigger.http]]", "[[trigger.redis]]\n[[trigger.http]]", "unknown field `redis`"),
            ("component = \"edge\"", "component = \"edge\"\nexecutor = {}", "unknown field `executor`"),
            ("required = true", "requird = true", "unknown field `requird`"),
            ("[variables]", "[extra]\n[variables]", "unknown field `extra`"),
            ("[\"default\"]", "[\"default\", \"audit\"]", "asks for the database \"audit\""),
            ("version = 2", "version = 1", "spin_manifest_version must be 2"),
            ("component = \"edge\"", "component = \"egde\"", "component \"egde\", which does not exist"),
            ("\"/...\"", "\"/:user/...\"", "\"/:user/...\" is not a route"),
            ("\"/...\"", "\"/\"", "\"/\" is not a route"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = parse(&good.replacen(from, to, 1)).map(drop).unwrap_err().to_string();
            assert!(error.starts_with("spin.toml") && error.contains(message), "{to}: {error}");
        }
    }
}
