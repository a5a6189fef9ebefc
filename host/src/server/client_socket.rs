//! The socket of a client. Whether it has bytes that its task has not read can be seen outside that task.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, Join, ReadBuf, join},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

pub(super) type ClientSocket = Join<Reader, OwnedWriteHalf>;

pub(super) struct Reader(Arc<Mutex<OwnedReadHalf>>);

/// Does not keep the socket open.
pub(super) struct UnreadBytes(Weak<Mutex<OwnedReadHalf>>);

pub(super) fn split(stream: TcpStream) -> (ClientSocket, UnreadBytes) {
    let (reader, writer) = stream.into_split();
    let reader = Arc::new(Mutex::new(reader));
    let unread = UnreadBytes(Arc::downgrade(&reader));
    (join(Reader(reader), writer), unread)
}

impl UnreadBytes {
    /// Whether the kernel has bytes of the client, or they are being read.
    pub(super) fn exist(&self) -> bool {
        let Some(reader) = self.0.upgrade() else { return false };
        let Some(reader) = reader.try_lock() else { return true };
        rustix::io::ioctl_fionread(reader.as_ref()).is_ok_and(|count| count > 0)
    }
}

impl AsyncRead for Reader {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
        time::sleep,
    };

    use super::*;

    #[tokio::test]
    async fn bytes_exist_until_they_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut socket, unread) = split(listener.accept().await.unwrap().0);
        assert!(!unread.exist());
        client.write_all(b"GET").await.unwrap();
        while !unread.exist() {
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(socket.read(&mut [0; 9]).await.unwrap(), 3);
        assert!(!unread.exist());
        drop(client);
        assert_eq!(socket.read(&mut [0; 9]).await.unwrap(), 0);
        assert!(!unread.exist());
        drop(socket);
        assert!(!unread.exist());
    }
}
