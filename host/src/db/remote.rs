//! A libSQL server, over Hrana 3 on HTTP. Writes that wait together share a request, and so a round trip.
//!
//! Invariant: one request with writes is in progress at a time, unless one stalls. Every request closes the stream it
//! opens, so the server holds nothing between statements, and each statement is committed by itself. The token is
//! sent in the `authorization` header only.

mod hrana;

use std::{iter, sync::Arc, time::Duration};

use platen_program::{CONNECT_TIMEOUT, IDLE_TIMEOUT, http_client};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use tokio::task::JoinHandle;
use url::Url;

use super::{
    DbError, Flow, Row, StatementKind, Value,
    queue::{Queued, StatementQueue},
};
use hrana::{Failure, InvalidResponse, Outcome, PipelineResult, Request, Statement, write};

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

pub(super) struct Client {
    connection: Arc<HttpConnection>,
    reads: Arc<StatementQueue<Job>>,
    writes: Arc<StatementQueue<Job>>,
}

impl Client {
    pub(super) fn new(server: Url, token: Option<SecretString>) -> Result<Self, DbError> {
        let http = http_client()
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

    /// Runs one statement, in its turn.
    pub(super) async fn execute(
        &self,
        flow: Flow,
        kind: StatementKind,
        sql: String,
        parameters: Vec<Value>,
    ) -> Result<Vec<Row>, DbError> {
        let queue = match kind {
            StatementKind::Read => &self.reads,
            StatementKind::Write => &self.writes,
        };
        queue.run(flow, Job { sql, parameters }).await
    }

    /// Runs all statements of a script. The end of its stream rolls back an open transaction.
    pub(super) async fn run_script(&self, sql: &str) -> Result<(), DbError> {
        let outcomes = self.connection.send([Request::Sequence { sql }]).await?;
        let outcome = outcomes.into_iter().next().ok_or_else(|| DbError::unreachable(InvalidResponse))?;
        outcome.into_rows().map(drop)
    }
}

/// A statement in a queue.
struct Job {
    sql: String,
    parameters: Vec<Value>,
}

/// Sends statements in one request. Each has its own result.
fn run_batch(connection: &Arc<HttpConnection>, batch: Vec<Queued<Job>>) -> JoinHandle<()> {
    let connection = Arc::clone(connection);
    tokio::spawn(async move {
        let requests = batch.iter().map(|Queued { job, .. }| {
            let args = job.parameters.iter().map(write).collect();
            Request::Execute { stmt: Statement { sql: &job.sql, args, want_rows: true } }
        });
        let (outcomes, missing) = match connection.send(requests).await {
            Ok(outcomes) => (outcomes, DbError::unreachable(InvalidResponse)),
            Err(error) => (Vec::new(), error),
        };
        let mut outcomes = outcomes.into_iter();
        for queued in batch {
            let result = outcomes.next().map_or_else(|| Err(missing.clone()), Outcome::into_rows);
            let _ = queued.reply.send(result);
        }
    })
}

/// Sends requests to the server.
struct HttpConnection {
    http: reqwest::Client,
    server: Url,
    token: Option<SecretString>,
}

impl HttpConnection {
    /// Sends requests in a stream of their own.
    async fn send<'a>(
        &self,
        requests: impl IntoIterator<Item = Request<'a>>,
    ) -> Result<Vec<Outcome>, DbError> {
        let requests: Vec<_> = requests.into_iter().chain(iter::once(Request::Close)).collect();
        let address = format!("{}/v3/pipeline", self.server.as_str().trim_end_matches('/'));
        let mut request = self.http.post(address).json(&json!({ "baton": null, "requests": requests }));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose_secret());
        }
        let response = request.send().await.map_err(|error| {
            if error.is_connect() { DbError::Absent(Arc::new(error)) } else { DbError::unreachable(error) }
        })?;
        match response.status().as_u16() {
            200 => {
                let result: PipelineResult = response.json().await.map_err(DbError::unreachable)?;
                Ok(result.results)
            }
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

#[cfg(test)]
mod tests;
