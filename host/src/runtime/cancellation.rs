//! Cancelling a job at the farm when the client for whom it is made disconnects.
//!
//! Closing the connection would end the job as well, but then only the farm would know whether a page
//! had run, and the component decides by that whether the attempt counts. So the farm is asked to cancel
//! the job (`DELETE /v1/jobs/id`), and its answer to the job goes to the component, which runs on
//! without its client.
//!
//! Invariant: ends within [`CANCEL_TIMEOUT`], and the connection of a job that has no answer by then is
//! closed. What is not known is taken for a page that ran.

use std::time::Duration;

use http::{HeaderName, Request, Response, StatusCode, Uri, header, uri::PathAndQuery};
use http_body_util::{BodyExt as _, Empty, Full, Limited};
use platen_shared::wire;
use tokio::time::timeout;
use wasmtime_wasi_http::{Error, WasiBody};

use super::client::Sent;

/// The farm answers at once; one that does not, or another one behind the same address, gets the
/// connection closed, which frees the slot.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
/// Most that is read of the answer.
const MAX_ANSWER: usize = 64 * 1024;

/// The request that cancels a job.
pub(super) struct Cancellation(Request<WasiBody>);

impl Cancellation {
    /// For a request that brings a job to a farm; `None` for any other.
    pub(super) fn of(request: &Request<WasiBody>) -> Option<Self> {
        let id = request.headers().get(JOB_ID)?.to_str().ok().filter(|id| wire::is_request_id(id))?;
        let mut parts = request.uri().clone().into_parts();
        let path = format!("{}/{id}", request.uri().path());
        parts.path_and_query = Some(PathAndQuery::try_from(path).ok()?);
        let mut cancel = Request::delete(Uri::from_parts(parts).ok()?);
        for name in [header::HOST, header::AUTHORIZATION] {
            if let Some(value) = request.headers().get(&name) {
                cancel = cancel.header(name, value);
            }
        }
        cancel.body(Empty::new().map_err(|never| match never {}).boxed_unsync()).ok().map(Self)
    }

    /// Sends it by `send`, and waits for the answer to the job, which `exchange` brings.
    pub(super) async fn carry_out<S: Future<Output = Sent>>(
        self,
        exchange: impl Future<Output = Sent>,
        send: impl FnOnce(Request<WasiBody>) -> S,
    ) -> Sent {
        let answer = async {
            tokio::pin!(exchange);
            let exchanged = tokio::select! {
                // What is known already need not be asked for.
                biased;
                exchanged = &mut exchange => exchanged,
                cancelled = send(self.0) => {
                    if let Err(error) = cancelled {
                        tracing::warn!(%error, "a job was not cancelled");
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

/// The error of a request whose client has disconnected, in words the component knows.
pub(super) fn disconnected(reason: &str) -> Error {
    Error::InternalError(Some(reason.to_owned()))
}

/// A refusal with its body, so that it can be read though the client is gone. A file has no reader.
async fn buffered(
    (response, io): (Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>),
) -> Sent {
    if response.status() == StatusCode::OK {
        return Err(disconnected(wire::DISCONNECTED));
    }
    let (head, body) = response.into_parts();
    let reading = Limited::new(body, MAX_ANSWER).collect();
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
            .header("content-length", "2");
        if let Some(id) = id {
            job = job.header(wire::JOB_ID, id);
        }
        job.body(full("{}")).unwrap()
    }

    fn full(text: &'static str) -> WasiBody {
        Full::new(text.into()).map_err(|never| match never {}).boxed_unsync()
    }

    #[expect(clippy::unnecessary_wraps, reason = "it stands for what may fail")]
    fn sent(status: u16, body: &'static str) -> Sent {
        Ok((Response::builder().status(status).body(full(body)).unwrap(), Box::new(async { Ok(()) })))
    }

    fn reason(sent: Sent) -> Option<String> {
        match sent {
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
        assert_eq!(names, ["host", "authorization"]);
        for other in [job(None), job(Some("a/../b")), job(Some(""))] {
            assert!(Cancellation::of(&other).is_none());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_farms_answer_is_brought_back() {
        let asked = Mutex::new(0);
        let cancellation = || Cancellation::of(&job(Some("a-1"))).unwrap();
        let send = |_| {
            *asked.lock().unwrap() += 1;
            async { sent(204, "") }
        };
        // The job is answered only when the farm was asked to cancel it.
        let after = async {
            while *asked.lock().unwrap() == 0 {
                tokio::task::yield_now().await;
            }
            sent(499, "cancelled")
        };
        let (response, _) = cancellation().carry_out(after, send).await.unwrap();
        assert_eq!(response.status(), 499);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "cancelled");
        // A file that was ready by then has no reader.
        let file = cancellation().carry_out(async { sent(200, "file") }, send).await;
        assert_eq!(reason(file).as_deref(), Some(wire::DISCONNECTED));
        // A farm that does not know of it, and goes on.
        let began = tokio::time::Instant::now();
        let silent = cancellation().carry_out(pending(), |_| async { sent(404, "") }).await;
        assert_eq!(reason(silent).as_deref(), Some(wire::DISCONNECTED));
        assert_eq!(began.elapsed().as_secs(), CANCEL_TIMEOUT.as_secs());
        // One that is gone.
        let gone = cancellation().carry_out(async { Err(Error::ConnectionRefused) }, send).await;
        assert!(matches!(gone, Err(Error::ConnectionRefused)));
    }
}
