//! `platen completions` and `platen man`: what shells and `man` know of the command lines of both programs.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};
use clap::{Args, Command};
use clap_complete::Shell;

use super::write_out;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,

    /// The program
    #[arg(long, value_name = "PROGRAM", default_value = "platen", value_parser = ["platen", "platen-farm"])]
    program: String,
}

impl Completions {
    /// Prints the script for the shell. `programs` are the command lines.
    pub(crate) fn run(&self, programs: impl IntoIterator<Item = Command>) -> Result<()> {
        let Some(mut command) = programs.into_iter().find(|command| command.get_name() == self.program)
        else {
            unreachable!("clap accepts no other program");
        };
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, &self.program, &mut script);
        write_out(&script)
    }
}

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
