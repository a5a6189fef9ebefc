//! The files of a render: writing the result, and changes of what it is made from.

use std::{
    collections::BTreeSet,
    fs, io,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result};
use notify::{Config, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use platen_program::without_name;
use platen_shared::format::OutputFormat;
use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    time::timeout,
};

/// The format of a file name's extension, in any case of letters.
pub(in crate::cli) fn format(path: &Path) -> Option<OutputFormat> {
    path.extension()?.to_string_lossy().to_ascii_lowercase().parse().ok()
}

/// Writes a file, or standard output for `-`. A program that reads the file sees the whole old one or the whole new one.
pub(in crate::cli) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if path == Path::new("-") {
        let mut output = io::stdout();
        return output
            .write_all(bytes)
            .and_then(|()| output.flush())
            .context("standard output cannot be written");
    }
    replace(path, bytes)
        .map_err(|error| without_name(&error))
        .with_context(|| format!("{} cannot be written", path.display()))
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let existing = fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|existing| !existing.is_file()) {
        return fs::write(path, bytes);
    }
    // A symbolic link stays one.
    let target = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".").permissions(fs::Permissions::from_mode(0o666));
    let mut new = match builder.tempfile_in(directory.unwrap_or(Path::new("."))) {
        // A file can be writable in a directory that is not.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && existing.is_some() => {
            return fs::write(path, bytes);
        }
        other => other?,
    };
    new.write_all(bytes)?;
    if let Some(existing) = existing {
        new.as_file().set_permissions(existing.permissions())?;
    }
    new.persist(&target)?;
    Ok(())
}

/// An editor changes a file in several steps.
const QUIET_TIME: Duration = Duration::from_millis(50);

/// Watches files, and those of a folder that are not hidden.
pub(super) struct Watch {
    changes: UnboundedReceiver<()>,
    /// Ends when it is dropped.
    _watcher: RecommendedWatcher,
}

impl Watch {
    /// Watches the directories of the files, because editors replace files, and a file may not exist yet. What is written to
    /// `output` is no change of the folder.
    pub(super) fn start(files: Vec<PathBuf>, folder: Option<PathBuf>, output: &Path) -> Result<Self> {
        let mut directories = BTreeSet::new();
        let mut files_to_watch = BTreeSet::new();
        for file in files {
            let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
            let directory = parent.unwrap_or(Path::new("."));
            let directory = directory
                .canonicalize()
                .with_context(|| format!("the directory {} cannot be watched", directory.display()))?;
            files_to_watch.insert(directory.join(file.file_name().unwrap_or_default()));
            directories.insert(directory);
        }
        let output = output.canonicalize().or_else(|_| {
            let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty());
            let parent = parent.unwrap_or(Path::new(".")).canonicalize();
            parent.map(|parent| parent.join(output.file_name().unwrap_or_default()))
        });
        let (of_folder, output) = (folder.clone(), output.unwrap_or_default());
        let is_of_folder = move |path: &Path| {
            let below = of_folder.as_ref().and_then(|folder| path.strip_prefix(folder).ok());
            path != output
                && below
                    .is_some_and(|path| !path.iter().any(|name| name.as_encoded_bytes().starts_with(b".")))
        };
        let (sender, changes) = unbounded_channel();
        let tell = move |event: notify::Result<notify::Event>| {
            let concerns = match event {
                Ok(event) => {
                    let is_watched = |path: &PathBuf| files_to_watch.contains(path) || is_of_folder(path);
                    !matches!(event.kind, EventKind::Access(_)) && event.paths.iter().any(is_watched)
                }
                // Changes may have been missed.
                Err(_) => true,
            };
            if concerns {
                let _ = sender.send(());
            }
        };
        // Nothing behind a link out of the folder is watched.
        let config = Config::default().with_follow_symlinks(false);
        let mut watcher =
            RecommendedWatcher::new(tell, config).context("the system does not tell about changed files")?;
        let directories = directories.into_iter().map(|directory| (directory, RecursiveMode::NonRecursive));
        // The last one decides for a directory that is there twice.
        for (directory, mode) in directories.chain(folder.map(|folder| (folder, RecursiveMode::Recursive))) {
            watcher
                .watch(&directory, mode)
                .with_context(|| format!("the directory {} cannot be watched", directory.display()))?;
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_mode_and_links_stay() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("a.pdf"), directory.path().join("b.pdf"));
        write(&file, b"one").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        write(&link, b"two").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"two");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let error = format!("{:#}", write(&directory.path().join("missing/a.pdf"), b"x").unwrap_err());
        assert!(error.ends_with("missing/a.pdf cannot be written: there is no such directory"), "{error}");
        write(Path::new("/dev/null"), b"x").unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
