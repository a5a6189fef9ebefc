//! How the programs `platen` and `platen-farm` read their arguments, log, report errors and stop.
//!
//! Invariant: with `--log-format json` every line that they write themselves is one JSON object with
//! `timestamp`, `level` and `message`, also before the log is started and when a thread panics.

use std::{
    env, fs,
    io::{self, IsTerminal as _, Write as _},
    net::SocketAddr,
    panic,
    process::{self, ExitCode},
    sync::OnceLock,
    time::Duration,
};

use clap::{ArgMatches, Args, Command, Parser, ValueEnum, builder::StyledStr, error::ErrorKind};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpSocket},
    signal::unix::{SignalKind, signal},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tracing::Level;
use tracing_subscriber::{
    EnvFilter, Layer as _,
    fmt::{
        self,
        format::Writer,
        time::{FormatTime as _, SystemTime},
    },
    layer::SubscriberExt as _,
    registry,
    util::SubscriberInitExt as _,
};

use crate::{
    proc_field,
    telemetry::{self, TelemetryError},
    variables,
};

/// Options of the log, which is written to standard error.
#[derive(Debug, Args)]
#[command(next_help_heading = "Log")]
pub struct LogArgs {
    /// Which log lines to write, such as warn or platen=debug [default: info for a server, warn for
    /// other commands]
    #[arg(long, env = "PLATEN_LOG", value_name = "FILTER", global = true)]
    log: Option<EnvFilter>,

    /// Format of the log: text, or json for one JSON object per line
    #[arg(long, env = "PLATEN_LOG_FORMAT", value_name = "FORMAT", default_value = "text", global = true)]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

static LOG_FORMAT: OnceLock<LogFormat> = OnceLock::new();

impl LogArgs {
    /// Starts the log; `default_filter` is used if no filter was given. Starts traces of the program as `service`
    /// if the environment has an endpoint for them.
    ///
    /// # Errors
    /// [`TelemetryError`] for a setting of traces that is not supported.
    pub fn start(self, default_filter: &str, service: Option<&'static str>) -> Result<(), TelemetryError> {
        let filter = self.log.unwrap_or_else(|| EnvFilter::new(default_filter));
        let no_traces = format!("{}=off", telemetry::TARGET).parse().expect("it is a directive");
        let log = fmt::layer()
            .with_writer(io::stderr)
            // Otherwise a closed standard error causes a panic wherever a line is written.
            .log_internal_errors(false)
            .with_ansi(io::stderr().is_terminal());
        let _ = LOG_FORMAT.set(self.log_format);
        let log = match self.log_format {
            LogFormat::Text => log.boxed(),
            LogFormat::Json => {
                // Not through the subscriber: the panic may have happened in it.
                panic::set_hook(Box::new(|panic| write_error(json_line(Level::ERROR, &panic.to_string()))));
                log.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed()
            }
        };
        // It logs messages as they are, with markup and values.
        let no_messages = "rmcp=error".parse().expect("it is a directive");
        let log = log.with_filter(filter.add_directive(no_traces).add_directive(no_messages)).boxed();
        let traces = service.map(telemetry::layer).transpose()?.flatten();
        registry().with([log].into_iter().chain(traces).collect::<Vec<_>>()).init();
        Ok(())
    }
}

/// Parses the command line and checks the names of the environment's variables. The matches tell where each value is
/// from. Prints help, the version or what is wrong, and exits, if there is nothing to run.
#[must_use]
pub fn parse_with_matches<P: Parser>() -> (P, ArgMatches) {
    let parsed = without_markdown(P::command()).try_get_matches().and_then(|matches| {
        if let Err(unknown) = variables::check_names() {
            return Err(clap::Error::raw(ErrorKind::UnknownArgument, unknown.to_string()));
        }
        Ok((P::from_arg_matches(&matches)?, matches))
    });
    parsed.unwrap_or_else(|error| {
        let error = error.format(&mut without_markdown(P::command()));
        if error.use_stderr() && is_json_requested() {
            write_error(json_line(Level::ERROR, error.to_string().trim_end()));
            process::exit(error.exit_code());
        }
        error.exit()
    })
}

/// The command with texts for a terminal: those of the code have the marks of Markdown, which documents show.
#[must_use]
pub fn without_markdown(command: Command) -> Command {
    let plain = |text: &StyledStr| {
        let text = text.to_string().replace('`', "");
        let mut parts = text.split("<http");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + "http" + &part.replacen('>', "", 1))
    };
    let (about, long_about) = (command.get_about().map(plain), command.get_long_about().map(plain));
    let command = match about {
        Some(about) => command.about(about),
        None => command,
    };
    let command = match long_about {
        Some(about) => command.long_about(about),
        None => command,
    };
    let command = command.mut_args(|argument| {
        let (help, long_help) = (argument.get_help().map(plain), argument.get_long_help().map(plain));
        let argument = match help {
            Some(help) => argument.help(help),
            None => argument,
        };
        match long_help {
            Some(help) => argument.long_help(help),
            None => argument,
        }
    });
    command.mut_subcommands(without_markdown)
}

/// Prints a line to standard output, whatever the filter of the log. Standard output may be closed.
pub fn announce(message: &str) {
    let mut output = io::stdout();
    let _ = match LOG_FORMAT.get() {
        Some(LogFormat::Json) => writeln!(output, "{}", json_line(Level::INFO, message)),
        _ => writeln!(output, "{message}"),
    };
}

/// The exit status of a program, which is 1 after an error. An error is written to standard error with its causes.
#[must_use]
pub fn exit_code(program: &str, result: anyhow::Result<()>) -> ExitCode {
    exit_code_of(program, result, |_| 1)
}

/// The same as [`exit_code`], with the status that `status` gives an error.
pub fn exit_code_of(
    program: &str,
    result: anyhow::Result<()>,
    status: impl Fn(&anyhow::Error) -> u8,
) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let status = status(&error);
    match LOG_FORMAT.get() {
        Some(LogFormat::Json) => write_error(json_line(Level::ERROR, &format!("{error:#}"))),
        _ => write_error(format_args!("{program}: {error:#}")),
    }
    ExitCode::from(status)
}

/// What the signals cancel that stop a program.
#[derive(Debug, Clone, Default)]
pub struct StopSignals {
    /// Cancelled by the first one: work in progress may finish.
    pub first: CancellationToken,
    /// Cancelled by the second one: it is aborted.
    pub second: CancellationToken,
}

/// A token that the first of the signals of [`stop_signals`] cancels. The second one exits the process.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn stop_signal() -> io::Result<CancellationToken> {
    Ok(stop_signals(Duration::ZERO)?.first)
}

/// Handles SIGTERM, SIGINT and SIGHUP. The process exits when `abort_time` has passed since the second signal, or at
/// once after a third one. SIGHUP stays ignored where it was when the process started, as under `nohup`.
///
/// # Errors
/// When the handlers cannot be installed.
pub fn stop_signals(abort_time: Duration) -> io::Result<StopSignals> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hangup = if is_hangup_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
    let mut next = async move || {
        let hangup = async {
            match &mut hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup => {}
        }
    };
    let signals = StopSignals::default();
    let StopSignals { first, second } = signals.clone();
    tokio::spawn(async move {
        next().await;
        tracing::info!("shutting down after in-flight requests");
        first.cancel();
        next().await;
        tracing::warn!("second signal: aborting in-flight requests and exiting");
        second.cancel();
        let _ = timeout(abort_time, next()).await;
        // The kernel kills the browsers, and the next start removes their profiles.
        process::exit(1);
    });
    Ok(signals)
}

fn is_hangup_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = proc_field(&status, "SigIgn:");
    let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
    // Bit 0 is signal 1, which is SIGHUP.
    mask & 1 == 1
}

/// Raises the soft limit of open files to the hard limit. Most systems start processes with a soft limit
/// of 1,024, because `select` handles no more, and allow far more.
pub fn raise_file_limit() {
    let raised = getrlimit(Resource::RLIMIT_NOFILE).and_then(|(soft, hard)| {
        if soft < hard { setrlimit(Resource::RLIMIT_NOFILE, hard, hard) } else { Ok(()) }
    });
    if let Err(error) = raised {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

/// The soft limit of open files.
#[must_use]
pub fn file_limit() -> u64 {
    getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft)
}

/// Connections that wait until they are accepted; the kernel may allow fewer.
const BACKLOG: u32 = 1024;

/// Takes an address. Until [`listen`], connections are refused: a client that the kernel lets connect would wait for its answer
/// for as long as the program takes to start, whatever its deadline.
///
/// # Errors
/// If the address cannot be used, for example because another program listens there.
pub fn reserve(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of a process before this one may still be closing.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Listens on an address that was taken by [`reserve`].
///
/// # Errors
/// If another program has begun to listen there meanwhile.
pub fn listen(socket: TcpSocket) -> io::Result<TcpListener> {
    socket.listen(BACKLOG)
}

/// The format that the arguments ask for, where they cannot be parsed as a whole.
fn is_json_requested() -> bool {
    let arguments: Vec<String> = env::args_os().filter_map(|argument| argument.into_string().ok()).collect();
    arguments.iter().any(|argument| argument == "--log-format=json")
        || arguments.windows(2).any(|pair| pair == ["--log-format", "json"])
        || env::var("PLATEN_LOG_FORMAT").is_ok_and(|format| format == "json")
}

/// A line that is not from the log, in its format.
fn json_line(level: Level, message: &str) -> String {
    let mut timestamp = String::new();
    // Writing to a string cannot fail.
    let _ = SystemTime.format_time(&mut Writer::new(&mut timestamp));
    json!({ "timestamp": timestamp, "level": level.as_str(), "message": message }).to_string()
}

/// Unlike `eprintln!`, does not panic if standard error is closed.
fn write_error(line: impl std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{line}");
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn a_reserved_address_refuses_connections_until_the_program_listens() {
        let socket = reserve("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        assert_eq!(TcpStream::connect(address).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
        let listener = listen(socket).unwrap();
        TcpStream::connect(address).unwrap();
        assert_eq!(reserve(address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listener);
    }
}
