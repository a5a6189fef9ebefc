//! `platen retention`.

use anyhow::Result;
use clap::Args;
use platen_statements::retention::{
    Due, InvalidRetention, Retention, parse_attempt_days, parse_audit_days, parse_versions,
};
use serde::Serialize;

use super::{CommonArgs, Limit};

#[derive(Debug, Args)]
pub(crate) struct RetentionCommand {
    /// Earlier versions of each template that are kept
    #[arg(long, value_name = "N|unlimited", value_parser = versions)]
    versions: Option<Limit>,

    /// Days that entries of the audit log are kept: 30 or more
    #[arg(long, value_name = "N|unlimited", value_parser = audit_days)]
    audit_days: Option<Limit>,

    /// Days that attempts are kept
    #[arg(long, value_name = "N", value_parser = parse_attempt_days)]
    attempt_days: Option<u32>,

    /// Print what the settings would delete, and change nothing
    #[arg(long)]
    dry_run: bool,

    #[command(flatten)]
    common: CommonArgs,
}

fn versions(text: &str) -> Result<Limit, InvalidRetention> {
    // An empty value is likely to be a variable that is not set.
    if text.is_empty() { Err(InvalidRetention::Versions) } else { parse_versions(text).map(Limit) }
}

fn audit_days(text: &str) -> Result<Limit, InvalidRetention> {
    if text.is_empty() { Err(InvalidRetention::AuditDays) } else { parse_audit_days(text).map(Limit) }
}

#[derive(Serialize)]
struct Outcome {
    #[serde(flatten)]
    settings: Retention,
    /// What was deleted, or with `--dry-run` would be.
    deleted: Due,
}

impl RetentionCommand {
    /// Shows the settings, or changes them and deletes what is due, in small steps.
    pub(crate) async fn run(self) -> Result<()> {
        let admin = self.common.open().await?;
        let operator = admin.operator();
        let stored = operator.retention().await?;
        let is_change = self.versions.is_some() || self.audit_days.is_some() || self.attempt_days.is_some();
        let settings = Retention {
            versions: self.versions.map_or(stored.versions, |limit| limit.0),
            audit_days: self.audit_days.map_or(stored.audit_days, |limit| limit.0),
            attempt_days: self.attempt_days.unwrap_or(stored.attempt_days),
        };
        let mut deleted = operator.due(&settings).await?;
        if is_change && !self.dry_run {
            operator.set_retention(&settings).await?;
            while operator.prune().await? {}
        } else if !self.dry_run {
            deleted = Due { versions: 0, audit_entries: 0, attempts: 0 };
        }
        let verb = if self.dry_run { "would be deleted" } else { "deleted" };
        self.common.output.print(&Outcome { settings, deleted }, |Outcome { settings, deleted }| {
            let Due { versions, audit_entries, attempts } = deleted;
            let settings = settings.summary();
            if deleted.is_nothing() {
                return settings;
            }
            format!(
                "{settings}\n{verb}: {versions} versions, {audit_entries} audit entries, {attempts} attempts"
            )
        })
    }
}
