//! Loads the components of a manifest.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Error, Result};
use secrecy::ExposeSecret as _;
use wasmtime::Engine;

use super::{
    client::{Client, OwnFarm},
    dispatch::Handler,
    grants::Grants,
    instance_drain::InstanceDrain,
};
use crate::{
    db::Database, manifest::Manifest, metrics::Metrics, outbound::AllowedHosts, variables::Variables,
};

/// A handler for each component of the manifest, by its id.
pub(crate) fn load(
    engine: &Engine,
    manifest: &Manifest,
    variables: &Variables,
    database: &Database,
    drain: &InstanceDrain,
    own_farm: OwnFarm,
    metrics: &Arc<Metrics>,
) -> Result<BTreeMap<String, Handler>> {
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
            let handler = Handler::load(engine, component, grants, &client, drain, metrics)?;
            Ok((id.clone(), handler))
        })
        .collect()
}
