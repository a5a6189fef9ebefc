//! A libSQL server, over Hrana 3 on HTTP. Writes that wait together share a request, and so a round trip.
//!
//! Invariant: outside of a transaction one request with writes is in progress at a time, unless one stalls. Every
//! request closes the stream it opens, so the server holds nothing between statements, and each statement is
//! committed by itself. The token is sent in the `authorization` header only.

mod hrana;

use std::{iter, sync::Arc, time::Duration};

use secrecy::{ExposeSecret as _, SecretString};
use tokio::{sync::Mutex, task::JoinHandle};
use url::Url;

use super::{
    Value,
    error::DbError,
    flow::Flow,
    queue::{Queued, StatementQueue},
    result::{Effects, QueryResult},
    statement::{StatementKind, first_word},
};
use hrana::{Failure, InvalidResponse, Pipeline, PipelineResult, Request, Statement, write};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than the deadline of a render, so that the edge learns of a claim that took effect too late.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(45);
/// sqld executes one write at a time, and hands its write lock from one connection to the next: with 20 connections
/// it was seen to execute fewer statements than with one, to refuse some with `SQLITE_BUSY`, and to stop for as long
/// as a minute. Its lock stays with a connection whose transaction could not begin, until that is closed.
const MAX_CONCURRENT_WRITES: usize = 1;
/// Statements in a request. One that receives no response leaves all of them in doubt.
const MAX_BATCH: usize = 8;
/// sqld refuses, rather than queues, more than 128 concurrent requests of all its clients together.
const MAX_CONCURRENT_READS: usize = 16;
/// Shorter than the minute after which servers and proxies close idle connections, so that a statement is
/// not sent into a connection that is just closing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// A cheap handle.
#[derive(Clone)]
pub(super) struct Client {
    connection: Arc<HttpConnection>,
    reads: Arc<StatementQueue<Job>>,
    writes: Arc<StatementQueue<Job>>,
}

impl Client {
    pub(super) fn new(server: Url, token: Option<SecretString>) -> Result<Self, DbError> {
        let http = platen_program::http_client()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(STATEMENT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(DbError::unreachable)?;
        let connection = Arc::new(HttpConnection { http, server, token });
        let queue = |max_concurrent, max_batch| {
            let connection = Arc::clone(&connection);
            StatementQueue::new(max_concurrent, max_batch, move |batch| run_batch(&connection, batch))
        };
        let (reads, writes) = (queue(MAX_CONCURRENT_READS, 1), queue(MAX_CONCURRENT_WRITES, MAX_BATCH));
        Ok(Self { connection, reads, writes })
    }

    pub(super) fn stream(&self) -> Arc<Stream> {
        Arc::new(Stream { client: self.clone(), transaction: Mutex::default() })
    }
}

/// A statement in a queue.
struct Job {
    sql: String,
    parameters: Vec<Value>,
    effects: Arc<Effects>,
}

/// Sends statements in one request. Each has its own result.
fn run_batch(connection: &Arc<HttpConnection>, batch: Vec<Queued<Job>>) -> JoinHandle<()> {
    let connection = Arc::clone(connection);
    tokio::spawn(async move {
        let executes = batch.iter().map(|queued| execute(&queued.job.sql, &queued.job.parameters));
        let requests = executes.chain(iter::once(Request::Close)).collect();
        let result = connection.send(&connection.server, &Pipeline { baton: None, requests }).await;
        let (mut outcomes, missing) = match result {
            Ok(result) => (result.results.into_iter(), DbError::unreachable(InvalidResponse)),
            Err(error) => (Vec::new().into_iter(), error),
        };
        for queued in batch {
            let (job, reply) = queued.into_parts();
            reply(outcomes.next().map_or_else(|| Err(missing.clone()), |it| it.into_result(&job.effects)));
        }
    })
}

fn execute<'a>(sql: &'a str, parameters: &[Value]) -> Request<'a> {
    let args = parameters.iter().map(write).collect();
    Request::Execute { stmt: Statement { sql, args, want_rows: true } }
}

/// Sends requests to the server.
struct HttpConnection {
    http: reqwest::Client,
    server: Url,
    token: Option<SecretString>,
}

impl HttpConnection {
    async fn send(&self, base: &Url, pipeline: &Pipeline<'_>) -> Result<PipelineResult, DbError> {
        let address = format!("{}/v3/pipeline", base.as_str().trim_end_matches('/'));
        let mut request = self.http.post(address).json(pipeline);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose_secret());
        }
        let response = request.send().await.map_err(|error| {
            if error.is_connect() { DbError::Absent(Arc::new(error)) } else { DbError::unreachable(error) }
        })?;
        match response.status().as_u16() {
            200 => response.json().await.map_err(DbError::unreachable),
            401 | 403 => Err(DbError::Unauthorized),
            _ => {
                let error = response.error_for_status_ref().err();
                // A request that cannot be carried out has the status 400 and an error of Hrana.
                match response.json::<Failure>().await {
                    Ok(failure) => Err(failure.into()),
                    Err(other) => Err(DbError::unreachable(error.unwrap_or(other))),
                }
            }
        }
    }
}

/// A stream, which exists on the server only within a transaction.
pub(super) struct Stream {
    client: Client,
    transaction: Mutex<Option<Transaction>>,
}

/// What the next request must repeat to continue a stream.
struct Transaction {
    baton: String,
    base: Option<Url>,
}

impl Stream {
    pub(super) async fn execute(
        &self,
        flow: Flow,
        sql: String,
        parameters: Vec<Value>,
        effects: &Arc<Effects>,
    ) -> Result<QueryResult, DbError> {
        let mut transaction = self.transaction.lock().await;
        let queue = match StatementKind::of(&sql) {
            _ if transaction.is_some() => None,
            StatementKind::Read => Some(&self.client.reads),
            StatementKind::Write => Some(&self.client.writes),
            StatementKind::Other => None,
        };
        let Some(queue) = queue else {
            return self.send(&mut transaction, &sql, execute(&sql, &parameters), effects).await;
        };
        queue.run(flow, Job { sql, parameters, effects: Arc::clone(effects) }).await
    }

    /// Runs all statements of a script. The stream must be in a transaction.
    pub(super) async fn run_script(&self, sql: &str, effects: &Effects) -> Result<(), DbError> {
        let mut transaction = self.transaction.lock().await;
        self.send(&mut transaction, sql, Request::Sequence { sql }, effects).await.map(drop)
    }

    /// Executes a statement that begins, continues or ends a transaction.
    async fn send(
        &self,
        transaction: &mut Option<Transaction>,
        sql: &str,
        request: Request<'_>,
        effects: &Effects,
    ) -> Result<QueryResult, DbError> {
        let connection = &self.client.connection;
        // Taken out, so that after an error, or if the caller drops this future, the transaction is not
        // continued and the server rolls it back.
        let open = transaction.take();
        let stays_open = match first_word(sql).as_str() {
            "BEGIN" | "SAVEPOINT" => true,
            "COMMIT" | "END" | "ROLLBACK" => false,
            _ => open.is_some(),
        };
        let close = (!stays_open).then_some(Request::Close);
        let requests = iter::once(request).chain(close).collect();
        let base = open.as_ref().and_then(|open| open.base.as_ref()).unwrap_or(&connection.server);
        let pipeline = Pipeline { baton: open.as_ref().map(|open| open.baton.as_str()), requests };
        let PipelineResult { baton, base_url, results } = connection.send(base, &pipeline).await?;
        let outcome = results.into_iter().next().ok_or_else(|| DbError::unreachable(InvalidResponse))?;
        let result = outcome.into_result(effects)?;
        if stays_open && let Some(baton) = baton {
            let base = base_url.as_deref().and_then(|url| Url::parse(url).ok());
            *transaction = Some(Transaction { baton, base });
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests;
