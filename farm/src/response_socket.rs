//! The options of a socket over which a server sends files.

use std::io;

use socket2::SockRef;
use tokio::net::TcpStream;

/// Bytes of a file that the kernel takes before they can be sent. What has been sent and not been acknowledged is not
/// limited, so this does not limit the throughput of a fast connection. Otherwise the kernel keeps up to 4 MiB for each
/// client that reads slowly, and a few hundred of those use up the memory for the TCP connections of the machine.
const MAX_UNSENT_BYTES: u32 = 256 * 1024;

/// Sends small writes at once, and keeps little of what cannot be sent in the kernel.
///
/// # Errors
/// Those of `setsockopt(2)`.
pub fn prepare_response_socket(stream: &TcpStream) -> io::Result<()> {
    // A file is sent in several writes; the last one must not wait for an acknowledgement.
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_notsent_lowat(MAX_UNSENT_BYTES)
}
