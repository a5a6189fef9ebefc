//! Memory, open files and the directory of profiles.

use std::env;

use platen_program::startup;
use rustix::fs::statvfs;

use super::Finding;
use crate::{Config, cgroup};

/// Memory of a browser, in MiB; see docs/operating.md.
const BROWSER_MIB: u64 = 150;
/// A connection, a job and a page need some each.
const MIN_FILES: u64 = 4096;
const MIN_PROFILE_MIB: u64 = 256;

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let browsers = config.browser_count().get() as u64;
    let needed = browsers * BROWSER_MIB + u64::from(config.page_memory_mib().get());
    let memory = cgroup::available_mib().map(|available| {
        let text = format!(
            "{available} MiB can be used; {browsers} browsers and one page at --page-memory use {needed} MiB"
        );
        if available < needed {
            Finding::warning(
                "memory",
                text,
                "Lower --browsers or --page-memory, or give the machine more memory",
            )
        } else {
            Finding::ok("memory", text)
        }
    });
    startup::raise_file_limit();
    let files = startup::file_limit();
    let files = if files < MIN_FILES {
        Finding::warning(
            "open files",
            format!("the limit is {files}"),
            format!("Raise the hard limit to {MIN_FILES} or more: ulimit -Hn, or LimitNOFILE in systemd"),
        )
    } else {
        Finding::ok("open files", format!("the limit is {files}"))
    };
    let directory = env::temp_dir();
    let space = statvfs(&directory).ok().map(|space| space.f_bavail * space.f_frsize / 1024 / 1024);
    let profiles = space.map(|space| {
        let text = format!("{space} MiB are free in {} for profiles of browsers", directory.display());
        if space < MIN_PROFILE_MIB {
            Finding::warning("disk", text, "Free some, or set TMPDIR to another directory")
        } else {
            Finding::ok("disk", text)
        }
    });
    memory.into_iter().chain([files]).chain(profiles).collect()
}
