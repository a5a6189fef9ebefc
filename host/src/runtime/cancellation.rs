//! Cancels a job at the farm when the client for whom it is made disconnects.
//!
//! Closing the connection would end the job as well, but would not return whether a page had run, which
//! decides whether the attempt counts. Therefore the job is cancelled by `DELETE /v1/jobs/{id}`, and the
//! farm's response to the job goes to the component, which continues without its client.
//!
//! Invariant: this ends within [`CANCEL_TIMEOUT`]; the connection of a job without a response by then is
//! closed, and its page counts as one that ran.

use std::time::Duration;

use http::{HeaderName, Request, Response, StatusCode, Uri, header, uri::PathAndQuery};
use http_body_util::{BodyExt as _, Empty, Full, Limited};
use platen_shared::wire;
use tokio::time::timeout;
use wasmtime_wasi_http::{Error, WasiBody};

use super::{client::Exchange, disconnect::disconnected};

/// A farm responds at once. If it does not, or if a proxy sent the request to another farm, the connection is closed,
/// which frees the slot.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// The request that cancels a job.
pub(super) struct Cancellation(Request<WasiBody>);

impl Cancellation {
    /// `None` for a request that does not bring a job to a farm.
    pub(super) fn of(request: &Request<WasiBody>) -> Option<Self> {
        let id = request.headers().get(JOB_ID)?.to_str().ok().filter(|id| wire::is_request_id(id))?;
        let mut parts = request.uri().clone().into_parts();
        let path = format!("{}/{id}", request.uri().path());
        parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
        let mut cancel = Request::delete(Uri::from_parts(parts).ok()?);
        for name in [header::HOST, header::AUTHORIZATION, ACCOUNT] {
            if let Some(value) = request.headers().get(&name) {
                cancel = cancel.header(name, value);
            }
        }
        cancel.body(Empty::new().map_err(|never| match never {}).boxed_unsync()).ok().map(Self)
    }

    /// Sends it with `send`, and waits for the response to the job, which `exchange` resolves to.
    pub(super) async fn carry_out<S: Future<Output = Exchange>>(
        self,
        exchange: impl Future<Output = Exchange>,
        send: impl FnOnce(Request<WasiBody>) -> S,
    ) -> Exchange {
        let answer = async {
            tokio::pin!(exchange);
            let exchanged = tokio::select! {
                // A response that has arrived needs no cancellation.
                biased;
                exchanged = &mut exchange => exchanged,
                cancelled = send(self.0) => {
                    if let Err(error) = cancelled {
                        tracing::warn!(%error, "cannot cancel a job");
                    }
                    exchange.await
                }
            };
            buffered(exchanged?).await
        };
        timeout(CANCEL_TIMEOUT, answer).await.unwrap_or_else(|_| Err(disconnected(wire::DISCONNECTED)))
    }
}

const JOB_ID: HeaderName = HeaderName::from_static(wire::JOB_ID);
/// By this a proxy sends the cancellation to the farm that has the job.
const ACCOUNT: HeaderName = HeaderName::from_static(wire::ACCOUNT);

/// Reads the body of a refusal here, because the bodies of responses fail when the client has
/// disconnected. A file is not needed by then.
async fn buffered(
    (response, io): (Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>),
) -> Exchange {
    if response.status() == StatusCode::OK {
        return Err(disconnected(wire::DISCONNECTED));
    }
    let (head, body) = response.into_parts();
    let reading = Limited::new(body, MAX_RESPONSE_BYTES).collect();
    tokio::pin!(reading);
    // Some connections move only while this is polled.
    let read = tokio::select! {
        read = &mut reading => read,
        _ = Box::into_pin(io) => reading.await,
    };
    let body = read.map_err(|_| disconnected(wire::DISCONNECTED))?.to_bytes();
    let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
    Ok((Response::from_parts(head, body), Box::new(async { Ok(()) })))
}

#[cfg(test)]
mod tests {
    use std::{future::pending, sync::Mutex};

    use super::*;

    fn job(id: Option<&str>) -> Request<WasiBody> {
        let mut job = Request::post("http://127.0.0.1:3001/farm/v1/jobs")
            .header("host", "127.0.0.1:3001")
            .header("authorization", "Bearer x")
            .header(wire::ACCOUNT, "0a1b")
            .header("content-length", "2");
        if let Some(id) = id {
            job = job.header(wire::JOB_ID, id);
        }
        job.body(full("{}")).unwrap()
    }

    fn full(text: &'static str) -> WasiBody {
        Full::new(text.into()).map_err(|never| match never {}).boxed_unsync()
    }

    #[expect(clippy::unnecessary_wraps, reason = "the type of what may fail")]
    fn sent(status: u16, body: &'static str) -> Exchange {
        Ok((Response::builder().status(status).body(full(body)).unwrap(), Box::new(async { Ok(()) })))
    }

    fn reason(exchange: Exchange) -> Option<String> {
        match exchange {
            Err(Error::InternalError(reason)) => reason,
            _ => None,
        }
    }

    #[test]
    fn a_job_is_cancelled_at_its_own_path_with_its_token() {
        let Cancellation(cancel) = Cancellation::of(&job(Some("a-1"))).unwrap();
        assert_eq!(cancel.method(), "DELETE");
        assert_eq!(cancel.uri(), "http://127.0.0.1:3001/farm/v1/jobs/a-1");
        let names: Vec<&str> = cancel.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["host", "authorization", wire::ACCOUNT]);
        for other in [job(None), job(Some("a/../b")), job(Some(""))] {
            assert!(Cancellation::of(&other).is_none());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_farms_response_to_the_job_is_returned() {
        let cancelled = Mutex::new(0);
        let cancellation = || Cancellation::of(&job(Some("a-1"))).unwrap();
        let send = |_| {
            *cancelled.lock().unwrap() += 1;
            async { sent(204, "") }
        };
        // The job gets its response only after the cancellation.
        let after = async {
            while *cancelled.lock().unwrap() == 0 {
                tokio::task::yield_now().await;
            }
            sent(499, "cancelled")
        };
        let (response, _) = cancellation().carry_out(after, send).await.unwrap();
        assert_eq!(response.status(), 499);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "cancelled");
        // A file that was ready by then is not needed.
        let file = cancellation().carry_out(async { sent(200, "file") }, send).await;
        assert_eq!(reason(file).as_deref(), Some(wire::DISCONNECTED));
        // A farm that does not have the job, and does not respond.
        let began = tokio::time::Instant::now();
        let silent = cancellation().carry_out(pending(), |_| async { sent(404, "") }).await;
        assert_eq!(reason(silent).as_deref(), Some(wire::DISCONNECTED));
        assert_eq!(began.elapsed().as_secs(), CANCEL_TIMEOUT.as_secs());
        // A farm that cannot be reached.
        let gone = cancellation().carry_out(async { Err(Error::ConnectionRefused) }, send).await;
        assert!(matches!(gone, Err(Error::ConnectionRefused)));
    }
}
