//! A SQLite file: a pool of open connections, whose statements run on threads that may block.
//!
//! Invariant: at most one statement of this process that may write runs at a time, so that writers queue
//! instead of polling the file's lock. SQLite waits for the writers of other processes, up to [`BUSY_TIMEOUT`].

use std::{
    fs, io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{self, JoinHandle},
};

use super::{
    Value,
    error::DbError,
    flow::Flow,
    local_connection::LocalConnection,
    location::Purpose,
    queue::{Queued, StatementQueue},
    result::{Effects, QueryResult},
    statement::StatementKind,
};

/// How long a statement waits for another process that writes, before it is sent again.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Reads are served from memory mostly, so more threads only compete for the CPU.
const MAX_CONCURRENT_READS: usize = 4;
/// Statements that a thread runs before it returns. Each is committed by itself: a commit does not wait for the
/// disk, and costs less than the handler's work for the statement.
const MAX_BATCH: usize = 16;
/// The readers', the writer's, and some for statements that are not queued.
const MAX_IDLE_CONNECTIONS: usize = 8;

pub(super) struct Pool {
    path: PathBuf,
    purpose: Purpose,
    idle: Mutex<Vec<LocalConnection>>,
    reads: Arc<StatementQueue<Job>>,
    writes: Arc<StatementQueue<Job>>,
}

impl Pool {
    pub(super) async fn open(path: &Path, purpose: Purpose) -> Result<Arc<Self>, DbError> {
        let pool = Arc::new(Self {
            path: path.to_owned(),
            purpose,
            idle: Mutex::default(),
            reads: StatementQueue::new(MAX_CONCURRENT_READS, 1, run_batch),
            writes: StatementQueue::new(1, MAX_BATCH, run_batch),
        });
        let opening = Arc::clone(&pool);
        blocking(move || {
            match fs::symlink_metadata(&opening.path) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if purpose == Purpose::Operate {
                        return Err(DbError::Missing(opening.path.display().to_string()));
                    }
                    // SQLite would create it with permissions for other users.
                    create_private(&opening.path).map_err(DbError::unopened)?;
                }
                Err(error) => return Err(DbError::unopened(error)),
            }
            let connection = opening.connect()?;
            if purpose != Purpose::Operate {
                // A property of the file, with which readers do not wait for the writer.
                connection.run("PRAGMA journal_mode = WAL")?;
            }
            let mut connections = vec![connection];
            if purpose == Purpose::Serve {
                // Opened now, so that statements need no file descriptors later, when connections may have used all.
                while connections.len() < MAX_IDLE_CONNECTIONS {
                    connections.push(opening.connect()?);
                }
                for connection in &connections {
                    // Opens the write-ahead log.
                    connection.run("SELECT 1 FROM sqlite_schema LIMIT 1")?;
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

    pub(super) fn lease(self: &Arc<Self>) -> Arc<Lease> {
        Arc::new(Lease {
            pool: Arc::clone(self),
            connection: Mutex::default(),
            altered: AtomicBool::new(false),
            statement: Arc::new(Semaphore::new(1)),
        })
    }

    fn connect(&self) -> Result<LocalConnection, DbError> {
        let build =
            libsql::Builder::new_local(&self.path).flags(libsql::OpenFlags::SQLITE_OPEN_READ_WRITE).build();
        let connection = Handle::current().block_on(build).and_then(|database| database.connect());
        let connection = connection.map_err(DbError::unopened)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(DbError::unopened)?;
        let connection = LocalConnection::new(connection);
        let synchronous = if self.purpose == Purpose::Serve { "NORMAL" } else { "FULL" };
        connection.run(&format!("PRAGMA synchronous = {synchronous}"))?;
        connection.run("PRAGMA foreign_keys = ON")?;
        Ok(connection)
    }

    fn take(&self) -> Option<LocalConnection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put(&self, connection: LocalConnection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(connection);
        }
    }
}

/// What one user sees as a connection.
pub(super) struct Lease {
    pool: Arc<Pool>,
    /// One that was altered. Other statements use any connection of the pool.
    connection: Mutex<Option<LocalConnection>>,
    /// Whether a statement may have changed the state of the connection: a transaction, a PRAGMA, a
    /// temporary table. Such a connection does not return to the pool.
    altered: AtomicBool,
    /// The right to run a statement.
    statement: Arc<Semaphore>,
}

impl Lease {
    pub(super) async fn execute(
        self: &Arc<Self>,
        flow: Flow,
        sql: String,
        parameters: Vec<Value>,
        effects: Arc<Effects>,
    ) -> Result<QueryResult, DbError> {
        let kind = StatementKind::of(&sql);
        let alters = kind == StatementKind::Other;
        let altered = self.altered.fetch_or(alters, Ordering::Relaxed) || alters;
        let permit = Arc::clone(&self.statement).acquire_owned().await.map_err(|_| DbError::Panicked)?;
        let job = Job { lease: Arc::clone(self), sql, parameters, effects, _permit: permit };
        match kind {
            // Within a transaction of this connection the file's lock decides, and the next writer polls
            // for it. Waiting for a turn here could be a deadlock with that writer.
            _ if altered => blocking(move || job.run()).await,
            StatementKind::Write => self.pool.writes.run(flow, job).await,
            _ => self.pool.reads.run(flow, job).await,
        }
    }

    /// Runs all statements of a script. The connection must be in a transaction.
    pub(super) async fn run_script(self: &Arc<Self>, sql: String) -> Result<(), DbError> {
        let _permit = Arc::clone(&self.statement).acquire_owned().await.map_err(|_| DbError::Panicked)?;
        let lease = Arc::clone(self);
        blocking(move || lease.with_connection(|connection| connection.run_script(&sql))).await
    }

    fn with_connection<T>(
        &self,
        run: impl FnOnce(&mut LocalConnection) -> Result<T, DbError>,
    ) -> Result<T, DbError> {
        let mut slot = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // Taken out, so that a connection whose thread panics is not used again.
        let mut connection = match slot.take().or_else(|| self.pool.take()) {
            Some(connection) => connection,
            None => self.pool.connect()?,
        };
        let result = run(&mut connection);
        if self.altered.load(Ordering::Relaxed) {
            *slot = Some(connection);
        } else {
            // At once, so that the open connections are as many as the running statements, not as many as the leases.
            self.pool.put(connection);
        }
        result
    }
}

/// A statement for a thread that may block.
struct Job {
    lease: Arc<Lease>,
    sql: String,
    parameters: Vec<Value>,
    effects: Arc<Effects>,
    /// That of the lease.
    _permit: OwnedSemaphorePermit,
}

impl Job {
    fn run(self) -> Result<QueryResult, DbError> {
        let Self { lease, sql, parameters, effects, .. } = self;
        lease.with_connection(|connection| connection.execute(&sql, parameters, &effects))
    }
}

fn run_batch(batch: Vec<Queued<Job>>) -> JoinHandle<()> {
    task::spawn_blocking(|| {
        for queued in batch {
            let (job, reply) = queued.into_parts();
            reply(job.run());
        }
    })
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DbError> + Send + 'static,
) -> Result<T, DbError> {
    task::spawn_blocking(work).await.map_err(|_| DbError::Panicked)?
}

fn create_private(path: &Path) -> io::Result<()> {
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        // Another process has just created it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map(drop),
    }
}
