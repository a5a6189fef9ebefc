//! This machine's own addresses.
//!
//! The kernel is asked for the route of each address, as it would find it for a connection: an address is the
//! machine's own if its route has another type than `unicast`, whichever table or rule it is from. So no answer
//! is older than its question, and an answer costs two system calls.
//!
//! Invariant: addresses are compared in their canonical form, so an IPv4-mapped one is the IPv4 address.

use std::{
    net::IpAddr,
    os::fd::{AsRawFd as _, OwnedFd},
};

use nix::{
    errno::Errno,
    libc,
    sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket},
};
use parking_lot::Mutex;

/// Lengths of `struct nlmsghdr`, `struct rtmsg` and `struct rtattr`, and what the `libc` crate does not have or has
/// with another type, of linux/netlink.h and linux/rtnetlink.h.
const HEADER_BYTES: usize = 16;
const ROUTE_BYTES: usize = 12;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const RTA_IP_PROTO: u16 = 27;
const RTA_DPORT: u16 = 29;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;

#[derive(Debug)]
pub(super) struct OwnAddresses(Mutex<RouteSocket>);

impl OwnAddresses {
    /// Fails where the kernel does not answer for routes, so that the farm does not start without them.
    pub(super) fn open() -> nix::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
        let mut socket = RouteSocket { socket, sequence: 0 };
        match socket.route_type(IpAddr::from([127, 0, 0, 1]), 80)? {
            libc::RTN_LOCAL => Ok(Self(Mutex::new(socket))),
            // Some kernels have such sockets and know one type of route only.
            _ => Err(Errno::EPROTONOSUPPORT),
        }
    }

    /// Whether a connection to `address` and `port` would arrive at this machine; true if that is unknown.
    pub(super) fn contains(&self, address: IpAddr, port: u16) -> bool {
        let address = address.to_canonical();
        // A connection to it goes to a loopback address.
        address.is_unspecified()
            || match self.0.lock().route_type(address, port) {
                Ok(kind) => kind != libc::RTN_UNICAST,
                // No route, one that forbids connections, or no IPv6: a connection fails in the same way.
                Err(
                    Errno::ENETUNREACH
                    | Errno::EHOSTUNREACH
                    | Errno::EACCES
                    | Errno::EINVAL
                    | Errno::EOPNOTSUPP
                    | Errno::EAFNOSUPPORT,
                ) => false,
                Err(error) => {
                    tracing::error!(%error, "cannot ask for the route of an address");
                    true
                }
            }
    }
}

#[derive(Debug)]
struct RouteSocket {
    socket: OwnedFd,
    sequence: u32,
}

impl RouteSocket {
    /// The type of the route of a TCP connection, such as `RTN_LOCAL`. Sends no packet.
    fn route_type(&mut self, address: IpAddr, port: u16) -> nix::Result<u8> {
        self.sequence = self.sequence.wrapping_add(1);
        let descriptor = self.socket.as_raw_fd();
        send(descriptor, &question(self.sequence, address, port), MsgFlags::empty())?;
        // The kernel has answered when `send` returns. An answer has about a hundred bytes.
        let mut buffer = [0; 1024];
        loop {
            let length = match recv(descriptor, &mut buffer, MsgFlags::empty()) {
                Err(Errno::EINTR) => continue,
                length => length?,
            };
            let answer = &buffer[..length];
            // Another number is that of a question whose answer could not be received.
            if answer.get(8..12) == Some(&self.sequence.to_ne_bytes()) {
                return route_type(answer);
            }
        }
    }
}

/// `RTM_GETROUTE`, with what the rules of routing can depend on.
fn question(sequence: u32, address: IpAddr, port: u16) -> Vec<u8> {
    let (family, bits, octets) = match address {
        IpAddr::V4(address) => (AF_INET, 32, address.octets().to_vec()),
        IpAddr::V6(address) => (AF_INET6, 128, address.octets().to_vec()),
    };
    let mut route = vec![0; ROUTE_BYTES];
    (route[0], route[1]) = (family, bits);
    for (kind, value) in
        [(libc::RTA_DST, octets.as_slice()), (RTA_IP_PROTO, &[IPPROTO_TCP]), (RTA_DPORT, &port.to_be_bytes())]
    {
        let length = u16::try_from(ATTRIBUTE_HEADER_BYTES + value.len()).expect("an address is short");
        route.extend_from_slice(&length.to_ne_bytes());
        route.extend_from_slice(&kind.to_ne_bytes());
        route.extend_from_slice(value);
        route.resize(route.len().next_multiple_of(4), 0);
    }
    let length = u32::try_from(HEADER_BYTES + route.len()).expect("the attributes are short");
    let mut message = Vec::with_capacity(HEADER_BYTES + route.len());
    message.extend_from_slice(&length.to_ne_bytes());
    message.extend_from_slice(&libc::RTM_GETROUTE.to_ne_bytes());
    message.extend_from_slice(&NLM_F_REQUEST.to_ne_bytes());
    message.extend_from_slice(&sequence.to_ne_bytes());
    message.extend_from_slice(&[0; 4]);
    message.extend_from_slice(&route);
    message
}

/// Reads the answer, which is a route or an error.
fn route_type(answer: &[u8]) -> nix::Result<u8> {
    let kind = answer.get(4..6).and_then(|kind| kind.try_into().ok()).map(u16::from_ne_bytes);
    let content = answer.get(HEADER_BYTES..).unwrap_or_default();
    match kind {
        Some(libc::RTM_NEWROUTE) => content.get(7).copied().ok_or(Errno::EBADMSG),
        Some(NLMSG_ERROR) => {
            let error = content.first_chunk().map(|error| i32::from_ne_bytes(*error));
            Err(error.map_or(Errno::EBADMSG, |error| Errno::from_raw(-error)))
        }
        _ => Err(Errno::EBADMSG),
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
        let own = OwnAddresses::open().unwrap();
        for address in ["127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1"] {
            assert!(own.contains(parse(address), 80), "{address}");
        }
        for address in ["1.1.1.1", "::ffff:1.1.1.1", "2606:4700::1"] {
            assert!(!own.contains(parse(address), 80), "{address}");
        }
    }

    #[test]
    fn addresses_are_own_while_an_interface_has_them() {
        NetworkNamespace::run(|| {
            let own = OwnAddresses::open().unwrap();
            let added = ["198.41.0.4", "198.41.0.5", "::ffff:198.41.0.5", "2606:4700::a", "2606:4700::b"];
            for address in added {
                assert!(!own.contains(parse(address), 80), "{address} before");
            }
            for address in ["198.41.0.4/32", "198.41.0.5/32", "2606:4700::a/64", "2606:4700::b/64"] {
                NetworkNamespace::ip(&format!("address add {address} dev lo"));
            }
            for address in added {
                // The kernel adds the route of an IPv6 address a moment after the address.
                let began = std::time::Instant::now();
                while !own.contains(parse(address), 80) {
                    assert!(began.elapsed().as_secs() < 60, "{address}");
                    std::thread::yield_now();
                }
            }
            NetworkNamespace::ip("address del 198.41.0.5/32 dev lo");
            assert!(!own.contains(parse("198.41.0.5"), 80), "an address that was removed");
        });
    }

    #[test]
    fn the_answer_to_an_earlier_question_is_passed_over() {
        let own = OwnAddresses::open().unwrap();
        let descriptor = own.0.lock().socket.as_raw_fd();
        send(descriptor, &question(0, parse("127.0.0.1"), 80), MsgFlags::empty()).unwrap();
        assert!(!own.contains(parse("1.1.1.1"), 80));
    }

    #[test]
    fn without_an_answer_every_address_is_own() {
        let own = OwnAddresses::open().unwrap();
        own.0.lock().socket = std::fs::File::open("/dev/null").unwrap().into();
        assert!(own.contains(parse("1.1.1.1"), 80));
        for answer in [&b""[..], &[0; 15], &[0; 64]] {
            assert_eq!(route_type(answer), Err(Errno::EBADMSG));
        }
    }
}
