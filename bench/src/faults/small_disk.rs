//! A file system in memory that can be filled. Mounting one needs root.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

/// Room for a new database and its log.
const SIZE: &str = "size=32m";
const FILLER: &str = "filler";

/// Unmounted when it is dropped.
pub(super) struct SmallDisk(PathBuf);

impl SmallDisk {
    pub(super) fn mount(directory: &Path) -> Result<Self> {
        fs::create_dir(directory)?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", SIZE, "tmpfs"]).arg(directory);
        let status = mount.status().context("cannot run mount")?;
        ensure!(status.success(), "cannot mount a file system in memory: run this case as root");
        Ok(Self(directory.to_owned()))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file until there is no room.
    pub(super) fn fill(&self) -> Result<()> {
        let mut filler = fs::File::create(self.0.join(FILLER))?;
        loop {
            match filler.write_all(&[0; 4096]) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(super) fn free(&self) -> Result<()> {
        Ok(fs::remove_file(self.0.join(FILLER))?)
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["--lazy"]).arg(&self.0).status();
    }
}
