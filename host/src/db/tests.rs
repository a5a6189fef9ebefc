//! The file database, as components and operators use it.

use std::sync::Arc;

use super::*;

async fn open(directory: &tempfile::TempDir, purpose: Purpose) -> Database {
    Database::open(&Location::in_data(directory.path()), None, purpose).await.unwrap()
}

async fn filled(directory: &tempfile::TempDir) -> Database {
    let database = open(directory, Purpose::Serve).await;
    let connection = database.connect();
    connection.query("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT UNIQUE)", vec![]).await.unwrap();
    database
}

#[tokio::test(flavor = "multi_thread")]
async fn values_go_in_and_come_out() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, Purpose::Serve).await;
    let values =
        vec![Value::Null, Value::Integer(i64::MIN), Value::Real(0.5), "ü".into(), Value::Blob(vec![0, 255])];
    let connection = database.connect();
    let answer =
        connection.execute("SELECT ?1 AS a, ?2, ?3, ?4, ?5".to_owned(), values.clone()).await.unwrap();
    assert_eq!(answer.columns[0], "a");
    assert_eq!(answer.collect().await.unwrap(), vec![values]);
    // The statement is kept; what was bound to it is not.
    let again = connection.query("SELECT ?1 AS a, ?2, ?3, ?4, ?5", vec![1.into()]).await.unwrap();
    assert_eq!(again[0][1], Value::Null);
    assert_eq!(database.statements(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_are_the_connections_own() {
    let directory = tempfile::tempdir().unwrap();
    let database = filled(&directory).await;
    let first = database.connect();
    first.query("INSERT INTO t VALUES (7, 'x'), (8, 'y')", vec![]).await.unwrap();
    first.query("SELECT * FROM t", vec![]).await.unwrap();
    assert_eq!((first.changes(), first.last_insert_rowid()), (2, 8));
    drop(first);
    let second = database.connect();
    second.query("SELECT * FROM t", vec![]).await.unwrap();
    assert_eq!((second.changes(), second.last_insert_rowid()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_borrower_leaves_open_the_next_does_not_see() {
    let directory = tempfile::tempdir().unwrap();
    let database = filled(&directory).await;
    let careless = database.connect();
    careless.query("PRAGMA foreign_keys = OFF", vec![]).await.unwrap();
    careless.query("BEGIN", vec![]).await.unwrap();
    careless.query("INSERT INTO t VALUES (1, 'x')", vec![]).await.unwrap();
    drop(careless);
    let next = database.connect();
    next.query("INSERT INTO t VALUES (1, 'x')", vec![]).await.unwrap();
    assert_eq!(next.query("PRAGMA foreign_keys", vec![]).await.unwrap(), vec![vec![1.into()]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_does_not_deadlock_with_other_writers() {
    let directory = tempfile::tempdir().unwrap();
    let database = filled(&directory).await;
    let holder = database.connect();
    holder.query("BEGIN IMMEDIATE", vec![]).await.unwrap();
    holder.query("INSERT INTO t VALUES (1, 'x')", vec![]).await.unwrap();
    let other = database.connect();
    let waiting = tokio::spawn(async move { other.query("INSERT INTO t VALUES (2, 'y')", vec![]).await });
    tokio::task::yield_now().await;
    holder.query("COMMIT", vec![]).await.unwrap();
    waiting.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_writers_at_once_all_count() {
    let directory = tempfile::tempdir().unwrap();
    let database = filled(&directory).await;
    database.connect().query("INSERT INTO t VALUES (0, 'n')", vec![]).await.unwrap();
    let writers = (0..100).map(|_| {
        let connection = database.connect();
        tokio::spawn(async move { connection.query("UPDATE t SET a = a + 1 WHERE b = 'n'", vec![]).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap().unwrap();
    }
    let rows = database.connect().query("SELECT a FROM t", vec![]).await.unwrap();
    assert_eq!(rows, vec![vec![100.into()]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_results_stream_and_an_abandoned_one_holds_nobody_up() {
    let directory = tempfile::tempdir().unwrap();
    let database = filled(&directory).await;
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO t SELECT i, i FROM n";
    database.connect().query(sql, vec![]).await.unwrap();
    let connection = Arc::new(database.connect());
    let answer = connection.execute("SELECT a FROM t ORDER BY a".to_owned(), vec![]).await.unwrap();
    assert!(answer.rest.is_some());
    let rows = answer.collect().await.unwrap();
    assert_eq!((rows.len(), &rows[4999][0]), (5000, &Value::Integer(5000)));

    let abandoned = connection.execute("SELECT a FROM t".to_owned(), vec![]).await.unwrap();
    database.connect().query("INSERT INTO t VALUES (9999, 'z')", vec![]).await.unwrap();
    drop(abandoned);
    connection.query("SELECT 1", vec![]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_the_databases_words_and_name_no_path() {
    let directory = tempfile::tempdir().unwrap();
    let database = filled(&directory).await;
    let connection = database.connect();
    connection.query("INSERT INTO t VALUES (1, 'x')", vec![]).await.unwrap();
    for (sql, words) in [
        ("INSERT INTO t VALUES (2, 'x')", "UNIQUE constraint failed: t.b"),
        ("SELEC 1", "near \"SELEC\": syntax error"),
        ("SELECT * FROM nowhere", "no such table: nowhere"),
    ] {
        let error = connection.query(sql, vec![]).await.unwrap_err();
        assert_eq!(error.to_string(), words, "{sql}");
    }
    // The connection is as good as before.
    connection.query("INSERT INTO t VALUES (2, 'y')", vec![]).await.unwrap();
    let missing = Location::File(directory.path().join("none.db"));
    let error = Database::open(&missing, None, Purpose::Operate).await.unwrap_err();
    assert!(matches!(error, DbError::Missing(_)));
    assert!(!directory.path().join("none.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_first_statement_runs() {
    let directory = tempfile::tempdir().unwrap();
    let database = filled(&directory).await;
    database.connect().query("INSERT INTO t VALUES (1, 'x'); DROP TABLE t", vec![]).await.unwrap();
    database.connect().query("SELECT * FROM t", vec![]).await.unwrap();
}
