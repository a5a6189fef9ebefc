//! Settings from Spin variables, read once per instance.
//!
//! Invariant: an error names the variable and shows no value. An instance serves a bounded number of
//! requests, so a changed variable takes effect soon.

use std::sync::OnceLock;

use spin_sdk::variables;

/// A variable that the platform does not provide.
#[derive(Debug, thiserror::Error)]
#[error("the Spin variable {name} could not be read")]
pub struct Unreadable {
    name: &'static str,
    #[source]
    cause: variables::Error,
}

/// The value of a variable.
///
/// # Errors
/// When the manifest does not declare it for this component, or its provider fails.
pub async fn variable(name: &'static str) -> Result<String, Unreadable> {
    variables::get(name).await.map_err(|cause| Unreadable { name, cause })
}

/// The settings in `cell`, which the first call reads.
///
/// # Errors
/// When reading fails; the next request reads again.
pub async fn once<T, E>(
    cell: &'static OnceLock<T>,
    read: impl Future<Output = Result<T, E>>,
) -> Result<&'static T, E> {
    if let Some(settings) = cell.get() {
        return Ok(settings);
    }
    let settings = read.await?;
    Ok(cell.get_or_init(|| settings))
}
