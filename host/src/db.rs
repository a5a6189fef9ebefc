//! The database: a SQLite file beside the server, or a libSQL server somewhere else, with one
//! interface for both.
//!
//! Invariant: a [`Connection`] is used by one borrower, and what it did to a local connection's
//! state (an open transaction, a PRAGMA) is never seen by the next one. An error's `Display` is
//! the database's own words about the statement and never names a path or an address. Left to
//! others: the schema ([`crate::migrate`]), what the statements say (components, [`crate::admin`]).

mod local;
mod location;
mod remote;
mod value;

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use secrecy::SecretString;
use tokio::sync::mpsc;

pub(crate) use location::Location;
pub(crate) use value::Value;

/// One row, in the order of the columns.
pub(crate) type Row = Vec<Value>;

/// Why the database did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DbError {
    /// There is no file, and this caller may not make one.
    #[error("there is no database at {0}")]
    Missing(String),
    /// The file cannot be opened, or the server cannot be reached.
    #[error("the database cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server wants another token.
    #[error("the database server refused the token")]
    Unauthorized,
    /// The database refused or failed the statement; its own words.
    #[error("{message}")]
    Statement {
        /// What the database said.
        message: String,
        /// No room was left.
        full: bool,
    },
    /// A writing statement's `RETURNING` rows, or one row, are over the bound.
    #[error("the result is over {} bytes", local::HELD_BYTES)]
    TooLarge,
    /// The thread that ran the statement panicked.
    #[error("the statement broke the database client")]
    Broken,
}

/// What a database is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Serving: the file is made if it is missing.
    // WAL with synchronous=NORMAL: a commit writes without waiting for the disk. After a power
    // cut the file is consistent and may have forgotten the last moments' attempts, which errs
    // in the customer's favour; waiting for the disk would cost every request milliseconds.
    Serve,
    /// An operator's command on a database that must exist already. A key that was shown must
    // be there after a power cut, so each commit waits for the disk.
    Operate,
    /// `platen migrate`: as `Operate`, and the file is made if it is missing.
    Migrate,
}

/// A database; a cheap handle.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    backend: Backend,
    statements: Arc<AtomicU64>,
}

#[derive(Debug, Clone)]
enum Backend {
    Local(Arc<local::Pool>),
    Remote(remote::Client),
}

impl Database {
    /// Opens the database. A file is opened at once; a server is first spoken to by a statement.
    pub(crate) async fn open(
        location: &Location,
        token: Option<SecretString>,
        purpose: Purpose,
    ) -> Result<Self, DbError> {
        let backend = match location {
            Location::File(path) => Backend::Local(local::Pool::open(path, purpose).await?),
            Location::Server(url) => Backend::Remote(remote::Client::new(url.clone(), token)?),
        };
        Ok(Self { backend, statements: Arc::default() })
    }

    /// A connection of the caller's own. Nothing is opened before its first statement.
    pub(crate) fn connect(&self) -> Connection {
        let backend = match &self.backend {
            Backend::Local(pool) => Link::Local(pool.lease()),
            Backend::Remote(client) => Link::Remote(client.stream()),
        };
        Connection { backend, statements: Arc::clone(&self.statements), effects: Arc::default() }
    }

    /// The same database with a count of its own.
    pub(crate) fn counted_anew(&self) -> Self {
        Self { backend: self.backend.clone(), statements: Arc::default() }
    }

    /// Statements handed to the database through this handle and its clones.
    pub(crate) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }
}

/// One borrower's connection. Statements on it run one after another.
#[derive(Debug)]
pub(crate) struct Connection {
    backend: Link,
    statements: Arc<AtomicU64>,
    effects: Arc<Effects>,
}

#[derive(Debug)]
enum Link {
    Local(Arc<local::Lease>),
    Remote(Arc<remote::Stream>),
}

/// What the last statement that wrote left behind, as SQLite counts it.
#[derive(Debug, Default)]
struct Effects {
    changes: AtomicU64,
    last_insert_rowid: AtomicI64,
}

impl Effects {
    fn store(&self, changes: u64, last_insert_rowid: i64) {
        self.changes.store(changes, Ordering::Relaxed);
        self.last_insert_rowid.store(last_insert_rowid, Ordering::Relaxed);
    }
}

impl Connection {
    /// Runs one statement; text after the first statement is not looked at. Rows of a statement
    /// that may write are complete when this returns; those of a reading one follow as they are
    /// read.
    pub(crate) async fn execute(&self, sql: String, parameters: Vec<Value>) -> Result<Answer, DbError> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        match &self.backend {
            Link::Local(lease) => lease.execute(sql, parameters, Arc::clone(&self.effects)).await,
            Link::Remote(stream) => stream.execute(&sql, &parameters, &self.effects).await,
        }
    }

    /// Runs one statement and reads all its rows.
    pub(crate) async fn query(&self, sql: &str, parameters: Vec<Value>) -> Result<Vec<Row>, DbError> {
        self.execute(sql.to_owned(), parameters).await?.collect().await
    }

    /// Rows changed by the last statement that wrote.
    pub(crate) fn changes(&self) -> u64 {
        self.effects.changes.load(Ordering::Relaxed)
    }

    /// The row id of the last `INSERT`, 0 before the first.
    pub(crate) fn last_insert_rowid(&self) -> i64 {
        self.effects.last_insert_rowid.load(Ordering::Relaxed)
    }
}

/// What a statement answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Names of the columns.
    pub(crate) columns: Vec<String>,
    /// The first rows; all of them if `rest` is `None`.
    pub(crate) rows: Vec<Row>,
    /// The rows after those, or the error that ended them.
    pub(crate) rest: Option<mpsc::Receiver<Result<Row, DbError>>>,
}

impl Answer {
    /// Every row, or the error that ended them.
    pub(crate) async fn collect(mut self) -> Result<Vec<Row>, DbError> {
        if let Some(mut rest) = self.rest.take() {
            while let Some(row) = rest.recv().await {
                self.rows.push(row?);
            }
        }
        Ok(self.rows)
    }
}

#[cfg(test)]
mod tests;
