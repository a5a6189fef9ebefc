//! Runs the components of a manifest on Wasmtime.
//!
//! Invariant: a component gets WASI's clocks, randomness and output streams, HTTP to its allowed hosts,
//! its own variables, and the database if the manifest names it: no files or sockets. Its environment has one
//! variable, [`platen_shared::wire::QUEUES_STATEMENTS`].

mod client;
mod component_log;
mod dispatch;
mod engine;
mod hooks;
mod sqlite;
mod state;

use std::{any::Any, collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use anyhow::{Error, Result};
use platen_program::telemetry::Context;
use secrecy::{ExposeSecret as _, SecretString};
use tokio_util::sync::CancellationToken;

use crate::{
    db::{Database, Flow},
    manifest::Manifest,
    metrics::Metrics,
    outbound::AllowedHosts,
    variables::Variables,
};
use client::Client;
use engine::GuestEngine;

pub(crate) use client::{OWN_FARM_URL, OwnFarm};
pub(crate) use dispatch::{Handler, InstanceDrain, Isolation};

/// Generated from `wit/`: the imports `spin:sqlite` and `spin:variables` of a component.
#[allow(missing_docs, unreachable_pub, clippy::pedantic, reason = "generated code")]
mod bindings {
    wasmtime::component::bindgen!({
        path: "wit",
        world: "platen:host/imports",
        imports: { default: async | store | trappable },
        with: { "spin:sqlite/sqlite.connection": crate::db::Database },
    });
}

/// Receiving the body may take two minutes, and rendering half a minute.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(3);

/// What one component may use.
#[derive(Default)]
struct Grants {
    /// The component's id in the manifest.
    id: String,
    variables: BTreeMap<String, SecretString>,
    allowed_hosts: AllowedHosts,
    database: Option<Database>,
}

/// Cancelled when the client of a request disconnects before its response is complete.
pub(crate) type ClientDisconnect = CancellationToken;

/// What the host keeps of a request while a component handles it.
#[derive(Clone, Default)]
pub(crate) struct RequestContext {
    pub(crate) client_disconnect: ClientDisconnect,
    /// In whose turn its statements run.
    pub(crate) flow: Flow,
    /// The span of the request, of which statements and requests to farms are parts.
    pub(crate) trace: Option<Context>,
    /// Kept until the component responds, also if the client has disconnected before.
    pub(crate) until_response: Option<Arc<dyn Any + Send + Sync>>,
}

/// Why a component gives no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ComponentError {
    #[error("the component did not respond in time")]
    TimedOut,
    /// Nothing has run.
    #[error("an instance of the component could not be created")]
    NoInstance(#[source] wasmtime::Error),
    /// It trapped, or it returned an error.
    #[error("the component failed")]
    Failed(#[source] wasmtime::Error),
}

/// A handler for each component of the manifest, by its id. Compiled components are cached in `cache`, an absolute path that
/// only this user may write to, because its files are run as native code.
pub(crate) fn load_components(
    cache: &Path,
    manifest: &Manifest,
    variables: &Variables,
    database: &Database,
    drain: &InstanceDrain,
    own_farm: OwnFarm,
    metrics: &Arc<Metrics>,
) -> Result<BTreeMap<String, Handler>> {
    let engine = GuestEngine::start(cache)?;
    let client = Client::new(own_farm, Arc::clone(metrics));
    manifest
        .components
        .iter()
        .map(|(id, component)| {
            let mut allowed_hosts = AllowedHosts::default();
            for rule in &component.allowed_outbound_hosts {
                allowed_hosts.allow(variables.fill(rule)?.expose_secret()).map_err(|error| {
                    let text = format!("spin.toml: component {id:?} allows {rule:?}, which {error}");
                    Error::new(error).context(text)
                })?;
            }
            let filled = component
                .variables
                .iter()
                .map(|(name, template)| Ok((name.clone(), variables.fill(template)?)))
                .collect::<Result<_>>()?;
            let grants = Grants {
                id: id.clone(),
                variables: filled,
                allowed_hosts,
                database: component.uses_database().then(|| database.clone()),
            };
            let handler = Handler::load(&engine, component, grants, &client, drain, metrics)?;
            Ok((id.clone(), handler))
        })
        .collect()
}
