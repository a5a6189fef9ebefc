//! Which keys of a manifest are provided.
//!
//! Invariant: every table of the manifest is looked at, and the first key that is not in its list
//! is the error. Left to others: the types of the values (serde).

use toml::{Table, Value};

use super::ManifestError;

const MANIFEST: &[&str] = &["spin_manifest_version", "application", "variables", "trigger", "component"];
// `tool` holds settings of other programs; Spin does not read it either.
const APPLICATION: &[&str] = &["name", "version", "description", "authors", "tool"];
const VARIABLE: &[&str] = &["default", "required", "secret", "description"];
const TRIGGER: &[&str] = &["http"];
const HTTP_TRIGGER: &[&str] = &["id", "route", "component"];
const COMPONENT: &[&str] =
    &["source", "description", "variables", "allowed_outbound_hosts", "sqlite_databases", "build", "tool"];
const BUILD: &[&str] = &["command", "workdir", "watch"];

pub(super) fn check(manifest: &Table) -> Result<(), ManifestError> {
    only(manifest, MANIFEST, || "the manifest".to_owned())?;
    if let Some(Value::Table(application)) = manifest.get("application") {
        only(application, APPLICATION, || "the application".to_owned())?;
    }
    for (name, variable) in tables(manifest.get("variables")) {
        only(variable, VARIABLE, || format!("variable {name:?}"))?;
    }
    if let Some(Value::Table(trigger)) = manifest.get("trigger") {
        only(trigger, TRIGGER, || "a trigger".to_owned())?;
        let https = trigger.get("http").and_then(Value::as_array).into_iter().flatten();
        for http in https.filter_map(Value::as_table) {
            only(http, HTTP_TRIGGER, || match http.get("route") {
                Some(Value::String(route)) => format!("the trigger of {route:?}"),
                _ => "a trigger".to_owned(),
            })?;
        }
    }
    for (id, component) in tables(manifest.get("component")) {
        only(component, COMPONENT, || format!("component {id:?}"))?;
        if let Some(Value::Table(build)) = component.get("build") {
            only(build, BUILD, || format!("the build of component {id:?}"))?;
        }
    }
    Ok(())
}

fn only(table: &Table, provided: &[&str], whose: impl FnOnce() -> String) -> Result<(), ManifestError> {
    match table.keys().find(|key| !provided.contains(&key.as_str())) {
        Some(key) => Err(ManifestError::NotProvided { whose: whose(), key: key.clone() }),
        None => Ok(()),
    }
}

fn tables(value: Option<&Value>) -> impl Iterator<Item = (&String, &Table)> {
    value
        .and_then(Value::as_table)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key, value.as_table()?)))
}
