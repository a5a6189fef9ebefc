//! Invites: links with which people come into the dashboard.
//!
//! Invariant: a link's secret is in [`Invite`] and nowhere else; the database holds its hash. A new
//! invite for an address takes the place of an unused one.

use std::fmt;

use platen_shared::{email::Email, id::AccountId, token::Token};
use serde::Serialize;

use super::{AdminError, Columns, accounts, audit, now, random};
use crate::db::{Database, Value};

/// Where an invited person belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this account, by name or id.
    Account(String),
    /// With the operators.
    Operator,
    /// Where they are already.
    Same,
}

/// An invite just made.
#[derive(Serialize)]
pub(crate) struct Invite {
    /// For whom.
    pub(crate) email: String,
    /// The account they come into, if any.
    pub(crate) account: Option<AccountId>,
    /// Whether as an operator.
    pub(crate) operator: bool,
    /// ISO 8601, UTC.
    pub(crate) expires_at: String,
    /// The secret at the end of the link.
    #[serde(skip)]
    pub(crate) token: Token,
}

impl fmt::Debug for Invite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Invite").field("email", &self.email).finish_non_exhaustive()
    }
}

/// Whether anybody who may sign in is an operator.
pub(crate) async fn has_operator(database: &Database) -> Result<bool, AdminError> {
    let sql = "SELECT 1 FROM users WHERE operator AND disabled_at IS NULL LIMIT 1";
    Ok(!database.connect().query(sql, Vec::new()).await?.is_empty())
}

/// Makes an invite that is good for so many seconds.
pub(crate) async fn create(
    database: &Database,
    email: &Email,
    place: Place,
    seconds: u32,
) -> Result<Invite, AdminError> {
    let connection = database.connect();
    let there = connection
        .query("SELECT account_id, operator FROM users WHERE email = ?1", vec![email.as_str().into()])
        .await?;
    let there = match there.into_iter().next().map(Columns::of) {
        Some(mut columns) => Some((columns.optional_text()?, columns.flag()?)),
        None => None,
    };
    let (mut account, mut operator) = there.clone().unwrap_or_default();
    match place {
        Place::Account(which) => {
            let wanted = accounts::find(database, &which).await?.id;
            if account.as_ref().is_some_and(|account| account != wanted.as_str()) {
                return Err(AdminError::OtherAccount(email.to_string()));
            }
            account = Some(wanted.as_str().to_owned());
        }
        Place::Operator => operator = true,
        Place::Same if there.is_some() => {}
        Place::Same => return Err(AdminError::InviteWhere),
    }
    let token = Token::from_random(random()?);
    connection
        .query("DELETE FROM invites WHERE email = ?1 AND used_at IS NULL", vec![email.as_str().into()])
        .await?;
    let rows = connection
        .query(
            "INSERT INTO invites (hash, email, account_id, operator, created_at, expires_at) \
                VALUES (?1, ?2, ?3, ?4, ?5, ?5 + ?6) \
                RETURNING strftime('%Y-%m-%dT%H:%M:%SZ', expires_at, 'unixepoch')",
            vec![
                token.hash().into(),
                email.as_str().into(),
                account.clone().into(),
                Value::Integer(operator.into()),
                now().into(),
                i64::from(seconds).into(),
            ],
        )
        .await?;
    let expires_at = Columns::of(rows.into_iter().next().ok_or(AdminError::Unexpected)?).text()?;
    let account = account.map(AccountId::from_text);
    let action = if operator { "invited operator" } else { "invited" };
    audit(&connection, account.as_ref(), action, email.as_str()).await?;
    Ok(Invite { email: email.to_string(), account, operator, expires_at, token })
}
