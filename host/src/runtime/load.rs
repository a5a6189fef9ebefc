//! Loads the components of a manifest.

use std::{collections::BTreeMap, sync::Arc};

use secrecy::ExposeSecret as _;

use super::{client::Client, dispatch::Handler, engine::Engine, error::LoadError, grants::Grants};
use crate::{
    db::Database,
    manifest::Manifest,
    metrics::Metrics,
    outbound::AllowedHosts,
    variables::{VariableError, Variables},
};

/// A handler for each component of the manifest, by its id.
pub(crate) fn load(
    engine: &Engine,
    manifest: &Manifest,
    variables: &Variables,
    database: &Database,
    metrics: &Arc<Metrics>,
) -> Result<BTreeMap<String, Handler>, LoadError> {
    let client = Client::new();
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
            let filled = component
                .variables
                .iter()
                .map(|(name, template)| Ok((name.clone(), variables.fill(template)?)))
                .collect::<Result<_, VariableError>>()?;
            let grants = Grants {
                id: id.clone(),
                variables: filled,
                allowed_hosts,
                database: component.uses_database().then(|| database.clone()),
            };
            let handler = Handler::load(engine, component, grants, &client, metrics)?;
            Ok((id.clone(), handler))
        })
        .collect()
}
