//! One open connection to the file: runs statements on a thread that may block.
//!
//! Invariant: after a statement, however it ended, it is reset, so that it holds no snapshot of the file.

use std::collections::HashMap;

use tokio::runtime::Handle;

use super::{DbError, MAX_RESULT_BYTES, Row, Value};

const MAX_PREPARED_STATEMENTS: usize = 32;

/// A connection with its prepared statements.
pub(super) struct LocalConnection {
    // Before the connection, because fields are dropped in this order.
    statements: HashMap<String, libsql::Statement>,
    connection: libsql::Connection,
}

impl LocalConnection {
    pub(super) fn new(connection: libsql::Connection) -> Self {
        Self { statements: HashMap::new(), connection }
    }

    /// Runs a statement without parameters and discards its rows.
    pub(super) fn run(&self, sql: &str) -> Result<(), DbError> {
        Handle::current().block_on(async {
            let mut rows = self.connection.query(sql, ()).await.map_err(map_error)?;
            while rows.next().await.map_err(map_error)?.is_some() {}
            Ok(())
        })
    }

    /// Runs all statements of a script.
    pub(super) fn run_script(&self, sql: &str) -> Result<(), DbError> {
        Handle::current().block_on(self.connection.execute_batch(sql)).map(drop).map_err(map_error)
    }

    pub(super) fn execute(&mut self, sql: &str, parameters: Vec<Value>) -> Result<Vec<Row>, DbError> {
        Handle::current().block_on(async {
            let statement = self.prepare(sql).await?;
            let result = query(statement, parameters).await;
            // A statement that is not reset keeps its snapshot, and the write-ahead log grows.
            statement.reset();
            result
        })
    }

    async fn prepare(&mut self, sql: &str) -> Result<&libsql::Statement, DbError> {
        if !self.statements.contains_key(sql) {
            if self.statements.len() >= MAX_PREPARED_STATEMENTS {
                self.statements.clear();
            }
            let prepared = self.connection.prepare(sql).await.map_err(map_error)?;
            self.statements.insert(sql.to_owned(), prepared);
        }
        Ok(&self.statements[sql])
    }
}

async fn query(statement: &libsql::Statement, mut parameters: Vec<Value>) -> Result<Vec<Row>, DbError> {
    // A prepared statement keeps its last parameters, so those that are missing are set to NULL.
    parameters.resize(parameters.len().max(statement.parameter_count()), Value::Null);
    let parameters: Vec<libsql::Value> = parameters.into_iter().map(into_libsql).collect();
    let mut rows = statement.query(parameters).await.map_err(map_error)?;
    // Read after the first step: before it, a statement that was prepared before a change of the schema has
    // the old columns.
    let width = rows.column_count();
    let (mut result, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next().await.map_err(map_error)? {
        let row = read(&row, width)?;
        bytes += row.iter().map(size).sum::<usize>();
        if bytes > MAX_RESULT_BYTES {
            return Err(DbError::TooLarge);
        }
        result.push(row);
    }
    Ok(result)
}

fn read(row: &libsql::Row, width: i32) -> Result<Row, DbError> {
    (0..width)
        .map(|index| {
            Ok(match row.get_value(index).map_err(map_error)? {
                libsql::Value::Null => Value::Null,
                libsql::Value::Integer(number) => Value::Integer(number),
                libsql::Value::Real(number) => Value::Real(number),
                libsql::Value::Text(text) => Value::Text(text),
                libsql::Value::Blob(bytes) => Value::Blob(bytes),
            })
        })
        .collect()
}

fn into_libsql(value: Value) -> libsql::Value {
    match value {
        Value::Null => libsql::Value::Null,
        Value::Integer(number) => libsql::Value::Integer(number),
        Value::Real(number) => libsql::Value::Real(number),
        Value::Text(text) => libsql::Value::Text(text),
        Value::Blob(bytes) => libsql::Value::Blob(bytes),
    }
}

/// SQLite's messages about a statement name tables and columns, never the file.
fn map_error(error: libsql::Error) -> DbError {
    const BUSY: i32 = 5;
    const FULL: i32 = 13;
    const OUT_OF_MEMORY: i32 = 7;
    const CANNOT_OPEN: i32 = 14;
    /// `SQLITE_IOERR_NOMEM`, and those of the index of the log: `_SHMOPEN`, `_SHMSIZE` and `_SHMMAP`.
    const OUT_OF_RESOURCES: [i32; 4] = [3082, 4618, 4874, 5386];
    match error {
        // The statement was rolled back.
        libsql::Error::SqliteFailure(code, _)
            if matches!(code & 0xff, OUT_OF_MEMORY | CANNOT_OPEN) || OUT_OF_RESOURCES.contains(&code) =>
        {
            DbError::unopened(error)
        }
        libsql::Error::SqliteFailure(code, message) => {
            let code = code & 0xff;
            DbError::Statement { message, full: code == FULL, is_busy: code == BUSY }
        }
        other => DbError::unreachable(other),
    }
}

/// Roughly the memory that a value occupies, in bytes.
fn size(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Text(text) => text.len(),
            Value::Blob(bytes) => bytes.len(),
            Value::Null | Value::Integer(_) | Value::Real(_) => 0,
        }
}
