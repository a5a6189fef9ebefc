//! `/metrics`, on an address of its own that the public does not reach.
//!
//! Invariant: the server's figures are there whether or not its farm answers.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use crate::{db::Database, metrics::Metrics};

const FARM_WITHIN: Duration = Duration::from_secs(2);
const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// Serves the figures of this server, and of the farm in this process, for ever.
pub(crate) async fn serve_metrics(
    listener: TcpListener,
    metrics: Arc<Metrics>,
    database: Database,
    farm: Option<SocketAddr>,
) {
    let http = reqwest::Client::builder().timeout(FARM_WITHIN).no_proxy().build().ok();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (metrics, database, http) = (Arc::clone(&metrics), database.clone(), http.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let own = metrics.render(database.statements());
            let http = http.clone();
            async move {
                let mut response = Response::new(Full::default());
                if request.uri().path() == "/metrics" {
                    let farms = match (http, farm) {
                        (Some(http), Some(farm)) => farm_metrics(&http, farm).await.unwrap_or_default(),
                        _ => String::new(),
                    };
                    *response.body_mut() = Full::new(Bytes::from(own + &farms));
                    let kind = HeaderValue::from_static("text/plain; version=0.0.4");
                    response.headers_mut().insert(header::CONTENT_TYPE, kind);
                } else {
                    *response.status_mut() = StatusCode::NOT_FOUND;
                }
                Ok::<_, Infallible>(response)
            }
        });
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_WITHIN)
                .serve_connection(TokioIo::new(stream), service),
        );
    }
}

async fn farm_metrics(http: &reqwest::Client, farm: SocketAddr) -> Result<String, reqwest::Error> {
    http.get(format!("http://{farm}/metrics")).send().await?.error_for_status()?.text().await
}
