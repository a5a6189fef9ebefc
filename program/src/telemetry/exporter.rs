//! The HTTP client of the exporter.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use opentelemetry_http::{HttpClient, HttpError};
use tokio::runtime::{Builder, Runtime};

use super::settings::{self, TelemetryError};
use crate::{RepeatedWarning, http_client};

/// Sends on the thread of the exporter.
#[derive(Debug)]
pub(super) struct Client {
    inner: reqwest::Client,
    runtime: Runtime,
    failed: RepeatedWarning,
}

impl Client {
    pub(super) fn new() -> Result<Self, TelemetryError> {
        // Nothing runs between two exports, so a connection that the collector closes would not be noticed.
        let inner = http_client().timeout(settings::timeout()?).pool_max_idle_per_host(0).build();
        let inner = inner.map_err(|error| TelemetryError::Exporter(error.to_string()))?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| TelemetryError::Exporter(error.to_string()))?;
        Ok(Self { inner, runtime, failed: RepeatedWarning::new() })
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

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (status, body) = self.runtime.block_on(self.send(request.try_into()?))?;
        let mut response = Response::new(body);
        *response.status_mut() = status;
        Ok(response)
    }
}
