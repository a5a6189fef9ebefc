//! Where the log goes and what it holds.
//!
//! Invariant: standard error, one line an event, with the same settings as a farm of its own.

use std::io::{self, IsTerminal as _};

use clap::Args;
use tracing_subscriber::EnvFilter;

/// Settings of the log.
#[derive(Debug, Args)]
pub(crate) struct Log {
    /// What to log, such as warn or platen=debug [default: info for `up`, else warn]
    #[arg(long, env = "PLATEN_LOG", value_name = "FILTER", global = true)]
    log: Option<EnvFilter>,

    /// How to log: text for people, json for a collector
    #[arg(long, env = "PLATEN_LOG_FORMAT", value_name = "FORMAT", default_value = "text", global = true)]
    log_format: Format,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

impl Log {
    /// Starts logging; `level` counts where nothing was said.
    pub(crate) fn start(self, level: &str) {
        let filter = self.log.unwrap_or_else(|| EnvFilter::new(level));
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(io::stderr)
            // Or else a log that nobody reads any more would be a panic where a line is written.
            .log_internal_errors(false)
            .with_ansi(io::stderr().is_terminal());
        match self.log_format {
            Format::Text => log.init(),
            Format::Json => log.json().init(),
        }
    }
}
