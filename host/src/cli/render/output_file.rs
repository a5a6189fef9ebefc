//! Writing the file.
//!
//! Invariant: a program that reads the file sees the whole old one or the whole new one.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
    process,
};

use anyhow::{Context as _, Result};

/// Writes a file, or standard output for `-`.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if path == Path::new("-") {
        let mut output = io::stdout();
        return output
            .write_all(bytes)
            .and_then(|()| output.flush())
            .context("standard output cannot be written");
    }
    replace(path, bytes).with_context(|| format!("{} cannot be written", path.display()))
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let existing = match fs::metadata(path) {
        Ok(existing) if !existing.is_file() => return fs::write(path, bytes),
        Ok(existing) => Some(existing.permissions()),
        Err(_) => None,
    };
    // A symbolic link stays one.
    let target = if existing.is_some() { fs::canonicalize(path)? } else { path.to_owned() };
    let Some(name) = target.file_name() else { return fs::write(path, bytes) };
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}", process::id()));
    let new = NewFile(target.with_file_name(hidden));
    match fs::write(&new.0, bytes) {
        // A file can be writable in a directory that is not.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && existing.is_some() => {
            return fs::write(path, bytes);
        }
        other => other?,
    }
    if let Some(permissions) = existing {
        fs::set_permissions(&new.0, permissions)?;
    }
    fs::rename(&new.0, &target)
}

/// Removed unless it was renamed.
struct NewFile(PathBuf);

impl Drop for NewFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

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
        write(&directory.path().join("missing/a.pdf"), b"x").unwrap_err();
        write(Path::new("/dev/null"), b"x").unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
