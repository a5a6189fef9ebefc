//! What a target's whole process tree costs: CPU time and memory.
//!
//! Invariant: CPU time of processes that have ended is counted, and nothing outside the tree is.
//! With a writable cgroup v2 the kernel keeps the sum; without, it is the sum over `/proc`, where a
//! process that ended stands with the parent that reaped it.

use std::{
    collections::HashSet,
    fmt, fs,
    path::{Path, PathBuf},
    process, thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use platen_tests::procfs;

use crate::usage;

/// The place of this run in the cgroup tree, if there is one that may be written to.
#[derive(Debug)]
pub(crate) struct Cgroups(Option<PathBuf>);

impl Cgroups {
    /// Looks for a writable cgroup v2.
    pub(crate) fn find() -> Self {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let mut mounted = mounts.lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?, fields.next()?)).filter(|(_, kind)| *kind == "cgroup2")
        });
        let own = |(mount, _): (&str, &str)| {
            let path = Path::new(mount).join(format!("platen-bench-{}", process::id()));
            fs::create_dir(&path).is_ok().then_some(path)
        };
        Self(mounted.find_map(own))
    }

    /// Starts to account for the tree below and with `root`.
    pub(crate) fn adopt(&self, name: &str, root: u32) -> Result<Meter> {
        let group = self.0.as_ref().map(|parent| parent.join(name));
        if let Some(group) = &group {
            fs::create_dir(group)?;
        }
        let meter = Meter { root, group };
        meter.gather()?;
        Ok(meter)
    }
}

impl fmt::Display for Cgroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(_) => f.write_str("a cgroup v2 for each side"),
            None => f.write_str("/proc, with the time of ended processes as their parents hold it"),
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

/// The account of one tree. Dropped last, after its processes were stopped: what is left of them is
/// killed.
#[derive(Debug)]
pub(crate) struct Meter {
    root: u32,
    group: Option<PathBuf>,
}

impl Meter {
    /// Moves the tree into its group. Children are born into it; those born while this looks are
    /// found by looking again.
    fn gather(&self) -> Result<()> {
        let Some(group) = &self.group else { return Ok(()) };
        let mut moved = HashSet::new();
        loop {
            let left: Vec<u32> = self.tree().into_iter().filter(|pid| !moved.contains(pid)).collect();
            if left.is_empty() {
                return Ok(());
            }
            for pid in left {
                // One that has ended in between need not move.
                let done = fs::write(group.join("cgroup.procs"), pid.to_string());
                if Path::new(&format!("/proc/{pid}/exe")).exists() {
                    done.with_context(|| format!("process {pid} cannot be moved into {}", group.display()))?;
                }
                moved.insert(pid);
            }
        }
    }

    fn tree(&self) -> Vec<u32> {
        let below = procfs::descendants(self.root).into_iter().map(|id| id.pid);
        std::iter::once(self.root).chain(below).collect()
    }

    /// The processes there are.
    fn processes(&self) -> Vec<u32> {
        let Some(group) = &self.group else { return self.tree() };
        let list = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        list.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// CPU time of the tree since it began; only differences mean something.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let Some(group) = &self.group else {
            return Ok(self.tree().into_iter().filter_map(|pid| usage::cpu_with_reaped(pid).ok()).sum());
        };
        let stat = fs::read_to_string(group.join("cpu.stat"))?;
        let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec ")?.parse().ok());
        Ok(Duration::from_micros(usage.context("no usage_usec in cpu.stat")?))
    }

    /// The process at the tree's root.
    pub(crate) fn root(&self) -> u32 {
        self.root
    }

    /// CPU time of the tree's root alone, without its children.
    pub(crate) fn root_cpu(&self) -> Result<Duration> {
        usage::cpu(self.root)
    }

    /// Memory of the tree in bytes, pages that are shared counted once (PSS).
    pub(crate) fn memory(&self) -> u64 {
        self.processes().into_iter().filter_map(proportional_memory).sum()
    }
}

impl Drop for Meter {
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

fn proportional_memory(pid: u32) -> Option<u64> {
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
    fn a_tree_with_ended_children_is_counted() {
        for cgroups in [Cgroups::find(), Cgroups(None)] {
            // The shell reaps a child that computed, then waits itself: a process that becomes another
            // program has next to no memory for a moment.
            let script = "sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'; echo done; read -r _";
            let mut command = Command::new("sh");
            command.args(["-c", "read -r _; eval \"$0\"", script]);
            command.stdin(process::Stdio::piped()).stdout(process::Stdio::piped());
            let mut child = command.spawn().unwrap();
            let meter = cgroups.adopt("test", child.id()).unwrap();
            let before = meter.cpu().unwrap();
            std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"go\n").unwrap();
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0; 4]).unwrap();
            let spent = meter.cpu().unwrap().saturating_sub(before);
            assert!(spent >= Duration::from_millis(10), "{spent:?} by {cgroups}");
            assert!(meter.memory() > 100_000);
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
