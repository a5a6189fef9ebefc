//! A SQLite file: a pool of open connections, whose statements run on threads that may block.
//!
//! Invariant: at most one statement of this process that may write runs at a time, so that writers queue
//! instead of polling the file's lock. SQLite waits for the writers of other processes, up to [`TURN_TIMEOUT`].

use std::{
    collections::HashMap,
    fs, io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use platen_statements::Outcome;
use tokio::{runtime::Handle, task};

use super::{
    DbError, MAX_RESULT_BYTES, Row, Value,
    location::Purpose,
    queue::{Queued, TURN_TIMEOUT},
};

const MAX_PREPARED_STATEMENTS: usize = 32;
/// Reads are served from memory mostly, so more threads only compete for the CPU.
pub(super) const MAX_CONCURRENT_READS: usize = 4;
/// Statements that a thread runs before it returns. Each is committed by itself: a commit does not wait for the
/// disk, and costs less than the handler's work for the statement.
pub(super) const MAX_BATCH: usize = 16;
/// The readers', the writer's, and some for those that stall.
const MAX_IDLE_CONNECTIONS: usize = 8;

pub(super) struct Pool {
    path: PathBuf,
    purpose: Purpose,
    idle: Mutex<Vec<LocalConnection>>,
}

impl Pool {
    pub(super) async fn open(path: &Path, purpose: Purpose) -> Result<Arc<Self>, DbError> {
        let pool = Arc::new(Self { path: path.to_owned(), purpose, idle: Mutex::default() });
        let opening = Arc::clone(&pool);
        blocking(move || {
            if purpose == Purpose::Operate {
                let found = opening.path.symlink_metadata();
                if found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                    return Err(DbError::Missing(opening.path.display().to_string()));
                }
            } else {
                // SQLite would create it with permissions for other users.
                create_private(&opening.path).map_err(DbError::unopened)?;
            }
            let connection = opening.connect()?;
            if purpose != Purpose::Operate {
                connection.write_ahead()?;
            }
            let mut connections = vec![connection];
            if purpose == Purpose::Serve {
                // Opened now, so that statements need no file descriptors later, when connections may have used all.
                while connections.len() < MAX_IDLE_CONNECTIONS {
                    connections.push(opening.connect()?);
                }
                for connection in &connections {
                    // Opens the write-ahead log.
                    connection.run_script("SELECT 1 FROM sqlite_schema LIMIT 1")?;
                }
            }
            for connection in connections {
                opening.put(connection);
            }
            Ok(())
        })
        .await?;
        Ok(pool)
    }

    /// Runs statements on any connection. Blocks the thread.
    pub(super) fn run(&self, batch: Vec<Queued>) {
        for Queued { sql, parameters, reply } in batch {
            let _ = reply.send(self.execute(&sql, parameters));
        }
    }

    fn execute(&self, sql: &str, parameters: Vec<Value>) -> Result<Vec<Row>, DbError> {
        let idle = self.idle.lock().pop();
        let mut connection = idle.map_or_else(|| self.connect(), Ok)?;
        // A connection whose thread panics is not used again.
        let result = connection.execute(sql, parameters);
        if result.as_ref().is_err_and(|error| error.outcome() == Outcome::Unable) {
            // The file system may be another one, or was read-only when a connection was opened, which is so for as long as
            // the connection exists.
            self.idle.lock().clear();
        } else {
            self.put(connection);
        }
        result
    }

    /// Runs all statements of a script on a new connection, whose end rolls back an open transaction.
    pub(super) async fn run_script(self: &Arc<Self>, sql: String) -> Result<(), DbError> {
        let pool = Arc::clone(self);
        blocking(move || pool.connect()?.run_script(&sql)).await
    }

    fn connect(&self) -> Result<LocalConnection, DbError> {
        let build =
            libsql::Builder::new_local(&self.path).flags(libsql::OpenFlags::SQLITE_OPEN_READ_WRITE).build();
        let connection = Handle::current().block_on(build).and_then(|database| database.connect());
        let connection = connection.map_err(DbError::unopened)?;
        connection.busy_timeout(TURN_TIMEOUT).map_err(DbError::unopened)?;
        let connection = LocalConnection { statements: HashMap::new(), connection };
        let synchronous = if self.purpose == Purpose::Serve { "NORMAL" } else { "FULL" };
        connection.run_script(&format!("PRAGMA synchronous = {synchronous}; PRAGMA foreign_keys = ON"))?;
        Ok(connection)
    }

    fn put(&self, connection: LocalConnection) {
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(connection);
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DbError> + Send + 'static,
) -> Result<T, DbError> {
    task::spawn_blocking(work).await.map_err(|_| DbError::Panicked)?
}

fn create_private(path: &Path) -> io::Result<()> {
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map(drop),
    }
}

/// A connection with its prepared statements. After a statement, however it ended, it is reset, so that it holds no snapshot
/// of the file.
struct LocalConnection {
    // Before the connection, because fields are dropped in this order.
    statements: HashMap<String, libsql::Statement>,
    connection: libsql::Connection,
}

impl LocalConnection {
    fn run_script(&self, sql: &str) -> Result<(), DbError> {
        Handle::current().block_on(self.connection.execute_batch(sql)).map(drop).map_err(map_error)
    }

    /// Sets a property of the file, with which readers do not wait for the writer. For this change SQLite itself does not
    /// wait for another process, which may be making the same one.
    fn write_ahead(&self) -> Result<(), DbError> {
        let began = Instant::now();
        loop {
            let result = self.run_script("PRAGMA journal_mode = WAL");
            let is_locked = result.as_ref().is_err_and(|error| error.outcome() == Outcome::NotRun);
            if !is_locked || began.elapsed() > TURN_TIMEOUT {
                return result;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn execute(&mut self, sql: &str, parameters: Vec<Value>) -> Result<Vec<Row>, DbError> {
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
    match error {
        libsql::Error::SqliteFailure(code, message) => match Outcome::of_sqlite_code(code) {
            Outcome::Away => DbError::unopened(libsql::Error::SqliteFailure(code, message)),
            outcome => DbError::Statement { message, outcome },
        },
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

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_connection_that_cannot_write_is_replaced() {
        for (pragma, message) in [
            ("query_only = ON", "attempt to write a readonly database"),
            ("max_page_count = 3", "database or disk is full"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let pool = Pool::open(&directory.path().join("a.db"), Purpose::Serve).await.unwrap();
            pool.run_script("CREATE TABLE t (a BLOB)".to_owned()).await.unwrap();
            let work = move || {
                for connection in pool.idle.lock().iter() {
                    connection.run_script(&format!("PRAGMA {pragma}"))?;
                }
                let insert = || pool.execute("INSERT INTO t VALUES (zeroblob(50000))", Vec::new());
                let error = insert().unwrap_err();
                assert_eq!((error.to_string().as_str(), error.outcome()), (message, Outcome::Unable));
                insert()
            };
            blocking(work).await.unwrap();
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_file_that_another_process_reads_is_waited_for_when_it_is_opened() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let reader = libsql::Builder::new_local(&path).build().await.unwrap().connect().unwrap();
        reader.execute_batch("CREATE TABLE t (a); BEGIN; SELECT * FROM t").await.unwrap();
        let mut opening = pin!(Pool::open(&path, Purpose::Migrate));
        assert!(timeout(Duration::from_millis(100), opening.as_mut()).await.is_err());
        reader.execute_batch("COMMIT").await.unwrap();
        opening.await.unwrap();
    }
}
