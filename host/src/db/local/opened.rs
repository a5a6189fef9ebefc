//! One open connection: runs a statement and hands its rows over, on a thread that may block.
//!
//! Invariant: after a statement, however it ended, it is reset, so that it holds no snapshot of
//! the file. Left to others: whose connection it is.

use std::collections::HashMap;

use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
};

use super::{
    super::{Answer, DbError, Effects, Row, Value},
    HELD_BYTES, unreachable,
};

/// A reading statement hands over this much before it starts to stream.
const FIRST_ROWS: usize = 64;
const FIRST_BYTES: usize = 256 * 1024;
/// Rows read ahead of a slow reader.
const ROWS_AHEAD: usize = 4;
const KEPT_STATEMENTS: usize = 32;

/// An open connection with its prepared statements.
pub(super) struct Opened {
    // Before the connection, so that they are gone when it closes.
    statements: HashMap<String, libsql::Statement>,
    connection: libsql::Connection,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Opened")
    }
}

impl Opened {
    pub(super) fn new(connection: libsql::Connection) -> Self {
        Self { statements: HashMap::new(), connection }
    }

    /// Whether no transaction is open.
    pub(super) fn is_autocommit(&self) -> bool {
        self.connection.is_autocommit()
    }

    /// Runs a statement of our own and reads its rows away.
    pub(super) fn run(&self, sql: &str) -> Result<(), DbError> {
        Handle::current().block_on(async {
            let mut rows = self.connection.query(sql, ()).await.map_err(statement)?;
            while rows.next().await.map_err(statement)?.is_some() {}
            Ok(())
        })
    }

    /// Runs a statement and sends its answer, which a reading one begins before it is finished.
    pub(super) fn answer(
        &mut self,
        sql: &str,
        parameters: Vec<Value>,
        hold_all: bool,
        effects: &Effects,
        answer: oneshot::Sender<Result<Answer, DbError>>,
    ) {
        Handle::current().block_on(async {
            let prepared = match self.prepared(sql).await {
                Ok(prepared) => prepared,
                Err(error) => return drop(answer.send(Err(error))),
            };
            let before = prepared.1.total_changes();
            stream(prepared.0, parameters, hold_all, answer, || {
                // A statement that wrote nothing leaves the counts of the borrower's last one.
                if prepared.1.total_changes() != before {
                    effects.store(prepared.1.changes(), prepared.1.last_insert_rowid());
                }
            })
            .await;
            // A statement that is not reset keeps its snapshot, and the write-ahead log grows.
            prepared.0.reset();
        });
    }

    async fn prepared(&mut self, sql: &str) -> Result<(&libsql::Statement, &libsql::Connection), DbError> {
        if !self.statements.contains_key(sql) {
            if self.statements.len() >= KEPT_STATEMENTS {
                self.statements.clear();
            }
            let prepared = self.connection.prepare(sql).await.map_err(statement)?;
            self.statements.insert(sql.to_owned(), prepared);
        }
        Ok((&self.statements[sql], &self.connection))
    }
}

async fn stream(
    prepared: &libsql::Statement,
    mut parameters: Vec<Value>,
    hold_all: bool,
    answer: oneshot::Sender<Result<Answer, DbError>>,
    finished: impl FnOnce(),
) {
    // A kept statement remembers what was bound before.
    parameters.resize(parameters.len().max(prepared.parameter_count()), Value::Null);
    let parameters: Vec<libsql::Value> = parameters.into_iter().map(into_libsql).collect();
    let mut rows = match prepared.query(parameters).await {
        Ok(rows) => rows,
        Err(error) => return drop(answer.send(Err(statement(error)))),
    };
    // After the first step: before it, a statement kept from before a change of the schema would
    // still name the old columns.
    let width = rows.column_count();
    let columns: Vec<String> =
        (0..width).map(|index| rows.column_name(index).unwrap_or_default().to_owned()).collect();
    let (mut held, mut bytes) = (Vec::new(), 0);
    let more = loop {
        let row = match rows.next().await.map_err(statement) {
            Ok(Some(row)) => row,
            Ok(None) => break None,
            Err(error) => return drop(answer.send(Err(error))),
        };
        let row = match read(&row, width) {
            Ok(row) => row,
            Err(error) => return drop(answer.send(Err(error))),
        };
        let size: usize = row.iter().map(Value::size).sum();
        bytes += size;
        if size > HELD_BYTES || (hold_all && bytes > HELD_BYTES) {
            return drop(answer.send(Err(DbError::TooLarge)));
        }
        held.push(row);
        if !hold_all && (held.len() >= FIRST_ROWS || bytes >= FIRST_BYTES) {
            break Some(mpsc::channel(ROWS_AHEAD));
        }
    };
    let Some((rest_tx, rest_rx)) = more else {
        finished();
        return drop(answer.send(Ok(Answer { columns, rows: held, rest: None })));
    };
    if answer.send(Ok(Answer { columns, rows: held, rest: Some(rest_rx) })).is_err() {
        return;
    }
    loop {
        let row = match rows.next().await.map_err(statement) {
            Ok(Some(row)) => read(&row, width),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let failed = row.is_err();
        // The reader is gone: so is the reason to go on.
        if rest_tx.send(row).await.is_err() || failed {
            return;
        }
    }
}

fn read(row: &libsql::Row, width: i32) -> Result<Row, DbError> {
    (0..width)
        .map(|index| {
            Ok(match row.get_value(index).map_err(statement)? {
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

/// SQLite's words about a statement name tables and columns, never the file.
fn statement(error: libsql::Error) -> DbError {
    const FULL: i32 = 13;
    match error {
        libsql::Error::SqliteFailure(code, message) => {
            DbError::Statement { message, full: code & 0xff == FULL }
        }
        other => unreachable(other),
    }
}
