//! The database: a SQLite file or a libSQL server, with one interface for both.
//!
//! Invariant: a statement leaves nothing in its connection for the next one, neither an open transaction nor a PRAGMA.

mod local;
mod location;
mod queue;
mod remote;

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use platen_statements::{Outage, Outcome, Verdict, repeated};
use prometheus_client::{
    metrics::{counter::Counter, histogram::Histogram},
    registry::Registry,
};
use secrecy::SecretString;
use tokio::{
    task::{self, JoinHandle},
    time::timeout,
};

use queue::{Queued, StatementQueue, TURN_TIMEOUT};

pub(crate) use location::{Location, Purpose};
pub(crate) use platen_statements::Value;

/// The values of one row, in the order of the columns.
pub(crate) type Row = Vec<Value>;

/// Limit of a result, so that one statement cannot exhaust the memory: some hundred thousand short rows.
const MAX_RESULT_BYTES: usize = 64 * 1024 * 1024;

/// A cheap handle.
#[derive(Clone)]
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Database {
    backend: Backend,
    reads: Arc<StatementQueue>,
    writes: Arc<StatementQueue>,
    outage: Arc<Outage>,
    /// Measures the statements that are sent through this handle and its clones.
    pub(crate) statements: StatementMetrics,
}

#[derive(Clone)]
enum Backend {
    File(Arc<local::Pool>),
    Server(Arc<remote::Client>),
}

impl Backend {
    /// Starts a batch, which runs until it has ended, also if the handle is dropped.
    fn start(&self, batch: Vec<Queued>) -> JoinHandle<()> {
        match self.clone() {
            Self::File(pool) => task::spawn_blocking(move || pool.run(batch)),
            Self::Server(client) => tokio::spawn(async move { client.run(batch).await }),
        }
    }
}

impl Database {
    /// Opens a file at once; a server is first connected to by a statement.
    pub(crate) async fn open(
        location: &Location,
        token: Option<SecretString>,
        purpose: Purpose,
    ) -> Result<Self, DbError> {
        let (backend, max_reads, max_writes, max_batch) = match location {
            Location::File(path) => {
                let pool = local::Pool::open(path, purpose).await?;
                (Backend::File(pool), local::MAX_CONCURRENT_READS, 1, local::MAX_BATCH)
            }
            Location::Server(url) => {
                let client = remote::Client::new(url.clone(), token)?;
                let backend = Backend::Server(Arc::new(client));
                (backend, remote::MAX_CONCURRENT_READS, remote::MAX_CONCURRENT_WRITES, remote::MAX_BATCH)
            }
        };
        let queue = |max_concurrent, max_batch, statement_time| {
            let backend = backend.clone();
            StatementQueue::new(max_concurrent, max_batch, statement_time, move |batch| backend.start(batch))
        };
        let reads = queue(max_reads, 1, Duration::ZERO);
        let writes = queue(max_writes, max_batch, remote::STATEMENT_TIME);
        let (outage, statements) = (Arc::default(), StatementMetrics::default());
        Ok(Self { backend, reads, writes, outage, statements })
    }

    /// The rows of one statement, in its turn; text after the first statement is ignored. An outage that has lasted for some
    /// time is an error at once.
    pub(crate) async fn execute(
        &self,
        flow: FlowId,
        sql: String,
        parameters: Vec<Value>,
    ) -> Result<Vec<Row>, DbError> {
        let queue = if is_write(&sql)? { &self.writes } else { &self.reads };
        let run = async {
            match self.outage.judge(Instant::now()) {
                Verdict::Send => self.observed(queue.run(flow, sql, parameters)).await,
                Verdict::Refuse => Err(DbError::Outage),
                Verdict::RefuseAndCheck => {
                    let database = self.clone();
                    tokio::spawn(async move {
                        let check =
                            database.reads.run(FlowId::default(), Outage::CHECK.to_owned(), Vec::new());
                        database.observed(check).await
                    });
                    Err(DbError::Outage)
                }
            }
        };
        self.statements.measure(run).await
    }

    /// Runs a statement, and records what it shows of an outage.
    async fn observed(
        &self,
        statement: impl Future<Output = Result<Vec<Row>, DbError>>,
    ) -> Result<Vec<Row>, DbError> {
        let began = Instant::now();
        let mut statement = pin!(statement);
        loop {
            match timeout(Outage::RECORD_INTERVAL, statement.as_mut()).await {
                Ok(result) => {
                    let outcome = result.as_ref().err().map(DbError::outcome);
                    self.outage.record(began, outcome, Instant::now());
                    return result;
                }
                // It does not wait for its turn any more. A statement on a file may wait for as long for its lock.
                Err(_) if self.is_server() && began.elapsed() > TURN_TIMEOUT => {
                    self.outage.failed(began, Instant::now());
                }
                Err(_) => {}
            }
        }
    }

    fn is_server(&self) -> bool {
        matches!(self.backend, Backend::Server(_))
    }

    /// Runs the statements of a script on a connection of its own, and again while the database is busy or absent. If one
    /// fails, a transaction that the script has begun is rolled back.
    pub(crate) async fn run_script(&self, sql: &str) -> Result<(), DbError> {
        let run = async || match &self.backend {
            Backend::File(pool) => pool.run_script(sql.to_owned()).await,
            Backend::Server(client) => client.run_script(sql).await,
        };
        when_available(run).await
    }

    /// The rows of a statement of the server itself or of a command.
    pub(crate) async fn query(&self, sql: &str, parameters: Vec<Value>) -> Result<Vec<Row>, DbError> {
        self.execute(FlowId::default(), sql.to_owned(), parameters).await
    }

    /// The rows of one statement, which is sent again while the database is busy or absent.
    pub(crate) async fn query_when_available(&self, sql: &str) -> Result<Vec<Row>, DbError> {
        when_available(|| self.query(sql, Vec::new())).await
    }
}

/// Runs a statement again while the database is busy or absent.
async fn when_available<T>(run: impl AsyncFn() -> Result<T, DbError>) -> Result<T, DbError> {
    repeated(false, DbError::outcome, tokio::time::sleep, || Ok([rand::random()]), run).await
}

/// Requests and statements that share their turns in a queue: those of one address. The default is that of
/// the operator's commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct FlowId(u64);

impl FlowId {
    /// The flow of whatever has this value.
    pub(crate) fn of(value: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// Whether a statement may write, by its first word. An error for one that could leave something in its connection, such as
/// `BEGIN` or `PRAGMA`.
fn is_write(sql: &str) -> Result<bool, DbError> {
    let word: String = sql.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    match word.to_ascii_uppercase().as_str() {
        "SELECT" | "EXPLAIN" => Ok(false),
        // `WITH` may begin a reading statement as well.
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "WITH" => Ok(true),
        _ => Err(DbError::Kind),
    }
}

type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why the database did not do what was requested.
///
/// Invariant: `Display` has SQLite's message about the statement, and no path or address except that of
/// [`DbError::Missing`].
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum DbError {
    /// The file does not exist, and this purpose does not create it.
    #[error("there is no database at {0}")]
    Missing(String),
    /// The file cannot be opened, such as for lack of file descriptors or memory. Nothing was done.
    #[error("unable to open database file")]
    Unopened(#[source] Cause),
    /// The server cannot be reached, or its response is not known.
    #[error("the database cannot be reached")]
    Unreachable(#[source] Cause),
    /// The server does not accept connections.
    #[error("the database cannot be reached")]
    Absent(#[source] Cause),
    /// The statement was not run, because others took too long.
    #[error("the database is busy")]
    Busy,
    /// The statement was not sent, because the database has not answered others for some time.
    #[error("the database has not answered for some time")]
    Outage,
    #[error("the database server refused the token")]
    Unauthorized,
    #[error("{message}")]
    Statement {
        /// The message of SQLite or of the server.
        message: String,
        outcome: Outcome,
    },
    #[error("a statement must begin with SELECT, INSERT, UPDATE, DELETE, REPLACE or WITH")]
    Kind,
    #[error("the result is over {MAX_RESULT_BYTES} bytes")]
    TooLarge,
    #[error("the thread that ran the statement panicked")]
    Panicked,
}

impl DbError {
    /// What the error says about the statement.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Unopened(_) | Self::Absent(_) => Outcome::Away,
            Self::Busy => Outcome::NotRun,
            Self::Unreachable(_) => Outcome::Unknown,
            Self::Outage => Outcome::Unable,
            Self::Statement { outcome, .. } => *outcome,
            Self::Missing(_) | Self::Unauthorized | Self::Kind | Self::TooLarge | Self::Panicked => {
                Outcome::Failed
            }
        }
    }

    fn unopened(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unopened(Arc::new(error))
    }

    fn unreachable(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unreachable(Arc::new(error))
    }
}

/// Upper bounds of the histogram's buckets: from a statement on a file to the time after which one is refused.
const SECONDS: [f64; 12] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 2.0, 5.0];

/// What is measured of the statements of components; a cheap handle.
#[derive(Debug, Clone)]
pub(crate) struct StatementMetrics {
    started: Counter,
    failed: Counter,
    seconds: Histogram,
}

impl Default for StatementMetrics {
    fn default() -> Self {
        Self { started: Counter::default(), failed: Counter::default(), seconds: Histogram::new(SECONDS) }
    }
}

impl StatementMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        let db = registry.sub_registry_with_prefix("platen_db");
        db.register("statements", "Statements executed for components", self.started.clone());
        let help = "Statements of components that failed or were refused";
        db.register("statements_failed", help, self.failed.clone());
        let help = "Time of a statement of a component, with its wait for its turn";
        db.register("statement_duration_seconds", help, self.seconds.clone());
    }

    /// Runs a statement.
    async fn measure<T, E>(&self, statement: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.started.inc();
        let began = Instant::now();
        let result = statement.await;
        self.seconds.observe(began.elapsed().as_secs_f64());
        if result.is_err() {
            self.failed.inc();
        }
        result
    }
}

#[cfg(test)]
mod tests;
