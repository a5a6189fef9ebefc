//! Why a component cannot be loaded, or gives no response.

use std::path::PathBuf;

use crate::{outbound::InvalidRule, variables::VariableError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    #[error("cannot start the WebAssembly engine")]
    Engine(#[source] wasmtime::Error),
    #[error("cannot use the directory for compiled components")]
    Cache(#[source] wasmtime::Error),
    #[error(
        "component {component:?} is not built: there is no {path}{}",
        build.as_ref().map(|build| format!("; build it with `{build}`")).unwrap_or_default()
    )]
    NotBuilt {
        component: String,
        path: PathBuf,
        /// The manifest's build command.
        build: Option<String>,
    },
    /// Not a component, or not one for HTTP.
    #[error("component {component:?} ({path}) cannot be run")]
    NotAComponent {
        component: String,
        path: PathBuf,
        #[source]
        source: wasmtime::Error,
    },
    #[error(transparent)]
    Variables(#[from] VariableError),
    #[error("spin.toml: component {component:?} allows {rule:?}, which {source}")]
    Outbound {
        component: String,
        /// The rule as the manifest has it.
        rule: String,
        source: InvalidRule,
    },
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ComponentError {
    #[error("the component did not respond in time")]
    TimedOut,
    /// It trapped, its instance could not be created, or it returned an error.
    #[error("the component failed")]
    Failed(#[source] wasmtime::Error),
}
