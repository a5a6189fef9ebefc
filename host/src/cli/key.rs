//! `platen key`.

use anyhow::Result;
use clap::Subcommand;

use super::{Common, table};
use crate::admin::{self, keys::Key as Record};

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Key {
    /// Create a key and print it, this once
    Create {
        /// The account's name or id
        #[arg(long, value_name = "NAME|ID")]
        account: String,
        /// A name, to tell keys apart
        #[arg(long, default_value = "key")]
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// List keys, without their secrets
    List {
        /// Only this account's: its name or id
        #[arg(long, value_name = "NAME|ID")]
        account: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// Refuse a key
    Disable {
        /// The key's id
        id: String,
        #[command(flatten)]
        common: Common,
    },
    /// Accept a key again
    Enable {
        /// The key's id
        id: String,
        #[command(flatten)]
        common: Common,
    },
}

impl Key {
    /// Runs the command.
    pub(crate) async fn run(self) -> Result<()> {
        match self {
            Self::Create { account, name, common } => {
                let created = admin::keys::create(&common.open().await?, &account, &name).await?;
                common.form.print(&created, |created| {
                    format!(
                        "{}\nThis is key {} of {}; it is shown this once.",
                        created.key, created.id, created.account_name
                    )
                })
            }
            Self::List { account, common } => {
                let list = admin::keys::list(&common.open().await?, account.as_deref()).await?;
                common.form.print(&list, |list| listed(list))
            }
            Self::Disable { id, common } => set_disabled(&id, true, &common).await,
            Self::Enable { id, common } => set_disabled(&id, false, &common).await,
        }
    }
}

async fn set_disabled(id: &str, disabled: bool, common: &Common) -> Result<()> {
    let changed = admin::keys::set_disabled(&common.open().await?, id, disabled).await?;
    let state = if disabled { "disabled" } else { "enabled" };
    common.form.print(&changed, |key| format!("{} ({}…) is {state}", key.id, key.prefix))
}

fn listed(list: &[Record]) -> String {
    let rows = list.iter().map(|key| {
        [
            key.id.to_string(),
            key.account_name.clone(),
            key.name.clone(),
            format!("{}…", key.prefix),
            if key.disabled { "disabled" } else { "" }.to_owned(),
            key.created_at.clone(),
        ]
    });
    table(["ID", "ACCOUNT", "NAME", "KEY", "STATE", "CREATED"], rows)
}
