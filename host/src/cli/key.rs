//! `platen key`.

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use platen_shared::{
    id::{AccountId, KeyId},
    name::Name,
};
use platen_statements::{OwnerScope, keys::Key};
use serde::Serialize;

use super::{CommonArgs, ListArgs, table};
use crate::admin::CommandBackend;

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
    List(ListArgs),
    /// Refuse a key
    Disable(KeyArgs),
    /// Accept a key again
    Enable(KeyArgs),
    /// Delete a key; this cannot be undone
    Delete(KeyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// The key's id
    id: String,
    #[command(flatten)]
    common: CommonArgs,
}

// A new key with its secret, which is stored nowhere.
#[derive(Serialize)]
struct CreatedKey {
    id: KeyId,
    account: AccountId,
    account_name: String,
    name: String,
    prefix: String,
    key: String,
}

impl KeyCommand {
    pub(crate) async fn run(self) -> Result<()> {
        match self {
            Self::Create { account, name, common } => {
                let admin = common.open().await?;
                let name = Name::parse(&name)?;
                let account = admin.account(&account).await?;
                let (id, key) = admin.operator().account_scope(&account.id).create_key(&name, None).await??;
                let created = CreatedKey {
                    id,
                    account: account.id,
                    account_name: account.name,
                    name: name.to_string(),
                    prefix: key.display_prefix().to_owned(),
                    key: key.expose().to_owned(),
                };
                common.output.print(&created, |created| {
                    format!(
                        "{}\nThis is key {} of {}; it is shown this once.",
                        created.key, created.id, created.account_name
                    )
                })
            }
            Self::List(ListArgs { account, common }) => {
                let admin = common.open().await?;
                let keys = match account {
                    None => admin.operator().keys().await?,
                    Some(account) => {
                        let id = admin.account(&account).await?.id;
                        let mut keys = admin.operator().account_scope(&id).keys().await?;
                        // The oldest first, as without an account.
                        keys.reverse();
                        keys
                    }
                };
                let now = admin.now();
                common.output.print(&keys, |keys| keys_table(keys, now))
            }
            Self::Disable(of) => {
                change(of, "disabled", async |owned, id| owned.set_key_disabled(id, true).await).await
            }
            Self::Enable(of) => {
                change(of, "enabled", async |owned, id| owned.set_key_disabled(id, false).await).await
            }
            Self::Delete(of) => change(of, "deleted", async |owned, id| owned.delete_key(id).await).await,
        }
    }
}

/// Changes a key, and prints what it is then, or was before it was deleted.
async fn change(
    KeyArgs { id, common }: KeyArgs,
    state: &str,
    change: impl AsyncFnOnce(OwnerScope<'_, CommandBackend>, &str) -> Result<bool>,
) -> Result<()> {
    let no_key = || format!("there is no key {id:?}: see `platen key list`");
    let admin = common.open().await?;
    let account = admin.operator().owner_of_key(&id).await?.with_context(no_key)?;
    let owned = || admin.operator().account_scope(&account);
    let found = owned().key(&id).await?.with_context(no_key)?;
    change(owned(), &id).await?;
    let key = owned().key(&id).await?.unwrap_or(found);
    common.output.print(&key, |key| format!("{} ({}…) is {state}", key.id, key.prefix))
}

fn keys_table(keys: &[Key], now: i64) -> String {
    let rows = keys.iter().map(|key| {
        [
            key.id.to_string(),
            key.account_name.clone(),
            key.name.clone(),
            format!("{}…", key.prefix),
            key.state(now).word().to_owned(),
            key.created_at.to_string(),
            key.expires_at.map_or_else(|| "never".to_owned(), |at| at.to_string()),
        ]
    });
    table(["ID", "ACCOUNT", "NAME", "KEY", "STATE", "CREATED", "EXPIRES"], rows)
}
