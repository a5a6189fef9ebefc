//! The operator's settings of the egress guard: flags and `PLATEN_EGRESS_*` variables.
//!
//! Invariant: every default stands here with its reason; what cannot be meant is refused by the
//! name of its setting. Left to others: what the settings mean for a connection (rules, traffic).

use std::{
    fmt,
    net::{AddrParseError, IpAddr, SocketAddr},
    num::{NonZeroU32, ParseIntError},
    ops::RangeInclusive,
    str::FromStr,
};

use ipnet::IpNet;
use secrecy::SecretString;

/// Where pages may go, and how much they may do there.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Egress guard")]
pub struct EgressConfig {
    /// Pages may also reach this host or network, though it is not public: intranet.example,
    /// *.intranet.example, 10.1.0.0/16; may be given more than once
    #[arg(
        long = "egress-allow",
        env = "PLATEN_EGRESS_ALLOW",
        value_name = "HOST|CIDR",
        value_delimiter = ','
    )]
    pub allow: Vec<HostPattern>,

    /// Pages never reach this host or network, whatever else is said
    #[arg(long = "egress-deny", env = "PLATEN_EGRESS_DENY", value_name = "HOST|CIDR", value_delimiter = ',')]
    pub deny: Vec<HostPattern>,

    /// Ports that pages may reach, such as 80,443,8000-8999. A host of --resolve may be reached on
    /// all of them
    // Where pages are served. Mail, databases and the like have no business with a page, and
    // answer one all the same.
    #[arg(long = "egress-ports", env = "PLATEN_EGRESS_PORTS", value_name = "PORTS", default_value = DEFAULT_PORTS)]
    pub ports: Ports,

    /// Connections that one job may ask for
    // A large page asks for a hundred; a page that scans asks for as many as it gets.
    #[arg(long = "egress-connections", env = "PLATEN_EGRESS_CONNECTIONS", value_name = "N", default_value_t = DEFAULT_CONNECTIONS)]
    pub connections: NonZeroU32,

    /// Megabytes that one job may send and receive
    // Ten times what the heaviest pages weigh.
    #[arg(long = "egress-megabytes", env = "PLATEN_EGRESS_MEGABYTES", value_name = "MB", default_value_t = DEFAULT_MEGABYTES)]
    pub megabytes: NonZeroU32,

    /// Seconds after which a job's connections are cut and no more are made
    // A job has 30 seconds; this is for a caller of the library who gives it longer.
    #[arg(long = "egress-seconds", env = "PLATEN_EGRESS_SECONDS", value_name = "S", default_value_t = DEFAULT_SECONDS)]
    pub seconds: NonZeroU32,

    /// An HTTP proxy through which everything leaves, such as <http://proxy.example:3128>. With
    /// user and password in it, use the variable: everybody on the machine can read a command line
    // Kept as it is and never shown, because of the password.
    #[arg(long = "egress-proxy", env = "PLATEN_EGRESS_PROXY", value_name = "URL", hide_env_values = true)]
    pub proxy: Option<SecretString>,

    /// Ask this name server instead of the system's: an address, with a port if it is not 53; may
    /// be given more than once
    #[arg(long = "dns", env = "PLATEN_DNS", value_name = "ADDRESS", value_delimiter = ',')]
    pub dns: Vec<NameServer>,
}

const DEFAULT_PORTS: &str = "80,443,8000,8080,8443";
const DEFAULT_CONNECTIONS: NonZeroU32 = NonZeroU32::new(512).expect("512 is not zero");
const DEFAULT_MEGABYTES: NonZeroU32 = NonZeroU32::new(256).expect("256 is not zero");
const DEFAULT_SECONDS: NonZeroU32 = NonZeroU32::new(60).expect("60 is not zero");

impl Default for EgressConfig {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            deny: Vec::new(),
            ports: DEFAULT_PORTS.parse().expect("the default is a list of ports"),
            connections: DEFAULT_CONNECTIONS,
            megabytes: DEFAULT_MEGABYTES,
            seconds: DEFAULT_SECONDS,
            proxy: None,
            dns: Vec::new(),
        }
    }
}

/// A host, a host's whole domain, or a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// This name and no other.
    Host(String),
    /// Every name that ends in this one, after a dot.
    Below(String),
    /// These addresses.
    Net(IpNet),
}

/// A text that is neither a host name nor a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a host such as intranet.example or *.intranet.example, or a network such as 10.1.0.0/16")]
pub struct InvalidHostPattern;

impl HostPattern {
    /// Whether it is this host, in the form URLs have it and without a trailing dot.
    pub(super) fn is_host(&self, name: &str) -> bool {
        match self {
            Self::Host(host) => host == name,
            Self::Below(parent) => name.strip_suffix(parent).is_some_and(|head| head.ends_with('.')),
            Self::Net(_) => false,
        }
    }

    /// Whether it has this address.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        matches!(self, Self::Net(net) if net.contains(&address))
    }
}

impl FromStr for HostPattern {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, InvalidHostPattern> {
        if let Ok(net) = text.parse::<IpNet>() {
            return Ok(Self::Net(net));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Net(address.into()));
        }
        let (name, below) = text.strip_prefix("*.").map_or((text, false), |name| (name, true));
        let Ok(url::Host::Domain(name)) = url::Host::parse(name) else { return Err(InvalidHostPattern) };
        let name = name.trim_end_matches('.').to_owned();
        if name.is_empty() || name.contains('*') {
            return Err(InvalidHostPattern);
        }
        Ok(if below { Self::Below(name) } else { Self::Host(name) })
    }
}

/// Ports, by ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports(Vec<RangeInclusive<u16>>);

/// A text that is no list of ports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPorts {
    /// Not a number up to 65535.
    #[error("{text:?} is not a port")]
    Number {
        /// What stood there.
        text: String,
        /// Why not.
        source: ParseIntError,
    },
    /// Nobody listens there, or the first is after the last.
    #[error("{0} holds no port")]
    Empty(String),
}

impl Ports {
    /// Whether this one is among them.
    #[must_use]
    pub fn contains(&self, port: u16) -> bool {
        self.0.iter().any(|range| range.contains(&port))
    }
}

impl FromStr for Ports {
    type Err = InvalidPorts;

    fn from_str(text: &str) -> Result<Self, InvalidPorts> {
        let port = |text: &str| {
            let text = text.trim();
            text.parse::<u16>().map_err(|source| InvalidPorts::Number { text: text.to_owned(), source })
        };
        let range = |item: &str| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let range = port(first)?..=port(last)?;
            if range.is_empty() || range.contains(&0) {
                return Err(InvalidPorts::Empty(format!("{item:?}")));
            }
            Ok(range)
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(Self)
    }
}

/// A name server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameServer(SocketAddr);

impl NameServer {
    /// Where it listens, for UDP and TCP.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0
    }
}

impl FromStr for NameServer {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        match text.parse::<IpAddr>() {
            Ok(address) => Ok(Self((address, 53).into())),
            Err(_) => text.parse().map(Self),
        }
    }
}

impl fmt::Display for NameServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_host_a_domain_or_a_network() {
        let place = |text: &str| text.parse::<HostPattern>();
        assert!(place("Intranet.Example.").unwrap().is_host("intranet.example"));
        assert!(!place("intranet.example").unwrap().is_host("a.intranet.example"));
        let below = place("*.intranet.example").unwrap();
        assert!(below.is_host("a.b.intranet.example"));
        assert!(!below.is_host("intranet.example") && !below.is_host("notintranet.example"));
        let net = place("10.1.0.0/16").unwrap();
        assert!(net.has("10.1.255.255".parse().unwrap()) && !net.has("10.2.0.0".parse().unwrap()));
        assert!(!net.has("::ffff:10.1.0.1".parse().unwrap()));
        assert!(place("fd00::7").unwrap().has("fd00::7".parse().unwrap()));
        for bad in ["", "*", "*.", "a b", "10.0.0.0/33", "[::1]", "0x7f.1", "*.10.0.0.1"] {
            place(bad).unwrap_err();
        }
    }

    #[test]
    fn ports_are_numbers_and_ranges() {
        let ports: Ports = "80, 443,8000-8002".parse().unwrap();
        for (port, contained) in
            [(80, true), (81, false), (443, true), (7999, false), (8002, true), (8003, false)]
        {
            assert_eq!(ports.contains(port), contained, "{port}");
        }
        for bad in ["", "0", "65536", "http", "90-80", "80,", "0-5", "-"] {
            bad.parse::<Ports>().unwrap_err();
        }
    }

    #[test]
    fn a_name_server_is_an_address() {
        let server = |text: &str| text.parse::<NameServer>().map(|server| server.to_string());
        assert_eq!(server("10.0.0.53").unwrap(), "10.0.0.53:53");
        assert_eq!(server("fd00::53").unwrap(), "[fd00::53]:53");
        assert_eq!(server("127.0.0.1:5353").unwrap(), "127.0.0.1:5353");
        server("dns.example").unwrap_err();
    }
}
