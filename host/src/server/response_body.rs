//! The body of a response while it is sent.
//!
//! Invariant: a response that is dropped before its end reports to the component that its client has
//! disconnected.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body, Frame, SizeHint};
use wasmtime_wasi_http::{Error, WasiBody};

use super::{
    concurrency_limit::Permits,
    connections::Connection,
    request_body::Upload,
    unsent_responses::{UnsentResponse, UnsentResponses},
};
use crate::{metrics::Metrics, runtime::ClientDisconnect};

/// A response, from its request's arrival to its last byte.
pub(super) struct ResponseBody {
    body: WasiBody,
    /// Bytes still to come, where the component announced how many.
    remaining: Option<u64>,
    complete: bool,
    client_disconnect: ClientDisconnect,
    metrics: Arc<Metrics>,
    connection: Arc<Connection>,
    upload: Arc<Upload>,
    unsent: Option<UnsentResponse>,
}

impl ResponseBody {
    /// Counts a request in flight. If this is dropped without a body, the client has disconnected.
    pub(super) fn begin(metrics: Arc<Metrics>, connection: Arc<Connection>) -> Self {
        metrics.in_flight.inc();
        let client_disconnect = ClientDisconnect::new();
        let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
        Self {
            body,
            remaining: None,
            complete: false,
            client_disconnect,
            metrics,
            connection,
            upload: Arc::default(),
            unsent: None,
        }
    }

    pub(super) fn client_disconnect(&self) -> ClientDisconnect {
        self.client_disconnect.clone()
    }

    /// With a body. The permits of the request are kept until it is sent. One that is not `sent`, as the response to a
    /// HEAD request, is complete with its head.
    pub(super) fn with(mut self, body: WasiBody, sent: bool, unsent: &Arc<UnsentResponses>) -> Self {
        self.complete = !sent || body.is_end_stream();
        self.remaining = body.size_hint().exact();
        if let Some(bytes) = self.remaining.filter(|_| !self.complete) {
            self.unsent = unsent.begin(bytes, &self.connection);
        }
        self.body = body;
        self
    }

    /// What the request's body shares with its response.
    pub(super) fn upload(&self) -> &Arc<Upload> {
        &self.upload
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
        if !self.complete {
            self.metrics.client_disconnects.inc();
            self.client_disconnect.cancel();
        }
        self.upload.set_permits(Permits::default());
        self.connection.set_has_request(false);
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let ended = match &frame {
            // An error is not caused by the client.
            None | Some(Err(_)) => true,
            Some(Ok(_)) => self.body.is_end_stream(),
        };
        if let (Some(remaining), Some(Ok(frame))) = (&mut self.remaining, &frame) {
            *remaining = remaining.saturating_sub(frame.data_ref().map_or(0, |data| data.len() as u64));
        }
        // A body of known length is not polled for its end.
        self.complete = ended || self.remaining == Some(0);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use prometheus_client::registry::Registry;

    use super::*;
    use crate::server::connections::Connections;

    #[tokio::test]
    async fn a_response_dropped_before_its_end_is_a_client_disconnect() {
        let body = || Full::new(Bytes::from_static(b"x")).map_err(Into::into).boxed_unsync();
        let metrics = Arc::new(Metrics::register(&mut Registry::default(), &<_>::default()));
        let connections = Connections::new(1, None, Arc::clone(&metrics));
        let open = connections.open(std::net::IpAddr::from([127, 0, 0, 1]).into()).unwrap();
        let unsent = Arc::default();
        let begin = || {
            open.connection().set_has_request(true);
            ResponseBody::begin(Arc::clone(&metrics), open.connection())
        };
        let response = begin().with(body(), true, &unsent);
        let client_disconnect = response.client_disconnect();
        response.collect().await.unwrap();
        assert!(!client_disconnect.is_cancelled());

        for (response, is_disconnect) in [
            (begin().with(body(), true, &unsent), true),
            (begin(), true),
            (begin().with(body(), false, &unsent), false),
        ] {
            let client_disconnect = response.client_disconnect();
            drop(response);
            assert_eq!(client_disconnect.is_cancelled(), is_disconnect);
            assert!(!open.connection().has_request());
        }
        assert_eq!((metrics.client_disconnects.get(), metrics.in_flight.get()), (2, 0));
    }
}
