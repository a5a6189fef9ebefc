//! Clients that disconnect before their response is complete.

use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use platen_shared::{refusal::Refusal, wire};
use tokio_util::sync::CancellationToken;
use wasmtime_wasi_http::{Error, WasiBody};

use super::client::Exchange;

/// Cancelled when the client of a request disconnects before its response is complete.
pub(crate) type ClientDisconnect = CancellationToken;

/// The error of an outgoing request whose client has disconnected; `reason` is one of the constants
/// of [`platen_shared::wire`], by which the component recognises it.
pub(super) fn disconnected(reason: &str) -> Error {
    Error::InternalError(Some(reason.to_owned()))
}

/// The outcome of a job that was cancelled because its client has disconnected: a counted refusal of the farm as it is,
/// otherwise a cancellation. A proxy between this server and the farm may answer in its place or close the connection;
/// then the page may have run, unless the farm was not reached.
pub(super) async fn cancelled(exchange: Exchange) -> Exchange {
    let (response, io) = match exchange {
        Ok(exchanged) => exchanged,
        Err(
            Error::ConnectionRefused
            | Error::ConnectionTimeout
            | Error::DnsError { .. }
            | Error::DestinationUnavailable,
        ) => return refusal(&Refusal::Cancelled { page_ran: false }),
        Err(_) => return Err(disconnected(wire::DISCONNECTED)),
    };
    let (head, body) = response.into_parts();
    let body = body.collect().await.map_err(|_| disconnected(wire::DISCONNECTED))?.to_bytes();
    match serde_json::from_slice::<Refusal>(&body) {
        Ok(refused) if refused.class().is_counted() => {
            let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
            Ok((Response::from_parts(head, body), io))
        }
        Ok(_) => refusal(&Refusal::Cancelled { page_ran: false }),
        Err(_) if head.status == StatusCode::SERVICE_UNAVAILABLE => {
            refusal(&Refusal::Cancelled { page_ran: false })
        }
        Err(_) => Err(disconnected(wire::DISCONNECTED)),
    }
}

/// The response of a farm that refuses a job.
fn refusal(refusal: &Refusal) -> Exchange {
    let body = serde_json::to_vec(refusal).map_err(|_| disconnected(wire::DISCONNECTED))?;
    let body: WasiBody = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(refusal.class().status()).map_err(|_| disconnected(wire::DISCONNECTED))?;
    Ok((response, Box::new(async { Ok(()) })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "the type of what may fail")]
    fn answer(status: u16, body: &'static str) -> Exchange {
        let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
        Ok((Response::builder().status(status).body(body).unwrap(), Box::new(async { Ok(()) })))
    }

    /// The refusal that the component receives; `None` is an interrupted request, which counts.
    async fn outcome(exchange: Exchange) -> Option<Refusal> {
        match cancelled(exchange).await {
            Ok((response, _)) => {
                let body = response.into_body().collect().await.unwrap().to_bytes();
                Some(serde_json::from_slice(&body).unwrap())
            }
            Err(Error::InternalError(Some(reason))) if reason == wire::DISCONNECTED => None,
            Err(error) => panic!("{error}"),
        }
    }

    #[tokio::test]
    async fn a_cancelled_job_counts_only_if_a_page_may_have_run() {
        let (ran, not_run) =
            (Some(Refusal::Cancelled { page_ran: true }), Some(Refusal::Cancelled { page_ran: false }));
        for (status, body, expected) in [
            (499, r#"{"code":"cancelled","page_ran":true}"#, &ran),
            (499, r#"{"code":"cancelled","page_ran":false}"#, &not_run),
            (503, r#"{"code":"queue_full","retry_after":1}"#, &not_run),
            (422, r#"{"code":"page_too_large"}"#, &Some(Refusal::PageTooLarge)),
            (503, "<h1>no farm</h1>", &not_run),
            (502, "<h1>bad gateway</h1>", &None),
        ] {
            assert_eq!(outcome(answer(status, body)).await, *expected, "{status} {body}");
        }
        assert_eq!(outcome(Err(Error::ConnectionRefused)).await, not_run);
        assert_eq!(outcome(Err(Error::ConnectionTerminated)).await, None);
        assert_eq!(outcome(Err(disconnected(wire::DISCONNECTED))).await, None);
    }
}
