//! Listeners that nobody may come near: on every address of this machine that is not public.
//!
//! Invariant: a connection or a datagram to any of them is counted, whatever it is. Where this
//! machine has no private address besides loopback, [`Canary::addresses`] shows it.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use platen_shared::address::classify;
use tokio::{
    net::{TcpListener, UdpSocket},
    task::JoinSet,
};

/// Canaries that sit on one port of many addresses, for TCP and UDP.
#[derive(Debug)]
pub struct Canary {
    addresses: Vec<IpAddr>,
    port: u16,
    visits: Arc<Mutex<Vec<String>>>,
    /// Ends with the canary.
    _tasks: JoinSet<()>,
}

impl Canary {
    /// Puts them up.
    ///
    /// # Errors
    /// When no port is free on all the addresses.
    pub async fn start() -> Result<Self> {
        let mut failure = None;
        // What is free on one address may be taken on another.
        for _ in 0..20 {
            match Self::try_start().await {
                Ok(canary) => return Ok(canary),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| anyhow::anyhow!("no port is free")))
    }

    async fn try_start() -> Result<Self> {
        let (mut port, mut addresses) = (0, Vec::new());
        let (visits, mut tasks) = (Arc::<Mutex<Vec<String>>>::default(), JoinSet::new());
        for address in own_addresses() {
            // An address that is being set up, or bound to an interface, takes no listener.
            let tcp = match TcpListener::bind((address, port)).await {
                Ok(tcp) => tcp,
                Err(_) if address != Ipv4Addr::LOCALHOST && !address.is_loopback() => continue,
                Err(error) => return Err(error.into()),
            };
            port = tcp.local_addr()?.port();
            let udp = UdpSocket::bind((address, port)).await?;
            addresses.push(address);
            let seen = Arc::clone(&visits);
            tasks.spawn(async move {
                while let Ok((_, from)) = tcp.accept().await {
                    note(&seen, format!("TCP to {address} from {from}"));
                }
            });
            let seen = Arc::clone(&visits);
            tasks.spawn(async move {
                while let Ok((_, from)) = udp.recv_from(&mut [0; 64]).await {
                    note(&seen, format!("UDP to {address} from {from}"));
                }
            });
        }
        Ok(Self { addresses, port, visits, _tasks: tasks })
    }

    /// Where they sit.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// The port of all of them.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Who has come so far.
    #[must_use]
    pub fn visits(&self) -> Vec<String> {
        self.visits.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn note(visits: &Mutex<Vec<String>>, visit: String) {
    visits.lock().unwrap_or_else(PoisonError::into_inner).push(visit);
}

/// Loopback, and what this machine's interfaces have that is not public.
fn own_addresses() -> Vec<IpAddr> {
    let mut addresses: Vec<IpAddr> = vec![Ipv4Addr::LOCALHOST.into(), Ipv4Addr::new(127, 0, 0, 2).into()];
    let trie = fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let mut last: Option<IpAddr> = None;
    for line in trie.lines() {
        if let Some(address) = line.trim().strip_prefix("|-- ") {
            last = address.parse().ok();
        } else if line.trim().starts_with("/32 host LOCAL") {
            addresses.extend(last);
        }
    }
    let six = fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let digits = six.lines().filter_map(|line| line.split_whitespace().next());
    let six = digits.filter_map(|digits| u128::from_str_radix(digits, 16).ok());
    // A link-local address wants an interface beside it.
    addresses.extend(six.map(Ipv6Addr::from).filter(|six| !six.is_unicast_link_local()).map(IpAddr::from));
    addresses.retain(|address| !classify(*address).is_public());
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn whoever_comes_is_seen() {
        let canary = Canary::start().await.unwrap();
        assert!(canary.addresses().contains(&Ipv4Addr::LOCALHOST.into()));
        assert!(canary.visits().is_empty());
        let mut expected = 0;
        for address in canary.addresses() {
            drop(tokio::net::TcpStream::connect((*address, canary.port())).await.unwrap());
            let socket = UdpSocket::bind((*address, 0)).await.unwrap();
            socket.send_to(b"x", (*address, canary.port())).await.unwrap();
            expected += 2;
        }
        while canary.visits().len() < expected {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
