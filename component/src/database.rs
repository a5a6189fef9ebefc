//! The default database as the backend of the statements.
//!
//! Invariant: a result is read to its end, because otherwise its error is lost and an open row
//! stream blocks a local database. A connection is used for one request: a shared one hangs a
//! libSQL server.

use platen_statements::{Backend, DataError, Row, Value};
use spin_sdk::sqlite::{self, Connection};

use crate::platform;

/// A statement that failed, or a row that does not match the schema.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The database cannot be reached, or refused the statement.
    #[error("the database failed: {0}")]
    Failed(#[from] sqlite::Error),
    /// A stored value that does not match the schema.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// A connection for one request.
pub struct Database(Connection);

impl Database {
    /// Opens the default database.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn open() -> Result<Self, DatabaseError> {
        Ok(Self(Connection::open_default().await?))
    }
}

impl Backend for Database {
    type Error = DatabaseError;

    async fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Row>, DatabaseError> {
        let values = values.into_iter().map(|value| match value {
            Value::Null => sqlite::Value::Null,
            Value::Integer(number) => sqlite::Value::Integer(number),
            Value::Real(number) => sqlite::Value::Real(number),
            Value::Text(text) => sqlite::Value::Text(text),
            Value::Blob(bytes) => sqlite::Value::Blob(bytes),
        });
        let rows = self.0.execute(sql, values).await?.collect().await?;
        let columns = |row: sqlite::RowResult| row.values.into_iter().map(value).collect();
        Ok(rows.into_iter().map(|row| Row::new(columns(row))).collect())
    }

    fn random<const N: usize>(&self) -> Result<[u8; N], DatabaseError> {
        Ok(platform::random())
    }
}

fn value(value: sqlite::Value) -> Value {
    match value {
        sqlite::Value::Null => Value::Null,
        sqlite::Value::Integer(number) => Value::Integer(number),
        sqlite::Value::Real(number) => Value::Real(number),
        sqlite::Value::Text(text) => Value::Text(text),
        sqlite::Value::Blob(bytes) => Value::Blob(bytes),
    }
}
