//! `/metrics`, on an address that the public does not reach.

use std::{convert::Infallible, time::Duration};

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use platen_farm::MetricsRegistry;
use tokio::net::TcpListener;

const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves the metrics of this process until it exits.
pub(crate) async fn serve_metrics(listener: TcpListener, registry: MetricsRegistry) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let registry = registry.clone();
        let service =
            service_fn(move |request| std::future::ready(Ok::<_, Infallible>(respond(&request, &registry))));
        tokio::spawn(
            hyper::server::conn::http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEADER_READ_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service),
        );
    }
}

fn respond(request: &Request<Incoming>, registry: &MetricsRegistry) -> Response<String> {
    let mut response = Response::default();
    if request.uri().path() == "/metrics" {
        *response.body_mut() = registry.encode();
        let content_type = HeaderValue::from_static(MetricsRegistry::CONTENT_TYPE);
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    } else {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}
