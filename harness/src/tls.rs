//! TLS servers: one whose certificate no client trusts and whose issuer is named at
//! `http://10.0.0.1/issuer.crt`, an address that no page may reach; and a proxy of `localhost`, whose issuer is
//! [`issuer`].
//!
//! `openssl x509 -req -CA … -extfile` made the files, with the lines `subjectAltName=DNS:page.test` and
//! `authorityInfoAccess=caIssuers;URI:http://10.0.0.1/issuer.crt`, and `subjectAltName=DNS:localhost,IP:127.0.0.1`, valid
//! for a hundred years. The keys protect nothing.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::Result;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use tokio::{
    io::{AsyncReadExt as _, copy_bidirectional},
    net::TcpStream,
};
use tokio_rustls::{
    TlsAcceptor, TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, HandshakeKind, RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, pem::PemObject as _},
    },
};

use crate::loopback::{ANY_PORT, TcpServer};

const CERTIFICATE: &[u8] = include_bytes!("tls/page.test.der");
const KEY: &[u8] = include_bytes!("tls/page.test.pk8.der");

const LOCALHOST_CERTIFICATE: &[u8] = include_bytes!("tls/localhost.der");
const LOCALHOST_KEY: &[u8] = include_bytes!("tls/localhost.pk8.der");
/// The public key of `localhost`, as Chromium's `--ignore-certificate-errors-spki-list` names it: Base64 of the SHA-256
/// of its DER.
pub const LOCALHOST_KEY_HASH: &str = "4Z9rl2bUwone9FdgX9eSfei8YueJmgK7wTN6ef2Sx9s=";

/// Makes ring the cryptography of reqwest, which has none with the features that the programs need. Before the first
/// client is built.
pub fn use_ring() {
    // Fails if it was called before.
    let _ = ring::default_provider().install_default();
}

/// `reqwest` of the programs in the documents, where its default features have cryptography.
pub mod reqwest {
    /// Makes clients.
    #[derive(Debug)]
    pub struct Client;

    impl Client {
        #[allow(clippy::new_ret_no_self, missing_docs)]
        pub fn new() -> ::reqwest::Client {
            super::use_ring();
            ::reqwest::Client::new()
        }
    }
}

/// The file of the issuer of a [`TlsProxy`].
pub fn issuer() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tls/ca.pem")
}

/// The certificate of `localhost` and its key.
pub(crate) fn localhost_pem() -> String {
    let block = |kind: &str, der: &[u8]| {
        let text = BASE64_STANDARD.encode(der);
        format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")
    };
    block("CERTIFICATE", LOCALHOST_CERTIFICATE) + &block("PRIVATE KEY", LOCALHOST_KEY)
}

fn acceptor(certificate: &'static [u8], key: &'static [u8], protocols: &[&str]) -> Result<TlsAcceptor> {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(certificate)], key)?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_owned()).collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// TLS for a connection to a server with the certificate of `localhost`.
pub async fn connect(stream: TcpStream) -> Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(issuer())?)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("localhost")?, stream).await?)
}

/// A proxy that ends TLS for a server, stopped when it is dropped.
#[derive(Debug)]
pub struct TlsProxy {
    server: TcpServer,
    connections: Arc<AtomicUsize>,
    resumed: Arc<AtomicUsize>,
}

impl TlsProxy {
    /// Starts it in front of a server that speaks these protocols, named as in ALPN.
    pub async fn start(server: SocketAddr, protocols: &[&str]) -> Result<Self> {
        let acceptor = acceptor(LOCALHOST_CERTIFICATE, LOCALHOST_KEY, protocols)?;
        let (connections, resumed) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (accepted, again) = (Arc::clone(&connections), Arc::clone(&resumed));
        let server = TcpServer::start(ANY_PORT, move |stream| {
            accepted.fetch_add(1, Ordering::Relaxed);
            let (acceptor, again) = (acceptor.clone(), Arc::clone(&again));
            async move {
                let mut client = acceptor.accept(stream).await?;
                if client.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
                    again.fetch_add(1, Ordering::Relaxed);
                }
                copy_bidirectional(&mut client, &mut TcpStream::connect(server).await?).await
            }
        });
        Ok(Self { server: server.await?, connections, resumed })
    }

    /// Its URL, without a path.
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.port())
    }

    pub fn port(&self) -> u16 {
        self.server.address().port()
    }

    /// The number of connections that clients have opened.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// How many of them have resumed a session of an earlier one.
    pub fn resumed(&self) -> usize {
        self.resumed.load(Ordering::Relaxed)
    }
}

/// Starts a server whose certificate no client trusts.
pub async fn untrusted_server() -> Result<TcpServer> {
    let acceptor = acceptor(CERTIFICATE, KEY, &[])?;
    TcpServer::start(ANY_PORT, move |stream| {
        let acceptor = acceptor.clone();
        async move { acceptor.accept(stream).await?.read(&mut [0; 1024]).await }
    })
    .await
}
