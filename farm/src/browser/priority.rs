//! The CPU priority of browsers, which is lower than that of the farm and the host.
//!
//! Each browser runs in its own session. Where the kernel groups processes by session (autogroup,
//! sched(7)), a browser with hundreds of busy threads gets no more CPU than one with a single thread, and
//! the nice value of the group decides between browsers. Elsewhere, such as in a container with a CPU
//! cgroup, the nice value of each thread does.

use std::fs;

use rustix::process::{Pid, getpriority_process, setpriority_pgrp};

/// How far browsers are below a farm whose priority is not higher than that of other programs. With 5 instead, they
/// rendered half as much beside busy programs, and the farm answered no faster.
const BELOW_FARM: i32 = 2;
/// How far a browser with a heavy job beside other jobs is below other browsers: it gets a tenth of their CPU time.
const BELOW_OTHERS: i32 = 10;
const MAX_NICE: i32 = 19;

/// The nice values of browsers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Priorities {
    pub(super) normal: Priority,
    /// With a heavy job beside other jobs.
    pub(super) low: Priority,
    /// What a process that the farm starts adds to its nice value to have that of a browser.
    pub(super) increment: i32,
}

/// The nice values of a browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Priority {
    threads: i32,
    session: i32,
}

impl Priorities {
    /// The nice values beside this process.
    pub(super) fn of_browsers() -> Self {
        let farm = getpriority_process(None).unwrap_or(0);
        Self::beside(farm, session_nice().unwrap_or(farm))
    }

    /// The nice values beside a farm with these nice values of its threads and of its session.
    fn beside(farm: i32, session: i32) -> Self {
        let below = |nice: i32, levels: i32| (nice + levels).min(MAX_NICE);
        let normal = Priority { threads: beside(farm), session: beside(session) };
        let low = Priority {
            threads: below(normal.threads, BELOW_OTHERS),
            session: below(normal.session, BELOW_OTHERS),
        };
        Self { normal, low, increment: normal.threads - farm }
    }
}

/// The nice value of browsers beside a farm of this one. It is never negative: if the farm has a higher priority than
/// other programs, browsers have the same priority as those.
fn beside(farm: i32) -> i32 {
    if farm < 0 { 0 } else { (farm + BELOW_FARM).min(MAX_NICE) }
}

/// The nice value of the group of this process's session; `None` if the kernel does not group by session.
fn session_nice() -> Option<i32> {
    let group = fs::read_to_string("/proc/self/autogroup").ok()?;
    group.split_ascii_whitespace().last()?.parse().ok()
}

/// Sets the nice value of all threads of a browser and of its session's group. False if the kernel refused:
/// raising the priority again needs root.
pub(super) fn set(leader: u32, priority: Priority) -> bool {
    set_for_session(leader, priority);
    let group = Pid::from_raw(leader.cast_signed());
    group.is_some_and(|group| setpriority_pgrp(Some(group), priority.threads).is_ok())
}

/// Sets the nice value of a session's group, if the kernel has autogroup.
pub(super) fn set_for_session(leader: u32, priority: Priority) {
    let _ = fs::write(format!("/proc/{leader}/autogroup"), priority.session.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_have_a_lower_priority_than_the_farm_and_never_a_raised_one() {
        for (farm, normal, low) in [(-10, 0, 10), (-1, 0, 10), (0, 2, 12), (10, 12, 19), (19, 19, 19)] {
            let priorities = Priorities::beside(farm, farm);
            assert_eq!(priorities.normal, Priority { threads: normal, session: normal }, "beside {farm}");
            assert_eq!(priorities.low, Priority { threads: low, session: low }, "beside {farm}");
            assert_eq!(farm + priorities.increment, normal, "beside {farm}");
        }
    }

    #[test]
    fn the_session_of_a_browser_is_below_that_of_the_farm() {
        // The farm has a higher priority within a session that it shares with other programs.
        let priorities = Priorities::beside(-10, 0);
        assert_eq!(priorities.normal, Priority { threads: 0, session: 2 });
        assert_eq!(priorities.low, Priority { threads: 10, session: 12 });
    }
}
