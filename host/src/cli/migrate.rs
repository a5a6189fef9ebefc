//! `platen migrate`.

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Serialize;

use super::CommonArgs;
use crate::{
    db::{Location, Purpose},
    migrate::Step,
};

#[derive(Debug, Args)]
pub(crate) struct MigrateCommand {
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Serialize)]
struct Applied {
    applied: Vec<Step>,
}

impl MigrateCommand {
    /// Applies the missing steps and prints them.
    pub(crate) async fn run(self) -> Result<()> {
        let location = self.common.database.location();
        if self.common.database.db.is_none() {
            super::up::make_private(&self.common.database.data)?;
        }
        let database = self.common.database.open(Purpose::Migrate).await?;
        let applied = crate::migrate::migrate(&database)
            .await
            .with_context(|| format!("the database {location} was not brought up to date"))?;
        self.common.output.print(&Applied { applied }, |Applied { applied }| {
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
