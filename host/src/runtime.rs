//! Runs the components on Wasmtime.
//!
//! Invariant: a component gets WASI's clocks, randomness and output streams, its own variables, the
//! database, and HTTP to the farm, that of the API also a store in memory: no files or sockets. Its environment has one variable,
//! [`platen_shared::wire::QUEUES_STATEMENTS`].

mod client;
mod component_log;
mod dispatch;
mod engine;
mod hooks;
mod key_value;
mod sqlite;
mod state;

use std::{any::Any, collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use anyhow::Result;
use platen_program::telemetry::Context;
use platen_shared::farm_address::FarmAddress;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::{
    components::{Component, Settings},
    db::{Database, FlowId},
    metrics::Metrics,
};
use client::Client;
use engine::GuestEngine;

pub(crate) use client::{OWN_FARM_HOST, OwnFarm};
pub(crate) use dispatch::{Handler, InstanceDrain, Isolation};
use key_value::KeyValueStore;

/// Generated from `wit/`: the imports of a component beyond WASI's own ones.
#[allow(missing_docs, unreachable_pub, clippy::pedantic, reason = "generated code")]
mod bindings {
    wasmtime::component::bindgen!({
        path: "wit",
        world: "platen:host/imports",
        imports: { "wasi:keyvalue": trappable, default: async | store | trappable },
        with: {
            "spin:sqlite/sqlite.connection": crate::db::Database,
            "wasi:keyvalue/store.bucket": super::key_value::KeyValueStore,
        },
    });
}

/// Receiving the body may take two minutes, and rendering half a minute.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(3);

/// What one component may use.
#[derive(Default)]
struct Grants {
    /// The component's id.
    id: &'static str,
    variables: BTreeMap<&'static str, SecretString>,
    /// The only host that it may send requests to.
    farm: Option<FarmAddress>,
    database: Option<Database>,
    store: Option<KeyValueStore>,
}

/// Cancelled when the client of a request disconnects before its response is complete.
pub(crate) type ClientDisconnect = CancellationToken;

/// What the host keeps of a request while a component handles it.
#[derive(Clone, Default)]
pub(crate) struct RequestContext {
    pub(crate) client_disconnect: ClientDisconnect,
    /// The flow in whose turn its statements run.
    pub(crate) flow: FlowId,
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

/// Loads the components from the files in `directory`, in the order of [`Component::ALL`]. Compiled components are cached in
/// `cache`, an absolute path that only this user may write to, because its files are run as native code.
pub(crate) fn load_components(
    directory: &Path,
    cache: &Path,
    settings: &Settings,
    database: &Database,
    drain: &InstanceDrain,
    own_farm: OwnFarm,
    metrics: &Arc<Metrics>,
) -> Result<Vec<(Component, Handler)>> {
    let engine = GuestEngine::start(cache)?;
    let client = Client::new(own_farm, Arc::clone(metrics));
    let load = |component: Component| {
        let grants = Grants {
            id: component.id(),
            variables: settings.variables(component),
            farm: Some(settings.farm_url.clone()),
            database: Some(database.clone()),
            store: (component == Component::Edge).then(|| drain.store.clone()),
        };
        let file = component.file(directory)?;
        let handler = Handler::load(&engine, &file, grants, &client, drain, metrics)?;
        Ok((component, handler))
    };
    Component::ALL.into_iter().map(load).collect()
}
