//! The CPU share of browsers in a cgroup (v2) that is delegated to this program: by systemd (`Delegate=cpu`), or as the
//! root of a container that may write it.
//!
//! Invariant: the program starts whatever fails here. A cgroup is changed only if it is delegated and this program is
//! its only process. Only leaves have processes then, as the kernel requires (cgroups(7), "no internal processes"):
//! the program moves to one child, and browsers are started in another one.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
    sync::OnceLock,
};

use parking_lot::Mutex;
use rustix::fs::getxattr;

const CONTROLLER: &str = "cpu";
/// Shares of the CPU time of the delegated cgroup, where all of it is used (`cpu.weight`, 100 by default).
const SERVER_WEIGHT: &str = "1000";
const BROWSERS_WEIGHT: &str = "100";

static DELEGATED: OnceLock<Mutex<Option<DelegatedCgroup>>> = OnceLock::new();

/// The cgroup of this program, with a child for the program and one for its browsers.
#[derive(Debug)]
struct DelegatedCgroup {
    path: PathBuf,
}

/// Gives browsers a smaller share of the CPU time than this program, where a cgroup is delegated to it.
pub(super) fn separate_browsers() {
    let Some(path) = own_cgroup().filter(|path| is_delegated(path)) else { return };
    match DelegatedCgroup::split(path, CONTROLLER) {
        Ok(cgroup) => {
            tracing::info!(path = %cgroup.path.display(), "browsers have a smaller CPU weight than this program");
            let _ = DELEGATED.set(Mutex::new(Some(cgroup)));
        }
        Err(error) => tracing::warn!(%error, "cannot use the delegated cgroup; browsers share it"),
    }
}

/// Undoes [`separate_browsers`]. Browsers must have ended.
pub(super) fn join_again() {
    if let Some(cgroup) = DELEGATED.get().and_then(|cgroup| cgroup.lock().take()) {
        cgroup.join();
    }
}

/// Moves a browser that has just been started to the cgroup of browsers, if there is one.
pub(crate) fn add_browser(pid: u32) {
    let Some(cgroup) = DELEGATED.get() else { return };
    if let Some(cgroup) = &*cgroup.lock()
        && let Err(error) = enter(&cgroup.browsers(), pid)
    {
        tracing::warn!(%error, "cannot move a browser to its cgroup");
    }
}

impl DelegatedCgroup {
    /// Moves this program to a child of the cgroup and makes another one for browsers. Where that fails, all of it is
    /// undone.
    fn split(path: PathBuf, controller: &str) -> io::Result<Self> {
        let only_process = fs::read_to_string(path.join("cgroup.procs"))?;
        if only_process.trim() != process::id().to_string() {
            return Err(io::Error::other("it has other processes"));
        }
        let cgroup = Self { path };
        let split = cgroup.make_children(controller);
        if split.is_err() {
            cgroup.join();
        }
        split.map(|()| cgroup)
    }

    fn make_children(&self, controller: &str) -> io::Result<()> {
        for child in [self.server(), self.browsers()] {
            fs::create_dir_all(child)?;
        }
        enter(&self.server(), process::id())?;
        fs::write(self.path.join("cgroup.subtree_control"), format!("+{controller}"))?;
        if controller == CONTROLLER {
            fs::write(self.server().join("cpu.weight"), SERVER_WEIGHT)?;
            fs::write(self.browsers().join("cpu.weight"), BROWSERS_WEIGHT)?;
        }
        Ok(())
    }

    /// Moves this program back and removes the children.
    fn join(&self) {
        let enabled = fs::read_to_string(self.path.join("cgroup.subtree_control")).unwrap_or_default();
        let disable: Vec<String> = enabled.split_whitespace().map(|name| format!("-{name}")).collect();
        // Nothing more can be done where one of these fails: the service manager removes an empty cgroup.
        let _ = fs::write(self.path.join("cgroup.subtree_control"), disable.join(" "));
        let _ = enter(&self.path, process::id());
        let _ = fs::remove_dir(self.server());
        let _ = fs::remove_dir(self.browsers());
    }

    fn server(&self) -> PathBuf {
        self.path.join("server")
    }

    fn browsers(&self) -> PathBuf {
        self.path.join("browsers")
    }
}

/// Moves a process with all its threads.
fn enter(cgroup: &Path, pid: u32) -> io::Result<()> {
    fs::write(cgroup.join("cgroup.procs"), pid.to_string())
}

/// The cgroup (v2) of this process.
pub(super) fn own_cgroup() -> Option<PathBuf> {
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
        DelegatedCgroup::split(directory.path().to_owned(), CONTROLLER).unwrap_err();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(!is_delegated(directory.path()));
    }

    #[test]
    fn a_cgroup_that_cannot_be_split_is_left_as_it_was() {
        // A plain directory: `cgroup.subtree_control` is absent and would be created, but the child has no weight.
        let directory = tempfile::tempdir().unwrap();
        let own = process::id().to_string();
        fs::write(directory.path().join("cgroup.procs"), &own).unwrap();
        fs::create_dir(directory.path().join("cgroup.subtree_control")).unwrap();
        DelegatedCgroup::split(directory.path().to_owned(), CONTROLLER).unwrap_err();
        assert_eq!(fs::read_to_string(directory.path().join("cgroup.procs")).unwrap(), own);
    }
}
