//! The checks of a command: a row of a table for each, and a failure of the command if one does not hold.

use anyhow::{Result, ensure};
use platen_harness::process::Stopped;

/// Checks that have been made and their outcome.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    rows: usize,
    failed: Vec<String>,
    ignores_times: bool,
}

impl Checks {
    /// Prints the head of the table.
    pub(crate) fn new(title: &str) -> Self {
        println!("\n| {title} | must hold | measured | |\n| --- | --- | --- | --- |");
        Self::default()
    }

    /// Prints times and rates only, from now on: for builds without optimisation, and busy machines.
    pub(crate) fn ignore_times(&mut self) {
        self.ignores_times = true;
    }

    /// A check of a time, or of what depends on times.
    pub(crate) fn check_time(&mut self, name: &str, limit: &str, measured: &str, holds: bool) {
        if self.ignores_times {
            return self.figure(name, measured);
        }
        self.check(name, limit, measured, holds);
    }

    /// Prints a row and records whether the check holds.
    pub(crate) fn check(&mut self, name: &str, limit: &str, measured: &str, holds: bool) {
        let verdict = if holds { "held" } else { "**failed**" };
        println!("| {name} | {limit} | {measured} | {verdict} |");
        self.rows += 1;
        if !holds {
            self.failed.push(format!("{name}: {measured}, must be {limit}"));
        }
    }

    /// A check of a quantity that may be at most `limit`.
    pub(crate) fn at_most(&mut self, name: &str, measured: f64, limit: f64, unit: &str) {
        let (limit_text, text) =
            (format!("≤ {}{unit}", number(limit)), format!("{}{unit}", number(measured)));
        self.check(name, &limit_text, &text, measured <= limit);
    }

    /// A check that a program was stopped and has left nothing.
    pub(crate) fn nothing_left(&mut self, name: &str, stopped: &Stopped) {
        self.check(name, "nothing left", &stopped.text(), stopped.left.is_empty());
    }

    /// A row without a limit.
    pub(crate) fn figure(&mut self, name: &str, measured: &str) {
        println!("| {name} | | {measured} | |");
        self.rows += 1;
    }

    /// # Errors
    /// When a check does not hold.
    pub(crate) fn finish(self) -> Result<()> {
        ensure!(
            self.failed.is_empty(),
            "{} of {} checks failed:\n{}",
            self.failed.len(),
            self.rows,
            self.failed.join("\n")
        );
        Ok(())
    }
}

fn number(value: f64) -> String {
    if value < 10.0 { format!("{value:.2}") } else { format!("{value:.0}") }
}
