//! Clients that disconnect before their response is complete.

use tokio_util::sync::CancellationToken;
use wasmtime_wasi_http::Error;

/// Cancelled when the client of a request disconnects before its response is complete.
pub(crate) type ClientDisconnect = CancellationToken;

/// The error of an outgoing request whose client has disconnected; `reason` is one of the constants
/// of [`platen_shared::wire`], by which the component recognises it.
pub(super) fn disconnected(reason: &str) -> Error {
    Error::InternalError(Some(reason.to_owned()))
}
