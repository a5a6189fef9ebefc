use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

use http_body_util::BodyExt as _;
use hyper::{Response, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use platen_harness::loopback::ClosedPort;
use tokio::time::sleep;

use super::*;
use crate::db::{Database, Location, Purpose, Row};

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

async fn execute(url: Url) -> Result<Vec<Row>, DbError> {
    let database = Database::open(&Location::Server(url), None, Purpose::Operate).await?;
    database.query_when_available(WRITE).await
}

const WRITE: &str = "INSERT INTO t VALUES (1)";

#[tokio::test]
async fn a_server_that_restarts_is_waited_for() {
    let closed = ClosedPort::hold().unwrap();
    let url = Url::parse(&closed.url().unwrap()).unwrap();
    let address = url.socket_addrs(|| None).unwrap()[0];
    let restart = async {
        sleep(Duration::from_millis(100)).await;
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
        ("SQLite error: database is locked", None, 1),
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

/// A server that answers after 20 ms. The result of each statement is its text. Returns the number of requests in
/// progress, the largest such number, and the number of requests.
async fn echo() -> (Url, Arc<[AtomicUsize; 3]>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let counts = Arc::<[AtomicUsize; 3]>::default();
    let counted = Arc::clone(&counts);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let counted = Arc::clone(&counted);
            let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
                let counted = Arc::clone(&counted);
                async move {
                    let in_progress = counted[0].fetch_add(1, Ordering::SeqCst) + 1;
                    counted[1].fetch_max(in_progress, Ordering::SeqCst);
                    counted[2].fetch_add(1, Ordering::SeqCst);
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    let pipeline: serde_json::Value = serde_json::from_slice(&body).unwrap();
                    sleep(Duration::from_millis(20)).await;
                    let outcomes = pipeline["requests"].as_array().unwrap().iter().map(echoed);
                    let body = serde_json::json!({ "results": outcomes.collect::<Vec<_>>() }).to_string();
                    counted[0].fetch_sub(1, Ordering::SeqCst);
                    Ok::<_, Infallible>(Response::new(body))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    (url, counts)
}

fn echoed(request: &serde_json::Value) -> serde_json::Value {
    let sql = &request["stmt"]["sql"];
    if sql.as_str().is_some_and(|sql| sql.ends_with("fails")) {
        return serde_json::json!({ "type": "error", "error": { "message": sql } });
    }
    let result = serde_json::json!({
        "cols": [{}], "rows": [[{ "type": "text", "value": sql }]], "affected_row_count": 1
    });
    let kind = if request["type"] == "close" { "close" } else { "execute" };
    serde_json::json!({ "type": "ok", "response": { "type": kind, "result": result } })
}

#[tokio::test]
async fn writes_share_a_request_and_each_has_its_own_result() {
    let (url, counts) = echo().await;
    let client = Client::new(url, None).unwrap();
    let texts: Vec<String> = (0..33)
        .map(|number| format!("UPDATE t SET a = {number}{}", if number % 5 == 0 { " fails" } else { "" }))
        .collect();
    let writes =
        texts.iter().map(|sql| client.execute(Flow::default(), StatementKind::Write, sql.clone(), vec![]));
    for (sql, result) in texts.iter().zip(futures::future::join_all(writes).await) {
        match result {
            Ok(rows) => assert_eq!(rows, [[Value::Text(sql.clone())]]),
            Err(error) => assert!(sql.ends_with("fails") && error.to_string() == *sql, "{sql}: {error}"),
        }
    }
    let [_, concurrent, requests] = [0, 1, 2].map(|index| counts[index].load(Ordering::SeqCst));
    assert_eq!((concurrent, requests), (MAX_CONCURRENT_WRITES, 33_usize.div_ceil(MAX_BATCH)));
}

#[tokio::test]
async fn concurrent_reads_are_limited() {
    let (url, counts) = echo().await;
    let client = Client::new(url, None).unwrap();
    let reads =
        (0..100).map(|_| client.execute(Flow::default(), StatementKind::Read, "SELECT 1".to_owned(), vec![]));
    assert!(futures::future::join_all(reads).await.into_iter().all(|result| result.is_ok()));
    assert_eq!(counts[1].load(Ordering::SeqCst), MAX_CONCURRENT_READS);
}
