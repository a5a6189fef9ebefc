//! The default database as the backend of the statements.
//!
//! Invariant: a result is read to its end, because otherwise its error is lost and an open row
//! stream blocks a local database. A connection runs one statement at a time: a shared one hangs a
//! libSQL server. A statement is sent again only if the database has not run it, or if
//! running it twice has no effect.

use std::{
    cell::RefCell,
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use platen_shared::wire;
use platen_statements::{Backend, DataError, Row, Value};
use spin_sdk::{
    sqlite::{self, Connection},
    time::sleep,
};

use crate::{availability::Availability, platform};

/// Statements that an instance runs at once; the others wait here for up to [`MAX_QUEUE_TIME`]. sqld refuses more than 128 requests of all its
/// clients together. Spin gives an instance at most 16 requests, so that this many serve 512 requests. On a platform
/// that queues them itself there is no limit, because those that wait here have no order.
const MAX_CONCURRENT_STATEMENTS: usize = 4;
/// Between looks for a free place, with [`jitter`]; doubles up to the maximum.
const MIN_QUEUE_INTERVAL: Duration = Duration::from_millis(2);
const MAX_QUEUE_INTERVAL: Duration = Duration::from_millis(64);
/// A statement that a libSQL server does not answer must not hold up the requests of others.
const MAX_QUEUE_TIME: Duration = Duration::from_secs(1);
/// Before a statement is sent again, with [`jitter`]; doubles each time.
const MIN_RETRY_DELAY: Duration = Duration::from_millis(20);
const MAX_RETRY_DELAY: Duration = Duration::from_millis(500);

/// Connections that an instance keeps open between statements. Opening one costs a libSQL server a round trip, and
/// the last one that Spin closes on a file makes SQLite write the log back and delete it.
const MAX_IDLE_CONNECTIONS: usize = 2;

thread_local! {
    static IDLE_CONNECTIONS: RefCell<Vec<Connection>> = const { RefCell::new(Vec::new()) };
}
static RUNNING_STATEMENTS: AtomicUsize = AtomicUsize::new(0);
static QUEUES_STATEMENTS: LazyLock<bool> =
    LazyLock::new(|| std::env::var_os(wire::QUEUES_STATEMENTS).is_some());

/// A statement that failed, or a row that does not match the schema.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The database is busy or cannot be reached, or its disk is full or fails.
    #[error("the database is not available: {0}")]
    Unavailable(sqlite::Error),
    /// The database refused the statement.
    #[error("the database failed: {0}")]
    Failed(sqlite::Error),
    /// A stored value that does not match the schema.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// The default database; a cheap handle.
#[derive(Debug, Clone, Copy)]
pub struct Database {
    retry_timeout: Duration,
}

impl Database {
    /// Each statement is sent again to a database that is busy or absent, for `retry_timeout` after the first refusal.
    #[must_use]
    pub const fn new(retry_timeout: Duration) -> Self {
        Self { retry_timeout }
    }
}

impl Backend for Database {
    type Error = DatabaseError;

    async fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Row>, DatabaseError> {
        let is_repeatable = sql.starts_with("SELECT") || sql.ends_with("DO NOTHING");
        let (mut until, mut delay) = (None, MIN_RETRY_DELAY);
        let rows = loop {
            let error = match execute(sql, &values).await {
                Ok(rows) => break rows,
                Err(error) => error,
            };
            let is_retried = match availability(&error) {
                Availability::Refused => true,
                Availability::Unknown => is_repeatable,
                Availability::NoDisk => false,
                Availability::Available => return Err(DatabaseError::Failed(error)),
            };
            let (now, pause) = (Instant::now(), jitter(delay));
            if !is_retried || now + pause > *until.get_or_insert(now + self.retry_timeout) {
                return Err(DatabaseError::Unavailable(error));
            }
            sleep(pause).await;
            delay = (delay * 2).min(MAX_RETRY_DELAY);
        };
        let columns = |row: sqlite::RowResult| row.values.into_iter().map(from_sqlite).collect();
        Ok(rows.into_iter().map(|row| Row::new(columns(row))).collect())
    }

    fn random<const N: usize>(&self) -> Result<[u8; N], DatabaseError> {
        Ok(platform::random())
    }
}

/// Runs a statement on a connection that no other statement uses.
async fn execute(sql: &str, values: &[Value]) -> Result<Vec<sqlite::RowResult>, sqlite::Error> {
    let _permit = Permit::acquire().await;
    let connection = match IDLE_CONNECTIONS.with_borrow_mut(Vec::pop) {
        Some(connection) => connection,
        None => Connection::open_default().await?,
    };
    let rows = connection.execute(sql, values.iter().map(to_sqlite)).await?.collect().await?;
    IDLE_CONNECTIONS.with_borrow_mut(|idle| {
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(connection);
        }
    });
    Ok(rows)
}

fn availability(error: &sqlite::Error) -> Availability {
    match error {
        sqlite::Error::Io(text) => Availability::of(text),
        // Spin's error of a libSQL client that it cannot create.
        sqlite::Error::InvalidConnection => Availability::Refused,
        sqlite::Error::DatabaseFull => Availability::NoDisk,
        _ => Availability::Available,
    }
}

/// The right to run a statement.
struct Permit;

impl Permit {
    /// Looks again after a pause, because a task of a component cannot wake one of another request.
    async fn acquire() -> Self {
        let take = |running| (running < MAX_CONCURRENT_STATEMENTS).then_some(running + 1);
        let (until, mut interval) = (Instant::now() + MAX_QUEUE_TIME, MIN_QUEUE_INTERVAL);
        while RUNNING_STATEMENTS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            if *QUEUES_STATEMENTS || Instant::now() > until {
                RUNNING_STATEMENTS.fetch_add(1, Ordering::Relaxed);
                break;
            }
            sleep(jitter(interval)).await;
            interval = (interval * 2).min(MAX_QUEUE_INTERVAL);
        }
        Self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        RUNNING_STATEMENTS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A random duration from half of this one to one and a half, so that callers that were refused together do not
/// return together.
fn jitter(duration: Duration) -> Duration {
    let [random] = platform::random();
    duration / 2 + duration * u32::from(random) / u32::from(u8::MAX)
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
