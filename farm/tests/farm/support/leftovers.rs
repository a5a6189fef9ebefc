//! What a farm leaves behind: processes below this one, and homes of browsers.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// A process: its parent and its command line.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) id: u32,
    parent: u32,
    pub(crate) command: String,
}

impl Process {
    /// Whether it is there and no zombie.
    pub(crate) fn lives(&self) -> bool {
        all().iter().any(|process| process.id == self.id)
    }

    /// CPU time that it has used; none if it has ended.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id)).unwrap_or_default();
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
        // User and system time, in hundredths of a second.
        let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Duration::from_millis(10 * ticks)
    }

    /// Bytes of memory that it has for itself; none if it has ended.
    pub(crate) fn memory(&self) -> u64 {
        let kibibytes = self.status("RssAnon:").and_then(|field| field.parse::<u64>().ok());
        kibibytes.unwrap_or_default() * 1024
    }
}

/// Every living process of the machine. Zombies have died.
fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name stands in parentheses and may hold anything.
            let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
            let (state, parent) = (fields.next()?, fields.next()?.parse().ok()?);
            let command = fs::read(entry.path().join("cmdline")).ok()?;
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            (state != "Z" && state != "X").then_some(Process { id, parent, command })
        })
        .collect()
}

/// The living processes below one.
pub(crate) fn below(ancestor: u32) -> Vec<Process> {
    let all = all();
    let parents: HashMap<u32, u32> = all.iter().map(|process| (process.id, process.parent)).collect();
    all.into_iter()
        .filter(|process| {
            let line = std::iter::successors(Some(process.parent), |id| parents.get(id).copied());
            line.take(64).any(|id| id == ancestor)
        })
        .collect()
}

/// The browsers themselves, without their helpers, below one process.
pub(crate) fn browsers(ancestor: u32) -> Vec<Process> {
    let mut found = below(ancestor);
    found.retain(|process| {
        process.command.contains("--user-data-dir=") && !process.command.contains("--type=")
    });
    found
}

/// The directory in which a browser's farm keeps homes.
pub(crate) fn workspace(browser: &Process) -> PathBuf {
    let profile = browser.command.split("--user-data-dir=").nth(1).and_then(|rest| rest.split(' ').next());
    Path::new(profile.unwrap()).parent().and_then(Path::parent).unwrap().to_owned()
}

/// The directories of homes of all browsers below this process.
pub(crate) fn homes() -> Vec<PathBuf> {
    browsers(std::process::id()).iter().map(workspace).collect()
}

/// What is left of processes below `ancestor`, and of `homes`.
pub(crate) fn of(ancestor: u32, homes: &[PathBuf]) -> Vec<String> {
    let processes = below(ancestor).into_iter().map(|process| format!("{} {}", process.id, process.command));
    let homes = homes.iter().filter(|home| home.exists()).map(|home| home.display().to_string());
    processes.chain(homes).collect()
}
