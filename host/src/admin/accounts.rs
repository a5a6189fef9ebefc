//! Accounts.

use platen_shared::name::Name;
use platen_statements::accounts::Account;

use super::{Admin, AdminError};

impl Admin {
    pub(crate) async fn create_account(&self, name: &str, quota: Option<u32>) -> Result<Account, AdminError> {
        let name = Name::parse(name)?;
        let created = self.operator().create_account(&name, quota).await?;
        let id = created.ok_or_else(|| AdminError::NameTaken(name.to_string()))?;
        self.account(id.as_str()).await
    }

    /// Every account, the oldest first.
    pub(crate) async fn accounts(&self) -> Result<Vec<Account>, AdminError> {
        self.operator().accounts_by_age().await
    }

    /// The account with this id or, if there is none, with this name.
    pub(crate) async fn account(&self, id_or_name: &str) -> Result<Account, AdminError> {
        let account = self.operator().find_account(id_or_name).await?;
        account.ok_or_else(|| AdminError::NoAccount(id_or_name.to_owned()))
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
