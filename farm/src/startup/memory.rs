//! The memory that this program and its browsers can use.

use std::fs;

use super::cgroup;

const KIBIBYTES: u64 = 1024;
const BYTES: u64 = 1024 * 1024;

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
    let kibibytes = memory.lines().find_map(|line| line.strip_prefix(field))?;
    Some(kibibytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? / KIBIBYTES)
}

/// The smallest limit of the program's cgroup and those above it; `None` if there is no limit.
fn limit_mib() -> Option<u64> {
    let limits = cgroup::own_cgroup()?;
    let limits = limits.ancestors().filter_map(|path| fs::read_to_string(path.join("memory.max")).ok());
    limits.filter_map(|limit| limit.trim().parse::<u64>().ok()).map(|bytes| bytes / BYTES).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_machine_is_known() {
        let (total, available) = (total_mib().unwrap(), available_mib().unwrap());
        assert!(available <= total && total > 256, "{available} of {total} MiB");
    }
}
