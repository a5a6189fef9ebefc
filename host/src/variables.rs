//! Spin variables: from the manifest, the environment (`SPIN_VARIABLE_NAME`) and the server, filled into
//! templates `{{ name }}`.
//!
//! Invariant: every declared variable has a value, or the server does not start. Each value is treated as a
//! secret.

use std::{collections::BTreeMap, ffi::OsString};

use anyhow::{Context as _, Result};
use secrecy::{ExposeSecret as _, SecretString};

use crate::manifest::Variable;

/// The values of all declared variables.
#[derive(Debug)]
pub(crate) struct Variables(BTreeMap<String, SecretString>);

impl Variables {
    /// Gives every declared variable a value: that of `own`, which the server sets, otherwise the
    /// environment's, otherwise the default. Values in `own` that are not declared are ignored.
    pub(crate) fn resolve(
        declared: &BTreeMap<String, Variable>,
        mut own: BTreeMap<&str, SecretString>,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        declared
            .iter()
            .map(|(name, variable)| {
                own.remove(name.as_str())
                    .or_else(|| environment(&environment_name(name)).map(SecretString::from))
                    .or_else(|| variable.default.clone().map(SecretString::from))
                    .map(|value| (name.clone(), value))
                    .with_context(|| {
                        let environment = environment_name(name);
                        format!("the variable {name:?} is required: set {environment} in the environment")
                    })
            })
            .collect::<Result<_>>()
            .map(Self)
    }

    /// The names of the environment's variables for components that no declared variable has.
    pub(crate) fn unknown(
        declared: &BTreeMap<String, Variable>,
        environment: impl Iterator<Item = OsString>,
    ) -> Vec<String> {
        let names = environment.filter_map(|name| name.into_string().ok());
        let is_unknown = |name: &String| {
            name.starts_with(PREFIX) && !declared.keys().any(|declared| environment_name(declared) == *name)
        };
        names.filter(is_unknown).collect()
    }

    /// Replaces the placeholders of a template.
    pub(crate) fn fill(&self, template: &str) -> Result<SecretString> {
        let mut filled = String::new();
        let mut rest = template;
        while let Some((text, after)) = rest.split_once("{{") {
            let closed = after.split_once("}}");
            let (name, after) =
                closed.with_context(|| format!("spin.toml: {template:?} has {{{{ without }}}}"))?;
            let name = name.trim();
            let value = self.0.get(name).with_context(|| {
                format!("spin.toml: {template:?} uses the variable {name:?}, which is not in [variables]")
            })?;
            filled.push_str(text);
            filled.push_str(value.expose_secret());
            rest = after;
        }
        filled.push_str(rest);
        Ok(filled.into())
    }
}

/// As on Spin.
const PREFIX: &str = "SPIN_VARIABLE_";

fn environment_name(variable: &str) -> String {
    format!("{PREFIX}{}", variable.to_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared() -> BTreeMap<String, Variable> {
        let text =
            "a = { default = \"A\" }\nb = { required = true, secret = true }\nfarm_url = { default = \"u\" }";
        toml::from_str(text).unwrap()
    }

    fn resolve(own: &[(&'static str, &str)], environment: &[(&str, &str)]) -> Result<Variables> {
        let own = own.iter().map(|(name, value)| (*name, SecretString::from(*value))).collect();
        Variables::resolve(&declared(), own, |name| {
            environment.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_servers_value_precedes_the_environments_and_that_the_default() {
        for (own, environment, expected) in [
            (&[][..], &[("SPIN_VARIABLE_B", "eb")][..], "A eb u"),
            (&[], &[("SPIN_VARIABLE_A", "ea"), ("SPIN_VARIABLE_B", "")], "ea  u"),
            (
                &[("farm_url", "own"), ("b", "ob"), ("undeclared", "x")],
                &[("SPIN_VARIABLE_B", "eb"), ("SPIN_VARIABLE_FARM_URL", "e")],
                "A ob own",
            ),
        ] {
            let filled = resolve(own, environment).unwrap().fill("{{ a }} {{b}} {{  farm_url}}").unwrap();
            assert_eq!(filled.expose_secret(), expected);
        }
    }

    #[test]
    fn names_that_are_not_declared_are_found() {
        let names = ["SPIN_VARIABLE_FARM_URL", "SPIN_VARIABLE_FARM_URI", "PATH"].map(OsString::from);
        assert_eq!(Variables::unknown(&declared(), names.into_iter()), ["SPIN_VARIABLE_FARM_URI"]);
    }

    #[test]
    fn the_error_of_a_missing_variable_names_the_environment_variable() {
        let error = resolve(&[], &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the variable \"b\" is required: set SPIN_VARIABLE_B in the environment"
        );
        let variables = resolve(&[("b", "}}{{ a }}")], &[]).unwrap();
        assert_eq!(variables.fill("x{{ b }}").unwrap().expose_secret(), "x}}{{ a }}");
        assert_eq!(
            variables.fill("{{ c }}").unwrap_err().to_string(),
            "spin.toml: \"{{ c }}\" uses the variable \"c\", which is not in [variables]"
        );
        assert_eq!(
            variables.fill("a {{ b").unwrap_err().to_string(),
            "spin.toml: \"a {{ b\" has {{ without }}"
        );
        assert!(!format!("{variables:?}").contains("}}{{"));
    }
}
