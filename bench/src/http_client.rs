//! HTTP clients of the benchmarks.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use reqwest::{Client, RequestBuilder};

/// Well above the duration of any job, so that a renderer that hangs does not block the run.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_mins(2);

pub(crate) fn client() -> Result<Client> {
    Ok(Client::builder().no_proxy().build()?)
}

/// Sends a request and reads the file of its response.
///
/// # Errors
/// When the status is not 2xx, or the response is empty, incomplete or late.
pub(crate) async fn fetch_file(request: RequestBuilder) -> Result<Bytes> {
    let response = request.timeout(RESPONSE_TIMEOUT).send().await.context("no response")?;
    let status = response.status();
    let body = response.bytes().await.context("the response is incomplete")?;
    if !status.is_success() {
        bail!("{status}: {}", String::from_utf8_lossy(&body[..body.len().min(200)]));
    }
    ensure!(!body.is_empty(), "the file is empty");
    Ok(body)
}
