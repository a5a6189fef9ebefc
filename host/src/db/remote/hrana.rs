//! The messages of Hrana 3 in JSON, as far as statements need them.

use base64::{Engine as _, prelude::BASE64_STANDARD, prelude::BASE64_STANDARD_NO_PAD};
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
    pub(super) results: Vec<Outcome>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Outcome {
    Ok { response: Response },
    Error { error: Failure },
}

impl Outcome {
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

impl From<Failure> for DbError {
    fn from(failure: Failure) -> Self {
        let code = failure.code.as_deref().unwrap_or_default();
        let is_busy = code.starts_with("SQLITE_BUSY") || BUSY.contains(&failure.message.as_str());
        Self::Statement { full: code == "SQLITE_FULL", is_busy, message: failure.message }
    }
}

/// The errors without a code of a server that did nothing because of other clients.
const BUSY: [&str; 2] = ["Too many concurrent requests", "Timed out while opening database connection"];

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
