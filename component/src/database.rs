//! One connection to the default database, and its rows by column.
//!
//! Invariant: a result is always read to its end, because a failure vanishes otherwise and a row
//! stream left open stops a local database. A connection lives for one request: a shared one hangs
//! a libSQL server.

use spin_sdk::sqlite::{Connection, Error, RowResult};

pub use spin_sdk::sqlite::Value;

/// A statement that failed, or an answer that is not what the statement asks for.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The database's own words.
    #[error("the database failed: {0}")]
    Failed(#[from] Error),
    /// A column that is not there by the schema.
    #[error("the database answered with a row of another shape")]
    Shape,
}

/// A connection for one request.
pub struct Database(Connection);

impl Database {
    /// Opens it.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub async fn open() -> Result<Self, DatabaseError> {
        Ok(Self(Connection::open_default().await?))
    }

    /// Runs one statement and reads all its rows.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Row>, DatabaseError> {
        Ok(self.0.execute(sql, values).await?.collect().await?.into_iter().map(Row).collect())
    }

    /// Runs one statement and gives its first row, if any.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn one_row(&self, sql: &str, values: Vec<Value>) -> Result<Option<Row>, DatabaseError> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }
}

/// One row.
pub struct Row(RowResult);

impl Row {
    /// A column's text.
    ///
    /// # Errors
    /// When it is something else.
    pub fn text(&self, column: usize) -> Result<String, DatabaseError> {
        self.0.get::<&str>(column).map(str::to_owned).ok_or(DatabaseError::Shape)
    }

    /// A column's bytes.
    ///
    /// # Errors
    /// When it is something else.
    pub fn bytes(&self, column: usize) -> Result<&[u8], DatabaseError> {
        self.0.get(column).ok_or(DatabaseError::Shape)
    }

    /// A column's whole number.
    ///
    /// # Errors
    /// When it is something else.
    pub fn number<T: for<'v> TryFrom<&'v Value>>(&self, column: usize) -> Result<T, DatabaseError> {
        self.0.get(column).ok_or(DatabaseError::Shape)
    }

    /// A column's text, `None` for NULL.
    ///
    /// # Errors
    /// When it is something else.
    pub fn optional_text(&self, column: usize) -> Result<Option<String>, DatabaseError> {
        if self.is_null(column) { Ok(None) } else { self.text(column).map(Some) }
    }

    /// A column's whole number, `None` for NULL.
    ///
    /// # Errors
    /// When it is something else.
    pub fn optional_number<T: for<'v> TryFrom<&'v Value>>(
        &self,
        column: usize,
    ) -> Result<Option<T>, DatabaseError> {
        if self.is_null(column) { Ok(None) } else { self.number(column).map(Some) }
    }

    fn is_null(&self, column: usize) -> bool {
        matches!(self.0.values.get(column), Some(Value::Null))
    }
}

/// Text, or NULL.
#[must_use]
pub fn text_or_null(text: Option<&str>) -> Value {
    text.map_or(Value::Null, |text| Value::Text(text.to_owned()))
}

/// A whole number, or NULL.
#[must_use]
pub fn number_or_null(number: Option<i64>) -> Value {
    number.map_or(Value::Null, Value::Integer)
}
