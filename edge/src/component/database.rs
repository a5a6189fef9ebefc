//! The statements of the edge.
//!
//! Invariant: [`Database::claim`] is one atomic statement that authenticates, checks the quota and
//! the template's variables, records the attempt and fetches the template; only when it returns
//! no row does [`Database::standing`] find out why. [`Database::log`] is for after the answer.

use platen_component::database::{self, DatabaseError, Row, Value, number_or_null};
use platen_shared::{
    id::{AccountId, TemplateId},
    key::ApiKey,
    template,
};

use super::attempt::Attempt;
use crate::{
    quota::{QuotaMonth, Usage},
    request::{RenderRequest, Subject},
};

/// One account's counter of one month goes up by one if its quota allows. The upsert's `WHERE` is
/// evaluated under the write lock, so whatever the concurrency no attempt passes the quota. A key
/// may be good for a minute (`?3` is now), and for one template only.
macro_rules! claim_sql {
    ($join:literal, $condition:literal, $columns:literal) => {
        concat!(
            "INSERT INTO usage (account_id, month, attempts) \
             SELECT a.id, ?2, 1 FROM api_keys k JOIN accounts a ON a.id = k.account_id ",
            $join,
            " WHERE k.hash = ?1 AND k.disabled_at IS NULL AND a.disabled_at IS NULL \
             AND (k.expires_at IS NULL OR k.expires_at > ?3) \
             AND (a.quota IS NULL OR a.quota > 0) ",
            $condition,
            " ON CONFLICT (account_id, month) DO UPDATE SET attempts = attempts + 1 \
             WHERE attempts < coalesce((SELECT quota FROM accounts WHERE id = account_id), 9223372036854775807) \
             RETURNING account_id, attempts, (SELECT quota FROM accounts WHERE id = account_id)",
            $columns
        )
    };
}

const CLAIM: &str = claim_sql!("", "AND k.template_id IS NULL", "");
const CLAIM_WITH_TEMPLATE: &str = claim_sql!(
    "JOIN templates t ON t.account_id = a.id AND t.id = ?4",
    "AND (k.template_id IS NULL OR k.template_id = ?4) \
     AND NOT EXISTS (SELECT 1 FROM json_each(t.placeholders) p \
     WHERE p.value NOT IN (SELECT value FROM json_each(?5)))",
    ", (SELECT name FROM templates WHERE id = ?4), (SELECT packed_html FROM templates WHERE id = ?4)"
);
const STANDING: &str = "SELECT a.id, coalesce(u.attempts, 0), a.quota, \
    (SELECT t.placeholders FROM templates t WHERE t.id = ?4 AND t.account_id = a.id) \
    FROM api_keys k JOIN accounts a ON a.id = k.account_id \
    LEFT JOIN usage u ON u.account_id = a.id AND u.month = ?2 \
    WHERE k.hash = ?1 AND k.disabled_at IS NULL AND a.disabled_at IS NULL \
    AND (k.expires_at IS NULL OR k.expires_at > ?3) \
    AND (k.template_id IS NULL OR k.template_id = ?4 OR ?5)";
const REFUND: &str =
    "UPDATE usage SET attempts = attempts - 1 WHERE account_id = ?1 AND month = ?2 AND attempts > 0";

/// What follows from a row of `attempts` (last use, daily usage, pruning) is the schema's.
const LOG: &str = "INSERT INTO attempts \
    (account_id, key_id, key_name, endpoint, format, status, counted, ms, bytes, at) \
    SELECT ?2, k.id, k.name, ?3, ?4, ?5, ?6, ?7, ?8, ?9 \
    FROM (SELECT ?1 AS hash) h LEFT JOIN api_keys k ON k.hash = h.hash";

/// Why a statement of the edge came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum EdgeDatabaseError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(transparent)]
    Template(#[from] template::DamagedTemplate),
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
    packed: Vec<u8>,
}

impl Template {
    /// Its markup.
    pub(super) fn html(&self) -> Result<String, template::DamagedTemplate> {
        template::unpack(&self.packed)
    }
}

/// A good key's account, with the named template's placeholders if the account has it.
pub(super) struct Found {
    pub(super) account: AccountId,
    pub(super) usage: Usage,
    pub(super) placeholders: Option<Vec<String>>,
}

/// What is asked about.
#[derive(Debug, Clone, Copy)]
pub(super) enum About<'r> {
    /// A body that could not be read: whether the key is somebody's at all.
    Key,
    /// A render of the caller's own markup or URL.
    Source,
    /// A render of this template.
    Template(&'r TemplateId),
}

/// A connection for one request.
pub(super) struct Database(database::Database);

impl Database {
    pub(super) async fn open() -> Result<Self, EdgeDatabaseError> {
        Ok(Self(database::Database::open().await?))
    }

    /// Records an attempt; `None` if the key, the template, its variables or the quota forbid it.
    pub(super) async fn claim(
        &self,
        key: &ApiKey,
        month: &QuotaMonth,
        request: &RenderRequest,
    ) -> Result<Option<Claim>, EdgeDatabaseError> {
        let mut values = first_values(key, month);
        let sql = match &request.subject {
            Subject::Source(_) => CLAIM,
            Subject::Template { id, variables } => {
                let names: Vec<&str> = variables.keys().map(String::as_str).collect();
                values.push(id.as_str().into());
                values.push(serde_json::json!(names).to_string().into());
                CLAIM_WITH_TEMPLATE
            }
        };
        let Some(row) = self.0.one_row(sql, values).await? else { return Ok(None) };
        let template = match &request.subject {
            Subject::Source(_) => None,
            Subject::Template { .. } => {
                Some(Template { name: row.text(3)?, packed: row.bytes(4)?.to_owned() })
            }
        };
        Ok(Some(Claim {
            account: AccountId::from_text(row.text(0)?),
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
        about: About<'_>,
    ) -> Result<Option<Found>, EdgeDatabaseError> {
        let mut values = first_values(key, month);
        values.push(match about {
            About::Template(id) => id.as_str().into(),
            About::Key | About::Source => Value::Null,
        });
        values.push(Value::Integer(matches!(about, About::Key).into()));
        let Some(row) = self.0.one_row(STANDING, values).await? else { return Ok(None) };
        let placeholders = row.optional_text(3)?.as_deref().map(serde_json::from_str).transpose();
        Ok(Some(Found {
            account: AccountId::from_text(row.text(0)?),
            usage: usage(&row)?,
            placeholders: placeholders.map_err(|_| DatabaseError::Shape)?,
        }))
    }

    /// Takes a recorded attempt back, because no page ran for it.
    pub(super) async fn refund(&self, claim: &Claim) -> Result<(), EdgeDatabaseError> {
        let values = vec![claim.account.as_str().into(), claim.month.as_str().into()];
        self.0.rows(REFUND, values).await?;
        Ok(())
    }

    /// Writes a finished attempt down.
    pub(super) async fn log(&self, attempt: &Attempt) -> Result<(), EdgeDatabaseError> {
        let values = vec![
            attempt.key_hash.as_str().into(),
            attempt.account.as_str().into(),
            attempt.endpoint.into(),
            attempt.format.into(),
            attempt.status.into(),
            Value::Integer(attempt.counted.into()),
            Value::Integer(i64::try_from(attempt.elapsed.as_millis()).unwrap_or(i64::MAX)),
            number_or_null(attempt.bytes),
            Value::Integer(i64::try_from(attempt.at).unwrap_or(i64::MAX)),
        ];
        self.0.rows(LOG, values).await?;
        Ok(())
    }
}

fn first_values(key: &ApiKey, month: &QuotaMonth) -> Vec<Value> {
    vec![
        key.hash().into(),
        month.name.as_str().into(),
        Value::Integer(i64::try_from(month.now).unwrap_or(i64::MAX)),
    ]
}

/// Columns 1 and 2 of every row: attempts, and the quota or NULL.
fn usage(row: &Row) -> Result<Usage, DatabaseError> {
    Ok(Usage { attempts: row.number(1)?, quota: row.optional_number(2)? })
}
