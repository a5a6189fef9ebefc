//! `platen migrate`.

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Serialize;

use super::CommonArgs;
use crate::db::{Location, Purpose};

#[derive(Debug, Args)]
pub(crate) struct MigrateCommand {
    #[command(flatten)]
    common: CommonArgs,
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

impl MigrateCommand {
    /// Applies the missing steps and prints them.
    pub(crate) async fn run(self) -> Result<()> {
        let location = self.common.database.location();
        if self.common.database.db.is_none() {
            super::up::make_private(&self.common.database.data)?;
        }
        let database = self.common.database.open(Purpose::Migrate).await?;
        let steps = crate::migrate::migrate(&database)
            .await
            .with_context(|| format!("the database {location} was not brought up to date"))?;
        let applied = Applied {
            applied: steps.iter().map(|step| Step { number: step.number, name: step.name }).collect(),
        };
        self.common.output.print(&applied, |Applied { applied }| {
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
