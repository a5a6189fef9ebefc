//! `platen migrate`.

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Serialize;

use super::Common;
use crate::db::{Location, Purpose};

/// Flags of `platen migrate`.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    common: Common,
}

#[derive(Serialize)]
struct Applied {
    applied: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    number: u32,
    name: &'static str,
}

impl Migrate {
    /// Applies what is missing and prints it.
    pub(crate) async fn run(self) -> Result<()> {
        let location = self.common.at.location();
        if self.common.at.db.is_none() {
            super::up::make_private(&self.common.at.data)?;
        }
        let database = self.common.at.open(Purpose::Migrate).await?;
        let steps = crate::migrate::migrate(&database)
            .await
            .with_context(|| format!("the database {location} was not brought up to date"))?;
        let applied = Applied {
            applied: steps.iter().map(|step| Step { number: step.number, name: step.name }).collect(),
        };
        self.common.form.print(&applied, |Applied { applied }| {
            let what = match &location {
                Location::File(_) => "file",
                Location::Server(_) => "server",
            };
            let mut lines: Vec<String> =
                applied.iter().map(|step| format!("applied {}: {}", step.number, step.name)).collect();
            lines.push(format!("the database {what} {location} is up to date"));
            lines.join("\n")
        })
    }
}
