//! This machine's own addresses, and the ports on which the service listens.
//!
//! Addresses come from `getifaddrs`. A netlink socket reports changes: it is read, without blocking, before
//! every answer, and the list is read again only after a change. So no answer is older than its question,
//! and an answer costs one system call. Where the kernel gives no such socket, the list is read every time.
//!
//! Invariant: addresses are compared in their canonical form, so an IPv4-mapped one is the IPv4 address.

use std::{
    collections::HashSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket},
    os::fd::{AsRawFd as _, OwnedFd},
    sync::Arc,
};

use nix::{
    errno::Errno,
    ifaddrs::getifaddrs,
    sys::socket::{
        AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
    },
};
use parking_lot::Mutex;

/// `RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR` of linux/rtnetlink.h.
const ADDRESS_GROUPS: u32 = 0x10 | 0x100;

#[derive(Debug)]
pub(super) struct OwnAddresses {
    /// Readable after addresses have changed; `None` if the kernel gives no such socket.
    changes: Option<OwnedFd>,
    /// The latest list; `None` if it could not be read.
    addresses: Mutex<Option<Arc<HashSet<IpAddr>>>>,
}

impl OwnAddresses {
    /// Fails where the addresses cannot be listed, so that the farm does not start without the list.
    pub(super) fn watch() -> nix::Result<Self> {
        let changes = subscribe().inspect_err(|error| {
            tracing::warn!(%error, "address changes are not reported; addresses are listed for every connection");
        });
        Ok(Self { changes: changes.ok(), addresses: Mutex::new(Some(Arc::new(interface_addresses()?))) })
    }

    /// Whether packets to `address` arrive at this machine; true if that is unknown.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_loopback()
            || address.is_unspecified()
            || self.list().is_none_or(|own| own.contains(&address))
            || is_routed_here(address)
    }

    fn list(&self) -> Option<Arc<HashSet<IpAddr>>> {
        let mut addresses = self.addresses.lock();
        // The order matters: a change after the list was read is then reported next time.
        if self.has_changed() || addresses.is_none() {
            *addresses = interface_addresses()
                .inspect_err(|error| tracing::error!(%error, "cannot list the addresses of this machine"))
                .ok()
                .map(Arc::new);
        }
        addresses.clone()
    }

    /// Empties the queue of notifications; true if there was one, or if that is unknown.
    fn has_changed(&self) -> bool {
        let Some(changes) = &self.changes else { return true };
        let mut notification = [0; 4096];
        let mut any = false;
        loop {
            match recv(changes.as_raw_fd(), &mut notification, MsgFlags::MSG_DONTWAIT) {
                Err(Errno::EAGAIN) => return any,
                Err(Errno::EINTR) => {}
                // ENOBUFS: notifications were lost.
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

fn interface_addresses() -> nix::Result<HashSet<IpAddr>> {
    let addresses = getifaddrs()?.filter_map(|interface| {
        let address = interface.address?;
        let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    });
    Ok(addresses.map(|address| address.to_canonical()).collect())
}

/// Whether the kernel uses `address` as the source of packets to `address`. It does so for networks that
/// are routed to this machine (route type `local`) although no interface has them. Sends no packet.
fn is_routed_here(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
}

/// The ports on which the service listens. A port is listed once for each listener: several can listen on
/// one port, at different addresses.
#[derive(Debug, Default)]
pub(super) struct OwnPorts(Mutex<Vec<u16>>);

impl OwnPorts {
    pub(super) fn add(&self, port: u16) {
        self.0.lock().push(port);
    }

    /// Undoes one [`Self::add`].
    pub(super) fn remove(&self, port: u16) {
        let mut ports = self.0.lock();
        if let Some(index) = ports.iter().position(|own| *own == port) {
            ports.swap_remove(index);
        }
    }

    pub(super) fn contains(&self, port: u16) -> bool {
        self.0.lock().contains(&port)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::process::Command;

    use nix::{sched::CloneFlags, unistd::Uid};

    use super::*;

    /// A network namespace in which a test can change addresses and routes.
    pub(in crate::egress) struct NetworkNamespace;

    impl NetworkNamespace {
        /// Runs `test` on a new thread in a new namespace, which ends with the thread. Skips the test, with
        /// a message, where the rights for that are missing.
        pub(in crate::egress) fn run(test: impl FnOnce() + Send + 'static) {
            if !Uid::effective().is_root() || Command::new("ip").arg("-V").output().is_err() {
                eprintln!("skipped: adding addresses takes root and the program ip");
                return;
            }
            let thread = std::thread::spawn(|| {
                if let Err(error) = nix::sched::unshare(CloneFlags::CLONE_NEWNET) {
                    eprintln!("skipped: cannot create a network namespace: {error}");
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
    fn loopback_is_own_and_public_addresses_are_not() {
        let own = OwnAddresses::watch().unwrap();
        for address in ["127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"] {
            assert!(own.contains(parse(address)), "{address}");
        }
        for address in ["1.1.1.1", "::ffff:1.1.1.1", "2606:4700::1"] {
            assert!(!own.contains(parse(address)), "{address}");
        }
    }

    #[test]
    fn secondary_addresses_are_own_as_soon_as_they_are_added() {
        NetworkNamespace::run(|| {
            let own = OwnAddresses::watch().unwrap();
            let added = ["198.41.0.4", "198.41.0.5", "::ffff:198.41.0.5", "2606:4700::a", "2606:4700::b"];
            for address in added {
                assert!(!own.contains(parse(address)), "{address} before");
            }
            NetworkNamespace::ip("address add 198.41.0.4/31 dev lo");
            NetworkNamespace::ip("address add 2606:4700::a/64 dev lo");
            // The kernel sends from the first address of a network, not from the second.
            NetworkNamespace::ip("address add 198.41.0.5/31 dev lo");
            NetworkNamespace::ip("address add 2606:4700::b/64 dev lo");
            assert!(!is_routed_here(parse("198.41.0.5")), "only the list has this address");
            for address in added {
                assert!(own.contains(parse(address)), "{address}");
            }
            NetworkNamespace::ip("address del 198.41.0.5/31 dev lo");
            assert!(!own.contains(parse("198.41.0.5")), "an address that was removed");
            // A network that is routed to this machine and that no interface has.
            NetworkNamespace::ip("route add local 198.41.1.0/24 dev lo");
            assert!(own.contains(parse("198.41.1.77")));
        });
    }

    #[test]
    fn without_notifications_the_list_is_read_every_time() {
        NetworkNamespace::run(|| {
            let own = OwnAddresses { changes: None, addresses: Mutex::default() };
            NetworkNamespace::ip("address add 198.41.0.4/31 dev lo");
            assert!(own.contains(parse("198.41.0.4")) && !own.contains(parse("2606:4700::a")));
            NetworkNamespace::ip("address add 198.41.0.5/31 dev lo");
            NetworkNamespace::ip("address add 2606:4700::a/64 dev lo");
            assert!(own.contains(parse("198.41.0.5")) && own.contains(parse("2606:4700::a")));
        });
    }

    #[test]
    fn a_port_is_own_until_its_last_listener_is_removed() {
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
