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
/// The same on a libSQL server. sqld executes one write at a time, and stops for as long as a minute where many connections wait
/// for its lock.
const MAX_SERVER_STATEMENTS: usize = 1;
/// The time between looks for a free place, for each statement that is before this one, of which 15 count. A task of a component
/// cannot wake one of another request.
const QUEUE_INTERVAL: Duration = Duration::from_millis(2);

/// Connections that an instance keeps open between statements. The last one to a file that Spin closes makes SQLite write the
/// log back and delete it. One to a libSQL server costs a round trip to open. It is not kept after an error, because sqld's lock
/// can stay with it.
const MAX_IDLE_CONNECTIONS: usize = 2;

thread_local! {
    static IDLE_CONNECTIONS: RefCell<Vec<Connection>> = const { RefCell::new(Vec::new()) };
    static STATEMENTS: RefCell<StatementQueue> =
        const { RefCell::new(StatementQueue::new(MAX_SERVER_STATEMENTS)) };
    static KIND: Cell<Kind> = const { Cell::new(Kind::Unknown) };
}
static OUTAGE: Outage = Outage::new();

/// The kind of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unknown,
    /// It is being found out.
    Asked,
    File,
    Server,
}

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
        if began.elapsed() > STALL_TIME && KIND.get() != Kind::File {
            OUTAGE.failed(began, Instant::now());
        }
    }
}

/// Runs a statement on a connection that no other statement uses. No statement waits for the question which kind of database it
/// is: until that is known, the queue is that of a server.
async fn execute(sql: &str, values: &[Value]) -> Result<Vec<sqlite::RowResult>, sqlite::Error> {
    let connection = match IDLE_CONNECTIONS.with_borrow_mut(Vec::pop) {
        Some(connection) => connection,
        None => Connection::open_default().await?,
    };
    if KIND.get() == Kind::Unknown && !platform::is_platen_up() {
        KIND.set(Kind::Asked);
        wit_bindgen::spawn(async {
            let found = platform::timeout(RETRY_TIME, kind()).await;
            let kind = found.and_then(Result::ok).unwrap_or(Kind::Unknown);
            KIND.set(kind);
            if kind == Kind::File {
                STATEMENTS.with_borrow_mut(|queue| queue.set_places(MAX_CONCURRENT_STATEMENTS));
            }
        });
    }
    let rows = connection.execute(sql, values.iter().map(to_sqlite)).await?.collect().await?;
    IDLE_CONNECTIONS.with_borrow_mut(|idle| {
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(connection);
        }
    });
    Ok(rows)
}

/// Asks for the kind, on a connection of its own.
async fn kind() -> Result<Kind, sqlite::Error> {
    let connection = Connection::open_default().await?;
    let rows = connection.execute("SELECT sqlite_source_id()", []).await?.collect().await?;
    let id = rows.into_iter().flat_map(|row| row.values).find_map(|value| match value {
        sqlite::Value::Text(id) => Some(id),
        _ => None,
    });
    Ok(if id.is_some_and(|id| !is_changed_sqlite(&id)) { Kind::File } else { Kind::Server })
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
