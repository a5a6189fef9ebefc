//! Changes of files.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::timeout,
};

/// An editor changes a file in several steps.
const QUIET_TIME: Duration = Duration::from_millis(50);

/// Watches files.
pub(super) struct Watch {
    changes: UnboundedReceiver<()>,
    /// Ends when it is dropped.
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Watches the directories of the files, because editors replace files, and a file may not exist yet.
    pub(super) fn start(files: Vec<PathBuf>) -> Result<Self> {
        let mut directories = BTreeSet::new();
        let mut files_to_watch = BTreeSet::new();
        for file in files {
            let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
            let directory = parent.unwrap_or(Path::new("."));
            let directory = directory
                .canonicalize()
                .with_context(|| format!("the directory {} cannot be files_to_watch", directory.display()))?;
            files_to_watch.insert(directory.join(file.file_name().unwrap_or_default()));
            directories.insert(directory);
        }
        let (sender, changes) = unbounded_channel();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            let concerns = match event {
                Ok(event) => {
                    !matches!(event.kind, EventKind::Access(_))
                        && event.paths.iter().any(|path| files_to_watch.contains(path))
                }
                // Changes may have been missed.
                Err(_) => true,
            };
            if concerns {
                let _ = sender.send(());
            }
        })
        .context("the system does not tell about changed files")?;
        for directory in directories {
            watcher
                .watch(&directory, RecursiveMode::NonRecursive)
                .with_context(|| format!("the directory {} cannot be files_to_watch", directory.display()))?;
        }
        Ok(Self { changes, _watcher: watcher })
    }

    /// Completes when a file was changed and then not again for a moment.
    pub(super) async fn next(&mut self) {
        // The watcher, which has the sender, lives as long.
        self.changes.recv().await;
        while timeout(QUIET_TIME, self.changes.recv()).await.is_ok() {}
    }
}
