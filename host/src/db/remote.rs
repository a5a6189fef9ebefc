//! A libSQL server, over Hrana 3 on HTTP. Writes that wait together share a request, and so a round trip.
//!
//! Invariant: a request with writes is sent when the one before has been answered, or sqld has had [`STATEMENT_TIME`] for each
//! of its statements; at most [`MAX_CONCURRENT_WRITES`] are on their way, besides those that stall. So a long round trip
//! hardly limits the rate of statements, and a server that is near has one request at a time. sqld executes one write at a
//! time, and hands its write lock from one connection to the next: with 20 connections it was seen to execute fewer statements
//! than with one, and to refuse some with `SQLITE_BUSY`. Its lock stays with a connection whose transaction could not begin,
//! until that is closed, so it needs the setting in `docs/operating.md`. Every request closes the stream it opens, so the
//! server holds nothing between statements, and each statement is committed by itself. The token is sent in the
//! `authorization` header only.

mod hrana;

use std::{iter, sync::Arc, time::Duration};

use platen_program::{CONNECT_TIMEOUT, http_client};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use url::Url;

use super::{DbError, queue::Queued};
use hrana::{Failure, InvalidResponse, PipelineResult, Request, Statement, StreamResult, write};

/// Longer than the deadline of a render, so that the edge learns of a claim that took effect too late.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(45);
/// Statements in a request. One that receives no response leaves all of them in doubt.
pub(super) const MAX_BATCH: usize = 32;
/// Requests with writes on their way at once.
pub(super) const MAX_CONCURRENT_WRITES: usize = 4;
/// Longer than sqld takes for a statement that writes.
pub(super) const STATEMENT_TIME: Duration = Duration::from_millis(2);
/// sqld refuses, rather than queues, more than 128 concurrent requests of all its clients together.
pub(super) const MAX_CONCURRENT_READS: usize = 16;

pub(super) struct Client {
    http: reqwest::Client,
    server: Url,
    token: Option<SecretString>,
}

impl Client {
    pub(super) fn new(server: Url, token: Option<SecretString>) -> Result<Self, DbError> {
        let http = http_client()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(STATEMENT_TIMEOUT)
            // Connections are kept until the server closes them, so that a key that is used rarely waits for no handshake. By
            // reqwest's default TCP examines one without a request every 15 s, and closes it if the server is gone.
            .pool_idle_timeout(None)
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(DbError::unreachable)?;
        Ok(Self { http, server, token })
    }

    /// Sends statements in one request. Each has its own result.
    pub(super) async fn run(&self, batch: Vec<Queued>) {
        let requests = batch.iter().map(|Queued { sql, parameters, .. }| {
            let args = parameters.iter().map(write).collect();
            Request::Execute { stmt: Statement { sql, args } }
        });
        let (outcomes, missing) = match self.send(requests).await {
            Ok(outcomes) => (outcomes, DbError::unreachable(InvalidResponse)),
            Err(error) => (Vec::new(), error),
        };
        let mut outcomes = outcomes.into_iter();
        for queued in batch {
            let result = outcomes.next().map_or_else(|| Err(missing.clone()), StreamResult::into_rows);
            let _ = queued.reply.send(result);
        }
    }

    /// Runs all statements of a script. The end of its stream rolls back an open transaction.
    pub(super) async fn run_script(&self, sql: &str) -> Result<(), DbError> {
        let outcomes = self.send([Request::Sequence { sql }]).await?;
        let outcome = outcomes.into_iter().next().ok_or_else(|| DbError::unreachable(InvalidResponse))?;
        outcome.into_rows().map(drop)
    }

    /// Sends requests in a stream of their own.
    async fn send<'a>(
        &self,
        requests: impl IntoIterator<Item = Request<'a>>,
    ) -> Result<Vec<StreamResult>, DbError> {
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
            status => {
                let error = response.error_for_status_ref().err();
                // A request that cannot be carried out has an error of Hrana, and the status 400 if that is its fault.
                match response.json::<Failure>().await {
                    Ok(failure) => Err(failure.of_request(status >= 500)),
                    Err(other) => Err(DbError::unreachable(error.unwrap_or(other))),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
