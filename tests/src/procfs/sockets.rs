//! The TCP and UDP sockets of processes.

use std::{
    collections::HashMap,
    fs,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

/// A TCP or UDP socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Socket {
    /// The process that has it.
    pub pid: u32,
    /// `tcp`, `tcp6`, `udp` or `udp6`.
    pub protocol: &'static str,
    /// Its own address.
    pub local: SocketAddr,
    /// The peer's address, all zeroes if there is no peer.
    pub remote: SocketAddr,
    /// It accepts connections.
    pub listens: bool,
    /// It is connected or connecting.
    pub is_open: bool,
    /// Data waits to be sent, and the peer has announced a receive window of zero: it does not read.
    pub peer_window_is_closed: bool,
    /// Bytes that the kernel keeps because the peer has not acknowledged them.
    pub unacknowledged_bytes: u64,
}

/// The addresses of the IPv4 TCP sockets on which a process listens.
#[must_use]
pub fn listening(pid: u32) -> Vec<SocketAddr> {
    let own = sockets(&[pid]).into_iter();
    own.filter(|socket| socket.listens && socket.local.is_ipv4()).map(|socket| socket.local).collect()
}

/// The TCP and UDP sockets of processes, each in its network namespace.
#[must_use]
pub fn sockets(pids: &[u32]) -> Vec<Socket> {
    // The tables of a network namespace are slow to read, so they are read once.
    let mut networks: HashMap<PathBuf, (u32, HashMap<String, u32>)> = HashMap::new();
    for &pid in pids {
        let Ok(network) = fs::read_link(format!("/proc/{pid}/ns/net")) else { continue };
        let inodes = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|item| fs::read_link(item.path()).ok())
            .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()));
        networks
            .entry(network)
            .or_insert_with(|| (pid, HashMap::new()))
            .1
            .extend(inodes.map(|inode| (inode, pid)));
    }
    let mut found = Vec::new();
    for (pid, inodes) in networks.values().filter(|(_, inodes)| !inodes.is_empty()) {
        for protocol in ["tcp", "tcp6", "udp", "udp6"] {
            let table = fs::read_to_string(format!("/proc/{pid}/net/{protocol}")).unwrap_or_default();
            found.extend(table.lines().filter_map(|line| socket(protocol, line, inodes)));
        }
    }
    found
}

/// `0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 … INODE …`
fn socket(protocol: &'static str, line: &str, inodes: &HashMap<String, u32>) -> Option<Socket> {
    const LISTEN: &str = "0A";
    // ESTABLISHED and SYN_SENT.
    const OPEN: [&str; 2] = ["01", "02"];
    // Linux, `get_tcp4_sock`: the timer that runs is the one that probes a zero window.
    const ZERO_WINDOW_PROBE: &str = "04:";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let pid = *inodes.get(*fields.get(9)?)?;
    let (local, remote) = (address(fields.get(1)?)?, address(fields.get(2)?)?);
    let state = *fields.get(3)?;
    let is_tcp = protocol.starts_with("tcp");
    Some(Socket {
        pid,
        protocol,
        local,
        remote,
        listens: is_tcp && state == LISTEN,
        is_open: OPEN.contains(&state),
        peer_window_is_closed: is_tcp && fields.get(5)?.starts_with(ZERO_WINDOW_PROBE),
        unacknowledged_bytes: u64::from_str_radix(fields.get(4)?.split(':').next()?, 16).ok()?,
    })
}

/// The address word by word in the machine's byte order, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (digits, port) = text.split_once(':')?;
    let word =
        |start: usize| u32::from_str_radix(digits.get(start..start + 8)?, 16).ok().map(u32::to_ne_bytes);
    let address: IpAddr = if digits.len() == 8 {
        word(0)?.into()
    } else {
        let words = [word(0)?, word(8)?, word(16)?, word(24)?].concat();
        <[u8; 16]>::try_from(words).ok()?.into()
    };
    Some((address, u16::from_str_radix(port, 16).ok()?).into())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn both_ends_of_an_own_connection_are_found() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            let found = sockets(&[std::process::id()]);
            assert!(found.iter().any(|socket| (socket.local, socket.remote) == (local, remote)), "{found:?}");
        }
    }
}
