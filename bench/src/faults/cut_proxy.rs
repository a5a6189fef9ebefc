//! A TCP proxy whose connections can be cut or slowed down.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
    time::sleep,
};

pub(super) struct CutProxy {
    pub(super) address: SocketAddr,
    /// Its value changes when the connections are cut.
    cuts: watch::Sender<()>,
    delay_ms: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl CutProxy {
    pub(super) async fn start(upstream: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, cuts, delay_ms) =
            (listener.local_addr()?, watch::Sender::new(()), Arc::<AtomicU64>::default());
        let (cut, delay) = (cuts.clone(), Arc::clone(&delay_ms));
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (mut cut, delay) = (cut.subscribe(), Arc::clone(&delay));
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(upstream).await else { return };
                    let ((from_client, to_client), (from_server, to_server)) =
                        (client.into_split(), server.into_split());
                    tokio::select! {
                        _ = cut.changed() => {}
                        () = forward(from_client, to_server, &delay) => {}
                        () = forward(from_server, to_client, &delay) => {}
                    }
                });
            }
        });
        Ok(Self { address, cuts, delay_ms, accepting })
    }

    /// Closes every connection, in the middle of requests and responses.
    pub(super) fn cut(&self) {
        self.cuts.send_replace(());
    }

    /// Delays what is forwarded in each direction.
    pub(super) fn delay(&self, delay: Duration) {
        self.delay_ms.store(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl Drop for CutProxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn forward(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, delay_ms: &AtomicU64) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let delay = delay_ms.load(Ordering::Relaxed);
        if delay > 0 {
            sleep(Duration::from_millis(delay)).await;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
