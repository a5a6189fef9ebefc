//! The farm's settings: flags and `PLATEN_*` variables of both `platen-farm` and `platen`.
//!
//! Invariant: every default is defined here or in `egress_config.rs` with its reason, and
//! [`Config::default`] equals what an empty command line and an empty environment give.

use std::{
    net::{IpAddr, SocketAddr},
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    str::FromStr,
    thread,
    time::Duration,
};

use platen_program::startup;

use crate::{
    cgroup,
    egress_config::{EgressConfig, defaults},
};

/// Settings of the render pool.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Render farm")]
pub struct Config {
    /// Number of browser processes, each of which renders one job at a time [default: two per core]
    // While one page waits for the network, another one computes. Each job has its own browser process,
    // because two pages in one process can block or crash each other.
    #[arg(long, env = "PLATEN_BROWSERS", value_name = "N")]
    pub browsers: Option<NonZeroUsize>,

    /// Number of jobs that can wait for a browser; further jobs are refused at once
    // At 50 ms a job and with 4 browsers, 64 jobs wait for less than one second: enough for a burst,
    // without long waits.
    #[arg(long, env = "PLATEN_QUEUE", value_name = "N", default_value = "64")]
    pub queue: usize,

    /// Seconds for which a job waits for a browser; then it is refused
    // Most clients give up or retry soon after it, and a render of 20 s still ends by the default deadline.
    #[arg(long, env = "PLATEN_QUEUE_TIMEOUT", value_name = "SECONDS", default_value = "10")]
    pub queue_timeout: NonZeroU32,

    /// Replace a browser after this many jobs
    // A start costs about 300 ms of CPU, which is 0.3 ms per job, and bounds the memory that a browser
    // leaks.
    #[arg(long, env = "PLATEN_RECYCLE_AFTER", value_name = "JOBS", default_value = "1000")]
    pub recycle_after: NonZeroU32,

    /// Memory for idle pages that are kept for accounts that have rendered before, in MiB; 0 keeps none [default: 2048, but
    /// at most a quarter of the memory of the machine or the cgroup]
    // Each uses about 28 MiB, and saves its account most of the cost of a small page. 73 pages are those of 73 accounts, and
    // the rest of the memory is for the pages that jobs have.
    #[arg(long, env = "PLATEN_WARM_MEMORY", value_name = "MIB")]
    pub warm_memory: Option<u32>,

    /// Memory limit of one page, in MiB; a job whose page uses more fails [default: 2048, but at most a
    /// quarter of the memory of the machine or the cgroup, and at least 512]
    // A PDF of 8,000 rows of 11 cells takes 1.6 GiB. A quarter leaves memory to the other pages, and most pages need
    // less than 512 MiB.
    #[arg(long, env = "PLATEN_PAGE_MEMORY", value_name = "MIB")]
    pub page_memory: Option<NonZeroU32>,

    /// Chromium executable [default: chromium-headless-shell, else chromium or google-chrome, at the
    /// paths of their packages]
    // chromium-headless-shell renders the same for less CPU time.
    #[arg(long, env = "PLATEN_CHROMIUM", value_name = "FILE")]
    pub chromium: Option<PathBuf>,

    /// User of the browser processes where the farm runs as root [default: platen-farm if this user exists,
    /// else nobody]
    // Chromium's sandbox does not start as root. A page that breaks out of a browser then has the rights
    // of a user without files.
    #[arg(long, env = "PLATEN_BROWSER_USER", value_name = "USER")]
    pub browser_user: Option<String>,

    /// Run Chromium without its sandbox: a malicious page can then take control of the machine
    #[arg(long, env = "PLATEN_UNSAFE_NO_SANDBOX")]
    pub unsafe_no_sandbox: bool,

    /// Address of a host, used instead of DNS and allowed even if it is not public; can be given more
    /// than once
    // The operator names the host on purpose, so pages can reach it on every port.
    #[arg(long = "resolve", env = "PLATEN_RESOLVE", value_name = "HOST=IP", value_delimiter = ',')]
    pub resolve: Vec<Resolve>,

    /// Seconds in which requests and jobs in progress may finish after SIGTERM, SIGINT or SIGHUP
    // A render's deadline, and 10 s to send its file and to close pages.
    #[arg(long, env = "PLATEN_DRAIN_TIMEOUT", value_name = "SECONDS", default_value = "40")]
    pub drain_timeout: u32,

    /// A browser that has had no job between two checks, this long apart, ends, except the first one, whose warm pages
    /// are closed. No flag: only tests set it.
    // So they end after five to ten minutes. A start costs 0.3 s of CPU and a new page 60 ms, which is little once in
    // five minutes; an idle browser takes 50 to 150 MiB all the time.
    #[arg(skip = Duration::from_mins(5))]
    #[doc(hidden)]
    pub idle_check_interval: Duration,

    /// Settings of the egress guard.
    #[command(flatten)]
    pub egress: EgressConfig,
}

const BROWSERS_PER_CORE: NonZeroUsize = NonZeroUsize::new(2).expect("2 is not zero");
const MIN_DEFAULT_PAGE_MIB: NonZeroU32 = NonZeroU32::new(512).expect("512 is not zero");
const MAX_DEFAULT_MIB: u32 = 2048;

impl Config {
    /// Number of browser processes, which is also the number of jobs that are rendered at once.
    #[must_use]
    pub fn browser_count(&self) -> NonZeroUsize {
        let cores = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.browsers.unwrap_or_else(|| cores().saturating_mul(BROWSERS_PER_CORE))
    }

    /// Memory limit of one page in MiB.
    #[must_use]
    pub fn page_memory_mib(&self) -> NonZeroU32 {
        self.page_memory.unwrap_or_else(|| {
            NonZeroU32::new(default_mib(cgroup::total_mib()))
                .map_or(MIN_DEFAULT_PAGE_MIB, |mebibytes| mebibytes.max(MIN_DEFAULT_PAGE_MIB))
        })
    }

    pub(crate) fn warm_bytes(&self) -> u64 {
        let mebibytes = self.warm_memory.unwrap_or_else(|| default_mib(cgroup::total_mib()));
        u64::from(mebibytes) * 1024 * 1024
    }

    /// How long requests and jobs in progress may take to finish after a signal.
    #[must_use]
    pub fn drain_timeout(&self) -> Duration {
        Duration::from_secs(self.drain_timeout.into())
    }
}

/// The limit for a page, and for warm pages, where the farm may use this much memory, all in MiB.
fn default_mib(total: Option<u64>) -> u32 {
    let quarter = total.and_then(|total| u32::try_from(total / 4).ok());
    quarter.unwrap_or(MAX_DEFAULT_MIB).min(MAX_DEFAULT_MIB)
}

impl Default for Config {
    fn default() -> Self {
        defaults()
    }
}

/// A host name and the address that is used for it instead of DNS: `intranet.example=10.0.0.7`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    /// The name in lower case and without a trailing dot.
    pub(crate) host: String,
    /// It can be a private one.
    pub(crate) address: IpAddr,
}

/// Why a text is not `HOST=IP`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe them")]
pub enum InvalidResolve {
    #[error("expected HOST=IP, such as intranet.example=10.0.0.7")]
    Shape,
    #[error("{0:?} is not a host name")]
    Host(String),
    #[error("{0:?} is not an IP address")]
    Address(String),
}

impl FromStr for Resolve {
    type Err = InvalidResolve;

    fn from_str(text: &str) -> Result<Self, InvalidResolve> {
        let (host, address) = text.split_once('=').ok_or(InvalidResolve::Shape)?;
        let invalid = || InvalidResolve::Host(host.to_owned());
        // Only characters that a URL leaves as they are and that have no meaning in other settings.
        let Ok(url::Host::Domain(parsed)) = url::Host::parse(host) else { return Err(invalid()) };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let name = parsed.trim_end_matches('.');
        if name.is_empty() || !name.bytes().all(is_plain) {
            return Err(invalid());
        }
        let address = address.parse().map_err(|_| InvalidResolve::Address(address.to_owned()))?;
        Ok(Self { host: name.to_owned(), address })
    }
}

/// Renders pages to images and PDFs, for callers that present the token from `PLATEN_FARM_TOKEN` or
/// --token-file
#[derive(Debug, clap::Parser)]
#[command(name = "platen-farm", version)]
pub struct Cli {
    /// Address to listen on
    // Loopback by default: a caller with the token can make the farm load any public page.
    #[arg(long, env = "PLATEN_FARM_LISTEN", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3001")]
    pub listen: SocketAddr,

    /// File that holds the token
    // The token is never an argument, because the command lines of processes are readable by every user.
    #[arg(long, env = "PLATEN_FARM_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Check the settings and this machine, print what is missing, and exit: with status 1 if the farm cannot work
    #[arg(long)]
    pub check: bool,

    /// Settings of the check.
    #[command(flatten)]
    pub check_args: CheckArgs,

    /// Settings of the log.
    #[command(flatten)]
    pub log: startup::LogArgs,

    /// Settings of the farm.
    #[command(flatten)]
    pub farm: Config,
}

/// Settings of a check.
#[derive(Debug, Clone, clap::Args)]
pub struct CheckArgs {
    /// URL that a check loads, to see whether pages reach the Internet; empty to load none
    #[arg(long, value_name = "URL", default_value = "https://example.com/")]
    pub outbound: String,
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
    fn there_are_two_browsers_per_core_by_default() {
        let browsers = |arguments: &[&str]| parse(arguments).unwrap().browser_count().get();
        assert_eq!(browsers(&["--browsers", "3"]), 3);
        assert!(browsers(&[]) >= 2 && browsers(&[]).is_multiple_of(2));
    }

    #[test]
    fn a_page_and_warm_pages_may_use_a_quarter_of_the_memory_within_bounds() {
        for (total, part) in [(256, 64), (4_096, 1_024), (8_188, 2_047), (24_000, 2_048), (1 << 40, 2_048)] {
            assert_eq!(default_mib(Some(total)), part, "{total}");
        }
        assert_eq!(default_mib(None), 2_048);
        let page = |arguments: &[&str]| parse(arguments).unwrap().page_memory_mib().get();
        assert_eq!(page(&["--page-memory", "100"]), 100);
        assert_eq!(page(&["--page-memory", "100000"]), 100_000);
        assert!((512..=2_048).contains(&page(&[])));
        let warm = |arguments: &[&str]| parse(arguments).unwrap().warm_bytes();
        assert_eq!((warm(&["--warm-memory", "0"]), warm(&["--warm-memory", "1"])), (0, 1 << 20));
        assert!(warm(&[]) > 0);
    }

    #[test]
    fn bad_values_and_unknown_settings_are_refused() {
        for arguments in [
            &["--browsers", "0"][..],
            &["--slots", "2"],
            &["--page-memory", "0"],
            &["--recycle-after", "0"],
            &["--warm-memory", "1GB"],
            &["--queues", "3"],
            &["--queue-timeout", "0"],
            &["--resolve", "example.com"],
            &["--egress-allow", "10.0.0.0/33"],
            &["--egress-deny", "a b"],
            &["--egress-ports", "http"],
            &["--egress-connections", "0"],
            &["--egress-megabytes", "much"],
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
        assert_eq!(config.resolve[0].host, "intranet.example");
        assert_eq!(config.resolve[0].address, "10.0.0.7".parse::<IpAddr>().unwrap());
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
