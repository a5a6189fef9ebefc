use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use http_body_util::BodyExt as _;
use platen_harness::loopback::{Loopback, full};
use platen_statements::Outcome;
use serde_json::Value as Json;
use tokio::time::sleep;

use super::*;
use crate::db::{Database, Location, Purpose, Value};

/// Requests.
#[derive(Default)]
struct Counts {
    all: AtomicUsize,
    in_progress: AtomicUsize,
    most_in_progress: AtomicUsize,
    /// None is answered before so many were in progress at once.
    awaited_in_progress: AtomicUsize,
}

/// A server that answers after 20 ms: the first `failures` requests with this error, and other statements with their text.
async fn server(failures: usize, error: Json) -> (Loopback, Url, Arc<Counts>) {
    let counts = Arc::<Counts>::default();
    let counted = Arc::clone(&counts);
    let server = Loopback::start(move |request: http::Request<hyper::body::Incoming>| {
        let (counts, error) = (Arc::clone(&counted), error.clone());
        async move {
            let in_progress = counts.in_progress.fetch_add(1, Ordering::SeqCst) + 1;
            counts.most_in_progress.fetch_max(in_progress, Ordering::SeqCst);
            let fails = counts.all.fetch_add(1, Ordering::SeqCst) < failures;
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let pipeline: Json = serde_json::from_slice(&body).unwrap();
            sleep(Duration::from_millis(20)).await;
            while counts.most_in_progress.load(Ordering::SeqCst)
                < counts.awaited_in_progress.load(Ordering::SeqCst)
            {
                sleep(Duration::from_millis(1)).await;
            }
            let requests = pipeline["requests"].as_array().unwrap().iter();
            let failed = json!({ "type": "error", "error": error });
            let outcomes = requests.map(|request| if fails { failed.clone() } else { echoed(request) });
            let body = json!({ "baton": null, "results": outcomes.collect::<Vec<_>>() }).to_string();
            counts.in_progress.fetch_sub(1, Ordering::SeqCst);
            Ok(http::Response::new(full(body)))
        }
    });
    let server = server.await.unwrap();
    let url = Url::parse(&server.url()).unwrap();
    (server, url, counts)
}

fn echoed(request: &Json) -> Json {
    let sql = &request["stmt"]["sql"];
    if sql.as_str().is_some_and(|sql| sql.ends_with("fails")) {
        return json!({ "type": "error", "error": { "message": sql } });
    }
    let result = json!({ "cols": [{}], "rows": [[{ "type": "text", "value": sql }]] });
    let kind = if request["type"] == "close" { "close" } else { "execute" };
    json!({ "type": "ok", "response": { "type": kind, "result": result } })
}

async fn open(url: Url) -> Database {
    Database::open(&Location::Server(url), None, Purpose::Operate).await.unwrap()
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
        let (_server, url, counts) = server(3, json!({ "message": message, "code": code })).await;
        let result = open(url).await.query_when_available("INSERT INTO t VALUES (1)").await;
        assert_eq!(result.is_ok(), calls == 4, "{message} {code:?}");
        assert_eq!(counts.all.load(Ordering::SeqCst), calls, "{message} {code:?}");
    }
}

#[tokio::test]
async fn each_error_says_whether_the_server_can_work() {
    for (code, expected) in [
        ("SQLITE_BUSY", Outcome::NotRun),
        ("SQLITE_LOCKED_SHAREDCACHE", Outcome::NotRun),
        ("SQLITE_PROTOCOL", Outcome::NotRun),
        ("TRANSACTION_BUSY", Outcome::NotRun),
        ("SQLITE_CANTOPEN", Outcome::Away),
        ("SQLITE_NOMEM", Outcome::Away),
        ("TRANSACTION_TIMEOUT", Outcome::Unknown),
        ("SQLITE_IOERR", Outcome::Unable),
        ("SQLITE_IOERR_WRITE", Outcome::Unable),
        ("SQLITE_READONLY", Outcome::Unable),
        ("SQLITE_FULL", Outcome::Unable),
        ("SQLITE_PERM", Outcome::Unable),
        ("SQLITE_NOLFS", Outcome::Unable),
        ("BLOCKED", Outcome::Unable),
        ("SQLITE_CORRUPT", Outcome::Failed),
        ("SQLITE_NOTADB", Outcome::Failed),
        ("SQLITE_CONSTRAINT", Outcome::Failed),
    ] {
        let (_server, url, _) = server(1, json!({ "message": "m", "code": code })).await;
        let error = open(url).await.query("UPDATE t SET a = 1", vec![]).await.unwrap_err();
        assert_eq!((error.outcome(), error.to_string().as_str()), (expected, "m"), "{code}");
    }
}

#[tokio::test]
async fn a_request_that_is_not_carried_out_says_so_too() {
    for (status, error, expected) in [
        (503, "Timed out while opening database connection", Outcome::NotRun),
        (500, "disk I/O error", Outcome::Unable),
        (500, "unable to open database file", Outcome::Away),
        (500, "database disk image is malformed", Outcome::Failed),
        (500, "Failed to connect to primary", Outcome::Unknown),
        (400, "Namespace `x` doesn't exist", Outcome::Failed),
    ] {
        let server = Loopback::start(move |_: http::Request<hyper::body::Incoming>| async move {
            let mut response = http::Response::new(full(json!({ "error": error }).to_string()));
            *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
            Ok(response)
        });
        let server = server.await.unwrap();
        let database = open(Url::parse(&server.url()).unwrap()).await;
        let failed = database.query("UPDATE t SET a = 1", vec![]).await.unwrap_err();
        assert_eq!((failed.outcome(), failed.to_string().as_str()), (expected, error), "{status}");
    }
}

#[tokio::test]
async fn writes_share_a_request_and_each_has_its_own_result() {
    let (_server, url, counts) = server(0, Json::Null).await;
    let database = open(url).await;
    let texts: Vec<String> = (0..33)
        .map(|number| format!("UPDATE t SET a = {number}{}", if number % 5 == 0 { " fails" } else { "" }))
        .collect();
    let writes = texts.iter().map(|sql| database.query(sql, vec![]));
    for (sql, result) in texts.iter().zip(join_all(writes).await) {
        match result {
            Ok(rows) => assert_eq!(rows, [[Value::Text(sql.clone())]]),
            Err(error) => assert!(sql.ends_with("fails") && error.to_string() == *sql, "{sql}: {error}"),
        }
    }
    let counted = (counts.most_in_progress.load(Ordering::SeqCst), counts.all.load(Ordering::SeqCst));
    assert_eq!(counted, (1, 33_usize.div_ceil(MAX_BATCH)));
}

#[tokio::test]
async fn concurrent_reads_are_limited() {
    let (_server, url, counts) = server(0, Json::Null).await;
    counts.awaited_in_progress.store(MAX_CONCURRENT_READS, Ordering::SeqCst);
    let database = open(url).await;
    let reads = (0..100).map(|_| database.query("SELECT 1", vec![]));
    assert!(join_all(reads).await.into_iter().all(|result| result.is_ok()));
    assert_eq!(counts.most_in_progress.load(Ordering::SeqCst), MAX_CONCURRENT_READS);
}
