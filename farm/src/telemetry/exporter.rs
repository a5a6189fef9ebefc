//! The HTTP client of the exporter.

use std::sync::Arc;

use axum::body::Bytes;
use axum::http::{Request, Response, StatusCode};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::Handle;

use super::settings::{self, TelemetryError};
use crate::RepeatedWarning;

/// Sends on the program's runtime.
#[derive(Debug, Clone)]
pub(super) struct Client {
    inner: reqwest::Client,
    runtime: Handle,
    failed: Arc<RepeatedWarning>,
}

impl Client {
    /// Must be called in a runtime.
    pub(super) fn new() -> Result<Self, TelemetryError> {
        let inner = reqwest::Client::builder().timeout(settings::timeout()?).build();
        let inner = inner.map_err(|error| TelemetryError::Exporter(error.to_string()))?;
        Ok(Self { inner, runtime: Handle::current(), failed: Arc::default() })
    }

    /// Sends a request; warns if it has no success.
    async fn send(&self, request: reqwest::Request) -> reqwest::Result<(StatusCode, Bytes)> {
        let sent = async {
            let response = self.inner.execute(request).await?;
            Ok((response.status(), response.bytes().await?))
        };
        // The message would have the address, which can contain a password.
        let response = sent.await.map_err(reqwest::Error::without_url);
        let problem = match &response {
            Ok((status, _)) if status.is_success() => None,
            Ok((status, _)) => Some(format!("the collector answered with status {status}")),
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem
            && let Some(count) = self.failed.record()
        {
            tracing::warn!(problem, count, "traces were not exported");
        }
        response
    }
}

/// For the exporter, which waits on a thread of its own.
#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.clone();
        let sent = self.runtime.spawn(async move { client.send(request.try_into()?).await });
        let (status, body) = sent.await??;
        let mut response = Response::new(body);
        *response.status_mut() = status;
        Ok(response)
    }
}
