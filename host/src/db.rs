//! The database: a SQLite file or a libSQL server, with one interface for both.
//!
//! Invariant: a [`Connection`] has one user, and what it did to the state of a local connection (an open
//! transaction, a PRAGMA) has no effect on the next user.

mod error;
mod flow;
mod local;
mod local_connection;
mod location;
mod queue;
mod remote;
mod result;
mod statement;
mod statement_metrics;

use std::sync::Arc;

use platen_statements::repeated;
use secrecy::SecretString;

pub(crate) use error::DbError;
pub(crate) use flow::Flow;
pub(crate) use location::{Location, Purpose};
pub(crate) use platen_statements::Value;
pub(crate) use result::{QueryResult, Row};
pub(crate) use statement_metrics::StatementMetrics;

use result::Effects;

/// A cheap handle.
#[derive(Clone)]
pub(crate) struct Database {
    backend: Backend,
    /// Measures the statements that are sent through this handle and its clones.
    pub(crate) statements: StatementMetrics,
}

#[derive(Clone)]
enum Backend {
    Local(Arc<local::Pool>),
    Remote(remote::Client),
}

impl Database {
    /// Opens a file at once; a server is first connected to by a statement.
    pub(crate) async fn open(
        location: &Location,
        token: Option<SecretString>,
        purpose: Purpose,
    ) -> Result<Self, DbError> {
        let backend = match location {
            Location::File(path) => Backend::Local(local::Pool::open(path, purpose).await?),
            Location::Server(url) => Backend::Remote(remote::Client::new(url.clone(), token)?),
        };
        Ok(Self { backend, statements: StatementMetrics::default() })
    }

    /// A connection for one user, which is opened by its first statement.
    pub(crate) fn connect(&self) -> Connection {
        let backend = match &self.backend {
            Backend::Local(pool) => ConnectionBackend::Local(pool.lease()),
            Backend::Remote(client) => ConnectionBackend::Remote(client.stream()),
        };
        Connection { backend, statements: self.statements.clone(), effects: Arc::default() }
    }
}

/// A connection; a cheap handle. Its statements run one after another.
#[derive(Clone)]
#[expect(unreachable_pub, reason = "the generated bindings re-export it")]
pub struct Connection {
    backend: ConnectionBackend,
    statements: StatementMetrics,
    pub(crate) effects: Arc<Effects>,
}

#[derive(Clone)]
enum ConnectionBackend {
    Local(Arc<local::Lease>),
    Remote(Arc<remote::Stream>),
}

impl Connection {
    /// Runs one statement, in its turn; text after the first statement is ignored.
    pub(crate) async fn execute(
        &self,
        flow: Flow,
        sql: String,
        parameters: Vec<Value>,
    ) -> Result<QueryResult, DbError> {
        let statement = async {
            match &self.backend {
                ConnectionBackend::Local(lease) => {
                    lease.execute(flow, sql, parameters, Arc::clone(&self.effects)).await
                }
                ConnectionBackend::Remote(stream) => {
                    stream.execute(flow, sql, parameters, &self.effects).await
                }
            }
        };
        self.statements.measure(statement).await
    }

    /// Runs the statements of a script. To be called within a transaction.
    pub(crate) async fn run_script(&self, sql: &str) -> Result<(), DbError> {
        match &self.backend {
            ConnectionBackend::Local(lease) => lease.run_script(sql.to_owned()).await,
            ConnectionBackend::Remote(stream) => stream.run_script(sql, &self.effects).await,
        }
    }

    /// The rows of one statement.
    pub(crate) async fn query(&self, sql: &str, parameters: Vec<Value>) -> Result<Vec<Row>, DbError> {
        Ok(self.execute(Flow::default(), sql.to_owned(), parameters).await?.rows)
    }

    /// The rows of one statement, which is sent again while the database is busy or absent. To be called outside of a
    /// transaction.
    pub(crate) async fn query_when_available(&self, sql: &str) -> Result<Vec<Row>, DbError> {
        let random = || Ok([rand::random()]);
        repeated(false, DbError::outcome, tokio::time::sleep, random, || self.query(sql, Vec::new())).await
    }
}

#[cfg(test)]
mod tests;
