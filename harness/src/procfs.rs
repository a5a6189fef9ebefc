//! Reads processes and sockets from Linux's `/proc`.
//!
//! A process that ends while it is read counts as ended.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context as _, Result};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// One process. The start time distinguishes it from a later one with the same number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProcessId {
    pub pid: u32,
    start_time: u64,
}

/// A line of the process table.
#[derive(Debug)]
struct Entry {
    id: ProcessId,
    parent: u32,
    is_zombie: bool,
}

impl ProcessId {
    /// The running process of this number.
    pub fn of(pid: u32) -> Option<Self> {
        entry(pid).map(|entry| entry.id)
    }

    /// Whether it still runs; a zombie does not.
    pub fn is_alive(&self) -> bool {
        entry(self.pid).is_some_and(|entry| entry.id == *self && !entry.is_zombie)
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill(Pid::from_raw(self.pid.cast_signed()), signal)?)
    }

    /// Its arguments, separated by spaces; empty if it has ended.
    pub fn command_line(&self) -> String {
        let arguments = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        String::from_utf8_lossy(&arguments).replace('\0', " ")
    }

    /// The first word of a field of `/proc/PID/status`; `None` if the process has ended.
    pub fn status(&self, field: &str) -> Option<String> {
        status(self.pid, field).ok()
    }

    /// The nice values of its threads, the main thread first; empty if it has ended.
    pub fn nice_values(&self) -> Vec<i32> {
        nice_values(self.pid)
    }

    /// Bytes of its anonymous memory; 0 if it has ended.
    pub fn anonymous_memory(&self) -> u64 {
        memory(self.pid, "RssAnon").unwrap_or(0)
    }

    /// The parent directory of the profile directories of a browser's server.
    pub fn browser_workspace(&self) -> Result<PathBuf> {
        let command = self.command_line();
        let profile = command.split(PROFILE).nth(1).and_then(|rest| rest.split(' ').next());
        let profile = PathBuf::from(profile.with_context(|| format!("not a browser: {command}"))?);
        let workspace =
            profile.ancestors().nth(2).with_context(|| format!("{} is too short", profile.display()))?;
        Ok(workspace.to_owned())
    }
}

const PROFILE: &str = "--user-data-dir=";

/// The nice values of the threads of a process, the main thread first; empty if it has ended.
pub fn nice_values(pid: u32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut threads: Vec<u32> = threads.filter_map(|it| it.file_name().to_str()?.parse().ok()).collect();
    threads.sort_unstable_by_key(|thread| (*thread != pid, *thread));
    let nice = |thread| {
        let stat = fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?;
        fields(&stat).nth(16)?.parse().ok()
    };
    threads.into_iter().filter_map(nice).collect()
}

/// Whether every thread of a process is stopped, as some time after SIGSTOP, or the process has ended.
pub fn is_stopped(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    stats.all(|stat| fields(&stat).next().is_some_and(|state| matches!(state, "T" | "Z" | "X")))
}

/// Every running process below `root`, without `root`.
pub fn descendants(root: u32) -> Vec<ProcessId> {
    let Ok(directory) = fs::read_dir("/proc") else { return Vec::new() };
    let mut rest: Vec<Entry> = directory
        .flatten()
        .filter_map(|item| item.file_name().to_str()?.parse().ok())
        .filter_map(entry)
        .filter(|entry| !entry.is_zombie)
        .collect();
    let (mut family, mut found) = (HashSet::from([root]), Vec::new());
    loop {
        let (below, others): (Vec<_>, Vec<_>) =
            rest.into_iter().partition(|entry| family.contains(&entry.parent));
        if below.is_empty() {
            return found;
        }
        family.extend(below.iter().map(|entry| entry.id.pid));
        found.extend(below.into_iter().map(|entry| entry.id));
        rest = others;
    }
}

/// The browser processes below `root`, without their renderers and other helpers.
pub fn browsers(root: u32) -> Vec<ProcessId> {
    let mut found = below_with(root, |command| command.contains(PROFILE) && !command.contains("--type="));
    // A helper that a browser is starting has the command line of the browser for a moment.
    let all: HashSet<u32> = found.iter().map(|browser| browser.pid).collect();
    found.retain(|browser| entry(browser.pid).is_some_and(|entry| !all.contains(&entry.parent)));
    found
}

/// The renderer processes of browsers below `root`.
pub fn renderers(root: u32) -> Vec<ProcessId> {
    below_with(root, |command| command.contains("--type=renderer"))
}

fn below_with(root: u32, is_wanted: impl Fn(&str) -> bool) -> Vec<ProcessId> {
    let mut found = descendants(root);
    found.retain(|process| is_wanted(&process.command_line()));
    found
}

fn entry(pid: u32) -> Option<Entry> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = fields(&stat).collect();
    Some(Entry {
        id: ProcessId { pid, start_time: fields.get(19)?.parse().ok()? },
        parent: fields.get(1)?.parse().ok()?,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
    })
}

/// The fields of `/proc/PID/stat` from the state on. The name before it is in parentheses and may contain any
/// character.
fn fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace()
}

fn status(pid: u32, field: &str) -> Result<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let value = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let word = value.and_then(|value| value.split_whitespace().next());
    Ok(word.with_context(|| format!("no {field} of process {pid}"))?.to_owned())
}

/// A memory figure of `/proc/PID/status`, such as `VmRSS` or `VmHWM`, in bytes.
pub fn memory(pid: u32, figure: &str) -> Result<u64> {
    Ok(status(pid, figure)?.parse::<u64>()? * 1024)
}

/// Resets the process's `VmHWM` to its current memory.
pub fn reset_peak_memory(pid: u32) -> io::Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
}

/// User and system time of all threads of a process.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    sum_of_times(pid, 2)
}

/// CPU time of a process and of its children that it has reaped, and of theirs.
pub fn cpu_time_with_reaped(pid: u32) -> Result<Duration> {
    sum_of_times(pid, 4)
}

/// The sum of the first of `utime`, `stime`, `cutime` and `cstime`.
fn sum_of_times(pid: u32, count: usize) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // In hundredths of a second.
    let ticks: u64 = fields(&stat).skip(11).take(count).map(str::parse::<u64>).sum::<Result<_, _>>()?;
    Ok(Duration::from_millis(10 * ticks))
}

/// [`cpu_time`] of each process below `root`, by its number.
pub fn cpu_times(root: u32) -> HashMap<u32, Duration> {
    let pids = descendants(root).into_iter().map(|process| process.pid);
    pids.filter_map(|pid| Some((pid, cpu_time(pid).ok()?))).collect()
}

/// Processes that still run below `root`, and those of `directories` that still exist.
pub fn leftovers(root: u32, directories: &[PathBuf]) -> Vec<String> {
    let processes =
        descendants(root).into_iter().map(|process| format!("{} {}", process.pid, process.command_line()));
    let directories = directories.iter().filter(|path| path.exists()).map(|path| path.display().to_string());
    processes.chain(directories).collect()
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Socket {
    /// The process that has it.
    pub pid: u32,
    /// `tcp`, `tcp6`, `udp` or `udp6`.
    pub protocol: &'static str,
    pub local: SocketAddr,
    /// The peer's address, all zeroes if there is no peer.
    pub remote: SocketAddr,
    pub listens: bool,
    /// It is connected or connecting.
    pub is_open: bool,
    /// Data waits to be sent, and the peer has announced a receive window of zero: it does not read.
    pub peer_window_is_closed: bool,
    /// Bytes that the kernel keeps because the peer has not acknowledged them.
    pub unacknowledged_bytes: u64,
}

/// The addresses of the IPv4 TCP sockets on which a process listens.
pub fn listening(pid: u32) -> Vec<SocketAddr> {
    let own = sockets(&[pid]).into_iter();
    own.filter(|socket| socket.listens && socket.local.is_ipv4()).map(|socket| socket.local).collect()
}

/// The TCP and UDP sockets of processes, each in its network namespace.
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
