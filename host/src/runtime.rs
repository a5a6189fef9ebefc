//! Runs the components of a manifest on Wasmtime.
//!
//! Invariant: a component gets WASI's clocks, randomness and output streams, HTTP to its allowed hosts,
//! its own variables, and the database if the manifest names it: no files or sockets. Its environment has one
//! variable, [`platen_shared::wire::QUEUES_STATEMENTS`].

mod bindings;
mod client;
mod component_log;
mod disconnect;
mod dispatch;
mod engine;
mod error;
mod grants;
mod hooks;
mod instance_drain;
mod load;
mod outgoing;
mod request_context;
mod sqlite;
mod state;
mod variables;

pub(crate) use client::{OWN_FARM_URL, OwnFarm};
pub(crate) use disconnect::ClientDisconnect;
pub(crate) use dispatch::{Handler, Isolation};
pub(crate) use engine::start_engine;
pub(crate) use error::ComponentError;
pub(crate) use instance_drain::InstanceDrain;
pub(crate) use load::load;
pub(crate) use request_context::RequestContext;
