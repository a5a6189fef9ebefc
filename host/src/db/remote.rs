//! A libSQL server, over Hrana 3 on HTTP: one request, and so one round trip, per statement.
//!
//! Invariant: outside of a transaction every request closes the stream it opens, so the server holds
//! nothing between statements. A statement is sent again only if the server was not reached, or reports that it did
//! nothing because it is busy. The token is sent in the `authorization` header only.

mod hrana;

use std::{sync::Arc, time::Duration};

use secrecy::{ExposeSecret as _, SecretString};
use tokio::{
    sync::{Mutex, Semaphore},
    time::{Instant, sleep, timeout},
};
use url::Url;

use super::{
    Value,
    error::DbError,
    result::{Effects, QueryResult},
    statement::first_word,
};
use hrana::{
    Failure, InvalidResponse, Outcome, Pipeline, PipelineResult, Request, Response, Statement, read, write,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than the deadline of a render, so that the edge learns of a claim that took effect too late.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(45);
/// How long a statement is sent again to a server that is busy. sqld queues its writers, but was seen to refuse
/// them for some seconds on a machine with a busy disk.
const BUSY_TIMEOUT: Duration = Duration::from_secs(15);
/// How long it is sent again to a server that does not accept connections, which may be restarting.
const ABSENT_TIMEOUT: Duration = Duration::from_secs(5);
/// Half of it is fixed, the other half random, so that clients that were refused together do not return together.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// Statements beyond this wait here. sqld refuses, rather than queues, more than 128 concurrent requests of
/// all its clients together.
const MAX_CONCURRENT_STATEMENTS: usize = 64;
/// Shorter than the minute after which servers and proxies close idle connections, so that a statement is
/// not sent into a connection that is just closing.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);

/// A cheap handle.
#[derive(Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    server: Url,
    token: Option<SecretString>,
    permits: Arc<Semaphore>,
}

impl Client {
    pub(super) fn new(server: Url, token: Option<SecretString>) -> Result<Self, DbError> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(STATEMENT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .tcp_nodelay(true)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(DbError::unreachable)?;
        Ok(Self { http, server, token, permits: Arc::new(Semaphore::new(MAX_CONCURRENT_STATEMENTS)) })
    }

    pub(super) fn stream(&self) -> Arc<Stream> {
        Arc::new(Stream { client: self.clone(), transaction: Mutex::default() })
    }

    async fn send(&self, base: &Url, pipeline: &Pipeline<'_>) -> Result<PipelineResult, DbError> {
        // If the server does not respond, waiting for a permit fails after the same time.
        let permit = timeout(STATEMENT_TIMEOUT, self.permits.acquire()).await;
        let _permit = permit.map_err(DbError::unreachable)?;
        let address = format!("{}/v3/pipeline", base.as_str().trim_end_matches('/'));
        let mut request = self.http.post(address).json(pipeline);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.expose_secret());
        }
        let response = request.send().await.map_err(|error| {
            if error.is_connect() { DbError::Absent(Box::new(error)) } else { DbError::unreachable(error) }
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
        sql: &str,
        parameters: &[Value],
        effects: &Effects,
    ) -> Result<QueryResult, DbError> {
        let mut transaction = self.transaction.lock().await;
        // Taken out, so that after an error, or if the caller drops this future, the transaction is not
        // continued and the server rolls it back.
        let open = transaction.take();
        let stays_open = match first_word(sql).as_str() {
            "BEGIN" | "SAVEPOINT" => true,
            "COMMIT" | "END" | "ROLLBACK" => false,
            _ => open.is_some(),
        };
        let execute = Request::Execute {
            stmt: Statement { sql, args: parameters.iter().map(write).collect(), want_rows: true },
        };
        let requests = if stays_open { vec![execute] } else { vec![execute, Request::Close] };
        let base = open.as_ref().and_then(|open| open.base.as_ref()).unwrap_or(&self.client.server);
        let pipeline = Pipeline { baton: open.as_ref().map(|open| open.baton.as_str()), requests };
        let mut result = self.client.send(base, &pipeline).await;
        if open.is_none() {
            let began = Instant::now();
            while refusal_timeout(&result).is_some_and(|timeout| began.elapsed() < timeout) {
                sleep(RETRY_INTERVAL.mul_f64(rand::random_range(0.5..1.0))).await;
                result = self.client.send(base, &pipeline).await;
            }
        }
        let mut result = result?;
        if stays_open && let Some(baton) = result.baton.take() {
            let base = result.base_url.as_deref().and_then(|url| Url::parse(url).ok());
            *transaction = Some(Transaction { baton, base });
        }
        match result.results.into_iter().next() {
            Some(Outcome::Ok { response: Response::Execute { result } }) => {
                if result.affected_row_count > 0 {
                    let rowid = result.last_insert_rowid.and_then(|id| id.parse().ok());
                    effects.store(result.affected_row_count, rowid.unwrap_or(0));
                }
                let columns = result.cols.into_iter().map(|col| col.name.unwrap_or_default()).collect();
                let rows = result.rows.into_iter().map(read).collect::<Result<_, _>>()?;
                Ok(QueryResult { columns, rows })
            }
            Some(Outcome::Error { error }) => Err(error.into()),
            Some(Outcome::Ok { response: Response::Other }) | None => {
                Err(DbError::unreachable(InvalidResponse))
            }
        }
    }
}

/// How long a statement is sent again; `None` if the server may have run it.
fn refusal_timeout(result: &Result<PipelineResult, DbError>) -> Option<Duration> {
    match result {
        Err(DbError::Absent(_)) => Some(ABSENT_TIMEOUT),
        Err(DbError::Statement { message, .. }) => is_busy(message, None).then_some(BUSY_TIMEOUT),
        Ok(PipelineResult { results, .. }) => match results.first() {
            Some(Outcome::Error { error }) => {
                is_busy(&error.message, error.code.as_deref()).then_some(BUSY_TIMEOUT)
            }
            _ => None,
        },
        Err(_) => None,
    }
}

/// Whether nothing was done because of other clients.
fn is_busy(message: &str, code: Option<&str>) -> bool {
    // Some servers send SQLite's message without a code.
    code.is_some_and(|code| code.starts_with("SQLITE_BUSY"))
        || [
            "database is locked",
            "Too many concurrent requests",
            "Timed out while opening database connection",
        ]
        .iter()
        .any(|refusal| message.ends_with(refusal))
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        net::SocketAddr,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use hyper::{Response, server::conn::http1, service::service_fn};
    use hyper_util::rt::TokioIo;
    use platen_tests::loopback::ClosedPort;

    use super::*;

    /// A server that fails the first `failures` statements. Returns its address, and the number of statements
    /// that it received.
    async fn server(
        address: SocketAddr,
        failures: usize,
        message: &'static str,
        code: Option<&'static str>,
    ) -> (Url, Arc<AtomicUsize>) {
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let sent = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&sent);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let counted = Arc::clone(&counted);
                let service = service_fn(move |_| {
                    let outcome = if counted.fetch_add(1, Ordering::Relaxed) < failures {
                        serde_json::json!({ "type": "error", "error": { "message": message, "code": code } })
                    } else {
                        let result = serde_json::json!({ "cols": [], "rows": [], "affected_row_count": 1 });
                        serde_json::json!({ "type": "ok", "response": { "type": "execute", "result": result } })
                    };
                    let body = serde_json::json!({ "results": [outcome] }).to_string();
                    async { Ok::<_, Infallible>(Response::new(body)) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        (url, sent)
    }

    async fn execute(url: Url) -> Result<QueryResult, DbError> {
        let stream = Client::new(url, None).unwrap().stream();
        stream.execute("INSERT INTO t VALUES (1)", &[], &Effects::default()).await
    }

    #[tokio::test]
    async fn a_server_that_restarts_is_waited_for() {
        let closed = ClosedPort::hold().unwrap();
        let url = Url::parse(&closed.url().unwrap()).unwrap();
        let address = url.socket_addrs(|| None).unwrap()[0];
        let restart = async {
            sleep(RETRY_INTERVAL).await;
            drop(closed);
            server(address, 0, "", None).await
        };
        let (result, (_, sent)) = tokio::join!(execute(url.clone()), restart);
        result.unwrap();
        assert_eq!(sent.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn only_a_statement_that_did_nothing_is_retried() {
        for (message, code, calls) in [
            ("m", Some("SQLITE_BUSY"), 4),
            ("SQLite error: database is locked", None, 4),
            ("Too many concurrent requests", None, 4),
            ("Timed out while opening database connection", None, 4),
            ("m", Some("SQLITE_CONSTRAINT"), 1),
            ("m", None, 1),
        ] {
            let (url, sent) = server(([127, 0, 0, 1], 0).into(), 3, message, code).await;
            assert_eq!(execute(url).await.is_ok(), calls == 4, "{message} {code:?}");
            assert_eq!(sent.load(Ordering::Relaxed), calls, "{message} {code:?}");
        }
    }
}
