//! The user of a session, from which the scopes are made.

use platen_shared::id::{AccountId, SessionId, UserId};

use crate::{DataError, Row, backend::FromRow, role::Role};

/// The user of a session.
#[derive(Debug, Clone)]
pub struct CurrentUser {
    /// `usr_…`
    pub user: UserId,
    /// The address that the user signs in with.
    pub email: String,
    /// The session, not its cookie.
    pub session: SessionId,
    /// The account that the user works in.
    pub account: Option<Membership>,
    operator: bool,
}

/// The account that a user works in.
#[derive(Debug, Clone)]
pub struct Membership {
    /// `acc_…`
    pub id: AccountId,
    /// The account's name.
    pub name: String,
    /// Whether the account's keys are refused.
    pub disabled: bool,
    /// Whether it is another account than the user's own, in which an operator works.
    pub is_visited: bool,
    /// `Member` for an operator who works in another account than its own.
    role: Role,
    /// Attempts per month; `None` is no limit.
    pub quota: Option<u64>,
    /// Attempts of this month (UTC).
    pub attempts: u64,
}

impl Membership {
    /// The user's role in the account; `Operator` in another account than the user's own.
    #[must_use]
    pub fn role_word(&self) -> &'static str {
        match self.role {
            _ if self.is_visited => "Operator",
            Role::Owner => "Owner",
            Role::Member => "Member",
        }
    }
}

impl CurrentUser {
    /// Whether the user may do what operators may.
    #[must_use]
    pub fn is_operator(&self) -> bool {
        self.operator
    }

    /// Whether the user may do what owners of the current account may. Operators may in every account.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        self.account.as_ref().is_some_and(|account| self.operator || account.role == Role::Owner)
    }

    /// Whether this is the account that the user works in.
    #[must_use]
    pub fn works_in(&self, account: &str) -> bool {
        self.account.as_ref().is_some_and(|own| own.id.as_str() == account)
    }
}

/// The user with the time of the last use of the session.
impl FromRow for (i64, CurrentUser) {
    fn from_row(row: &mut Row) -> Result<Self, DataError> {
        let seen_at = row.next()?;
        let (user, email, operator, session) = (row.next()?, row.next()?, row.next()?, row.next()?);
        let account = match row.next()? {
            Some(id) => {
                let (name, disabled, is_visited, role) = (row.next()?, row.next()?, row.next()?, row.next()?);
                let (quota, attempts) = (row.next()?, row.next()?);
                Some(Membership { id, name, disabled, is_visited, role, quota, attempts })
            }
            None => None,
        };
        Ok((seen_at, CurrentUser { user, email, session, account, operator }))
    }
}
