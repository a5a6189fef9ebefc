//! Runs the components of a manifest on Wasmtime.
//!
//! Invariant: a component gets WASI's clocks, randomness and standard error, HTTP to its allowed
//! hosts, its own variables, and the database if the manifest says so: no files, no sockets, no
//! environment. Left to others: connections and routes ([`crate::server`]), statements
//! ([`crate::db`]).

mod bindings;
mod cancellation;
mod client;
mod dispatch;
mod engine;
mod sqlite;
mod state;
mod variables;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use secrecy::{ExposeSecret as _, SecretString};

use crate::{
    db::Database,
    manifest::Manifest,
    metrics::Metrics,
    outbound::{AllowedHosts, InvalidRule},
    variables::{VariableError, Variables},
};

pub(crate) use dispatch::{ComponentError, Handler, Lane};
pub(crate) use engine::Engine;
pub(crate) use state::HangUp;

/// Why a component cannot be run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// The engine does not start.
    #[error("the WebAssembly engine does not start")]
    Engine(#[source] wasmtime::Error),
    /// The directory of compiled components cannot be used.
    #[error("the directory for compiled components cannot be used")]
    Cache(#[source] wasmtime::Error),
    /// No `.wasm` file.
    #[error(
        "component {component:?} is not built: there is no {path}{}",
        build.as_ref().map(|build| format!("; build it with `{build}`")).unwrap_or_default()
    )]
    NotBuilt {
        /// The component.
        component: String,
        /// The missing file.
        path: PathBuf,
        /// The manifest's build command.
        build: Option<String>,
    },
    /// Not a component, or not one for HTTP.
    #[error("component {component:?} ({path}) cannot be run")]
    NotAComponent {
        /// The component.
        component: String,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: wasmtime::Error,
    },
    /// Variables without values.
    #[error(transparent)]
    Variables(#[from] VariableError),
    /// A rule that is no rule.
    #[error("spin.toml: component {component:?} allows {rule:?}, which {source}")]
    Outbound {
        /// The component.
        component: String,
        /// The rule, as the manifest has it.
        rule: String,
        /// What is wrong with it.
        source: InvalidRule,
    },
}

/// What one component is given.
#[derive(Debug)]
pub(crate) struct Grants {
    /// Its id in the manifest.
    id: String,
    variables: BTreeMap<String, SecretString>,
    allowed_hosts: AllowedHosts,
    database: Option<Database>,
}

/// Loads every component of the manifest, ready to answer.
pub(crate) fn load(
    engine: &Engine,
    manifest: &Manifest,
    variables: &Variables,
    database: &Database,
    metrics: &Arc<Metrics>,
) -> Result<BTreeMap<String, Handler>, LoadError> {
    let client = client::Client::new();
    manifest
        .components
        .iter()
        .map(|(id, component)| {
            let mut allowed_hosts = AllowedHosts::default();
            for rule in &component.allowed_outbound_hosts {
                allowed_hosts.allow(variables.fill(rule)?.expose_secret()).map_err(|source| {
                    LoadError::Outbound { component: id.clone(), rule: rule.clone(), source }
                })?;
            }
            let own = component
                .variables
                .iter()
                .map(|(name, template)| Ok((name.clone(), variables.fill(template)?)))
                .collect::<Result<_, VariableError>>()?;
            let grants = Grants {
                id: id.clone(),
                variables: own,
                allowed_hosts,
                database: component.uses_database().then(|| database.clone()),
            };
            let handler = Handler::load(engine, component, grants, &client, metrics)?;
            Ok((id.clone(), handler))
        })
        .collect()
}
