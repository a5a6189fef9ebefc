//! A SQLite file: a pool of open connections, whose statements run on threads that may block.
//!
//! Invariant: at most one statement of this process that may write runs at a time, so that writers queue
//! in order instead of polling the file's lock. SQLite waits for the writers of other processes, up to
//! [`BUSY_TIMEOUT`].

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

use tokio::{runtime::Handle, sync::Semaphore, task};

use super::{
    Value,
    error::DbError,
    local_connection::LocalConnection,
    location::Purpose,
    result::{Effects, QueryResult},
    statement::StatementKind,
};

/// How long a statement waits for another process that writes; a busy disk may take seconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(15);
/// More concurrent statements than this are rare.
const MAX_IDLE_CONNECTIONS: usize = 16;

pub(super) struct Pool {
    path: PathBuf,
    purpose: Purpose,
    idle: Mutex<Vec<LocalConnection>>,
    writer: Arc<Semaphore>,
}

impl Pool {
    pub(super) async fn open(path: &Path, purpose: Purpose) -> Result<Arc<Self>, DbError> {
        let pool = Arc::new(Self {
            path: path.to_owned(),
            purpose,
            idle: Mutex::default(),
            writer: Arc::new(Semaphore::new(1)),
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
                    create_private(&opening.path).map_err(DbError::unreachable)?;
                }
                Err(error) => return Err(DbError::unreachable(error)),
            }
            let connection = opening.connect()?;
            if purpose != Purpose::Operate {
                // A property of the file, with which readers do not wait for the writer.
                connection.run("PRAGMA journal_mode = WAL")?;
            }
            opening.put(connection);
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
        let connection = connection.map_err(DbError::unreachable)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(DbError::unreachable)?;
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

/// A connection while it has a user; it returns to the pool when this is dropped.
pub(super) struct Lease {
    pool: Arc<Pool>,
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
        sql: String,
        parameters: Vec<Value>,
        effects: Arc<Effects>,
    ) -> Result<QueryResult, DbError> {
        let kind = StatementKind::of(&sql);
        let alters = kind == StatementKind::Other;
        let altered = self.altered.fetch_or(alters, Ordering::Relaxed) || alters;
        let statement = Arc::clone(&self.statement).acquire_owned().await.map_err(|_| DbError::Panicked)?;
        let writer = match kind {
            // Within a transaction of this connection the file's lock decides, and the next writer polls
            // for it. Waiting for the permit here could be a deadlock with that writer.
            StatementKind::Write if !altered => {
                Some(Arc::clone(&self.pool.writer).acquire_owned().await.map_err(|_| DbError::Panicked)?)
            }
            _ => None,
        };
        let lease = Arc::clone(self);
        blocking(move || {
            // Held by the thread, because the statement runs on if the caller drops its future.
            let _permits = (statement, writer);
            let mut slot = lease.connection.lock().unwrap_or_else(PoisonError::into_inner);
            // Taken out, so that a connection whose thread panics is not used again.
            let mut connection = match slot.take().or_else(|| lease.pool.take()) {
                Some(connection) => connection,
                None => lease.pool.connect()?,
            };
            let result = connection.execute(&sql, parameters, &effects);
            *slot = Some(connection);
            result
        })
        .await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let slot = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = slot.take()
            && !self.altered.load(Ordering::Relaxed)
            && connection.is_autocommit()
        {
            self.pool.put(connection);
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
        // Another process has just created it.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map(drop),
    }
}
