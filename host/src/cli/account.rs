//! `platen account`.

use anyhow::{Result, bail, ensure};
use clap::{Args, Subcommand};
use platen_shared::name::Name;
use platen_statements::{
    Operator,
    accounts::{Account, AccountContents},
    limits::NewLimits,
};
use serde::Serialize;

use super::{CommonArgs, Limit, table};
use crate::admin::CommandBackend;

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Create an account
    Create {
        /// The account's name, which must be unique
        #[arg(value_parser = Name::parse)]
        name: Name,
        /// Attempts a month, or "unlimited"
        #[arg(long, value_name = "N|unlimited", default_value = "unlimited", value_parser = quota)]
        quota: Limit,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// List all accounts with this month's attempts
    List {
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Change an account's quota
    Quota {
        #[command(flatten)]
        of: AccountArgs,
        /// Attempts a month, or "unlimited"
        #[arg(value_name = "N|unlimited", value_parser = quota)]
        quota: Limit,
    },
    /// Limit an account's requests in a minute, and those that are answered at once
    Limits {
        #[command(flatten)]
        of: AccountArgs,
        #[command(flatten)]
        limits: LimitArgs,
    },
    /// Refuse all of an account's keys
    Disable(AccountArgs),
    /// Accept an account's keys again
    Enable(AccountArgs),
    /// Delete an account with its keys, templates, links, recorded requests, members and invites; this cannot be undone
    Delete {
        #[command(flatten)]
        of: AccountArgs,
        /// Confirmation: otherwise print what would be deleted, and fail
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Serialize)]
struct DeletedAccount {
    #[serde(flatten)]
    account: Account,
    deleted: AccountContents,
}

#[derive(Debug, Args)]
pub(crate) struct AccountArgs {
    /// The account's name or id
    #[arg(value_name = "NAME|ID")]
    account: String,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct LimitArgs {
    /// Requests in a minute, at least 1, or "none" for no limit
    #[arg(long, value_name = "N|none", value_parser = limit)]
    requests_per_minute: Option<Limit>,
    /// Requests at once, at least 1, or "none" for no limit
    #[arg(long, value_name = "N|none", value_parser = limit)]
    concurrency: Option<Limit>,
}

/// Parses a limit of at least 1.
fn limit(text: &str) -> Result<Limit, String> {
    Limit::parse(text, 1, "none")
}

/// Attempts a month.
fn quota(text: &str) -> Result<Limit, String> {
    Limit::parse(text, 0, "unlimited")
}

impl AccountCommand {
    pub(crate) async fn run(self) -> Result<()> {
        match self {
            Self::Create { name, quota, common } => {
                let admin = common.open().await?;
                let Ok(id) = admin.operator().create_account(&name, quota.0).await? else {
                    bail!("there is an account {:?} already", name.as_str())
                };
                let created = admin.account(id.as_str()).await?;
                common.output.print(&created, |account| {
                    format!("created {} ({}), quota {}", account.name, account.id, quota_text(account.quota))
                })
            }
            Self::List { common } => {
                let accounts = common.open().await?.operator().accounts_by_age().await?;
                common.output.print(&accounts, |accounts| accounts_table(accounts))
            }
            Self::Quota { of, quota } => {
                let set = async |operator: Operator<'_, _>, id: &str| operator.set_quota(id, quota.0).await;
                change(of, set, |account| {
                    format!("{} has a quota of {}", account.name, quota_text(account.quota))
                })
                .await
            }
            Self::Limits { of, limits: LimitArgs { requests_per_minute, concurrency } } => {
                let limits = NewLimits {
                    requests_per_minute: requests_per_minute.map(|limit| limit.0),
                    concurrency: concurrency.map(|limit| limit.0),
                };
                let set = async |operator: Operator<'_, _>, id: &str| operator.set_limits(id, limits).await;
                change(of, set, |Account { name, requests_per_minute, concurrency, .. }| {
                    let (per_minute, at_once) = (limit_text(*requests_per_minute), limit_text(*concurrency));
                    format!(
                        "{name} has these limits: requests a minute {per_minute}, requests at once {at_once}"
                    )
                })
                .await
            }
            Self::Disable(of) => set_disabled(of, true).await,
            Self::Enable(of) => set_disabled(of, false).await,
            Self::Delete { of: AccountArgs { account, common }, yes } => {
                let admin = common.open().await?;
                let account = admin.account(&account).await?;
                let deleted = admin.operator().account_contents(account.id.as_str()).await?;
                ensure!(
                    yes,
                    "{} has {deleted}, which would be deleted with it: confirm with --yes",
                    account.name
                );
                admin.operator().delete_account(account.id.as_str()).await?;
                common.output.print(
                    &DeletedAccount { account, deleted },
                    |DeletedAccount { account, deleted }| {
                        format!("deleted {} ({}) with {deleted}", account.name, account.id)
                    },
                )
            }
        }
    }
}

async fn set_disabled(of: AccountArgs, disabled: bool) -> Result<()> {
    let set = async |operator: Operator<'_, _>, id: &str| operator.set_account_disabled(id, disabled).await;
    let state = if disabled { "disabled" } else { "enabled" };
    change(of, set, |account| format!("{} is {state}", account.name)).await
}

/// Changes an account, and prints what it is then.
async fn change(
    AccountArgs { account, common }: AccountArgs,
    change: impl AsyncFnOnce(Operator<'_, CommandBackend>, &str) -> Result<bool>,
    text: impl FnOnce(&Account) -> String,
) -> Result<()> {
    let admin = common.open().await?;
    let id = admin.account(&account).await?.id;
    change(admin.operator(), id.as_str()).await?;
    common.output.print(&admin.account(id.as_str()).await?, text)
}

fn accounts_table(accounts: &[Account]) -> String {
    let rows = accounts.iter().map(|account| {
        [
            account.id.to_string(),
            account.name.clone(),
            account.attempts.to_string(),
            quota_text(account.quota),
            limit_text(account.requests_per_minute),
            limit_text(account.concurrency),
            if account.disabled { "disabled" } else { "active" }.to_owned(),
            account.created_at.to_string(),
        ]
    });
    table(["ID", "NAME", "ATTEMPTS", "QUOTA", "PER MINUTE", "AT ONCE", "STATE", "CREATED"], rows)
}

fn quota_text(quota: Option<u64>) -> String {
    quota.map_or_else(|| "unlimited".to_owned(), |quota| quota.to_string())
}

fn limit_text(limit: Option<u64>) -> String {
    limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string())
}
