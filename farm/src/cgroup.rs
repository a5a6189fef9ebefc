//! The memory that this program and its browsers can use, and the CPU share of browsers in a cgroup (v2) that is
//! delegated to this program: by systemd (`Delegate=cpu`), or as the root of a container that may write it.
//!
//! Invariant: the program starts whatever fails here. A cgroup is changed only if it is delegated and this program is
//! its only process. Only leaves have processes then, as the kernel requires (cgroups(7), "no internal processes"):
//! the program moves to one child, and each browser to a child of another one, as do the processes that fill templates, so that a page with hundreds of busy
//! workers has no larger share than the page of another browser.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
    sync::OnceLock,
};

use platen_program::proc_field;
use rustix::fs::getxattr;

const KIBIBYTES: u64 = 1024;
const BYTES: u64 = 1024 * 1024;
const CONTROLLER: &str = "cpu";
/// Share of browsers where all CPU time of the delegated cgroup is used (`cpu.weight`); this program has the default
/// of 100.
const BROWSERS_WEIGHT: &str = "10";

/// The child of the browsers' cgroup for processes that fill templates.
const TEMPLATES: &str = "templates";

static BROWSERS: OnceLock<PathBuf> = OnceLock::new();

/// Gives browsers a smaller share of the CPU time than this program, where a cgroup is delegated to it. To be called
/// once, before the runtime is started.
pub fn separate_browsers() {
    let Some(path) = own_cgroup().filter(|path| is_delegated(path)) else { return };
    match split(&path) {
        Ok(browsers) => {
            tracing::info!(path = %path.display(), "browsers have a smaller CPU weight than this program");
            let _ = BROWSERS.set(browsers);
        }
        Err(error) => tracing::warn!(%error, "cannot use the delegated cgroup; browsers share it"),
    }
}

/// The cgroup of one browser. When it is dropped it is removed, for which no process may be in it.
#[derive(Debug)]
pub(crate) struct BrowserCgroup(PathBuf);

impl Drop for BrowserCgroup {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.0) {
            tracing::warn!(path = %self.0.display(), %error, "cannot remove a browser's cgroup");
        }
    }
}

/// Moves a browser that has just been started to a cgroup of its own, where one is delegated.
pub(crate) fn add_browser(pid: u32) -> Option<BrowserCgroup> {
    let path = BROWSERS.get()?.join(pid.to_string());
    let added = fs::create_dir(&path).map(|()| BrowserCgroup(path)).and_then(|own| {
        enter(&own.0, pid)?;
        Ok(own)
    });
    added.inspect_err(|error| tracing::warn!(%error, "cannot move a browser to its cgroup")).ok()
}

/// Moves a process that fills a template to the cgroup of all such, where one is delegated: together they have the share of a
/// browser.
pub(crate) fn add_filling(pid: u32) {
    if let Some(browsers) = BROWSERS.get()
        && let Err(error) = enter(&browsers.join(TEMPLATES), pid)
    {
        tracing::warn!(%error, "cannot move a process that fills a template to its cgroup");
    }
}

/// Moves this program to a child of the cgroup and makes another one for browsers, which is returned.
fn split(path: &Path) -> io::Result<PathBuf> {
    let only_process = fs::read_to_string(path.join("cgroup.procs"))?;
    if only_process.trim() != process::id().to_string() {
        return Err(io::Error::other("it has other processes"));
    }
    let [server, browsers] = ["server", "browsers"].map(|child| path.join(child));
    for child in [&server, &browsers.join(TEMPLATES)] {
        fs::create_dir_all(child)?;
    }
    enter(&server, process::id())?;
    for parent in [path, &browsers] {
        fs::write(parent.join("cgroup.subtree_control"), format!("+{CONTROLLER}"))?;
    }
    fs::write(browsers.join("cpu.weight"), BROWSERS_WEIGHT)?;
    Ok(browsers)
}

/// Moves a process with all its threads.
fn enter(cgroup: &Path, pid: u32) -> io::Result<()> {
    fs::write(cgroup.join("cgroup.procs"), pid.to_string())
}

fn own_cgroup() -> Option<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    path_of(&own, &mounts)
}

fn path_of(own: &str, mounts: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let mut mounts = mounts.lines().map(|line| line.split(' '));
    let mount = mounts
        .find_map(|mut fields| Some((fields.nth(1)?, fields.next()?)).filter(|it| it.1 == "cgroup2"))?;
    Some(Path::new(mount.0).join(path))
}

/// Whether the program may change its cgroup: systemd has marked it, or it is the root of a container's hierarchy. The
/// root of the whole hierarchy has no type.
fn is_delegated(path: &Path) -> bool {
    let has_controller = fs::read_to_string(path.join("cgroup.controllers"))
        .is_ok_and(|names| names.split_whitespace().any(|name| name == CONTROLLER));
    let is_namespace_root =
        || fs::read_to_string("/proc/self/cgroup").is_ok_and(|own| own.contains("0::/\n"));
    let is_marked = |name| {
        let mut value = [0; 1];
        getxattr(path, name, &mut value).is_ok_and(|length| value[..length] == *b"1")
    };
    has_controller
        && path.join("cgroup.type").exists()
        && (is_marked("user.delegate") || is_marked("trusted.delegate") || is_namespace_root())
}

/// Memory of the machine, or the limit of the program's cgroup if that is less, in MiB.
pub(crate) fn total_mib() -> Option<u64> {
    machine_mib("MemTotal:").into_iter().chain(limit_mib()).min()
}

/// What the kernel can give now without swapping, but at most the limit of the program's cgroup, in MiB.
pub(crate) fn available_mib() -> Option<u64> {
    machine_mib("MemAvailable:").into_iter().chain(limit_mib()).min()
}

fn machine_mib(field: &str) -> Option<u64> {
    let memory = fs::read_to_string("/proc/meminfo").ok()?;
    Some(proc_field(&memory, field)?.parse::<u64>().ok()? / KIBIBYTES)
}

/// The smallest limit of the program's cgroup and those above it; `None` if there is no limit.
fn limit_mib() -> Option<u64> {
    let limits = own_cgroup()?;
    let limits = limits.ancestors().filter_map(|path| fs::read_to_string(path.join("memory.max")).ok());
    limits.filter_map(|limit| limit.trim().parse::<u64>().ok()).map(|bytes| bytes / BYTES).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_cgroup_is_found_below_its_mount() {
        let mounts = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        let path = path_of("0::/system.slice/platen.service\n", mounts).unwrap();
        assert_eq!(path, Path::new("/sys/fs/cgroup/system.slice/platen.service"));
        assert_eq!(path_of("0::/\n", mounts).unwrap(), Path::new("/sys/fs/cgroup/"));
        // Hybrid, with a hierarchy for each controller.
        assert_eq!(path_of("3:cpu:/\n", mounts), None);
        assert_eq!(path_of("0::/a\n", "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"), None);
    }

    #[test]
    fn the_cgroup_of_other_processes_is_not_changed() {
        let directory = tempfile::tempdir().unwrap();
        let procs = directory.path().join("cgroup.procs");
        fs::write(&procs, format!("1\n{}\n", process::id())).unwrap();
        split(directory.path()).unwrap_err();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(!is_delegated(directory.path()));
    }

    #[test]
    fn the_memory_of_this_machine_is_known() {
        let (total, available) = (total_mib().unwrap(), available_mib().unwrap());
        assert!(available <= total && total > 256, "{available} of {total} MiB");
    }
}
