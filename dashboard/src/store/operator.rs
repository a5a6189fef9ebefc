//! What operators may do: accounts, users, invites, the audit log.

use std::ops::Deref;

use platen_component::database::{Database, DatabaseError};
use platen_shared::{email::Email, id::UserId, token::Token};
use platen_statements::{
    accounts, audit,
    invites::{InviteRefusal, InviteTarget},
    users,
};

use crate::{
    clock::{DAY, Timestamp},
    pages::operator::{Account, AuditEntry, User},
};

/// The outcome of an invite.
pub(crate) enum Invited {
    /// The secret at the end of the link.
    Done(Token),
    NoSuchAccount,
    OtherAccount,
}

/// The current user as an operator.
pub(crate) struct Operator<'s> {
    pub(super) operator: platen_statements::Operator<'s, Database>,
    pub(super) user: &'s UserId,
}

impl<'s> Deref for Operator<'s> {
    type Target = platen_statements::Operator<'s, Database>;

    fn deref(&self) -> &Self::Target {
        &self.operator
    }
}

impl Operator<'_> {
    /// The accounts by name.
    pub(crate) async fn accounts(&self) -> Result<Vec<Account>, DatabaseError> {
        Ok(self.operator.accounts().await?.into_iter().map(account).collect())
    }

    /// One account.
    pub(crate) async fn account(&self, id: &str) -> Result<Option<Account>, DatabaseError> {
        Ok(self.operator.account(id).await?.map(account))
    }

    /// The users of an account.
    pub(crate) async fn members(&self, id: &str) -> Result<Vec<User>, DatabaseError> {
        Ok(self.users(id).await?.into_iter().map(|user| self.user(user)).collect())
    }

    /// All operators, of every account and of none.
    pub(crate) async fn operators(&self) -> Result<Vec<User>, DatabaseError> {
        Ok(self.operator.operators().await?.into_iter().map(|user| self.user(user)).collect())
    }

    fn user(&self, user: users::User) -> User {
        User {
            is_current: user.id == *self.user,
            id: user.id.to_string(),
            email: user.email,
            operator: user.operator,
            created: Timestamp(user.created_at.0),
            last_seen: user.seen_at.map(|at| Timestamp(at.0)),
        }
    }

    /// Invites a user into an account for a day, in place of an open invite of the address.
    pub(crate) async fn invite(
        &self,
        account: &str,
        email: &Email,
        operator: bool,
    ) -> Result<Invited, DatabaseError> {
        let target = InviteTarget { account: Some(account), operator };
        Ok(match self.operator.invite(email, target, DAY).await? {
            Ok(invite) => Invited::Done(invite.token),
            Err(InviteRefusal::OtherAccount) => Invited::OtherAccount,
            Err(InviteRefusal::NoSuchAccount | InviteRefusal::NoTarget) => Invited::NoSuchAccount,
        })
    }

    /// The audit log before an entry, the newest first.
    pub(crate) async fn log(&self, before: Option<i64>, max: u32) -> Result<Vec<AuditEntry>, DatabaseError> {
        let entries = self.operator.log(before, max).await?.into_iter();
        let page = entries.map(|entry: audit::AuditEntry| AuditEntry {
            id: entry.id,
            at: Timestamp(entry.at.0),
            actor: entry.actor,
            account: entry.account,
            action: entry.action,
            subject: entry.subject,
        });
        Ok(page.collect())
    }
}

fn account(account: accounts::Account) -> Account {
    Account {
        id: account.id.to_string(),
        name: account.name,
        quota: account.quota,
        attempts: account.attempts,
        disabled: account.disabled,
        created: Timestamp(account.created_at.0),
        members: account.users,
    }
}
