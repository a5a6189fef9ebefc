//! `platen account`.

use std::str::FromStr;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::{CommonArgs, table};
use platen_statements::accounts::Account;

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
        account: AccountArg,
        /// Attempts a month, or "unlimited"
        #[arg(value_name = "N|unlimited")]
        quota: Quota,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Refuse all of an account's keys
    Disable {
        #[command(flatten)]
        account: AccountArg,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Accept an account's keys again
    Enable {
        #[command(flatten)]
        account: AccountArg,
        #[command(flatten)]
        common: CommonArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AccountArg {
    /// The account's name or id
    #[arg(value_name = "NAME|ID")]
    account: String,
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
                let created = common.open().await?.create_account(&name, quota.0).await?;
                common.output.print(&created, |account| {
                    format!("created {} ({}), quota {}", account.name, account.id, quota_text(account.quota))
                })
            }
            Self::List { common } => {
                let accounts = common.open().await?.accounts().await?;
                common.output.print(&accounts, |accounts| accounts_table(accounts))
            }
            Self::Quota { account, quota, common } => {
                let changed = common.open().await?.set_quota(&account.account, quota.0).await?;
                common.output.print(&changed, |account| {
                    format!("{} has a quota of {}", account.name, quota_text(account.quota))
                })
            }
            Self::Disable { account, common } => set_disabled(&account, true, &common).await,
            Self::Enable { account, common } => set_disabled(&account, false, &common).await,
        }
    }
}

async fn set_disabled(account: &AccountArg, disabled: bool, common: &CommonArgs) -> Result<()> {
    let changed = common.open().await?.set_account_disabled(&account.account, disabled).await?;
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
            if account.disabled { "disabled" } else { "" }.to_owned(),
            account.created_at.to_string(),
        ]
    });
    table(["ID", "NAME", "ATTEMPTS", "QUOTA", "STATE", "CREATED"], rows)
}

fn quota_text(quota: Option<u64>) -> String {
    quota.map_or_else(|| "unlimited".to_owned(), |quota| quota.to_string())
}
