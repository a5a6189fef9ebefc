//! The HTTP side of [`Farm`]: its router, and serving it until shutdown.

use std::{future::Future, io};

use axum::Router;
use tokio::net::TcpListener;

use crate::{Farm, FarmToken, http};

impl Farm {
    /// The farm's HTTP API: `POST /v1/jobs` and `DELETE /v1/jobs/{id}` with the bearer `token`, and
    /// `GET /healthz`, `GET /readyz` and `GET /metrics` without.
    pub fn router(&self, token: FarmToken) -> Router {
        http::router(self.clone(), token)
    }

    /// Serves [`Farm::router`] until `shutdown` completes, then does what [`Farm::shutdown`] does; new jobs
    /// are refused meanwhile.
    ///
    /// # Errors
    /// If serving on the listener fails.
    pub async fn serve(
        &self,
        listener: TcpListener,
        token: FarmToken,
        shutdown: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        if let Ok(address) = listener.local_addr() {
            self.forbid_port(address.port());
        }
        let served = http::serve(listener, self.router(token), shutdown, self.drain()).await;
        self.shutdown().await;
        served
    }
}
