//! What is this machine's own: the addresses of all its interfaces, and the ports of the service.
//!
//! Addresses come from the kernel's list of interfaces (`getifaddrs`). A netlink socket that is
//! subscribed to changes of addresses is read, without waiting, before every answer: the kernel queues a
//! notice when it adds or removes an address, and only then is the list read again. So an answer is
//! never older than the question, and costs one system call. Where the kernel gives no such socket, the
//! list is read for every question.
//!
//! Invariant: an address is compared in its canonical form, so that an IPv4-mapped one is the IPv4
//! address; a port is own for as long as one of its holders has it. Not here: which connections are
//! judged by it (traffic).

use std::{
    collections::{HashMap, HashSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    os::fd::{AsRawFd as _, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use nix::{
    errno::Errno,
    ifaddrs::getifaddrs,
    sys::socket::{
        AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
    },
};

/// `RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR` of linux/rtnetlink.h.
const ADDRESS_GROUPS: u32 = 0x10 | 0x100;

/// The addresses of this machine.
#[derive(Debug)]
pub(super) struct OwnAddresses {
    /// Readable when addresses have changed; none where the kernel has none to give.
    changes: Option<OwnedFd>,
    /// The latest list; none if it could not be read.
    listed: Mutex<Option<Arc<HashSet<IpAddr>>>>,
}

impl OwnAddresses {
    /// Lists them, so that a machine where that cannot be done is known at the start.
    pub(super) fn watch() -> nix::Result<Self> {
        let changes = subscribe().inspect_err(|error| {
            tracing::warn!(%error, "changes of addresses are not reported; they are listed for every connection");
        });
        Ok(Self { changes: changes.ok(), listed: Mutex::new(Some(Arc::new(interfaces()?))) })
    }

    /// Whether what is sent there arrives at this machine. If that is not known, it does.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_loopback()
            || address.is_unspecified()
            || self.list().is_none_or(|own| own.contains(&address))
            || is_routed_here(address)
    }

    fn list(&self) -> Option<Arc<HashSet<IpAddr>>> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        // In this order: what changes after the list was read is reported the next time.
        if self.has_changed() || listed.is_none() {
            match interfaces() {
                Ok(addresses) => *listed = Some(Arc::new(addresses)),
                Err(error) => {
                    tracing::error!(%error, "the addresses of this machine cannot be listed");
                    *listed = None;
                }
            }
        }
        listed.clone()
    }

    /// Empties the queue of notices; true if there was any, or if that is not known.
    fn has_changed(&self) -> bool {
        let Some(changes) = &self.changes else { return true };
        let mut notice = [0; 4096];
        let mut any = false;
        loop {
            match recv(changes.as_raw_fd(), &mut notice, MsgFlags::MSG_DONTWAIT) {
                Err(Errno::EAGAIN) => return any,
                Err(Errno::EINTR) => {}
                // A notice, or word of notices that were lost (ENOBUFS).
                Ok(_) | Err(Errno::ENOBUFS) => any = true,
                Err(_) => return true,
            }
        }
    }
}

fn subscribe() -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let changes = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
    bind(changes.as_raw_fd(), &NetlinkAddr::new(0, ADDRESS_GROUPS))?;
    Ok(changes)
}

fn interfaces() -> nix::Result<HashSet<IpAddr>> {
    let addresses = getifaddrs()?.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    });
    Ok(addresses.map(|address| address.to_canonical()).collect())
}

/// Whether the kernel answers from this address what is sent to it, as it does for whole networks that
/// are routed to the machine without being an interface's. Sends nothing.
fn is_routed_here(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address)
}

/// The ports of this machine on which the service listens. One number may be listened on at several
/// addresses, so each has a number of holders.
#[derive(Debug, Default)]
pub(super) struct OwnPorts(Mutex<HashMap<u16, usize>>);

impl OwnPorts {
    /// The port is the service's for good, or until it is removed as often as it was added.
    pub(super) fn add(&self, port: u16) {
        *self.lock().entry(port).or_default() += 1;
    }

    pub(super) fn remove(&self, port: u16) {
        let mut ports = self.lock();
        if let Some(holders) = ports.get_mut(&port) {
            *holders -= 1;
            if *holders == 0 {
                ports.remove(&port);
            }
        }
    }

    pub(super) fn contains(&self, port: u16) -> bool {
        self.lock().contains_key(&port)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u16, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::process::Command;

    use nix::{sched::CloneFlags, unistd::Uid};

    use super::*;

    /// A network namespace in which a test may do with addresses as it likes. It belongs to the thread of
    /// the test and is gone with it.
    pub(in crate::egress) struct Network;

    impl Network {
        /// Runs `test` in a network of its own; says so where that takes more rights than there are.
        pub(in crate::egress) fn run(test: impl FnOnce() + Send + 'static) {
            if !Uid::effective().is_root() || Command::new("ip").arg("-V").output().is_err() {
                eprintln!("skipped: an address can be added by root only, and by the program ip");
                return;
            }
            let thread = std::thread::spawn(|| {
                if let Err(error) = nix::sched::unshare(CloneFlags::CLONE_NEWNET) {
                    eprintln!("skipped: no network namespace is to be had: {error}");
                    return;
                }
                Self::ip("link set lo up");
                test();
            });
            thread.join().unwrap();
        }

        pub(in crate::egress) fn ip(arguments: &str) {
            let done = Command::new("ip").args(arguments.split(' ')).output().unwrap();
            assert!(done.status.success(), "ip {arguments}: {done:?}");
        }
    }

    fn parse(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn loopback_is_own_and_strangers_are_not() {
        let own = OwnAddresses::watch().unwrap();
        for address in ["127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"] {
            assert!(own.contains(parse(address)), "{address}");
        }
        for address in ["1.1.1.1", "::ffff:1.1.1.1", "2606:4700::1"] {
            assert!(!own.contains(parse(address)), "{address}");
        }
    }

    #[test]
    fn secondary_addresses_are_own_from_the_moment_they_are_added() {
        Network::run(|| {
            let own = OwnAddresses::watch().unwrap();
            let added = ["198.41.0.4", "198.41.0.5", "::ffff:198.41.0.5", "2606:4700::a", "2606:4700::b"];
            for address in added {
                assert!(!own.contains(parse(address)), "{address} before");
            }
            Network::ip("address add 198.41.0.4/31 dev lo");
            Network::ip("address add 2606:4700::a/64 dev lo");
            // The kernel does not send from the second address of a network: it picks the first.
            Network::ip("address add 198.41.0.5/31 dev lo");
            Network::ip("address add 2606:4700::b/64 dev lo");
            assert!(!is_routed_here(parse("198.41.0.5")), "the kernel's choice tells nothing here");
            for address in added {
                assert!(own.contains(parse(address)), "{address}");
            }
            Network::ip("address del 198.41.0.5/31 dev lo");
            assert!(!own.contains(parse("198.41.0.5")), "an address that was removed");
            // A network that ends here without being an interface's.
            Network::ip("route add local 198.41.1.0/24 dev lo");
            assert!(own.contains(parse("198.41.1.77")));
        });
    }

    #[test]
    fn without_notices_the_list_is_read_each_time() {
        Network::run(|| {
            let own = OwnAddresses { changes: None, listed: Mutex::default() };
            Network::ip("address add 198.41.0.4/31 dev lo");
            assert!(own.contains(parse("198.41.0.4")) && !own.contains(parse("2606:4700::a")));
            Network::ip("address add 198.41.0.5/31 dev lo");
            Network::ip("address add 2606:4700::a/64 dev lo");
            assert!(own.contains(parse("198.41.0.5")) && own.contains(parse("2606:4700::a")));
        });
    }

    #[test]
    fn a_port_is_own_until_its_last_holder_lets_go() {
        let ports = OwnPorts::default();
        ports.add(4000);
        ports.add(4000);
        ports.remove(4000);
        assert!(ports.contains(4000));
        ports.remove(4000);
        assert!(!ports.contains(4000));
        ports.remove(4000);
        assert!(!ports.contains(4000));
    }
}
