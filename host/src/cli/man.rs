//! `platen man`.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Command};

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The directory to which the pages are written, such as ~/.local/share/man/man1
    directory: PathBuf,
}

impl Man {
    /// Writes a page for each program and for each command with its subcommands.
    pub(crate) fn run(&self, programs: impl IntoIterator<Item = Command>) -> Result<()> {
        fs::create_dir_all(&self.directory)
            .with_context(|| format!("the directory {} cannot be created", self.directory.display()))?;
        for command in programs {
            // Without the page of "help", which repeats the others.
            clap_mangen::generate_to(command.disable_help_subcommand(true), &self.directory)
                .with_context(|| format!("the pages cannot be written to {}", self.directory.display()))?;
        }
        Ok(())
    }
}
