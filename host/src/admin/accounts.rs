//! Accounts.

use platen_shared::{id::AccountId, name::Name};
use platen_statements::accounts;
use serde::Serialize;

use super::{Admin, AdminError, iso_8601};

/// An account, as the commands print it.
#[derive(Debug, Serialize)]
pub(crate) struct Account {
    pub(crate) id: AccountId,
    pub(crate) name: String,
    /// Attempts a month; `None` is unlimited.
    pub(crate) quota: Option<u64>,
    /// Attempts of this month (UTC).
    pub(crate) attempts: u64,
    pub(crate) disabled: bool,
    /// ISO 8601, UTC.
    pub(crate) created_at: String,
}

impl From<accounts::Account> for Account {
    fn from(account: accounts::Account) -> Self {
        let accounts::Account { id, name, quota, attempts, disabled, created_at, users: _ } = account;
        Self { id, name, quota, attempts, disabled, created_at: iso_8601(created_at) }
    }
}

impl Admin {
    pub(crate) async fn create_account(&self, name: &str, quota: Option<u32>) -> Result<Account, AdminError> {
        let name = Name::parse(name)?;
        let created = self.operator().create_account(&name, quota).await?;
        let id = created.ok_or_else(|| AdminError::NameTaken(name.to_string()))?;
        self.account(id.as_str()).await
    }

    /// Every account, the oldest first.
    pub(crate) async fn accounts(&self) -> Result<Vec<Account>, AdminError> {
        Ok(self.operator().accounts_by_age().await?.into_iter().map(Into::into).collect())
    }

    /// The account with this id or, if there is none, with this name.
    pub(crate) async fn account(&self, id_or_name: &str) -> Result<Account, AdminError> {
        let account = self.operator().find_account(id_or_name).await?;
        account.map(Into::into).ok_or_else(|| AdminError::NoAccount(id_or_name.to_owned()))
    }

    /// Changes a quota; `None` is unlimited.
    pub(crate) async fn set_quota(
        &self,
        id_or_name: &str,
        quota: Option<u32>,
    ) -> Result<Account, AdminError> {
        let id = self.account(id_or_name).await?.id;
        self.operator().set_quota(id.as_str(), quota).await?;
        self.account(id.as_str()).await
    }

    /// Refuses or accepts an account's keys.
    pub(crate) async fn set_account_disabled(
        &self,
        id_or_name: &str,
        disabled: bool,
    ) -> Result<Account, AdminError> {
        let id = self.account(id_or_name).await?.id;
        self.operator().set_account_disabled(id.as_str(), disabled).await?;
        self.account(id.as_str()).await
    }
}
