//! `platen check`: what `platen up` would use with these settings, and what it lacks.
//!
//! Invariant: it creates and changes nothing, and shows no secret.

use std::{env, fmt, path::Path, time::Instant};

use anyhow::{Context as _, Result, ensure};
use clap::{Arg, ArgMatches, Args, Command, parser::ValueSource};
use platen_farm::{
    CheckArgs,
    check::{Finding, summary},
};
use platen_program::{CONNECT_TIMEOUT, http_client};
use platen_shared::{farm_address::FarmAddress, wire};
use platen_statements::Outcome;
use reqwest::StatusCode;
use rustix::fs::{Access, access, statvfs};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use tokio::net::TcpListener;

use super::{OutputArgs, up, up::Up};
use crate::{
    components::{self, Component},
    db::{Database, DbError, Location, Purpose},
    migrate::{self, VERSION},
};

/// Check the settings and this machine
///
/// Says which settings `platen up` would use and what is missing, and exits with status 1 if it would not work.
/// Takes the options of `platen up`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    up: Up,

    #[command(flatten)]
    args: CheckArgs,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Serialize)]
struct Report {
    settings: Vec<Setting>,
    findings: Vec<Finding>,
}

const MIN_DATABASE_MIB: u64 = 1024;

impl Check {
    /// `matches` are the arguments of this command.
    pub(crate) async fn run(self, matches: &ArgMatches) -> Result<()> {
        let settings = settings(&Self::augment_args(Command::new("check")), matches);
        let mut findings = vec![self.components()];
        if let Err(error) = self.up.settings(SecretString::default()) {
            findings.push(Finding::failed("settings", &error));
        }
        findings.extend(components::unknown_variables().map(|name| {
            let text = format!("{name} is set, but no component has a setting of this name");
            let cure = "Correct the name or unset it; docs/configuration.md has all settings";
            Finding::warning("settings", text, cure)
        }));
        findings.extend(self.database().await);
        for address in [Some(self.up.listen), self.up.metrics_listen].into_iter().flatten() {
            findings.push(match TcpListener::bind(address).await {
                Ok(_) => Finding::ok("listen", format!("{address} is free")),
                Err(error) => Finding::warning(
                    "listen",
                    format!("{address} cannot be used: {error}"),
                    "Stop the program that listens there, which may be Platen, or set --listen or --metrics-listen",
                ),
            });
        }
        match self.up.farm_url.clone() {
            None => findings.extend(platen_farm::check::check(&self.up.farm, &self.args).await),
            Some(farm) => findings.push(match up::token_of_farm(self.up.farm_token_file.as_deref()) {
                Err(error) => Finding::failed("farm", &error),
                Ok(token) => check_farm(&farm, &token).await,
            }),
        }
        let (summary, works) = summary(&findings);
        self.output.print(&Report { settings, findings }, |report| report.text(&summary))?;
        ensure!(works, "platen up would not work with these settings on this machine");
        Ok(())
    }

    fn components(&self) -> Finding {
        let found = self.up.components().and_then(|directory| {
            Component::ALL.iter().try_for_each(|component| component.file(&directory).map(drop))?;
            Ok(directory)
        });
        match found {
            Ok(directory) => Finding::ok("components", format!("they are in {}", directory.display())),
            Err(error) => Finding::failed("components", &error),
        }
    }

    async fn database(&self) -> Vec<Finding> {
        let location = self.up.at.location();
        if let Location::File(path) = &location
            && !path.exists()
        {
            return vec![new_file(path)];
        }
        let started = Instant::now();
        let state = async {
            let database = self.up.at.open(Purpose::Operate).await?;
            anyhow::Ok((migrate::version(&database).await?, database))
        };
        let (version, database) = match state.await {
            Ok(found) => found,
            Err(error) => return vec![failed_database(&location, &error)],
        };
        let answers = format!("{location} answers after {} ms", started.elapsed().as_millis());
        let mut findings = vec![match version {
            Some(VERSION) => Finding::ok("database", format!("{answers}, schema version {VERSION}")),
            None => Finding::ok("database", format!("{answers}; platen up would create its tables")),
            Some(found) => Finding::problem(
                "database",
                format!("{location} has schema version {found}, and this platen has {VERSION}"),
                Some("Use a newer platen".to_owned()),
            ),
        }];
        match &location {
            Location::File(path) => findings.extend(free_space(path)),
            Location::Server(_) => findings.push(write_access(&database).await),
        }
        findings
    }
}

/// A file that `platen up` would create.
fn new_file(path: &Path) -> Finding {
    let existing = path.ancestors().skip(1).find(|directory| directory.exists());
    let directory = existing.unwrap_or(Path::new(".")).join(".");
    match access(&directory, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Finding::ok("database", format!("{} would be created", path.display())),
        Err(error) => Finding::problem(
            "database",
            format!("{} cannot be created in {}: {error}", path.display(), directory.display()),
            Some("Set --data or --db to a place that this user may write, or change its owner".to_owned()),
        ),
    }
}

fn failed_database(location: &Location, error: &anyhow::Error) -> Finding {
    let cure = match error.chain().find_map(|cause| cause.downcast_ref::<DbError>()) {
        Some(DbError::Unauthorized) => Some("Check PLATEN_DB_TOKEN or PLATEN_DB_TOKEN_FILE"),
        Some(DbError::Unreachable(_) | DbError::Absent(_)) => {
            Some("Check --db, and that the server runs and a firewall lets this machine connect")
        }
        _ => None,
    };
    Finding::problem("database", format!("{location}: {error:#}"), cure.map(str::to_owned))
}

fn free_space(path: &Path) -> Option<Finding> {
    let space = statvfs(path).ok()?;
    let mebibytes = space.f_bavail * space.f_frsize / 1024 / 1024;
    let text = format!("{mebibytes} MiB are free for {}", path.display());
    Some(if mebibytes < MIN_DATABASE_MIB {
        Finding::warning("disk", text, "Free some: renders are refused with 503 when the disk is full")
    } else {
        Finding::ok("disk", text)
    })
}

/// Some tokens of libSQL servers allow reading only.
async fn write_access(database: &Database) -> Finding {
    // Takes the lock of writers and changes nothing.
    match database.run_script("BEGIN IMMEDIATE; ROLLBACK").await {
        Ok(()) => Finding::ok("database", "it can be written"),
        Err(error) => {
            let cure = if error.outcome() == Outcome::NotRun {
                "Find the process that keeps it locked"
            } else {
                "Use a token that allows writing, and the address of the primary"
            };
            Finding::problem("database", format!("it cannot be written: {error}"), Some(cure.to_owned()))
        }
    }
}

/// Asks a farm whether it accepts jobs.
async fn check_farm(farm: &FarmAddress, token: &SecretString) -> Finding {
    let asked = async {
        // One that works answers within milliseconds.
        let client = http_client().timeout(CONNECT_TIMEOUT).build()?;
        let started = Instant::now();
        // Without a body this is a refusal of the job or of the token, and renders nothing.
        let jobs = client.post(format!("{farm}{}", wire::JOBS_PATH)).bearer_auth(token.expose_secret());
        let jobs = jobs.send().await.map_err(reqwest::Error::without_url)?;
        let elapsed = started.elapsed().as_millis();
        let ready = client.get(format!("{farm}/readyz")).send().await.map_err(reqwest::Error::without_url)?;
        anyhow::Ok((jobs, elapsed, ready.status()))
    };
    let problem = |text: String, cure: &str| Finding::problem("farm", text, Some(cure.to_owned()));
    match asked.await.context("it does not answer") {
        Err(error) => {
            problem(format!("{farm}: {error:#}"), "Start it, or check --farm-url and the network between")
        }
        Ok((jobs, ..)) if !jobs.headers().contains_key(wire::FARM_ID) => problem(
            format!("{farm} answers with status {} and is no farm", jobs.status()),
            "Check --farm-url: another server listens there, or a proxy that reaches no farm",
        ),
        Ok((jobs, ..)) if jobs.status() == StatusCode::UNAUTHORIZED => problem(
            format!("{farm} refuses the token"),
            "Set PLATEN_FARM_TOKEN here to the value that the farm has",
        ),
        Ok((.., elapsed, StatusCode::OK)) => {
            Finding::ok("farm", format!("{farm} answers after {elapsed} ms"))
        }
        Ok(_) => problem(
            format!("{farm} accepts no jobs: it is shutting down or has no browser"),
            "See the farm's log, and platen-farm --check on its machine",
        ),
    }
}

impl Report {
    fn text(&self, summary: &str) -> String {
        let mut lines = Vec::new();
        if self.settings.is_empty() {
            lines.push("All settings have their defaults.".to_owned());
        } else {
            lines.push("Settings that do not have their defaults:".to_owned());
            lines.extend(self.settings.iter().map(|setting| format!("  {setting}")));
        }
        lines.push(String::new());
        lines.extend(self.findings.iter().map(Finding::to_string));
        lines.push(format!("\n{summary}"));
        lines.join("\n")
    }
}

/// A setting that does not have its default.
#[derive(Debug, Serialize)]
struct Setting {
    /// The flag, or the variable if there is none.
    name: String,
    value: String,
    /// The variable or "command line".
    source: String,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} ({})", self.name, self.value, self.source)
    }
}

const SECRET: &str = "(secret)";

/// The settings that are given by flags or variables.
fn settings(command: &Command, matches: &ArgMatches) -> Vec<Setting> {
    let of_flags = command.get_arguments().filter_map(|argument| of_flag(argument, matches));
    let secrets = platen_program::SECRETS.iter().map(|variable| (variable, true));
    let of_components = platen_program::OF_COMPONENTS.iter().map(|variable| (variable, false));
    let of_components = of_components.filter(|(variable, _)| variable.used_by.contains("`up`"));
    let others = secrets.chain(of_components).filter_map(|(variable, is_secret)| {
        let value = env::var(variable.name).ok().filter(|value| !value.is_empty())?;
        let value = if is_secret { SECRET.to_owned() } else { value };
        Some(Setting { name: variable.name.to_owned(), value, source: "environment".to_owned() })
    });
    of_flags.chain(others).collect()
}

fn of_flag(argument: &Arg, matches: &ArgMatches) -> Option<Setting> {
    let variable = argument.get_env();
    let source = match matches.value_source(argument.get_id().as_str())? {
        ValueSource::EnvVariable => variable?.to_string_lossy().into_owned(),
        ValueSource::CommandLine => "command line".to_owned(),
        _ => return None,
    };
    // Of the options, only settings have variables.
    variable?;
    let name = format!("--{}", argument.get_long()?);
    let value = if argument.is_hide_env_values_set() {
        SECRET.to_owned()
    } else {
        let values = matches.get_raw(argument.get_id().as_str())?;
        values.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(",")
    };
    Some(Setting { name, value, source })
}
