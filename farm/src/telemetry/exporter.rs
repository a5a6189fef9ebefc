//! The HTTP client of the exporter.

use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;

use crate::RepeatedWarning;

static FAILED: RepeatedWarning = RepeatedWarning::new();

/// Sends on the program's runtime; the exporter waits on a thread of its own.
#[derive(Debug)]
pub(super) struct Client {
    inner: reqwest::Client,
    runtime: Handle,
}

impl Client {
    pub(super) fn new(timeout: Duration) -> Result<Self, reqwest::Error> {
        let inner = reqwest::Client::builder().timeout(timeout).build()?;
        Ok(Self { inner, runtime: Handle::current() })
    }
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.inner.clone();
        let sent = self.runtime.spawn(async move {
            // The message would have the address, which can contain a password.
            let response = client.execute(request.try_into()?).await.map_err(reqwest::Error::without_url)?;
            let status = response.status();
            let body = response.bytes().await.map_err(reqwest::Error::without_url)?;
            let mut converted = Response::new(body);
            *converted.status_mut() = status;
            Ok::<_, reqwest::Error>(converted)
        });
        let response = sent.await?;
        let problem = match &response {
            Ok(response) if response.status().is_success() => None,
            Ok(response) => Some(format!("the collector answered with status {}", response.status())),
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem
            && let Some(count) = FAILED.record()
        {
            tracing::warn!(problem, count, "traces were not exported");
        }
        Ok(response?)
    }
}
