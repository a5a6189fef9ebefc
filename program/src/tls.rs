//! TLS of both programs as clients.

use std::sync::{Arc, LazyLock};

use rustls::{ClientConfig, RootCertStore, crypto::ring};

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

/// Of a client with [`tls_config`]. The default of reqwest fails on a system without certificates.
pub fn http_client() -> reqwest::ClientBuilder {
    reqwest::Client::builder().tls_backend_preconfigured(tls_config())
}
