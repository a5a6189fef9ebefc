//! The environment of browsers: the user that they run as, the directory of their profiles, and their variables.
//!
//! Invariant: the user is never root. Chromium's sandbox does not start as root, and a page that escaped from it would
//! control the machine. The directory is removed when the farm ends; if a farm was killed, the next farm removes its
//! directory.

use std::{
    ffi::OsString,
    fs::{self, File, Permissions},
    io::{self, ErrorKind},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use nix::unistd::{Gid, Uid, User};
use platen_program::without_name;
use tempfile::TempDir;

use crate::error::StartError;

/// User and group id of `nobody`, which usually own no files.
const NOBODY: (u32, u32) = (65_534, 65_534);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Identity {
    /// The farm's own user, which is not root.
    Own,
    /// Another user, if the farm is root.
    Other {
        uid: Uid,
        /// Its only group.
        gid: Gid,
    },
}

impl Identity {
    pub(super) fn resolve(setting: Option<&str>) -> Result<Self, StartError> {
        match (Uid::effective().is_root(), setting) {
            (true, Some(name)) => {
                let user = look_up(name)?.ok_or_else(|| StartError::NoSuchUser(name.to_owned()))?;
                Self::other(user)
            }
            (true, None) => {
                let user = match look_up("platen-farm")? {
                    Some(user) => Some(user),
                    None => look_up("nobody")?,
                };
                Self::other(user.unwrap_or((Uid::from_raw(NOBODY.0), Gid::from_raw(NOBODY.1))))
            }
            (false, None) => Ok(Self::Own),
            (false, Some(name)) => match look_up(name)? {
                Some((uid, _)) if uid == Uid::effective() => Ok(Self::Own),
                _ => Err(StartError::CannotBecome(name.to_owned())),
            },
        }
    }

    fn other((uid, gid): (Uid, Gid)) -> Result<Self, StartError> {
        if uid.is_root() { Err(StartError::BrowserAsRoot) } else { Ok(Self::Other { uid, gid }) }
    }
}

/// Finds a user by name or number. A number need not exist: some container images have no user database.
fn look_up(name: &str) -> Result<Option<(Uid, Gid)>, StartError> {
    let failed = |source| StartError::Users(name.to_owned(), source);
    let number = name.parse().map(Uid::from_raw);
    let found = match number {
        Ok(uid) => User::from_uid(uid).map_err(failed)?,
        Err(_) => User::from_name(name).map_err(failed)?,
    };
    Ok(match (found, number) {
        (Some(user), _) => Some((user.uid, user.gid)),
        (None, Ok(uid)) => Some((uid, Gid::from_raw(uid.as_raw()))),
        (None, Err(_)) => None,
    })
}

const DIRECTORY_PREFIX: &str = "platen-browsers-";
/// The kernel ends killed processes within milliseconds, unless the machine has no free CPU.
const MAX_REMOVAL_RETRIES: u32 = 20;
const REMOVAL_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// A farm's directory of profiles; removed when dropped.
#[derive(Debug)]
pub(super) struct Workspace {
    path: PathBuf,
    /// Tells other farms that it is in use. The kernel releases the lock when the process exits.
    _lock: File,
}

impl Workspace {
    /// Creates the directory in `parent`, and removes those of killed farms there.
    pub(super) fn create(parent: &Path) -> io::Result<Self> {
        sweep(parent);
        loop {
            match Self::create_in(parent) {
                // Another farm that starts has removed it before it was locked.
                Err(error) if error.kind() == ErrorKind::NotFound && parent.exists() => {}
                created => return created,
            }
        }
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        let directory = tempfile::Builder::new().prefix(DIRECTORY_PREFIX).tempdir_in(parent);
        let directory = directory.map_err(|error| without_name(&error))?;
        // The browsers' user may enter the directory, but neither list nor lock it.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o711))?;
        let lock = File::open(directory.path())?;
        lock.lock()?;
        fs::metadata(directory.path())?;
        Ok(Self { path: directory.keep(), _lock: lock })
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

fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let has_name = entry.file_name().to_string_lossy().starts_with(DIRECTORY_PREFIX);
        let is_own = || entry.metadata().is_ok_and(|it| it.is_dir() && it.uid() == Uid::effective().as_raw());
        if !has_name || !is_own() {
            continue;
        }
        // Locked until it is removed, so that no farm begins to use it.
        let Some(_lock) = File::open(&path).ok().filter(|lock| lock.try_lock().is_ok()) else { continue };
        match remove(&path) {
            Ok(()) => tracing::info!(path = %path.display(), "removed profiles of a killed farm"),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot remove profiles of a killed farm");
            }
        }
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

/// The environment variables of a browser. It inherits only the settings of time zone and fonts, because the farm's
/// environment may contain secrets.
pub(super) fn variables(profile: &Path) -> impl Iterator<Item = (&'static str, OsString)> {
    const INHERITED: &[&str] = &["TZ", "FONTCONFIG_FILE", "FONTCONFIG_PATH"];
    let inherited = INHERITED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
    let profile = profile.as_os_str();
    inherited.chain([
        ("HOME", profile.to_owned()),
        ("TMPDIR", profile.to_owned()),
        ("PATH", "/usr/bin:/bin".into()),
        ("LANG", "C.UTF-8".into()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_never_run_as_root() {
        Identity::resolve(Some("no-such-user-here")).unwrap_err();
        if Uid::effective().is_root() {
            assert!(
                matches!(Identity::resolve(None).unwrap(), Identity::Other { uid, .. } if !uid.is_root())
            );
            for root in ["root", "0"] {
                assert!(matches!(Identity::resolve(Some(root)), Err(StartError::BrowserAsRoot)));
            }
            assert!(
                matches!(Identity::resolve(Some("12345")).unwrap(), Identity::Other { uid, .. } if uid.as_raw() == 12345)
            );
        } else {
            assert_eq!(Identity::resolve(None).unwrap(), Identity::Own);
            assert!(matches!(Identity::resolve(Some("root")), Err(StartError::CannotBecome(_))));
        }
    }

    #[test]
    fn the_directory_of_a_killed_farm_is_removed_and_that_of_a_running_one_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let running = Workspace::create(parent.path()).unwrap();
        let profile = running.create_profile(Identity::Own).unwrap();
        let killed = parent.path().join(format!("{DIRECTORY_PREFIX}killed"));
        fs::create_dir_all(killed.join("browser-x")).unwrap();
        sweep(parent.path());
        assert!(!killed.exists() && profile.path().is_dir());
        drop((profile, running));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
