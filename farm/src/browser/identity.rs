//! The user that browsers run as.
//!
//! Invariant: it is never root. Chromium's sandbox does not start as root, and a page that escaped from it
//! would control the machine.

use nix::unistd::{Gid, Uid, User};

use crate::StartError;

/// User and group id of `nobody`, which usually own no files.
const NOBODY: (u32, u32) = (65_534, 65_534);

/// The user of the browsers.
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
    /// Chooses the user by the setting and the user of the farm.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_never_run_as_root() {
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
    fn an_unknown_user_is_an_error() {
        Identity::resolve(Some("no-such-user-here")).unwrap_err();
    }
}
