//! `platen completions`.

use std::io::{self, Write as _};

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::Shell;

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,

    /// The program
    #[arg(long, value_name = "PROGRAM", default_value = "platen", value_parser = ["platen", "platen-farm"])]
    program: String,
}

impl Completions {
    /// Prints the script for the shell. `programs` are the command lines of both programs.
    pub(crate) fn run(&self, programs: impl IntoIterator<Item = Command>) -> Result<()> {
        let Some(mut command) = programs.into_iter().find(|command| command.get_name() == self.program)
        else {
            unreachable!("clap accepts no other program");
        };
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, &self.program, &mut script);
        match io::stdout().write_all(&script) {
            // A reader that has read enough, such as `head`.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => Ok(other?),
        }
    }
}
