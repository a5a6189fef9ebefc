//! Settings: Spin variables, read once an instance.
//!
//! Invariant: a variable that cannot be read is named, and no value is shown. An instance lives for
//! a bounded number of requests, so a changed variable is seen soon.

use std::sync::OnceLock;

use spin_sdk::variables;

/// A variable the platform did not give.
#[derive(Debug, thiserror::Error)]
#[error("the Spin variable {name} could not be read")]
pub struct Unreadable {
    name: &'static str,
    #[source]
    cause: variables::Error,
}

/// A variable's value.
///
/// # Errors
/// When the manifest does not declare it for this component, or its provider fails.
pub async fn variable(name: &'static str) -> Result<String, Unreadable> {
    variables::get(name).await.map_err(|cause| Unreadable { name, cause })
}

/// What `kept` holds, read first where it holds nothing yet.
///
/// # Errors
/// When reading fails; the next request reads again.
pub async fn once<T, E>(
    kept: &'static OnceLock<T>,
    read: impl Future<Output = Result<T, E>>,
) -> Result<&'static T, E> {
    if let Some(settings) = kept.get() {
        return Ok(settings);
    }
    let settings = read.await?;
    Ok(kept.get_or_init(|| settings))
}
