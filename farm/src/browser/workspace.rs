//! The directory that contains the browsers' profiles.
//!
//! Invariant: it is removed when the farm ends. If a farm was killed, the next farm removes its directory. It
//! recognises such a directory by the lock file, whose lock the kernel releases when its process exits.

use std::{
    fs::{self, File, Permissions},
    io::{self, ErrorKind},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use nix::unistd::Uid;
use tempfile::TempDir;

use super::identity::Identity;

const DIRECTORY_PREFIX: &str = "platen-farm-";
const LOCK_FILE: &str = "lock";
/// The kernel ends killed processes within milliseconds, unless the machine has no free CPU.
const MAX_REMOVAL_RETRIES: u32 = 20;
const REMOVAL_RETRY_INTERVAL: Duration = Duration::from_millis(50);
/// A farm that starts renames its hidden directory long before it has this age.
const MAX_HIDDEN_AGE: Duration = Duration::from_mins(10);

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
        if let Err(error) = remove(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the directory of browser profiles");
        }
    }
}

/// Removes the directories of killed farms of this user.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let Ok(data) = entry.metadata() else { continue };
        let is_own = data.is_dir() && data.uid() == Uid::effective().as_raw();
        let is_left = if name.starts_with(DIRECTORY_PREFIX) {
            is_own && is_abandoned(&path)
        } else {
            // Of a farm that was killed before it had renamed its directory, perhaps before it had a lock file.
            let age = data.modified().ok().and_then(|modified| modified.elapsed().ok());
            is_own
                && name.strip_prefix('.').is_some_and(|name| name.starts_with(DIRECTORY_PREFIX))
                && age.is_some_and(|age| age > MAX_HIDDEN_AGE)
        };
        if is_left {
            match remove(&path) {
                Ok(()) => tracing::info!(path = %path.display(), "removed profiles of a killed farm"),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "cannot remove profiles of a killed farm");
                }
            }
        }
    }
}

/// Whether no farm holds the lock. A directory has its lock file before its name, so one without it is the rest of a
/// removal that failed.
fn is_abandoned(directory: &Path) -> bool {
    match File::open(directory.join(LOCK_FILE)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Removes a directory, in which the processes of a browser that is being killed may still create files.
fn remove(directory: &Path) -> io::Result<()> {
    for _ in 0..MAX_REMOVAL_RETRIES {
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                thread::sleep(REMOVAL_RETRY_INTERVAL);
            }
            result => return result,
        }
    }
    fs::remove_dir_all(directory)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn the_directory_of_a_killed_farm_is_removed_and_that_of_a_running_one_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let running = Workspace::create(parent.path()).unwrap();
        let profile = running.create_profile(Identity::Own).unwrap();
        let killed = parent.path().join("platen-farm-killed");
        fs::create_dir_all(killed.join("browser-x")).unwrap();
        File::create(killed.join(LOCK_FILE)).unwrap();
        let half_removed = parent.path().join("platen-farm-half-removed");
        fs::create_dir_all(half_removed.join("browser-x")).unwrap();
        let hidden = |name: &str, age: Duration| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            File::open(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
            path
        };
        let starting = hidden(".platen-farm-starting", Duration::ZERO);
        let killed_early = hidden(".platen-farm-killed", MAX_HIDDEN_AGE * 2);
        sweep(parent.path());
        assert!(!killed.exists() && !killed_early.exists() && !half_removed.exists());
        fs::remove_dir(starting).unwrap();
        assert!(profile.path().is_dir());
        drop((profile, running));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
