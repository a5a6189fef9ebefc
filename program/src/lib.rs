//! What the programs `platen` and `platen-farm` share and that is no part of rendering: arguments, log, signals, secrets,
//! traces, the registry of metrics, a fair queue and a fair limit, and the options of sockets.

#![forbid(unsafe_code)]

mod fair_limit;
mod fair_queue;
mod log_lines;
mod metrics_registry;
mod secret;
pub mod startup;
pub mod telemetry;
mod variables;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, LazyLock},
    time::Duration,
};

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use socket2::SockRef;
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};

pub use fair_limit::{FairLimit, Permit};
pub use fair_queue::{FairQueue, Ticket};
pub use log_lines::{RepeatedWarning, error_chain};
pub use metrics_registry::MetricsRegistry;
pub use secret::{SecretError, secret, secret_from};
pub use variables::{OF_COMPONENTS, OF_SCRIPTS, SECRETS, Variable, is_known, names_of_flags};

/// The wait after an error of `accept`, which is mostly a lack of file descriptors, until other connections are closed.
pub const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// The time that a client has for a connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time for which a client keeps a connection without a request: shorter than servers and proxies, so that a request is not
/// sent into a connection that is just closing.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Accepts a connection, after waits while that fails.
pub async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    static FAILED: RepeatedWarning = RepeatedWarning::new();
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                if let Some(count) = FAILED.record() {
                    tracing::warn!(%error, count, "cannot accept a connection");
                }
                sleep(ACCEPT_RETRY_INTERVAL).await;
            }
        }
    }
}

/// Bytes of a file that the kernel takes before they can be sent. What has been sent and not been acknowledged is not
/// limited, so this does not limit the throughput of a fast connection. Otherwise the kernel keeps up to 4 MiB for each
/// client that reads slowly, and a few hundred of those use up the memory for the TCP connections of the machine.
const MAX_UNSENT_BYTES: u32 = 256 * 1024;

/// The first word after the name of a field in a file of `/proc`, such as `status` or `meminfo`.
#[must_use]
pub fn proc_field<'a>(file: &'a str, name: &str) -> Option<&'a str> {
    file.lines().find_map(|line| line.strip_prefix(name))?.split_ascii_whitespace().next()
}

/// An error of a temporary file without the name of the file, which the user has not chosen.
#[must_use]
pub fn without_name(error: &io::Error) -> io::Error {
    match (error.kind(), error.raw_os_error()) {
        (_, Some(code)) => io::Error::from_raw_os_error(code),
        (kind @ io::ErrorKind::NotFound, None) => io::Error::new(kind, "there is no such directory"),
        (kind, None) => kind.into(),
    }
}

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

/// TLS 1.2 and 1.3 with the certificates that the system trusts. Without any, only plain HTTP works.
#[must_use]
pub fn tls_config() -> ClientConfig {
    static CONFIG: LazyLock<ClientConfig> = LazyLock::new(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            tracing::warn!(
                "no certificates are trusted, so nothing is reached by https: install ca-certificates"
            );
        }
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth()
    });
    CONFIG.clone()
}

/// The builder of a client with [`tls_config`]. The default of reqwest fails on a system without certificates.
pub fn http_client() -> reqwest::ClientBuilder {
    reqwest::Client::builder().tls_backend_preconfigured(tls_config())
}
