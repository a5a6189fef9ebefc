//! What Linux tells about processes: descendants, memory, sockets.
//!
//! Invariant: reads only; a process that ends while it is looked at counts as gone.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
};

use anyhow::{Context as _, Result};

/// One process. The start time tells it from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    start_time: u64,
}

/// A line of the process table.
#[derive(Debug)]
struct Entry {
    id: ProcessId,
    parent: u32,
    name: String,
    zombie: bool,
}

impl ProcessId {
    /// Whether it still runs; one that waits to be reaped does not.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        entry(self.pid).is_some_and(|entry| entry.id == *self && !entry.zombie)
    }
}

/// Every running process below `root`, without `root`.
#[must_use]
pub fn descendants(root: u32) -> Vec<ProcessId> {
    entries_below(root).into_iter().map(|entry| entry.id).collect()
}

/// The outermost browser processes below `root`: those whose parent is not one itself.
#[must_use]
pub fn browsers(root: u32) -> Vec<ProcessId> {
    let mut entries = entries_below(root);
    entries.retain(|entry| entry.name.starts_with("chrom") || entry.name.starts_with("headless"));
    let pids: HashSet<u32> = entries.iter().map(|entry| entry.id.pid).collect();
    entries.into_iter().filter(|entry| !pids.contains(&entry.parent)).map(|entry| entry.id).collect()
}

fn entries_below(root: u32) -> Vec<Entry> {
    let Ok(directory) = fs::read_dir("/proc") else { return Vec::new() };
    let mut rest: Vec<Entry> = directory
        .flatten()
        .filter_map(|item| item.file_name().to_str()?.parse().ok())
        .filter_map(entry)
        .filter(|entry| !entry.zombie)
        .collect();
    let (mut family, mut found) = (HashSet::from([root]), Vec::new());
    loop {
        let (below, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|entry| family.contains(&entry.parent));
        if below.is_empty() {
            return found;
        }
        family.extend(below.iter().map(|entry| entry.id.pid));
        found.extend(below);
        rest = others;
    }
}

fn entry(pid: u32) -> Option<Entry> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may itself hold any character.
    let (head, tail) = stat.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = tail.split_whitespace().collect();
    Some(Entry {
        id: ProcessId { pid, start_time: fields.get(19)?.parse().ok()? },
        parent: fields.get(1)?.parse().ok()?,
        name,
        zombie: matches!(*fields.first()?, "Z" | "X"),
    })
}

/// A memory figure of `/proc/PID/status`, such as `VmRSS` or `VmHWM`, in bytes.
///
/// # Errors
/// When the process is gone.
pub fn memory(pid: u32, figure: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find(|line| line.split(':').next() == Some(figure));
    let kilobytes: u64 = line
        .and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .with_context(|| format!("{figure} of process {pid} is not to be read"))?;
    Ok(kilobytes * 1024)
}

/// Makes the process's `VmHWM` start anew from what it uses now.
///
/// # Errors
/// When the process is gone or the kernel does not allow it.
pub fn reset_peak_memory(pid: u32) -> io::Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
}

/// The addresses of the IPv4 TCP sockets on which a process listens.
#[must_use]
pub fn listening(pid: u32) -> Vec<SocketAddr> {
    let own = sockets(&[pid]).into_iter();
    own.filter(|socket| socket.listens && socket.local.is_ipv4()).map(|socket| socket.local).collect()
}

/// A TCP or UDP socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Socket {
    /// The process that has it.
    pub pid: u32,
    /// `tcp`, `tcp6`, `udp` or `udp6`.
    pub protocol: &'static str,
    /// Its own address.
    pub local: SocketAddr,
    /// The other side's, all zeroes if there is none.
    pub remote: SocketAddr,
    /// It waits for connections.
    pub listens: bool,
    /// It is connected, or about to be.
    pub is_open: bool,
}

/// The TCP and UDP sockets of processes, each in the network it is in.
#[must_use]
pub fn sockets(pids: &[u32]) -> Vec<Socket> {
    // A network's tables are slow to read, so they are read once.
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

/// `0: 0100007F:1F90 00000000:0000 0A … INODE …`
fn socket(protocol: &'static str, line: &str, inodes: &HashMap<String, u32>) -> Option<Socket> {
    const LISTEN: &str = "0A";
    // Established, and waiting for the other side.
    const OPEN: [&str; 2] = ["01", "02"];
    let fields: Vec<&str> = line.split_whitespace().collect();
    let pid = *inodes.get(*fields.get(9)?)?;
    let (local, remote) = (address(fields.get(1)?)?, address(fields.get(2)?)?);
    let state = *fields.get(3)?;
    let listens = protocol.starts_with("tcp") && state == LISTEN;
    Some(Socket { pid, protocol, local, remote, listens, is_open: OPEN.contains(&state) })
}

/// The address word by word in the machine's byte order, and the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (digits, port) = text.split_once(':')?;
    let word =
        |place: usize| u32::from_str_radix(digits.get(place..place + 8)?, 16).ok().map(u32::to_ne_bytes);
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
    use std::{net::TcpListener, process::Command};

    use super::*;

    #[test]
    fn a_child_is_a_descendant_until_it_is_gone() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let found = descendants(std::process::id()).into_iter().find(|id| id.pid == child.id()).unwrap();
        assert!(found.is_alive());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!found.is_alive());
        assert!(!descendants(std::process::id()).contains(&found));
    }

    #[test]
    fn an_own_listener_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(listening(std::process::id()).contains(&listener.local_addr().unwrap()));
    }

    #[test]
    fn both_ends_of_an_own_connection_are_found() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            let found = sockets(&[std::process::id()]);
            assert!(found.iter().any(|socket| (socket.local, socket.remote) == (local, remote)), "{found:?}");
        }
    }

    #[test]
    fn memory_is_in_bytes() {
        let now = memory(std::process::id(), "VmRSS").unwrap();
        assert!(now > 1_000_000, "{now}");
        assert!(memory(std::process::id(), "VmHWM").unwrap() >= now / 2);
    }
}
