//! What the programs `platen` and `platen-farm` share and that is no part of rendering: arguments, log, signals, secrets,
//! traces, the registry of metrics, a fair queue, and the options of sockets.

#![forbid(unsafe_code)]

mod fair_queue;
mod log_lines;
mod metrics_registry;
mod secret;
pub mod startup;
pub mod telemetry;
mod telemetry_settings;
mod tls;
mod variables;

use std::{io, time::Duration};

use socket2::SockRef;
use tokio::net::TcpStream;

pub use fair_queue::{FairQueue, Ticket};
pub use log_lines::{RepeatedWarning, error_chain};
pub use metrics_registry::MetricsRegistry;
pub use secret::{SecretError, secret, secret_from};
pub use tls::{http_client, tls_config};
pub use variables::{OF_COMPONENTS, OF_SCRIPTS, SECRETS, Variable, is_known, names_of_flags};

/// The wait after an error of `accept`, which is mostly a lack of file descriptors, until other connections are closed.
pub const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Bytes of a file that the kernel takes before they can be sent. What has been sent and not been acknowledged is not
/// limited, so this does not limit the throughput of a fast connection. Otherwise the kernel keeps up to 4 MiB for each
/// client that reads slowly, and a few hundred of those use up the memory for the TCP connections of the machine.
const MAX_UNSENT_BYTES: u32 = 256 * 1024;

/// Sets the options of a socket over which a server sends files: small writes are sent at once, and the kernel keeps
/// little of what cannot be sent.
///
/// # Errors
/// The errors of `setsockopt(2)`.
pub fn prepare_response_socket(stream: &TcpStream) -> io::Result<()> {
    // A file is sent in several writes; the last one must not wait for an acknowledgement.
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES)
}
