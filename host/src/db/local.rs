//! A SQLite file: a pool of open connections, whose statements run on threads that may block.
//!
//! Invariant: at most one statement of this process that may write runs at a time, so that writers queue
//! instead of polling the file's lock. SQLite waits for the writers of other processes, up to [`BUSY_TIMEOUT`].

use std::{
    fs, io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    task::{self, JoinHandle},
};

use super::{
    DbError, Flow, Row, StatementKind, Value,
    local_connection::LocalConnection,
    location::Purpose,
    queue::{Queued, StatementQueue},
};

/// How long a statement waits for another process that writes, before it is sent again.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Reads are served from memory mostly, so more threads only compete for the CPU.
const MAX_CONCURRENT_READS: usize = 4;
/// Statements that a thread runs before it returns. Each is committed by itself: a commit does not wait for the
/// disk, and costs less than the handler's work for the statement.
const MAX_BATCH: usize = 16;
/// The readers', the writer's, and some for those that stall.
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

    /// Runs one statement, in its turn, on any connection.
    pub(super) async fn execute(
        self: &Arc<Self>,
        flow: Flow,
        kind: StatementKind,
        sql: String,
        parameters: Vec<Value>,
    ) -> Result<Vec<Row>, DbError> {
        let job = Job { pool: Arc::clone(self), sql, parameters };
        match kind {
            StatementKind::Read => self.reads.run(flow, job).await,
            StatementKind::Write => self.writes.run(flow, job).await,
        }
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
        connection.busy_timeout(BUSY_TIMEOUT).map_err(DbError::unopened)?;
        let connection = LocalConnection::new(connection);
        let synchronous = if self.purpose == Purpose::Serve { "NORMAL" } else { "FULL" };
        connection.run(&format!("PRAGMA synchronous = {synchronous}"))?;
        connection.run("PRAGMA foreign_keys = ON")?;
        Ok(connection)
    }

    fn put(&self, connection: LocalConnection) {
        let mut idle = self.idle.lock();
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push(connection);
        }
    }
}

/// A statement for a thread that may block.
struct Job {
    pool: Arc<Pool>,
    sql: String,
    parameters: Vec<Value>,
}

impl Job {
    fn run(self) -> Result<Vec<Row>, DbError> {
        let idle = self.pool.idle.lock().pop();
        let mut connection = idle.map_or_else(|| self.pool.connect(), Ok)?;
        // A connection whose thread panics is not used again.
        let result = connection.execute(&self.sql, self.parameters);
        self.pool.put(connection);
        result
    }
}

fn run_batch(batch: Vec<Queued<Job>>) -> JoinHandle<()> {
    task::spawn_blocking(|| {
        for queued in batch {
            let _ = queued.reply.send(queued.job.run());
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
