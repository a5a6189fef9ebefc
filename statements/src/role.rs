//! The role of a user in an account, and the conditions of statements that ask for it.

use serde::Serialize;

use crate::{Value, backend::FromValue};

/// What a user may do in an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything.
    Owner,
    /// Everything that takes nothing away: no deleting, disabling, expiring and rolling, and no changes to people.
    Member,
}

impl Role {
    /// The name of the role.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Member => "member",
        }
    }

    /// The role of a name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Owner, Self::Member].into_iter().find(|role| role.word() == word)
    }

    /// Whether it is that of an owner.
    #[must_use]
    pub fn is_owner(self) -> bool {
        self == Self::Owner
    }
}

/// The column `is_owner`.
impl FromValue for Role {
    fn from_value(value: Value) -> Option<Self> {
        bool::from_value(value).map(|is_owner| if is_owner { Self::Owner } else { Self::Member })
    }
}

/// The outcome of a change to a user of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberChange {
    /// It is carried out.
    Done,
    /// The account has no such user.
    NotFound,
    /// The account would have no owner.
    LastOwner,
    /// The user is an operator, whom only operators change.
    Operator,
    /// The user who acts is no owner any more.
    NotOwner,
}

/// Whether the user who acts exists and meets a condition on the row `b`. The operator's commands have no user.
macro_rules! by_user {
    ($actor:literal, $condition:literal) => {
        concat!(
            "(",
            $actor,
            " IS NULL OR EXISTS (SELECT 1 FROM users b WHERE b.id = ",
            $actor,
            " AND b.disabled_at IS NULL AND ",
            $condition,
            "))"
        )
    };
}

/// Whether the user who acts is an operator.
macro_rules! by_operator {
    ($actor:literal) => {
        $crate::role::by_user!($actor, "b.operator")
    };
}

/// Whether the user who acts is an owner of the account, or an operator.
macro_rules! by_owner {
    ($actor:literal) => {
        $crate::role::by_user!($actor, "(b.operator OR (b.account_id = ?1 AND b.is_owner))")
    };
}
pub(crate) use by_operator;
pub(crate) use by_owner;
pub(crate) use by_user;
