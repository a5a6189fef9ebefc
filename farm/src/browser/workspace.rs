//! The directory that contains the browsers' profiles.
//!
//! Invariant: it is removed when the farm ends. If a farm was killed, the next farm removes its directory. It
//! recognises such a directory by the lock file, whose lock the kernel releases when its process exits.

use std::{
    fs::{self, File, Permissions},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
};

use nix::unistd::Uid;
use tempfile::TempDir;

use super::identity::Identity;

const DIRECTORY_PREFIX: &str = "platen-farm-";
const LOCK_FILE: &str = "lock";

/// A farm's directory of profiles; removed when dropped.
#[derive(Debug)]
pub(super) struct Workspace {
    path: PathBuf,
    _lock: File,
}

impl Workspace {
    /// Creates the directory in `parent`, and removes those of killed farms there.
    pub(super) fn create(parent: &Path) -> io::Result<Self> {
        sweep(parent);
        // The lock is taken before the directory has the name by which other farms find it.
        let hidden = tempfile::Builder::new().prefix(&format!(".{DIRECTORY_PREFIX}")).tempdir_in(parent)?;
        let lock = File::create(hidden.path().join(LOCK_FILE))?;
        lock.lock()?;
        // The browsers' user may enter the directory, but not list it.
        fs::set_permissions(hidden.path(), Permissions::from_mode(0o711))?;
        let name = hidden.path().file_name().unwrap_or_default().to_string_lossy();
        let path = parent.join(name.trim_start_matches('.'));
        fs::rename(hidden.path(), &path)?;
        // The directory was renamed, so `TempDir` must not remove the old name.
        let _ = hidden.keep();
        Ok(Self { path, _lock: lock })
    }

    /// Creates the profile directory of one browser, which only the browser's user may enter.
    pub(super) fn create_profile(&self, identity: Identity) -> io::Result<TempDir> {
        let profile = tempfile::Builder::new()
            .prefix("browser-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&self.path)?;
        if let Identity::Other { uid, gid } = identity {
            chown(profile.path(), Some(uid.as_raw()), Some(gid.as_raw()))?;
        }
        Ok(profile)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the directory of browser profiles");
        }
    }
}

/// Removes the directories of killed farms of this user.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let has_prefix = entry.file_name().to_string_lossy().starts_with(DIRECTORY_PREFIX);
        let is_own =
            entry.metadata().is_ok_and(|data| data.is_dir() && data.uid() == Uid::effective().as_raw());
        if has_prefix && is_own && is_abandoned(&entry.path()) {
            let path = entry.path();
            match fs::remove_dir_all(&path) {
                Ok(()) => tracing::info!(path = %path.display(), "removed profiles of a killed farm"),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "cannot remove profiles of a killed farm");
                }
            }
        }
    }
}

fn is_abandoned(directory: &Path) -> bool {
    File::open(directory.join(LOCK_FILE)).is_ok_and(|lock| lock.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_of_a_killed_farm_is_removed_and_that_of_a_running_one_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let running = Workspace::create(parent.path()).unwrap();
        let profile = running.create_profile(Identity::Own).unwrap();
        let killed = parent.path().join("platen-farm-killed");
        fs::create_dir_all(killed.join("browser-x")).unwrap();
        File::create(killed.join(LOCK_FILE)).unwrap();
        sweep(parent.path());
        assert!(!killed.exists());
        assert!(profile.path().is_dir());
        drop((profile, running));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
