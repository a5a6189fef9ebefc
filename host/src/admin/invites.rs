//! Invites to the dashboard.

use std::fmt;

use platen_shared::{email::Email, id::AccountId, token::Token};
use platen_statements::{
    Timestamp,
    invites::{self, InviteRefusal},
};
use serde::Serialize;

use super::{Admin, AdminError};

/// What an invite gives its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InviteTarget {
    /// This account, by name or id.
    Account(String),
    /// The rights of an operator.
    Operator,
    /// Nothing new: the user exists already and sets a new password.
    Unchanged,
}

/// A new invite.
#[derive(Serialize)]
pub(crate) struct Invite {
    pub(crate) email: String,
    /// The user's account once the invite is used.
    pub(crate) account: Option<AccountId>,
    /// Whether the user is an operator once the invite is used.
    pub(crate) operator: bool,
    pub(crate) expires_at: Timestamp,
    /// The secret at the end of the link.
    #[serde(skip)]
    pub(crate) token: Token,
}

impl fmt::Debug for Invite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invite").field("email", &self.email).finish_non_exhaustive()
    }
}

impl Admin {
    /// Whether an operator exists who may sign in.
    pub(crate) async fn has_operator(&self) -> Result<bool, AdminError> {
        self.operator().has_operator().await
    }

    /// Creates an invite that is valid for this many seconds.
    pub(crate) async fn invite(
        &self,
        email: &Email,
        target: InviteTarget,
        seconds: u32,
    ) -> Result<Invite, AdminError> {
        let operator = target == InviteTarget::Operator;
        let account = match target {
            InviteTarget::Account(id_or_name) => Some(self.account(&id_or_name).await?.id),
            InviteTarget::Operator | InviteTarget::Unchanged => None,
        };
        let target = invites::InviteTarget { account: account.as_ref().map(AccountId::as_str), operator };
        let invite = self.operator().invite(email, target, seconds.into()).await?;
        let invites::Invite { token, account, operator, expires_at } =
            invite.map_err(|refusal| match refusal {
                InviteRefusal::NoSuchAccount => {
                    AdminError::NoAccount(account.map(|id| id.to_string()).unwrap_or_default())
                }
                InviteRefusal::OtherAccount => AdminError::OtherAccount(email.to_string()),
                InviteRefusal::NoTarget => AdminError::NoInviteTarget,
            })?;
        Ok(Invite { email: email.to_string(), account, operator, expires_at, token })
    }
}
