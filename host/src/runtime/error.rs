//! Why a component cannot be loaded, or gives no response.

/// What failed, with the error of Wasmtime as its cause.
pub(super) fn failed(error: wasmtime::Error, what: impl Into<String>) -> anyhow::Error {
    anyhow::Error::from_boxed(error.into()).context(what.into())
}

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
