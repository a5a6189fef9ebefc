//! The farm's settings: flags and `PLATEN_*` variables of both `platen-farm` and `platen`.
//!
//! Invariant: every default stands here with its reason, and [`Config::default`] is what an empty
//! command line and an empty environment give. Left to others: where the farm listens and its
//! token, which differ between the two programs.

use std::{
    net::IpAddr,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    str::FromStr,
    thread,
};

use crate::egress::EgressConfig;

/// Settings of the render pool.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Render farm")]
pub struct Config {
    /// Browser processes, each of which renders one job at a time [default: two per core]
    // One page waits for the network while another one computes. A job has a browser process to itself:
    // two pages in one process can hold up or crash each other.
    #[arg(long, env = "PLATEN_BROWSERS", value_name = "N")]
    pub browsers: Option<NonZeroUsize>,

    /// Jobs that may wait for a browser; more are refused at once
    // At 50 ms a job, 64 places in front of 4 slots are a wait below one second: enough to ride
    // out a burst, and never a long wait for nothing.
    #[arg(long, env = "PLATEN_QUEUE", value_name = "N", default_value_t = DEFAULT_QUEUE)]
    pub queue: usize,

    /// Replace a browser after this many jobs
    // A start costs about 300 ms of CPU: 0.3 ms a job, and memory that a browser loses over
    // time stays bounded.
    #[arg(long, env = "PLATEN_RECYCLE_AFTER", value_name = "JOBS", default_value_t = DEFAULT_RECYCLE_AFTER)]
    pub recycle_after: NonZeroU32,

    /// Pages that each browser keeps ready for accounts that have rendered before
    // Each takes about 25 MB of memory and saves its account most of the cost of a small page.
    #[arg(long, env = "PLATEN_WARM_PAGES", value_name = "N", default_value_t = DEFAULT_WARM_PAGES)]
    pub warm_pages: usize,

    /// Replace an account's page after this many jobs
    // A page costs about 60 ms of CPU: 0.25 ms a job, and memory that its process loses over time
    // stays bounded.
    #[arg(long, env = "PLATEN_PAGE_JOBS", value_name = "JOBS", default_value_t = DEFAULT_PAGE_JOBS)]
    pub page_jobs: NonZeroU32,

    /// Memory that one page may use, in MiB; a job whose page uses more is refused
    // Several times what the largest ordinary pages use, and a bound on what one page takes from the
    // others.
    #[arg(long, env = "PLATEN_PAGE_MEMORY", value_name = "MIB", default_value_t = DEFAULT_PAGE_MEMORY)]
    pub page_memory: NonZeroU32,

    /// The Chromium to run [default: chromium-headless-shell, then chromium or google-chrome,
    /// where packages put them]
    // chromium-headless-shell renders the same at a quarter of the cost.
    #[arg(long, env = "PLATEN_CHROMIUM", value_name = "FILE")]
    pub chromium: Option<PathBuf>,

    /// The user browsers run as when the farm runs as root [default: platen if there is such a
    /// user, else nobody]
    // Chromium's sandbox does not start as root, and a page that breaks out of a browser should
    // find a user who owns nothing.
    #[arg(long, env = "PLATEN_BROWSER_USER", value_name = "USER")]
    pub browser_user: Option<String>,

    /// Run Chromium without its sandbox: whoever writes a page may then take over the machine
    #[arg(long, env = "PLATEN_UNSAFE_NO_SANDBOX")]
    pub unsafe_no_sandbox: bool,

    /// This host has this address, even if it is not a public one; may be given more than once
    // The operator has been there himself, so pages may reach it on every port.
    #[arg(long = "resolve", env = "PLATEN_RESOLVE", value_name = "HOST=IP", value_delimiter = ',')]
    pub resolve: Vec<Resolve>,

    /// Where pages may go.
    #[command(flatten)]
    pub egress: EgressConfig,
}

const DEFAULT_QUEUE: usize = 64;
const DEFAULT_RECYCLE_AFTER: NonZeroU32 = NonZeroU32::new(1_000).expect("1000 is not zero");
const DEFAULT_WARM_PAGES: usize = 4;
const DEFAULT_PAGE_MEMORY: NonZeroU32 = NonZeroU32::new(1_024).expect("1024 is not zero");
const DEFAULT_PAGE_JOBS: NonZeroU32 = NonZeroU32::new(250).expect("250 is not zero");

impl Config {
    /// Browser processes to run, which is also how many jobs render at once.
    #[must_use]
    pub fn browser_count(&self) -> NonZeroUsize {
        let per_core = || thread::available_parallelism().map(|cores| cores.saturating_mul(TWO));
        self.browsers.or_else(|| per_core().ok()).unwrap_or(TWO)
    }

    /// Bytes that one page may use.
    #[must_use]
    pub fn page_memory_bytes(&self) -> u64 {
        u64::from(self.page_memory.get()) * 1024 * 1024
    }
}

const TWO: NonZeroUsize = NonZeroUsize::new(2).expect("2 is not zero");

impl Default for Config {
    fn default() -> Self {
        Self {
            browsers: None,
            queue: DEFAULT_QUEUE,
            recycle_after: DEFAULT_RECYCLE_AFTER,
            warm_pages: DEFAULT_WARM_PAGES,
            page_jobs: DEFAULT_PAGE_JOBS,
            page_memory: DEFAULT_PAGE_MEMORY,
            chromium: None,
            browser_user: None,
            unsafe_no_sandbox: false,
            resolve: Vec::new(),
            egress: EgressConfig::default(),
        }
    }
}

/// A host name and the address it has, whatever the resolver says: `intranet.example=10.0.0.7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    host: String,
    address: IpAddr,
}

impl Resolve {
    /// The host name in the form URLs have it: lower case, without a trailing dot.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> IpAddr {
        self.address
    }
}

/// Why a text is not `HOST=IP`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidResolve {
    /// No `=`.
    #[error("expected HOST=IP, such as intranet.example=10.0.0.7")]
    Shape,
    /// Not a host name that a URL could have.
    #[error("{0:?} is not a host name")]
    Host(String),
    /// Not an address.
    #[error("{text:?} is not an IP address")]
    Address {
        /// What stood there.
        text: String,
        /// Why not.
        source: std::net::AddrParseError,
    },
}

impl FromStr for Resolve {
    type Err = InvalidResolve;

    fn from_str(text: &str) -> Result<Self, InvalidResolve> {
        let (host, address) = text.split_once('=').ok_or(InvalidResolve::Shape)?;
        let invalid = || InvalidResolve::Host(host.to_owned());
        // Nothing that a URL would spell differently, or that means something in other settings.
        let Ok(url::Host::Domain(parsed)) = url::Host::parse(host) else { return Err(invalid()) };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let name = parsed.trim_end_matches('.');
        if name.is_empty() || !name.bytes().all(plain) {
            return Err(invalid());
        }
        let address =
            address.parse().map_err(|source| InvalidResolve::Address { text: address.to_owned(), source })?;
        Ok(Self { host: name.to_owned(), address })
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    fn parse(arguments: &[&str]) -> Result<Config, clap::Error> {
        let command = Config::augment_args(clap::Command::new("platen-farm")).no_binary_name(true);
        Config::from_arg_matches(&command.try_get_matches_from(arguments)?)
    }

    #[test]
    fn an_empty_command_line_is_the_default() {
        assert_eq!(format!("{:?}", parse(&[]).unwrap()), format!("{:?}", Config::default()));
    }

    #[test]
    fn there_are_two_browsers_per_core_by_default() {
        let browsers = |arguments: &[&str]| parse(arguments).unwrap().browser_count().get();
        assert_eq!(browsers(&["--browsers", "3"]), 3);
        assert!(browsers(&[]) >= 2 && browsers(&[]).is_multiple_of(2));
    }

    #[test]
    fn bad_values_and_unknown_settings_are_refused() {
        for arguments in [
            &["--browsers", "0"][..],
            &["--slots", "2"],
            &["--page-memory", "0"],
            &["--recycle-after", "0"],
            &["--queues", "3"],
            &["--resolve", "example.com"],
            &["--egress-allow", "10.0.0.0/33"],
            &["--egress-deny", "a b"],
            &["--egress-ports", "http"],
            &["--egress-connections", "0"],
            &["--egress-megabytes", "much"],
            &["--egress-seconds", "soon"],
            &["--dns", "dns.example"],
        ] {
            let error = parse(arguments).unwrap_err().to_string();
            assert!(error.contains(arguments[0]), "{error}");
        }
    }

    #[test]
    fn resolve_takes_a_host_and_an_address() {
        let config = parse(&["--resolve", "Intranet.Example.=10.0.0.7,v6.example=fd00::7"]).unwrap();
        assert_eq!(config.resolve.len(), 2);
        assert_eq!(config.resolve[0].host(), "intranet.example");
        assert_eq!(config.resolve[0].address(), "10.0.0.7".parse::<IpAddr>().unwrap());
        for bad in [
            "a=b",
            "=1.1.1.1",
            "*.x=1.1.1.1",
            "a b=1.1.1.1",
            "10.0.0.1=1.1.1.1",
            "[::1]=1.1.1.1",
            ".=1.1.1.1",
        ] {
            bad.parse::<Resolve>().unwrap_err();
        }
    }
}
