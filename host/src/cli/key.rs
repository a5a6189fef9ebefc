//! `platen key`.

use anyhow::{Context as _, Result, anyhow};
use clap::{Args, Subcommand};
use platen_shared::{
    id::{AccountId, KeyId},
    key::ApiKey,
    name::Name,
};
use platen_statements::{OwnerScope, Timestamp, accounts::Account, keys::Key};
use serde::Serialize;

use super::{CommonArgs, Failure, ListArgs, table};
use crate::admin::CommandBackend;

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Create a key and print it, only now
    Create {
        /// The account's name or id
        #[arg(long, value_name = "NAME|ID")]
        account: String,
        /// A name, to distinguish keys
        #[arg(long, default_value = "key", value_parser = Name::parse)]
        name: Name,
        /// The last day (UTC) on which it is accepted, or "never"
        #[arg(long, value_name = "YYYY-MM-DD|never", default_value = "never", value_parser = last_day)]
        last_day: LastDay,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Create a key in place of another one and print it, only now; the other one is accepted for some time
    Roll {
        #[command(flatten)]
        of: KeyArgs,
        /// Hours for which the other key is accepted
        #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u32).range(0..=8_760))]
        grace: u32,
    },
    /// Rename a key
    Rename {
        #[command(flatten)]
        of: KeyArgs,
        /// The new name
        #[arg(value_parser = Name::parse)]
        name: Name,
    },
    /// Change the last day of a key
    LastDay {
        #[command(flatten)]
        of: KeyArgs,
        /// The last day (UTC) on which it is accepted, or "never"
        #[arg(value_name = "YYYY-MM-DD|never", value_parser = last_day)]
        last_day: LastDay,
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

/// The time from which a key is refused; `None` for a key that does not expire.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastDay(Option<i64>);

fn last_day(text: &str) -> Result<LastDay, String> {
    if text == "never" {
        return Ok(LastDay(None));
    }
    let day = Timestamp::of_day(text).ok_or("it is not a day, YYYY-MM-DD")?;
    Ok(LastDay(Some(day.0 + 24 * 60 * 60)))
}

impl LastDay {
    /// The time, unless the day is over.
    fn end(self, now: i64) -> Result<Option<i64>> {
        if self.0.is_some_and(|end| end <= now) {
            return Err(Failure::invalid(anyhow!("the last day is over already (UTC)")).into());
        }
        Ok(self.0)
    }
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
            Self::Create { account, name, last_day, common } => {
                let admin = common.open().await?;
                let account = admin.account(&account).await?;
                let end = last_day.end(admin.now())?;
                let (id, key) = admin.operator().account_scope(&account.id).create_key(&name, end).await?;
                print_new(&common, account, id, name.as_str(), &key)
            }
            Self::Roll { of: KeyArgs { id, common }, grace } => {
                let admin = common.open().await?;
                let no_key = || no_key(&id);
                let account = admin.operator().owner_of_key(&id).await?.with_context(no_key)?;
                let owned = admin.operator().account_scope(&account);
                let until = admin.now() + 60 * 60 * i64::from(grace);
                let name = owned.key(&id).await?.with_context(no_key)?.name;
                let (id, key) = owned.roll_key(&id, until).await?.with_context(no_key)?;
                print_new(&common, admin.account(account.as_str()).await?, id, &name, &key)
            }
            Self::Rename { of, name } => {
                change(of, "renamed", async |owned, id| owned.rename_key(id, &name).await).await
            }
            Self::LastDay { of, last_day } => {
                change(of, "changed", async |owned, id| {
                    let end = last_day.end(owned.now())?;
                    owned.set_key_expiry(id, end).await
                })
                .await
            }
            Self::List(list) => {
                let (admin, account) = list.open().await?;
                let keys = admin.operator().keys(account.as_ref()).await?;
                list.common.output.print(&keys, |keys| keys_table(keys, admin.now()))
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

/// Prints a key and its secret.
fn print_new(common: &CommonArgs, account: Account, id: KeyId, name: &str, key: &ApiKey) -> Result<()> {
    let created = CreatedKey {
        id,
        account: account.id,
        account_name: account.name,
        name: name.to_owned(),
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

fn no_key(id: &str) -> String {
    format!("there is no key {id:?}: see `platen key list`")
}

/// Changes a key, and prints what it is then, or was before it was deleted.
async fn change(
    KeyArgs { id, common }: KeyArgs,
    state: &str,
    change: impl AsyncFnOnce(OwnerScope<'_, CommandBackend>, &str) -> Result<bool>,
) -> Result<()> {
    let no_key = || no_key(&id);
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
