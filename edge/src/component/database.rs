//! The three statements of the edge.
//!
//! Invariant: [`Database::claim`] is one atomic statement that authenticates, checks the quota and
//! the template's variables, records the attempt and fetches the template; only when it returns
//! no row does [`Database::standing`] find out why. A connection lives for one request: a shared
//! one hangs a libSQL server.

use platen_shared::{
    id::{AccountId, TemplateId},
    key::ApiKey,
    template,
};
use spin_sdk::sqlite::{Connection, Error, RowResult, Value};

use crate::{
    quota::{QuotaMonth, Usage},
    request::{RenderRequest, Subject},
};

/// One account's counter of one month goes up by one if its quota allows. The upsert's `WHERE` is
/// evaluated under the write lock, so whatever the concurrency no attempt passes the quota.
macro_rules! claim_sql {
    ($join:literal, $condition:literal, $columns:literal) => {
        concat!(
            "INSERT INTO usage (account_id, month, attempts) \
             SELECT a.id, ?2, 1 FROM api_keys k JOIN accounts a ON a.id = k.account_id ",
            $join,
            " WHERE k.hash = ?1 AND k.disabled_at IS NULL AND a.disabled_at IS NULL \
             AND (a.quota IS NULL OR a.quota > 0) ",
            $condition,
            " ON CONFLICT (account_id, month) DO UPDATE SET attempts = attempts + 1 \
             WHERE attempts < coalesce((SELECT quota FROM accounts WHERE id = account_id), 9223372036854775807) \
             RETURNING account_id, attempts, (SELECT quota FROM accounts WHERE id = account_id)",
            $columns
        )
    };
}

const CLAIM: &str = claim_sql!("", "", "");
const CLAIM_WITH_TEMPLATE: &str = claim_sql!(
    "JOIN templates t ON t.account_id = a.id AND t.id = ?3",
    "AND NOT EXISTS (SELECT 1 FROM json_each(t.placeholders) p \
     WHERE p.value NOT IN (SELECT value FROM json_each(?4)))",
    ", (SELECT name FROM templates WHERE id = ?3), (SELECT packed_html FROM templates WHERE id = ?3)"
);
const STANDING: &str = "SELECT a.id, coalesce(u.attempts, 0), a.quota, \
    (SELECT t.placeholders FROM templates t WHERE t.id = ?3 AND t.account_id = a.id) \
    FROM api_keys k JOIN accounts a ON a.id = k.account_id \
    LEFT JOIN usage u ON u.account_id = a.id AND u.month = ?2 \
    WHERE k.hash = ?1 AND k.disabled_at IS NULL AND a.disabled_at IS NULL";
const GIVE_BACK: &str =
    "UPDATE usage SET attempts = attempts - 1 WHERE account_id = ?1 AND month = ?2 AND attempts > 0";

/// A statement that failed, or an answer that is not what the statement asks for.
#[derive(Debug, thiserror::Error)]
pub(super) enum DatabaseError {
    #[error("the database failed: {0}")]
    Failed(#[from] Error),
    #[error("the database answered with a row of another shape")]
    Shape,
    #[error(transparent)]
    Template(#[from] template::Damaged),
}

/// A recorded attempt.
pub(super) struct Claim {
    pub(super) account: AccountId,
    pub(super) usage: Usage,
    pub(super) template: Option<Template>,
    month: String,
}

/// A saved template.
pub(super) struct Template {
    pub(super) name: String,
    pub(super) html: String,
}

/// A good key's account, with the named template's placeholders if the account has it.
pub(super) struct Found {
    pub(super) account: AccountId,
    pub(super) usage: Usage,
    pub(super) placeholders: Option<Vec<String>>,
}

/// A connection for one request.
pub(super) struct Database(Connection);

impl Database {
    pub(super) async fn open() -> Result<Self, DatabaseError> {
        Ok(Self(Connection::open_default().await?))
    }

    /// Records an attempt; `None` if the key, the template, its variables or the quota forbid it.
    pub(super) async fn claim(
        &self,
        key: &ApiKey,
        month: &QuotaMonth,
        request: &RenderRequest,
    ) -> Result<Option<Claim>, DatabaseError> {
        let mut values = vec![Value::Text(key.hash()), Value::Text(month.name.clone())];
        let sql = match &request.subject {
            Subject::Source(_) => CLAIM,
            Subject::Template { id, variables } => {
                let names: Vec<&str> = variables.keys().map(String::as_str).collect();
                values.push(Value::Text(id.as_str().to_owned()));
                values.push(Value::Text(serde_json::json!(names).to_string()));
                CLAIM_WITH_TEMPLATE
            }
        };
        let Some(row) = self.one_row(sql, values).await? else { return Ok(None) };
        let template = match &request.subject {
            Subject::Source(_) => None,
            Subject::Template { .. } => {
                let packed: &[u8] = row.get(4).ok_or(DatabaseError::Shape)?;
                Some(Template { name: text(&row, 3)?, html: template::unpack(packed)? })
            }
        };
        Ok(Some(Claim {
            account: AccountId::from_text(text(&row, 0)?),
            usage: usage(&row)?,
            template,
            month: month.name.clone(),
        }))
    }

    /// The account of a key that is good, and where it stands.
    pub(super) async fn standing(
        &self,
        key: &ApiKey,
        month: &QuotaMonth,
        template: Option<&TemplateId>,
    ) -> Result<Option<Found>, DatabaseError> {
        let template = template.map_or(Value::Null, |id| Value::Text(id.as_str().to_owned()));
        let values = vec![Value::Text(key.hash()), Value::Text(month.name.clone()), template];
        let Some(row) = self.one_row(STANDING, values).await? else { return Ok(None) };
        let placeholders = row.get::<&str>(3).map(serde_json::from_str).transpose();
        Ok(Some(Found {
            account: AccountId::from_text(text(&row, 0)?),
            usage: usage(&row)?,
            placeholders: placeholders.map_err(|_| DatabaseError::Shape)?,
        }))
    }

    /// Takes a recorded attempt back, because no browser ran for it.
    pub(super) async fn give_back(&self, claim: &Claim) -> Result<(), DatabaseError> {
        let values = vec![Value::Text(claim.account.as_str().to_owned()), Value::Text(claim.month.clone())];
        Ok(self.0.execute(GIVE_BACK, values).await?.result().await?)
    }

    async fn one_row(&self, sql: &str, values: Vec<Value>) -> Result<Option<RowResult>, DatabaseError> {
        Ok(self.0.execute(sql, values).await?.collect().await?.into_iter().next())
    }
}

fn text(row: &RowResult, column: usize) -> Result<String, DatabaseError> {
    row.get::<&str>(column).map(str::to_owned).ok_or(DatabaseError::Shape)
}

/// Columns 1 and 2 of every row: attempts, and the quota or NULL.
fn usage(row: &RowResult) -> Result<Usage, DatabaseError> {
    let quota = match row.values.get(2) {
        Some(Value::Null) => None,
        _ => Some(row.get(2).ok_or(DatabaseError::Shape)?),
    };
    Ok(Usage { attempts: row.get(1).ok_or(DatabaseError::Shape)?, quota })
}
