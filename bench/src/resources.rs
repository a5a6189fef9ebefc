//! What a server holds: memory, processes, descriptors, files.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Result;
use platen_harness::procfs;
use tokio::time::sleep;

use crate::{
    checks::Checks,
    server::BROWSERS,
    statistics::{count, mebibytes},
};

/// The time for browsers that are replaced.
const MAX_BROWSER_WAIT: Duration = Duration::from_secs(30);

/// What a server and its browsers hold at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resources {
    /// Resident memory of the server in bytes.
    pub(crate) memory: u64,
    /// Anonymous memory of the processes below it in bytes.
    pub(crate) browser_memory: u64,
    pub(crate) processes: usize,
    pub(crate) descriptors: usize,
    /// Files and directories in the browsers' workspace.
    pub(crate) files: usize,
}

impl Resources {
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let below = procfs::descendants(pid);
        let workspace = procfs::browsers(pid).iter().find_map(|it| it.browser_workspace().ok());
        Ok(Self {
            memory: procfs::memory(pid, "VmRSS")?,
            browser_memory: below.iter().map(procfs::ProcessId::anonymous_memory).sum(),
            processes: below.len(),
            descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count(),
            files: workspace.map_or(0, |path| files(&path)),
        })
    }

    /// What it holds once it has all its browsers, or has not had them for [`MAX_BROWSER_WAIT`].
    pub(crate) async fn with_browsers(pid: u32) -> Result<Self> {
        let started = Instant::now();
        while procfs::browsers(pid).len() != BROWSERS && started.elapsed() < MAX_BROWSER_WAIT {
            sleep(Duration::from_millis(200)).await;
        }
        Self::of(pid)
    }

    /// The figures in the order of [`NAMES`].
    pub(crate) fn figures(&self) -> [f64; 5] {
        let Self { memory, browser_memory, processes, descriptors, files } = self;
        let [memory, browser_memory] = [memory, browser_memory].map(|bytes| mebibytes(*bytes));
        let [processes, descriptors, files] = [processes, descriptors, files].map(|number| count(*number));
        [memory, browser_memory, processes, descriptors, files]
    }

    /// Cells of a Markdown row.
    pub(crate) fn cells(&self) -> String {
        self.figures().map(|figure| format!("{figure:.0}")).join(" | ")
    }
}

/// The names of [`Resources::figures`], as the head of a table.
pub(crate) const NAMES: [&str; 5] = ["server MiB", "browsers MiB", "processes", "descriptors", "files"];

/// Checks that each figure has grown at most by its ratio and then its number.
pub(crate) fn check_growth(
    checks: &mut Checks,
    name: &str,
    (before, after): ([f64; 5], [f64; 5]),
    growth: [(f64, f64); 5],
) {
    for (index, figure) in NAMES.into_iter().enumerate() {
        let (before, (ratio, spare)) = (before[index], growth[index]);
        let name = format!("{name}: {figure}, before {before:.0}");
        checks.at_most(&name, after[index], before * ratio + spare, "");
    }
}

fn files(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|it| 1 + if it.file_type().is_ok_and(|it| it.is_dir()) { files(&it.path()) } else { 0 }).sum()
}
