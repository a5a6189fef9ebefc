//! The default database as the backend of the statements.
//!
//! Invariant: a result is read to its end, because otherwise its error is lost and an open row
//! stream blocks a local database. A connection runs one statement at a time: a shared one hangs a
//! libSQL server.

use std::{
    cell::{Cell, RefCell},
    pin::pin,
    time::{Duration, Instant},
};

use platen_statements::{Backend, DataError, Outage, Outcome, RETRY_TIME, Row, Value, Verdict};
use spin_sdk::{
    sqlite::{self, Connection},
    time::sleep,
    wit_bindgen,
};

use crate::{
    outcome::{is_changed_sqlite, outcome},
    platform,
    statement_queue::{STALL_TIME, StatementQueue},
};

/// Statements that an instance runs at once on a file; the others wait here. On a platform that queues them itself there
/// is no limit.
const MAX_CONCURRENT_STATEMENTS: usize = 4;
/// The same on a libSQL server. sqld executes one write at a time, and stops for as long as a minute where many connections
/// wait for its lock.
const MAX_SERVER_STATEMENTS: usize = 1;
/// The time between looks for a free place, for each statement that is before this one, of which 15 count. A task of a component
/// cannot wake one of another request.
const QUEUE_INTERVAL: Duration = Duration::from_millis(2);

/// Connections to a file that an instance keeps open between statements: the last one that Spin closes makes SQLite write
/// the log back and delete it. None is kept to a libSQL server, because sqld's lock can stay with an idle one, and Spin
/// opens one without a round trip.
const MAX_IDLE_CONNECTIONS: usize = 2;

thread_local! {
    static IDLE_CONNECTIONS: RefCell<Vec<Connection>> = const { RefCell::new(Vec::new()) };
    static STATEMENTS: RefCell<StatementQueue> =
        const { RefCell::new(StatementQueue::new(MAX_SERVER_STATEMENTS)) };
    /// Whether the database is a file, once it is known.
    static IS_FILE: Cell<Option<bool>> = const { Cell::new(None) };
}
static OUTAGE: Outage = Outage::new();

/// A statement that failed, or a row that does not match the schema.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The database is busy, cannot be reached or cannot work, such as for a full disk.
    #[error("the database is not available: {1}")]
    Unavailable(Outcome, sqlite::Error),
    /// The database refused the statement.
    #[error("the database failed: {0}")]
    Failed(sqlite::Error),
    /// A stored value that does not match the schema.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// The default database.
#[derive(Debug, Clone, Copy)]
pub struct Database;

impl Backend for Database {
    type Error = DatabaseError;

    async fn execute(&self, sql: &str, values: &[Value]) -> Result<Vec<Row>, DatabaseError> {
        let rows = run(sql, values).await.map_err(|error| match outcome_of(&error) {
            Outcome::Failed => DatabaseError::Failed(error),
            outcome => DatabaseError::Unavailable(outcome, error),
        })?;
        let columns = |row: sqlite::RowResult| row.values.into_iter().map(from_sqlite).collect();
        Ok(rows.into_iter().map(|row| Row::new(columns(row))).collect())
    }

    fn outcome(error: &DatabaseError) -> Outcome {
        match error {
            DatabaseError::Unavailable(outcome, _) => *outcome,
            DatabaseError::Failed(_) | DatabaseError::Data(_) => Outcome::Failed,
        }
    }

    async fn sleep(&self, time: Duration) {
        sleep(time).await;
    }

    fn random<const N: usize>(&self) -> Result<[u8; N], DatabaseError> {
        Ok(platform::random())
    }
}

/// Runs a statement, unless the database is known to be away. A platform that queues statements knows that itself.
async fn run(sql: &str, values: &[Value]) -> Result<Vec<sqlite::RowResult>, sqlite::Error> {
    if platform::is_platen_up() {
        return execute(sql, values).await;
    }
    let verdict = OUTAGE.judge(Instant::now());
    if verdict == Verdict::Send {
        return observed(sql, values).await;
    }
    if verdict == Verdict::RefuseAndCheck {
        wit_bindgen::spawn(async {
            _ = platform::timeout(RETRY_TIME, observed(Outage::CHECK, &[])).await;
        });
    }
    let outcome: &str = Outcome::Unable.into();
    Err(sqlite::Error::Io(format!("{outcome}: the database has not answered for some time")))
}

/// Runs a statement in its turn, and records what it shows of an outage.
async fn observed(sql: &str, values: &[Value]) -> Result<Vec<sqlite::RowResult>, sqlite::Error> {
    let _permit = Permit::acquire().await;
    let began = Instant::now();
    let mut statement = pin!(execute(sql, values));
    loop {
        if let Some(result) = platform::timeout(Outage::RECORD_INTERVAL, statement.as_mut()).await {
            OUTAGE.record(began, result.as_ref().err().map(outcome_of), Instant::now());
            return result;
        }
        // A statement on a file may wait for as long for its lock.
        if began.elapsed() > STALL_TIME && IS_FILE.get() != Some(true) {
            OUTAGE.failed(began, Instant::now());
        }
    }
}

/// Runs a statement on a connection that no other statement uses.
async fn execute(sql: &str, values: &[Value]) -> Result<Vec<sqlite::RowResult>, sqlite::Error> {
    let connection = match IDLE_CONNECTIONS.with_borrow_mut(Vec::pop) {
        Some(connection) => connection,
        None => Connection::open_default().await?,
    };
    let is_file = is_file(&connection).await?;
    let rows = connection.execute(sql, values.iter().map(to_sqlite)).await?.collect().await?;
    IDLE_CONNECTIONS.with_borrow_mut(|idle| {
        if is_file && idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(connection);
        }
    });
    Ok(rows)
}

/// Asks once in an instance. A platform that queues statements has the kinds of connections that it needs itself.
async fn is_file(connection: &Connection) -> Result<bool, sqlite::Error> {
    if platform::is_platen_up() {
        return Ok(true);
    }
    if let Some(is_file) = IS_FILE.get() {
        return Ok(is_file);
    }
    let rows = connection.execute("SELECT sqlite_source_id()", []).await?.collect().await?;
    let id = rows.into_iter().flat_map(|row| row.values).find_map(|value| match value {
        sqlite::Value::Text(id) => Some(id),
        _ => None,
    });
    let is_file = id.is_some_and(|id| !is_changed_sqlite(&id));
    IS_FILE.set(Some(is_file));
    if is_file {
        STATEMENTS.with_borrow_mut(|queue| queue.set_places(MAX_CONCURRENT_STATEMENTS));
    }
    Ok(is_file)
}

fn outcome_of(error: &sqlite::Error) -> Outcome {
    match error {
        sqlite::Error::Io(text) => outcome(text),
        // Spin's error of a libSQL client that it cannot create.
        sqlite::Error::InvalidConnection => Outcome::NotRun,
        sqlite::Error::DatabaseFull => Outcome::Unable,
        _ => Outcome::Failed,
    }
}

/// The right to run a statement, by its number.
struct Permit(u64);

impl Permit {
    async fn acquire() -> Self {
        let permit = Self(STATEMENTS.with_borrow_mut(StatementQueue::join));
        while let Err(before) = STATEMENTS.with_borrow_mut(|queue| queue.begin(permit.0, Instant::now())) {
            let before = u32::try_from(before).unwrap_or(u32::MAX);
            sleep(QUEUE_INTERVAL * (before.min(15) + 1)).await;
        }
        permit
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        STATEMENTS.with_borrow_mut(|queue| queue.leave(self.0));
    }
}

fn to_sqlite(value: &Value) -> sqlite::Value {
    match value {
        Value::Null => sqlite::Value::Null,
        Value::Integer(number) => sqlite::Value::Integer(*number),
        Value::Real(number) => sqlite::Value::Real(*number),
        Value::Text(text) => sqlite::Value::Text(text.clone()),
        Value::Blob(bytes) => sqlite::Value::Blob(bytes.clone()),
    }
}

fn from_sqlite(value: sqlite::Value) -> Value {
    match value {
        sqlite::Value::Null => Value::Null,
        sqlite::Value::Integer(number) => Value::Integer(number),
        sqlite::Value::Real(number) => Value::Real(number),
        sqlite::Value::Text(text) => Value::Text(text),
        sqlite::Value::Blob(bytes) => Value::Blob(bytes),
    }
}
