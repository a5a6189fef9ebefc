//! CPU time and memory of a process or of a whole process tree.
//!
//! Invariant: the CPU time of a tree includes exited processes and excludes processes outside the tree.
//! With a writable cgroup v2 the kernel keeps the sum. Without one it is the sum over `/proc`, which adds
//! the time of an exited process to the parent that reaped it.

use std::{
    collections::HashSet,
    fmt, fs,
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use platen_harness::procfs;

/// The cgroup of this run, or `None` where no cgroup v2 is writable.
#[derive(Debug)]
pub(crate) struct Cgroups(Option<PathBuf>);

impl Cgroups {
    /// Creates a cgroup for this run below the first cgroup v2 mount that is writable.
    pub(crate) fn find() -> Self {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let mut mounted = mounts.lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?, fields.next()?)).filter(|(_, kind)| *kind == "cgroup2")
        });
        let create = |(mount, _): (&str, &str)| {
            let path = Path::new(mount).join(format!("platen-bench-{}", process::id()));
            fs::create_dir(&path).is_ok().then_some(path)
        };
        Self(mounted.find_map(create))
    }

    /// Starts to account for `root` and its descendants.
    pub(crate) fn adopt(&self, name: &str, root: u32) -> Result<ProcessTree> {
        let group = self.0.as_ref().map(|parent| parent.join(name));
        if let Some(group) = &group {
            fs::create_dir(group)?;
        }
        let tree = ProcessTree { root, group };
        tree.move_to_group()?;
        Ok(tree)
    }
}

impl fmt::Display for Cgroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(_) => f.write_str("one cgroup v2 per renderer"),
            None => {
                f.write_str("/proc, including the time of exited processes that their parents have reaped")
            }
        }
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = fs::remove_dir(path);
        }
    }
}

/// A process and its descendants. Drop it after the processes were stopped: it kills those that are left.
#[derive(Debug)]
pub(crate) struct ProcessTree {
    pub(crate) root: u32,
    group: Option<PathBuf>,
}

impl ProcessTree {
    /// Moves the tree into its group, which new children inherit. Children that start meanwhile are found
    /// by the next pass.
    fn move_to_group(&self) -> Result<()> {
        let Some(group) = &self.group else { return Ok(()) };
        let mut moved = HashSet::new();
        loop {
            let left: Vec<u32> = self.pids().into_iter().filter(|pid| !moved.contains(pid)).collect();
            if left.is_empty() {
                return Ok(());
            }
            for pid in left {
                // A process that has exited meanwhile need not move.
                let moving = fs::write(group.join("cgroup.procs"), pid.to_string());
                if Path::new(&format!("/proc/{pid}/exe")).exists() {
                    moving.with_context(|| format!("cannot move process {pid} into {}", group.display()))?;
                }
                moved.insert(pid);
            }
        }
    }

    fn pids(&self) -> Vec<u32> {
        let descendants = procfs::descendants(self.root).into_iter().map(|id| id.pid);
        std::iter::once(self.root).chain(descendants).collect()
    }

    /// CPU time of the tree since an unspecified moment; only differences are meaningful.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        let Some(group) = &self.group else {
            return Ok(self
                .pids()
                .into_iter()
                .filter_map(|pid| procfs::cpu_time_with_reaped(pid).ok())
                .sum());
        };
        let stat = fs::read_to_string(group.join("cpu.stat"))?;
        let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec ")?.parse().ok());
        Ok(Duration::from_micros(usage.context("no usage_usec in cpu.stat")?))
    }

    /// Proportional set size (PSS) of the tree in bytes: shared memory is counted once.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let Some(group) = &self.group else {
            return self.pids().into_iter().filter_map(memory_bytes).sum();
        };
        let pids = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        pids.lines().filter_map(|line| memory_bytes(line.parse().ok()?)).sum()
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        let Some(group) = &self.group else { return };
        let _ = fs::write(group.join("cgroup.kill"), "1");
        for _ in 0..200 {
            if fs::remove_dir(group).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn memory_bytes(pid: u32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let kilobytes: u64 =
        rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.split_whitespace().next()?.parse().ok())?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn exited_children_of_a_tree_are_counted() {
        for cgroups in [Cgroups::find(), Cgroups(None)] {
            // The shell reaps a child that computes, then waits itself instead of calling exec, because a
            // process has almost no memory during exec.
            let script = "sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; echo done; read -r _";
            let mut command = Command::new("sh");
            command.args(["-c", "read -r _; eval \"$0\"", script]);
            command.stdin(process::Stdio::piped()).stdout(process::Stdio::piped());
            let mut child = command.spawn().unwrap();
            let tree = cgroups.adopt("test", child.id()).unwrap();
            let before = tree.cpu_time().unwrap();
            std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"go\n").unwrap();
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 4]).unwrap();
            let spent = tree.cpu_time().unwrap().saturating_sub(before);
            assert!(spent >= Duration::from_millis(10), "{spent:?} by {cgroups}");
            assert!(tree.memory_bytes() > 100_000);
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
