//! Listeners that no page may reach, on every address of this machine that is not public.
//!
//! Invariant: every connection and datagram to one of them is recorded. If this machine has no private address
//! besides loopback, [`Canary::addresses`] shows it.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use anyhow::Result;
use platen_shared::address::classify;
use tokio::{
    net::{TcpListener, TcpStream, UdpSocket},
    task::JoinSet,
};

use crate::wait;

type Visits = Arc<Mutex<Vec<Visit>>>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Visit {
    protocol: &'static str,
    to: IpAddr,
    from: SocketAddr,
}

/// Canaries on one port of many addresses, for TCP and UDP.
#[derive(Debug)]
pub struct Canary {
    addresses: Vec<IpAddr>,
    port: u16,
    visits: Visits,
    /// Ends with the canary.
    _tasks: JoinSet<()>,
}

impl Canary {
    pub async fn start() -> Result<Self> {
        let mut failure = None;
        // A port that is free on one address may be in use on another.
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
        let (visits, mut tasks) = (Visits::default(), JoinSet::new());
        for to in own_addresses() {
            // An address that is being set up, or is bound to an interface, accepts no listener.
            let tcp = match TcpListener::bind((to, port)).await {
                Ok(tcp) => tcp,
                Err(_) if !to.is_loopback() => continue,
                Err(error) => return Err(error.into()),
            };
            port = tcp.local_addr()?.port();
            let udp = UdpSocket::bind((to, port)).await?;
            addresses.push(to);
            let seen = Arc::clone(&visits);
            tasks.spawn(async move {
                while let Ok((_, from)) = tcp.accept().await {
                    lock(&seen).push(Visit { protocol: "TCP", to, from });
                }
            });
            let seen = Arc::clone(&visits);
            tasks.spawn(async move {
                while let Ok((_, from)) = udp.recv_from(&mut [0; 64]).await {
                    lock(&seen).push(Visit { protocol: "UDP", to, from });
                }
            });
        }
        Ok(Self { addresses, port, visits, _tasks: tasks })
    }

    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The connections and datagrams that have arrived. A listener handles them in order of arrival, so a probe of
    /// our own that it has recorded proves that everything earlier is recorded too.
    pub async fn visits(&self) -> Result<Vec<String>> {
        let mut probes = Vec::new();
        for &to in &self.addresses {
            let stream = TcpStream::connect((to, self.port)).await?;
            probes.push(Visit { protocol: "TCP", to, from: stream.local_addr()? });
            let socket = UdpSocket::bind((to, 0)).await?;
            socket.send_to(b"x", (to, self.port)).await?;
            probes.push(Visit { protocol: "UDP", to, from: socket.local_addr()? });
        }
        let are_recorded = || {
            let visits = lock(&self.visits);
            probes.iter().all(|probe| visits.contains(probe))
        };
        wait::until("the canaries record a probe", are_recorded).await?;
        let mut visits = lock(&self.visits);
        visits.retain(|visit| !probes.contains(visit));
        Ok(visits.iter().map(|visit| format!("{visit:?}")).collect())
    }
}

fn lock(visits: &Visits) -> MutexGuard<'_, Vec<Visit>> {
    visits.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Loopback addresses, and those of this machine's interfaces that are not public.
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
    // A link-local address needs an interface beside it.
    addresses.extend(six.map(Ipv6Addr::from).filter(|six| !six.is_unicast_link_local()).map(IpAddr::from));
    addresses.retain(|address| !classify(*address).is_public());
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_connection_and_datagram_is_recorded() {
        let canary = Canary::start().await.unwrap();
        assert!(canary.addresses().contains(&Ipv4Addr::LOCALHOST.into()));
        assert!(canary.visits().await.unwrap().is_empty());
        for address in canary.addresses() {
            drop(TcpStream::connect((*address, canary.port())).await.unwrap());
            let socket = UdpSocket::bind((*address, 0)).await.unwrap();
            socket.send_to(b"x", (*address, canary.port())).await.unwrap();
        }
        assert_eq!(canary.visits().await.unwrap().len(), 2 * canary.addresses().len());
    }
}
