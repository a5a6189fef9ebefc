//! Statements on a database file.

use super::*;

async fn open(directory: &tempfile::TempDir, purpose: Purpose) -> Database {
    Database::open(&Location::in_data(directory.path()), None, purpose).await.unwrap()
}

async fn with_table(directory: &tempfile::TempDir) -> Database {
    let database = open(directory, Purpose::Serve).await;
    let connection = database.connect();
    connection.query("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT UNIQUE)", vec![]).await.unwrap();
    database
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_returned_as_they_were_bound() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, Purpose::Serve).await;
    let values =
        vec![Value::Null, Value::Integer(i64::MIN), Value::Real(0.5), "ü".into(), Value::Blob(vec![0, 255])];
    let connection = database.connect();
    let result = connection
        .execute(Flow::default(), "SELECT ?1 AS a, ?2, ?3, ?4, ?5".to_owned(), values.clone())
        .await
        .unwrap();
    assert_eq!(result.columns[0], "a");
    assert_eq!(result.rows, vec![values]);
    // The prepared statement is reused without its parameters.
    let again = connection.query("SELECT ?1 AS a, ?2, ?3, ?4, ?5", vec![Value::Integer(1)]).await.unwrap();
    assert_eq!(again[0][1], Value::Null);
    assert_eq!(database.statements.started(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_connection_has_its_own_effects() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_table(&directory).await;
    let first = database.connect();
    first.query("INSERT INTO t VALUES (7, 'x'), (8, 'y')", vec![]).await.unwrap();
    first.query("SELECT * FROM t", vec![]).await.unwrap();
    assert_eq!((first.effects.changes(), first.effects.last_insert_rowid()), (2, 8));
    drop(first);
    let second = database.connect();
    second.query("SELECT * FROM t", vec![]).await.unwrap();
    assert_eq!((second.effects.changes(), second.effects.last_insert_rowid()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_a_connection_does_not_reach_its_next_user() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_table(&directory).await;
    let careless = database.connect();
    careless.query("PRAGMA foreign_keys = OFF", vec![]).await.unwrap();
    careless.query("BEGIN", vec![]).await.unwrap();
    careless.query("INSERT INTO t VALUES (1, 'x')", vec![]).await.unwrap();
    drop(careless);
    let next = database.connect();
    next.query("INSERT INTO t VALUES (1, 'x')", vec![]).await.unwrap();
    assert_eq!(next.query("PRAGMA foreign_keys", vec![]).await.unwrap(), vec![vec![Value::Integer(1)]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_not_used_hold_no_file_open() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_table(&directory).await;
    let open_files = || {
        let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        let paths = links.filter_map(|link| std::fs::read_link(link.path()).ok());
        paths.filter(|path| path.starts_with(directory.path())).count()
    };
    let before = open_files();
    let connections: Vec<_> = (0..100).map(|_| database.connect()).collect();
    for connection in &connections {
        connection.query("INSERT INTO t (b) VALUES (NULL)", vec![]).await.unwrap();
        connection.query("SELECT * FROM t", vec![]).await.unwrap();
    }
    // Those of the start were enough, except for one that created the table.
    assert!(open_files() <= before, "{} files instead of {before}", open_files());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_opened_is_an_error_that_components_recognise() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, Purpose::Serve).await;
    std::fs::remove_file(directory.path().join("platen.db")).unwrap();
    let mut error = None;
    let mut altered = Vec::new();
    for _ in 0..100 {
        let connection = database.connect();
        error = connection.query("PRAGMA foreign_keys = OFF", vec![]).await.err();
        altered.push(connection);
        if error.is_some() {
            break;
        }
    }
    let error = error.unwrap();
    assert!(matches!(error, DbError::Unopened(_)), "{error:?}");
    assert_eq!(error.to_string(), "unable to open database file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_does_not_deadlock_with_other_writers() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_table(&directory).await;
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
async fn concurrent_writers_lose_no_update() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_table(&directory).await;
    database.connect().query("INSERT INTO t VALUES (0, 'n')", vec![]).await.unwrap();
    let writers = (0..100).map(|_| {
        let connection = database.connect();
        tokio::spawn(async move { connection.query("UPDATE t SET a = a + 1 WHERE b = 'n'", vec![]).await })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap().unwrap();
    }
    let rows = database.connect().query("SELECT a FROM t", vec![]).await.unwrap();
    assert_eq!(rows, vec![vec![Value::Integer(100)]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_is_whole_and_an_abandoned_statement_blocks_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_table(&directory).await;
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO t SELECT i, i FROM n";
    database.connect().query(sql, vec![]).await.unwrap();
    let connection = database.connect();
    let rows = connection.query("SELECT a FROM t ORDER BY a", vec![]).await.unwrap();
    assert_eq!((rows.len(), &rows[4999][0]), (5000, &Value::Integer(5000)));

    let reading = connection.clone();
    let abandoned = tokio::spawn(async move { reading.query("SELECT a FROM t", vec![]).await });
    tokio::task::yield_now().await;
    database.connect().query("INSERT INTO t VALUES (9999, 'z')", vec![]).await.unwrap();
    abandoned.abort();
    connection.query("SELECT 1", vec![]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_over_the_limit_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let connection = open(&directory, Purpose::Serve).await.connect();
    let sql = "SELECT zeroblob(?1) UNION ALL SELECT zeroblob(?1)";
    let half = i64::try_from(result::MAX_RESULT_BYTES / 2).unwrap();
    assert!(matches!(connection.query(sql, vec![half.into()]).await, Err(DbError::TooLarge)));
    assert_eq!(connection.query(sql, vec![Value::Integer(1)]).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_message_of_sqlite_and_no_path() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_table(&directory).await;
    let connection = database.connect();
    connection.query("INSERT INTO t VALUES (1, 'x')", vec![]).await.unwrap();
    for (sql, message) in [
        ("INSERT INTO t VALUES (2, 'x')", "UNIQUE constraint failed: t.b"),
        ("SELEC 1", "near \"SELEC\": syntax error"),
        ("SELECT * FROM nowhere", "no such table: nowhere"),
    ] {
        let error = connection.query(sql, vec![]).await.unwrap_err();
        assert_eq!(error.to_string(), message, "{sql}");
    }
    // The connection can still be used.
    connection.query("INSERT INTO t VALUES (2, 'y')", vec![]).await.unwrap();
    let missing = Location::File(directory.path().join("none.db"));
    let error = Database::open(&missing, None, Purpose::Operate).await.map(drop).unwrap_err();
    assert!(matches!(error, DbError::Missing(_)));
    assert!(!directory.path().join("none.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_first_statement_runs() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_table(&directory).await;
    database.connect().query("INSERT INTO t VALUES (1, 'x'); DROP TABLE t", vec![]).await.unwrap();
    database.connect().query("SELECT * FROM t", vec![]).await.unwrap();
}
