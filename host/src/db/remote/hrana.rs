//! The messages of Hrana 3 in JSON, as far as statements need them.

use base64::{Engine as _, prelude::BASE64_STANDARD, prelude::BASE64_STANDARD_NO_PAD};
use platen_statements::Outcome;
use serde::{Deserialize, Serialize};

use crate::db::{DbError, Row, Value};

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Request<'a> {
    Execute { stmt: Statement<'a> },
    Sequence { sql: &'a str },
    Close,
}

#[derive(Serialize)]
pub(super) struct Statement<'a> {
    pub(super) sql: &'a str,
    pub(super) args: Vec<WireValue>,
}

#[derive(Deserialize)]
pub(super) struct PipelineResult {
    pub(super) results: Vec<StreamResult>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum StreamResult {
    Ok { response: Response },
    Error { error: Failure },
}

impl StreamResult {
    pub(super) fn into_rows(self) -> Result<Vec<Row>, DbError> {
        match self {
            Self::Ok { response: Response::Execute { result } } => {
                result.rows.into_iter().map(read).collect()
            }
            Self::Ok { response: Response::Sequence } => Ok(Vec::new()),
            Self::Ok { response: Response::Other } => Err(DbError::unreachable(InvalidResponse)),
            Self::Error { error } => Err(error.into()),
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Response {
    Execute {
        result: ExecuteResult,
    },
    Sequence,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
pub(super) struct ExecuteResult {
    pub(super) rows: Vec<Vec<WireValue>>,
}

#[derive(Deserialize)]
pub(super) struct Failure {
    #[serde(alias = "error")]
    pub(super) message: String,
    pub(super) code: Option<String>,
}

impl Failure {
    /// What it says about the statement, if its code or the server's text is a known one.
    fn outcome(&self) -> Option<Outcome> {
        let named = self.code.as_deref().unwrap_or(&self.message);
        let of_server = OF_SERVER.into_iter().find(|(text, _)| *text == named);
        of_server.map(|(_, outcome)| outcome).or_else(|| Outcome::of_sqlite_text(self.code.as_deref()?))
    }

    /// The error of a request that was not carried out.
    pub(super) fn of_request(self, is_of_server: bool) -> DbError {
        let outcome = self.outcome().or_else(|| Outcome::of_sqlite_text(&self.message));
        let other = if is_of_server { Outcome::Unknown } else { Outcome::Failed };
        DbError::Statement { outcome: outcome.unwrap_or(other), message: self.message }
    }
}

impl From<Failure> for DbError {
    fn from(failure: Failure) -> Self {
        let outcome = failure.outcome().unwrap_or(Outcome::Failed);
        Self::Statement { outcome, message: failure.message }
    }
}

/// The server's own errors, by their code or, if they have none, by their text.
const OF_SERVER: [(&str, Outcome); 5] = [
    ("Too many concurrent requests", Outcome::NotRun),
    ("Timed out while opening database connection", Outcome::NotRun),
    ("TRANSACTION_BUSY", Outcome::NotRun),
    // The write lock was given to another connection.
    ("TRANSACTION_TIMEOUT", Outcome::Unknown),
    // Its operator allows no writing, or nothing at all.
    ("BLOCKED", Outcome::Unable),
];

/// A value in Hrana's JSON; integers are text, because JSON numbers hold 53 bits in many implementations.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WireValue {
    Null,
    Integer { value: String },
    Float { value: f64 },
    Text { value: String },
    Blob { base64: String },
}

pub(super) fn write(value: &Value) -> WireValue {
    match value {
        Value::Null => WireValue::Null,
        Value::Integer(number) => WireValue::Integer { value: number.to_string() },
        // JSON has no infinity; SQLite reads NaN as NULL already.
        Value::Real(number) if !number.is_finite() => WireValue::Null,
        Value::Real(number) => WireValue::Float { value: *number },
        Value::Text(text) => WireValue::Text { value: text.clone() },
        Value::Blob(bytes) => WireValue::Blob { base64: BASE64_STANDARD.encode(bytes) },
    }
}

fn read(row: Vec<WireValue>) -> Result<Row, DbError> {
    row.into_iter()
        .map(|value| {
            Ok(match value {
                WireValue::Null => Value::Null,
                WireValue::Integer { value } => Value::Integer(value.parse().map_err(DbError::unreachable)?),
                WireValue::Float { value } => Value::Real(value),
                WireValue::Text { value } => Value::Text(value),
                // The protocol allows padding; sqld leaves it out.
                WireValue::Blob { base64 } => Value::Blob(
                    BASE64_STANDARD_NO_PAD
                        .decode(base64.trim_end_matches('='))
                        .map_err(DbError::unreachable)?,
                ),
            })
        })
        .collect()
}

#[derive(Debug, thiserror::Error)]
#[error("the response of the database server is not one of Hrana 3")]
pub(super) struct InvalidResponse;
