//! A SQLite file: connections that are kept open with their prepared statements, one borrower at
//! a time, and the work on threads where it may block.
//!
//! Invariant: of the statements of this process at most one that may write runs at a time, so
//! that writers queue in order here instead of polling the file's lock. Writers of other
//! processes are waited for by SQLite, up to [`BUSY_TIMEOUT`].

mod opened;

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
    sync::{Semaphore, oneshot},
    task,
};

use super::{Answer, DbError, Effects, Purpose, Value};
use opened::Opened;

/// Most bytes of rows held at once: of a writing statement's `RETURNING`, and of one read row.
pub(super) const HELD_BYTES: usize = 16 * 1024 * 1024;

/// How long a statement waits for another process that writes; a busy disk may take seconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(15);
/// Connections kept for the next borrower. More than this many statements at once are rare.
const KEPT_CONNECTIONS: usize = 16;

/// The file's open connections.
pub(super) struct Pool {
    path: PathBuf,
    purpose: Purpose,
    idle: Mutex<Vec<Opened>>,
    writer: Arc<Semaphore>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("path", &self.path).finish_non_exhaustive()
    }
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
                    // Made here and not by SQLite, so that nobody else may read it: it holds
                    // every customer's templates.
                    create_private(&opening.path).map_err(unreachable)?;
                }
                Err(error) => return Err(unreachable(error)),
            }
            let opened = opening.connect()?;
            if purpose != Purpose::Operate {
                // A property of the file: readers no longer wait for the writer.
                opened.run("PRAGMA journal_mode = WAL")?;
            }
            opening.keep(opened);
            Ok(())
        })
        .await?;
        Ok(pool)
    }

    pub(super) fn lease(self: &Arc<Self>) -> Arc<Lease> {
        Arc::new(Lease {
            pool: Arc::clone(self),
            opened: Mutex::default(),
            altered: AtomicBool::new(false),
            turn: Arc::new(Semaphore::new(1)),
        })
    }

    fn connect(&self) -> Result<Opened, DbError> {
        let build =
            libsql::Builder::new_local(&self.path).flags(libsql::OpenFlags::SQLITE_OPEN_READ_WRITE).build();
        let connection =
            Handle::current().block_on(build).and_then(|database| database.connect()).map_err(unreachable)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(unreachable)?;
        let opened = Opened::new(connection);
        let synchronous = if self.purpose == Purpose::Serve { "NORMAL" } else { "FULL" };
        opened.run(&format!("PRAGMA synchronous = {synchronous}"))?;
        opened.run("PRAGMA foreign_keys = ON")?;
        Ok(opened)
    }

    fn take(&self) -> Option<Opened> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn keep(&self, opened: Opened) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT_CONNECTIONS {
            idle.push(opened);
        }
    }
}

/// One borrower's hold on a connection, which goes back to the pool with it.
#[derive(Debug)]
pub(super) struct Lease {
    pool: Arc<Pool>,
    opened: Mutex<Option<Opened>>,
    /// A statement may have changed the connection itself: a transaction, a PRAGMA, a temporary
    /// table. Such a connection is not handed on.
    altered: AtomicBool,
    turn: Arc<Semaphore>,
}

impl Lease {
    pub(super) async fn execute(
        self: &Arc<Self>,
        sql: String,
        parameters: Vec<Value>,
        effects: Arc<Effects>,
    ) -> Result<Answer, DbError> {
        let kind = Kind::of(&sql);
        let altered = self.altered.fetch_or(kind == Kind::Other, Ordering::Relaxed) || kind == Kind::Other;
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(|_| DbError::Broken)?;
        let writer = match kind {
            // Within a transaction of the borrower's own the file's lock decides, and the next
            // writer polls for it: were it to hold the permit, neither would come to an end.
            Kind::Write if !altered => {
                Some(Arc::clone(&self.pool.writer).acquire_owned().await.map_err(|_| DbError::Broken)?)
            }
            _ => None,
        };
        let lease = Arc::clone(self);
        let (answer_tx, answer_rx) = oneshot::channel();
        task::spawn_blocking(move || {
            // The permits are held here: a caller that goes away leaves its statement running,
            // and the next one still has to wait for it.
            let _permits = (turn, writer);
            let mut slot = lease.opened.lock().unwrap_or_else(PoisonError::into_inner);
            // Out of the slot while it works, so that one that panics is not used again.
            let opened = match slot.take().or_else(|| lease.pool.take()) {
                Some(opened) => Ok(opened),
                None => lease.pool.connect(),
            };
            match opened {
                Ok(mut opened) => {
                    opened.answer(&sql, parameters, kind != Kind::Read, &effects, answer_tx);
                    *slot = Some(opened);
                }
                Err(error) => drop(answer_tx.send(Err(error))),
            }
        });
        answer_rx.await.map_err(|_| DbError::Broken)?
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let slot = self.opened.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = slot.take()
            && !self.altered.load(Ordering::Relaxed)
            && opened.is_autocommit()
        {
            self.pool.keep(opened);
        }
    }
}

/// What a statement may do, by its first word. When in doubt, more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Other,
}

impl Kind {
    fn of(sql: &str) -> Self {
        let word: String = sql
            .trim_start()
            .chars()
            .take_while(char::is_ascii_alphabetic)
            .collect::<String>()
            .to_ascii_uppercase();
        match word.as_str() {
            "SELECT" | "VALUES" => Self::Read,
            // `WITH` may begin either.
            "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "WITH" => Self::Write,
            _ => Self::Other,
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DbError> + Send + 'static,
) -> Result<T, DbError> {
    task::spawn_blocking(work).await.map_err(|_| DbError::Broken)?
}

fn create_private(path: &Path) -> io::Result<()> {
    match fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        // Another process was faster; its file is as good.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map(drop),
    }
}

fn unreachable(error: impl std::error::Error + Send + Sync + 'static) -> DbError {
    DbError::Unreachable(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn the_first_word_tells_what_a_statement_may_do() {
        for (sql, kind) in [
            ("SELECT 1", Kind::Read),
            (" \n select 1", Kind::Read),
            ("VALUES (1)", Kind::Read),
            ("INSERT INTO t VALUES (1)", Kind::Write),
            ("with a as (select 1) insert into t select * from a", Kind::Write),
            ("UPDATE t SET a = 1", Kind::Write),
            ("PRAGMA foreign_keys = OFF", Kind::Other),
            ("BEGIN", Kind::Other),
            ("-- a comment\nSELECT 1", Kind::Other),
            ("", Kind::Other),
        ] {
            assert_eq!(Kind::of(sql), kind, "{sql:?}");
        }
    }
}
