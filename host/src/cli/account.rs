//! `platen account`.

use std::str::FromStr;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use platen_shared::name::Name;
use platen_statements::{NameRefusal, accounts::Account, limits::NewLimits};

use super::{CommonArgs, table};

#[derive(Debug, Subcommand)]
pub(crate) enum AccountCommand {
    /// Create an account
    Create {
        /// The account's name, which must be unique
        name: String,
        /// Attempts a month, or "unlimited"
        #[arg(long, value_name = "N|unlimited", default_value = "unlimited")]
        quota: Quota,
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
        #[arg(value_name = "N|unlimited")]
        quota: Quota,
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
    #[arg(long, value_name = "N|none")]
    requests_per_minute: Option<Limit>,
    /// Requests at once, at least 1, or "none" for no limit
    #[arg(long, value_name = "N|none")]
    concurrency: Option<Limit>,
}

/// At least 1; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit(Option<u32>);

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(None));
        }
        let number = text.parse().ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| format!("a whole number from 1 to {}, or \"none\"", u32::MAX))?;
        Ok(Self(Some(number)))
    }
}

/// Attempts a month; `None` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota(Option<u32>);

impl FromStr for Quota {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "unlimited" {
            return Ok(Self(None));
        }
        let number =
            text.parse().map_err(|_| format!("a whole number up to {}, or \"unlimited\"", u32::MAX))?;
        Ok(Self(Some(number)))
    }
}

impl AccountCommand {
    pub(crate) async fn run(self) -> Result<()> {
        match self {
            Self::Create { name, quota, common } => {
                let admin = common.open().await?;
                let name = Name::parse(&name)?;
                let id = admin.operator().create_account(&name, quota.0).await?;
                let id = match id {
                    Err(NameRefusal::Taken) => bail!("there is an account {:?} already", name.as_str()),
                    other => other?,
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
            Self::Quota { of: AccountArgs { account, common }, quota } => {
                let admin = common.open().await?;
                let id = admin.account(&account).await?.id;
                admin.operator().set_quota(id.as_str(), quota.0).await?;
                let changed = admin.account(id.as_str()).await?;
                common.output.print(&changed, |account| {
                    format!("{} has a quota of {}", account.name, quota_text(account.quota))
                })
            }
            Self::Limits { of: AccountArgs { account, common }, limits } => {
                let admin = common.open().await?;
                let id = admin.account(&account).await?.id;
                let LimitArgs { requests_per_minute, concurrency } = limits;
                let limits = NewLimits {
                    requests_per_minute: requests_per_minute.map(|limit| limit.0),
                    concurrency: concurrency.map(|limit| limit.0),
                };
                admin.operator().set_limits(id.as_str(), limits).await?;
                let changed = admin.account(id.as_str()).await?;
                common.output.print(&changed, |account| {
                    let Account { name, requests_per_minute, concurrency, .. } = account;
                    let (per_minute, at_once) = (limit_text(*requests_per_minute), limit_text(*concurrency));
                    format!(
                        "{name} has these limits: requests a minute {per_minute}, requests at once {at_once}"
                    )
                })
            }
            Self::Disable(of) => set_disabled(of, true).await,
            Self::Enable(of) => set_disabled(of, false).await,
        }
    }
}

async fn set_disabled(AccountArgs { account, common }: AccountArgs, disabled: bool) -> Result<()> {
    let admin = common.open().await?;
    let id = admin.account(&account).await?.id;
    admin.operator().set_account_disabled(id.as_str(), disabled).await?;
    let changed = admin.account(id.as_str()).await?;
    let state = if disabled { "disabled" } else { "enabled" };
    common.output.print(&changed, |account| format!("{} is {state}", account.name))
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
