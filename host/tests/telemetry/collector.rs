//! A collector that keeps what it receives.

use std::sync::{Arc, Mutex, MutexGuard};

use http_body_util::BodyExt as _;
use opentelemetry_proto::tonic::{collector::trace::v1::ExportTraceServiceRequest, trace::v1::Span};
use platen_harness::loopback::{Loopback, full};
use prost::Message as _;

/// What a collector has received.
#[derive(Default)]
pub(crate) struct Received {
    /// The heads of the requests.
    pub(crate) heads: Vec<String>,
    /// Each with its `service.name`.
    pub(crate) spans: Vec<(String, Span)>,
}

/// A collector at a port of its own. It keeps what it receives, or, if it hangs, never answers.
pub(crate) struct Collector {
    server: Loopback,
    received: Arc<Mutex<Received>>,
}

impl Collector {
    pub(crate) async fn start(hangs: bool) -> Self {
        let received = Arc::<Mutex<Received>>::default();
        let kept = Arc::clone(&received);
        let server = Loopback::start(move |request: http::Request<_>| {
            let received = Arc::clone(&kept);
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                let (head, body) = request.into_parts();
                let body: hyper::body::Incoming = body;
                let body = body.collect().await.expect("a complete request").to_bytes();
                let export = ExportTraceServiceRequest::decode(body).expect("an export of traces");
                let mut received = received.lock().expect("no thread panics");
                received.heads.push(format!("{} {} {:?}", head.method, head.uri, head.headers));
                received.spans.extend(export.resource_spans.into_iter().flat_map(|resource| {
                    let attributes = resource.resource.map(|it| it.attributes).unwrap_or_default();
                    let service = attributes.iter().find(|attribute| attribute.key == "service.name");
                    let service = service.map(|it| format!("{:?}", it.value)).unwrap_or_default();
                    let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                    spans.map(|span| (service.clone(), span)).collect::<Vec<_>>()
                }));
                Ok(http::Response::new(full("")))
            }
        });
        Self { server: server.await.expect("a port"), received }
    }

    pub(crate) fn endpoint(&self) -> String {
        self.server.url()
    }

    pub(crate) fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().expect("no thread panics")
    }

    pub(crate) fn spans(&self) -> Vec<(String, Span)> {
        self.received().spans.clone()
    }
}
