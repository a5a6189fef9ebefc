//! `platen key`.

use anyhow::Result;
use clap::Subcommand;

use super::{CommonArgs, table};
use platen_statements::keys::Key;

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key and print it, only now
    Create {
        /// The account's name or id
        #[arg(long, value_name = "NAME|ID")]
        account: String,
        /// A name, to distinguish keys
        #[arg(long, default_value = "key")]
        name: String,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// List keys, without their secrets
    List {
        /// Only this account's keys: its name or id
        #[arg(long, value_name = "NAME|ID")]
        account: Option<String>,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Refuse a key
    Disable {
        /// The key's id
        id: String,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Accept a key again
    Enable {
        /// The key's id
        id: String,
        #[command(flatten)]
        common: CommonArgs,
    },
}

impl KeyCommand {
    pub(crate) async fn run(self) -> Result<()> {
        match self {
            Self::Create { account, name, common } => {
                let created = common.open().await?.create_key(&account, &name).await?;
                common.output.print(&created, |created| {
                    format!(
                        "{}\nThis is key {} of {}; it is shown this once.",
                        created.key, created.id, created.account_name
                    )
                })
            }
            Self::List { account, common } => {
                let keys = common.open().await?.keys(account.as_deref()).await?;
                common.output.print(&keys, |keys| keys_table(keys))
            }
            Self::Disable { id, common } => set_disabled(&id, true, &common).await,
            Self::Enable { id, common } => set_disabled(&id, false, &common).await,
        }
    }
}

async fn set_disabled(id: &str, disabled: bool, common: &CommonArgs) -> Result<()> {
    let changed = common.open().await?.set_key_disabled(id, disabled).await?;
    let state = if disabled { "disabled" } else { "enabled" };
    common.output.print(&changed, |key| format!("{} ({}…) is {state}", key.id, key.prefix))
}

fn keys_table(keys: &[Key]) -> String {
    let rows = keys.iter().map(|key| {
        [
            key.id.to_string(),
            key.account_name.clone(),
            key.name.clone(),
            format!("{}…", key.prefix),
            if key.disabled { "disabled" } else { "" }.to_owned(),
            key.created_at.to_string(),
        ]
    });
    table(["ID", "ACCOUNT", "NAME", "KEY", "STATE", "CREATED"], rows)
}
