//! A site with TLS whose certificate no one trusts, and which names a place where its issuer is to be
//! found: `http://10.0.0.1/issuer.crt`, where no page may go.
//!
//! Both files are of the kind that `openssl x509 -req -CA … -extfile` makes, with the lines
//! `subjectAltName=DNS:page.test` and `authorityInfoAccess=caIssuers;URI:http://10.0.0.1/issuer.crt`, for
//! a hundred years. The key protects nothing.

use std::sync::Arc;

use tokio::{io::AsyncReadExt as _, net::TcpListener};
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

/// Starts it; its URL.
pub(crate) async fn start() -> String {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(mut stream) = acceptor.accept(stream).await {
                    let _ = stream.read(&mut [0; 1024]).await;
                }
            });
        }
    });
    format!("https://page.test:{port}/")
}
