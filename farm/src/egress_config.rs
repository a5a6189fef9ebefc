//! Settings of the egress guard: flags and environment variables.
//!
//! Invariant: every default is defined here with its reason.

use std::{
    fmt,
    net::{AddrParseError, IpAddr, SocketAddr},
    num::NonZeroU32,
    ops::RangeInclusive,
    path::PathBuf,
    str::FromStr,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use clap::builder::Resettable;
use hyper::header::HeaderValue;
use ipnet::IpNet;
use percent_encoding::percent_decode_str;
use platen_shared::host_names::HostNames;
use secrecy::{ExposeSecret as _, SecretString};
use url::Url;

/// Which hosts pages may reach, and the limits of one job.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Egress guard")]
pub struct EgressConfig {
    /// Host or network that pages may reach although it is not public: intranet.example,
    /// *.intranet.example, 10.1.0.0/16; can be given more than once
    #[arg(long = "egress-allow", env = "PLATEN_EGRESS_ALLOW")]
    #[arg(value_name = "HOST|CIDR", value_delimiter = ',')]
    pub allow: Vec<HostPattern>,

    /// Host or network that pages may not reach; overrides every setting that allows it; can be given
    /// more than once
    #[arg(long = "egress-deny", env = "PLATEN_EGRESS_DENY", value_name = "HOST|CIDR", value_delimiter = ',')]
    pub deny: Vec<HostPattern>,

    /// Ports that pages may reach, such as 80,443,8000-8999. Hosts of --resolve can be reached on all
    /// ports
    // The usual ports of web servers. Pages have no reason to reach mail servers or databases.
    #[arg(long = "egress-ports", env = "PLATEN_EGRESS_PORTS")]
    #[arg(value_name = "PORTS", default_value = "80,443,8000,8080,8443")]
    pub ports: Ports,

    /// Maximum number of connections that one job may request, including denied ones
    // A large page requests about a hundred. The limit stops a page that scans a network.
    #[arg(long = "egress-connections", env = "PLATEN_EGRESS_CONNECTIONS")]
    #[arg(value_name = "N", default_value = "512")]
    pub connections: NonZeroU32,

    /// Maximum number of megabytes (of 1,000,000 bytes) that one job may send and receive
    // Ten times the size of the largest ordinary pages.
    #[arg(long = "egress-megabytes", env = "PLATEN_EGRESS_MEGABYTES")]
    #[arg(value_name = "MB", default_value = "256")]
    pub megabytes: NonZeroU32,

    /// HTTP proxy for all connections of pages, such as <http://proxy.example:3128>. If the URL contains
    /// a password, set it by the environment variable: all users of a machine can read command lines
    // Parsed when the farm starts: clap would show an invalid value, with its password, in the error.
    #[arg(long = "egress-proxy", env = "PLATEN_EGRESS_PROXY", value_name = "URL", hide_env_values = true)]
    pub proxy: Option<SecretString>,

    /// File that holds the URL of --egress-proxy
    #[arg(long = "egress-proxy-file", env = "PLATEN_EGRESS_PROXY_FILE", value_name = "FILE")]
    pub proxy_file: Option<PathBuf>,

    /// Name server to use instead of those of the system: an IP address, with a port if it is not 53;
    /// can be given more than once
    #[arg(long = "dns", env = "PLATEN_DNS", value_name = "ADDRESS", value_delimiter = ',')]
    pub dns: Vec<NameServer>,
}

impl Default for EgressConfig {
    fn default() -> Self {
        defaults()
    }
}

/// The settings that an empty command line and an empty environment give.
pub(super) fn defaults<Settings: clap::Args>() -> Settings {
    let command = Settings::augment_args(clap::Command::new("")).no_binary_name(true);
    let command = command.mut_args(|argument| argument.env(Resettable::Reset));
    let matches = command.try_get_matches_from([""; 0]);
    matches.and_then(|matches| Settings::from_arg_matches(&matches)).expect("every default is valid")
}

/// A pattern for hosts: names, or a network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// A name, or all names below one.
    Names(HostNames),
    /// All addresses of this network.
    Network(IpNet),
}

/// The text is neither a host name nor a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a host such as intranet.example or *.intranet.example, or a network such as 10.1.0.0/16")]
pub struct InvalidHostPattern;

impl HostPattern {
    /// `name` is in lower case and without a trailing dot.
    pub(crate) fn matches_name(&self, name: &str) -> bool {
        matches!(self, Self::Names(names) if names.contain(name))
    }

    pub(crate) fn matches_address(&self, address: IpAddr) -> bool {
        matches!(self, Self::Network(network) if network.contains(&address))
    }
}

impl FromStr for HostPattern {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, InvalidHostPattern> {
        if let Ok(network) = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)) {
            return Ok(Self::Network(canonical(network)));
        }
        text.parse().map(Self::Names).map_err(|_| InvalidHostPattern)
    }
}

/// The network, or the one of IPv4 addresses for one of IPv4-mapped addresses.
fn canonical(network: IpNet) -> IpNet {
    match (network.addr().to_canonical(), network.prefix_len().checked_sub(96)) {
        (address @ IpAddr::V4(_), Some(prefix)) => IpNet::new(address, prefix).unwrap_or(network),
        _ => network,
    }
}

/// A set of ports, as inclusive ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ports(Vec<RangeInclusive<u16>>);

/// Why a text is not a list of ports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPorts {
    /// Not a number up to 65535.
    #[error("{0:?} is not a port")]
    Number(String),
    /// Port 0, or a range whose start is greater than its end.
    #[error("{0:?} is not a valid port or range of ports")]
    Empty(String),
}

impl Ports {
    /// Whether the set contains `port`.
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
            text.parse::<u16>().map_err(|_| InvalidPorts::Number(text.to_owned()))
        };
        let range = |item: &str| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let range = port(first)?..=port(last)?;
            if range.is_empty() || range.contains(&0) {
                return Err(InvalidPorts::Empty(item.to_owned()));
            }
            Ok(range)
        };
        text.split(',').map(range).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, range) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let (first, last) = (range.start(), range.end());
            write!(f, "{comma}{first}")?;
            if first != last {
                write!(f, "-{last}")?;
            }
        }
        Ok(())
    }
}

/// The address of a name server, for UDP and TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameServer(pub(crate) SocketAddr);

impl FromStr for NameServer {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        match text.parse::<IpAddr>() {
            Ok(address) => Ok(Self((address, 53).into())),
            Err(_) => text.parse().map(Self),
        }
    }
}

/// The HTTP proxy of `--egress-proxy`.
#[derive(Debug)]
pub(crate) struct UpstreamProxy {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Marked as sensitive, so `Debug` does not show it.
    pub(crate) authorization: Option<HeaderValue>,
}

/// Why the setting is not a proxy. Does not show the setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe them")]
pub enum InvalidUpstream {
    #[error("it is not a URL such as http://proxy.example:3128")]
    NotUrl,
    #[error("only HTTP proxies are supported: the URL must begin with http://")]
    Scheme,
    #[error("it must have a host, and no path")]
    Path,
}

impl UpstreamProxy {
    pub(crate) fn parse(setting: &SecretString) -> Result<Self, InvalidUpstream> {
        let url = Url::parse(setting.expose_secret()).map_err(|_| InvalidUpstream::NotUrl)?;
        if url.scheme() != "http" {
            return Err(InvalidUpstream::Scheme);
        }
        let has_no_path = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let host = url.host_str().filter(|_| has_no_path).ok_or(InvalidUpstream::Path)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port: url.port().unwrap_or(80), authorization: basic_credentials(&url) })
    }
}

fn basic_credentials(url: &Url) -> Option<HeaderValue> {
    let password = url.password();
    if url.username().is_empty() && password.is_none() {
        return None;
    }
    let mut credentials: Vec<u8> = percent_decode_str(url.username()).collect();
    credentials.push(b':');
    credentials.extend(percent_decode_str(password.unwrap_or_default()));
    let value = format!("Basic {}", BASE64_STANDARD.encode(credentials));
    let mut value = HeaderValue::try_from(value).expect("base64 is valid in a header");
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_pattern_is_of_names_or_a_network() {
        let pattern = |text: &str| text.parse::<HostPattern>();
        assert!(pattern("*.Intranet.Example.").unwrap().matches_name("a.intranet.example"));
        let network = pattern("10.1.0.0/16").unwrap();
        assert!(
            network.matches_address("10.1.255.255".parse().unwrap())
                && !network.matches_address("10.2.0.0".parse().unwrap())
        );
        assert!(!network.matches_address("::ffff:10.1.0.1".parse().unwrap()));
        assert!(pattern("fd00::7").unwrap().matches_address("fd00::7".parse().unwrap()));
        for (mapped, expected) in [
            ("::ffff:10.1.0.0/112", "10.1.0.0/16"),
            ("::ffff:10.1.0.7", "10.1.0.7"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
        ] {
            assert_eq!(pattern(mapped), pattern(expected), "{mapped}");
        }
        assert_ne!(pattern("::/0"), pattern("0.0.0.0/0"));
        for bad in ["", "*", "*.", "a b", "10.0.0.0/33", "[::1]", "0x7f.1", "*.10.0.0.1"] {
            pattern(bad).unwrap_err();
        }
    }

    #[test]
    fn ports_are_given_as_numbers_and_ranges() {
        let ports: Ports = "80, 443,8000-8002".parse().unwrap();
        for (port, contained) in
            [(80, true), (81, false), (443, true), (7999, false), (8002, true), (8003, false)]
        {
            assert_eq!(ports.contains(port), contained, "{port}");
        }
        assert_eq!(ports.to_string(), "80,443,8000-8002");
        for bad in ["", "0", "65536", "http", "90-80", "80,", "0-5", "-"] {
            bad.parse::<Ports>().unwrap_err();
        }
    }

    #[test]
    fn a_name_server_is_given_as_an_ip_address() {
        let server = |text: &str| text.parse::<NameServer>().map(|server| server.0.to_string());
        assert_eq!(server("10.0.0.53").unwrap(), "10.0.0.53:53");
        assert_eq!(server("fd00::53").unwrap(), "[fd00::53]:53");
        assert_eq!(server("127.0.0.1:5353").unwrap(), "127.0.0.1:5353");
        server("dns.example").unwrap_err();
    }

    #[test]
    fn the_setting_is_the_url_of_a_proxy_and_is_not_shown() {
        let parse = |text: &str| UpstreamProxy::parse(&text.into());
        let upstream = parse("http://us%40er:p%3Aw@proxy.example:3128").unwrap();
        assert_eq!((upstream.host.as_str(), upstream.port), ("proxy.example", 3128));
        let header = upstream.authorization.as_ref().unwrap();
        assert_eq!(header, &format!("Basic {}", BASE64_STANDARD.encode("us@er:p:w")));
        assert!(!format!("{upstream:?}").contains("Basic"));
        assert!(parse("http://[::1]:8080/").unwrap().authorization.is_none());
        for (bad, reason) in [
            ("proxy.example:3128", InvalidUpstream::Scheme),
            ("", InvalidUpstream::NotUrl),
            ("https://proxy.example", InvalidUpstream::Scheme),
            ("socks5://proxy.example", InvalidUpstream::Scheme),
            ("http://proxy.example/path", InvalidUpstream::Path),
        ] {
            assert_eq!(parse(bad).unwrap_err(), reason, "{bad}");
        }
    }
}
