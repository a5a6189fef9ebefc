//! Statements on a database file.

use super::*;

async fn open(directory: &tempfile::TempDir, purpose: Purpose) -> Database {
    Database::open(&Location::in_data(directory.path()), None, purpose).await.unwrap()
}

async fn with_table(directory: &tempfile::TempDir) -> Database {
    let database = open(directory, Purpose::Serve).await;
    database.run_script("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT UNIQUE)").await.unwrap();
    database
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_returned_as_they_were_bound() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, Purpose::Serve).await;
    let values =
        vec![Value::Null, Value::Integer(i64::MIN), Value::Real(0.5), "ü".into(), Value::Blob(vec![0, 255])];
    let sql = "SELECT ?1, ?2, ?3, ?4, ?5";
    assert_eq!(database.query(sql, values.clone()).await.unwrap(), [values]);
    // The prepared statement is reused without its parameters.
    let again = database.query(sql, vec![Value::Integer(1)]).await.unwrap();
    assert_eq!(again[0][1], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_leaves_nothing_in_its_connection() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_table(&directory).await;
    for sql in ["BEGIN", "PRAGMA foreign_keys = OFF", "-- a comment\nSELECT 1", ""] {
        assert!(matches!(database.query(sql, vec![]).await, Err(DbError::Kind)), "{sql}");
    }
    let broken = "BEGIN IMMEDIATE; INSERT INTO t VALUES (1, 'x'); INSERT INTO t VALUES (1, 'x')";
    database.run_script(broken).await.unwrap_err();
    database.query(" \n insert INTO t VALUES (1, 'x')", vec![]).await.unwrap();
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
    let statements = (0..100).map(|_| async {
        database.query("INSERT INTO t (b) VALUES (NULL)", vec![]).await.unwrap();
        database.query("SELECT * FROM t", vec![]).await.unwrap();
    });
    futures::future::join_all(statements).await;
    // Those of the start were enough, except for one that created the table.
    assert!(open_files() <= before, "{} files instead of {before}", open_files());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_cannot_be_opened_is_an_error_that_components_recognise() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, Purpose::Serve).await;
    std::fs::remove_file(directory.path().join("platen.db")).unwrap();
    let Backend::File(pool) = &database.backend else { panic!("a server") };
    let error = pool.run_script("SELECT 1".to_owned()).await.unwrap_err();
    assert!(matches!(error, DbError::Unopened(_)), "{error:?}");
    assert_eq!(error.to_string(), "unable to open database file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_result_is_whole_and_an_abandoned_statement_blocks_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_table(&directory).await;
    let sql = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) INSERT INTO t SELECT i, i FROM n";
    database.query(sql, vec![]).await.unwrap();
    let rows = database.query("SELECT a FROM t ORDER BY a", vec![]).await.unwrap();
    assert_eq!((rows.len(), &rows[4999][0]), (5000, &Value::Integer(5000)));

    let reading = database.clone();
    let abandoned = tokio::spawn(async move { reading.query("SELECT a FROM t", vec![]).await });
    tokio::task::yield_now().await;
    database.query("INSERT INTO t VALUES (9999, 'z')", vec![]).await.unwrap();
    abandoned.abort();
    database.query("SELECT 1", vec![]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_over_the_limit_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(&directory, Purpose::Serve).await;
    let sql = "SELECT zeroblob(?1) UNION ALL SELECT zeroblob(?1)";
    let half = i64::try_from(MAX_RESULT_BYTES / 2).unwrap();
    assert!(matches!(database.query(sql, vec![half.into()]).await, Err(DbError::TooLarge)));
    assert_eq!(database.query(sql, vec![Value::Integer(1)]).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_message_of_sqlite_and_no_path() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_table(&directory).await;
    database.query("INSERT INTO t VALUES (1, 'x')", vec![]).await.unwrap();
    for (sql, message) in [
        ("INSERT INTO t VALUES (2, 'x')", "UNIQUE constraint failed: t.b"),
        ("SELECT 1 1", "near \"1\": syntax error"),
        ("SELECT * FROM nowhere", "no such table: nowhere"),
    ] {
        let error = database.query(sql, vec![]).await.unwrap_err();
        assert_eq!(error.to_string(), message, "{sql}");
    }
    // The connection can still be used.
    database.query("INSERT INTO t VALUES (2, 'y')", vec![]).await.unwrap();
    let missing = Location::File(directory.path().join("none.db"));
    let error = Database::open(&missing, None, Purpose::Operate).await.map(drop).unwrap_err();
    assert!(matches!(error, DbError::Missing(_)));
    assert!(!directory.path().join("none.db").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_first_statement_runs() {
    let directory = tempfile::tempdir().unwrap();
    let database = with_table(&directory).await;
    database.query("INSERT INTO t VALUES (1, 'x'); DROP TABLE t", vec![]).await.unwrap();
    database.query("SELECT * FROM t", vec![]).await.unwrap();
}
