//! A TLS server whose certificate no client trusts and whose issuer is named at
//! `http://10.0.0.1/issuer.crt`, an address that no page may reach.
//!
//! `openssl x509 -req -CA … -extfile` made both files, with the lines `subjectAltName=DNS:page.test` and
//! `authorityInfoAccess=caIssuers;URI:http://10.0.0.1/issuer.crt`, valid for a hundred years. The key protects
//! nothing.

use std::sync::Arc;

use anyhow::Result;
use tokio::{io::AsyncReadExt as _, net::TcpListener, task::JoinHandle};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

const CERTIFICATE: &[u8] = include_bytes!("tls/page.test.der");
const KEY: &[u8] = include_bytes!("tls/page.test.pk8.der");

/// A running server, stopped when it is dropped.
#[derive(Debug)]
pub struct UntrustedTlsServer {
    port: u16,
    task: JoinHandle<()>,
}

impl UntrustedTlsServer {
    /// Starts it on 127.0.0.1.
    pub async fn start() -> Result<Self> {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    if let Ok(mut stream) = acceptor.accept(stream).await {
                        let _ = stream.read(&mut [0; 1024]).await;
                    }
                });
            }
        });
        Ok(Self { port, task })
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for UntrustedTlsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
