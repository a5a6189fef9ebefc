//! An HTTP proxy such as an operator may have, which remembers what it was asked for.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, copy_bidirectional},
    net::{TcpListener, TcpStream},
};

/// The proxy.
pub(crate) struct Proxy {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// One that says yes to everything, or no.
    pub(crate) async fn start(willing: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (port, heads) = (listener.local_addr().unwrap().port(), Arc::<Mutex<Vec<String>>>::default());
        let seen = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let seen = Arc::clone(&seen);
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let mut head = String::new();
                    while !head.ends_with("\r\n\r\n") {
                        if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    let target = head.split(' ').nth(1).unwrap().to_owned();
                    seen.lock().unwrap().push(head);
                    if !willing {
                        let _ =
                            stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").await;
                        return;
                    }
                    let mut origin = TcpStream::connect(target).await.unwrap();
                    let _ = stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await;
                    let _ = copy_bidirectional(&mut stream, &mut origin).await;
                });
            }
        });
        Self { port, heads }
    }

    /// Its URL, with a user and a password.
    pub(crate) fn url(&self) -> String {
        format!("http://user:pass@127.0.0.1:{}", self.port)
    }

    /// The heads of all requests so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}
