//! `platen account`.

use std::str::FromStr;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::{Common, table};
use crate::admin::{self, accounts::Account as Record};

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Account {
    /// Create an account
    Create {
        /// Its name, unlike any other's
        name: String,
        /// Attempts a month, or "unlimited"
        #[arg(long, value_name = "N|unlimited", default_value = "unlimited")]
        quota: Quota,
        #[command(flatten)]
        common: Common,
    },
    /// List all accounts with this month's attempts
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Change an account's quota
    Quota {
        #[command(flatten)]
        which: Which,
        /// Attempts a month, or "unlimited"
        #[arg(value_name = "N|unlimited")]
        quota: Quota,
        #[command(flatten)]
        common: Common,
    },
    /// Refuse all of an account's keys
    Disable {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        common: Common,
    },
    /// Accept an account's keys again
    Enable {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        common: Common,
    },
}

/// The account.
#[derive(Debug, Args)]
pub(crate) struct Which {
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

impl Account {
    /// Runs the command.
    pub(crate) async fn run(self) -> Result<()> {
        match self {
            Self::Create { name, quota, common } => {
                let created = admin::accounts::create(&common.open().await?, &name, quota.0).await?;
                common.form.print(&created, |account| {
                    format!("created {} ({}), quota {}", account.name, account.id, quota_text(account.quota))
                })
            }
            Self::List { common } => {
                let list = admin::accounts::list(&common.open().await?).await?;
                common.form.print(&list, |list| listed(list))
            }
            Self::Quota { which, quota, common } => {
                let database = common.open().await?;
                let changed = admin::accounts::set_quota(&database, &which.account, quota.0).await?;
                common.form.print(&changed, |account| {
                    format!("{} has a quota of {}", account.name, quota_text(account.quota))
                })
            }
            Self::Disable { which, common } => set_disabled(&which, true, &common).await,
            Self::Enable { which, common } => set_disabled(&which, false, &common).await,
        }
    }
}

async fn set_disabled(which: &Which, disabled: bool, common: &Common) -> Result<()> {
    let changed = admin::accounts::set_disabled(&common.open().await?, &which.account, disabled).await?;
    let state = if disabled { "disabled" } else { "enabled" };
    common.form.print(&changed, |account| format!("{} is {state}", account.name))
}

fn listed(list: &[Record]) -> String {
    let rows = list.iter().map(|account| {
        [
            account.id.to_string(),
            account.name.clone(),
            account.attempts.to_string(),
            quota_text(account.quota),
            if account.disabled { "disabled" } else { "" }.to_owned(),
            account.created_at.clone(),
        ]
    });
    table(["ID", "NAME", "ATTEMPTS", "QUOTA", "STATE", "CREATED"], rows)
}

fn quota_text(quota: Option<i64>) -> String {
    quota.map_or_else(|| "unlimited".to_owned(), |quota| quota.to_string())
}
