//! A name server of whose names those with the label `down` get an error, and all others do not exist.

use platen_farm::NameServer;
use tokio::{net::UdpSocket, task::JoinHandle};

const SERVER_FAILURE: u8 = 2;
const NO_SUCH_NAME: u8 = 3;

/// The name server, until it is dropped.
pub(crate) struct Names {
    address: String,
    task: JoinHandle<()>,
}

impl Names {
    pub(crate) async fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let task = tokio::spawn(async move {
            let mut message = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut message).await {
                let is_down = message[..length].windows(5).any(|label| label == b"\x04down");
                // The question comes back as an answer without records (RFC 1035, section 4.1.1).
                message[2] |= 0x80;
                message[3] = 0x80 | if is_down { SERVER_FAILURE } else { NO_SUCH_NAME };
                let _ = socket.send_to(&message[..length], from).await;
            }
        });
        Self { address, task }
    }

    pub(crate) fn setting(&self) -> NameServer {
        self.address.parse().unwrap()
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.task.abort();
    }
}
