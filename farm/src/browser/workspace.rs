//! The directory under which browsers have their homes.
//!
//! Invariant: it is gone when the farm and its last browser are; one that a killed farm left
//! behind is removed by the next farm to start. A lock file tells the two apart: the system lets
//! go of a dead process's lock.

use std::{
    fs::{self, File, Permissions, TryLockError},
    io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
};

use nix::unistd::Uid;
use tempfile::TempDir;

use super::identity::Identity;

const PREFIX: &str = "platen-farm-";
const LOCK: &str = "lock";

/// Where the homes are; removed when dropped.
#[derive(Debug)]
pub(super) struct Workspace {
    path: PathBuf,
    _lock: File,
}

impl Workspace {
    /// Makes one under `parent`, and sweeps what dead farms left there.
    pub(super) fn create(parent: &Path) -> io::Result<Self> {
        sweep(parent);
        // The lock is taken before the directory has the name that other farms sweep by.
        let hidden = tempfile::Builder::new().prefix(&format!(".{PREFIX}")).tempdir_in(parent)?;
        let lock = File::create(hidden.path().join(LOCK))?;
        lock.lock()?;
        // Browsers of another user must pass through, and see nothing of their neighbours.
        fs::set_permissions(hidden.path(), Permissions::from_mode(0o711))?;
        let name = hidden.path().file_name().unwrap_or_default().to_string_lossy();
        let path = parent.join(name.trim_start_matches('.'));
        fs::rename(hidden.path(), &path)?;
        // Nothing of that name is left for it to remove.
        let _ = hidden.keep();
        Ok(Self { path, _lock: lock })
    }

    /// Makes a home for one browser, which its user alone may enter.
    pub(super) fn home(&self, identity: Identity) -> io::Result<TempDir> {
        let home = tempfile::Builder::new()
            .prefix("browser-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&self.path)?;
        if let Identity::Other { uid, gid } = identity {
            chown(home.path(), Some(uid.as_raw()), Some(gid.as_raw()))?;
        }
        Ok(home)
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "the directory of browser homes cannot be removed");
        }
    }
}

/// Removes the directories of this user's dead farms.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let own = entry.metadata().is_ok_and(|data| data.is_dir() && data.uid() == Uid::effective().as_raw());
        if named && own && is_abandoned(&entry.path()) {
            let path = entry.path();
            match fs::remove_dir_all(&path) {
                Ok(()) => tracing::info!(path = %path.display(), "removed what a killed farm left"),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "cannot remove what a killed farm left");
                }
            }
        }
    }
}

fn is_abandoned(directory: &Path) -> bool {
    match File::open(directory.join(LOCK)).map(|lock| lock.try_lock()) {
        Ok(Ok(())) => true,
        Ok(Err(TryLockError::WouldBlock | TryLockError::Error(_))) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_farms_directory_is_swept_and_a_living_ones_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let living = Workspace::create(parent.path()).unwrap();
        let home = living.home(Identity::Own).unwrap();
        let dead = parent.path().join("platen-farm-dead");
        fs::create_dir_all(dead.join("browser-x")).unwrap();
        File::create(dead.join(LOCK)).unwrap();
        sweep(parent.path());
        assert!(!dead.exists());
        assert!(home.path().is_dir());
        drop((home, living));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
