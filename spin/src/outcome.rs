//! What the errors of a database say about the statement, and which kind of database it is.
//!
//! `platen up` says it with the name of an [`Outcome`]. Spin passes errors on as text, so those of SQLite, of its libSQL
//! client and of the server (sqld 0.24) are recognised by their text.

use platen_statements::Outcome;

const NOT_RUN: &[&str] = &[
    "Timed out while opening database connection",
    "Too many concurrent requests",
    "database is locked",
    "SQLITE_BUSY",
    // sqld interrupts what runs on a connection, and thereby undoes it, if the client closes the response to the statement
    // before at its last row. Spin does.
    "SQLITE_INTERRUPT",
    // For lack of file descriptors or memory.
    "unable to open database file",
    "out of memory",
    "error trying to connect",
    "tcp connect error",
    "dns error",
    // The connection was idle for 10 s, or the server has restarted since.
    "The stream has expired",
    "invalid baton",
];
const UNKNOWN: &[&str] = &[
    "Hrana: `http error",
    "error reading a body from connection",
    // sqld gives the write lock of a connection to another one after 5 s.
    "Transaction timed-out",
];
const NO_DISK: &[&str] = &["database or disk is full", "SQLITE_FULL", "disk I/O error", "SQLITE_IOERR"];

/// What an error with this text says about its statement.
#[must_use]
pub fn outcome(text: &str) -> Outcome {
    if let Some(outcome) = text.split_once(": ").and_then(|(name, _)| name.parse().ok()) {
        return outcome;
    }
    let has = |texts: &[&str]| texts.iter().any(|part| text.contains(part));
    if has(NOT_RUN) {
        Outcome::NotRun
    } else if has(UNKNOWN) {
        Outcome::Unknown
    } else if has(NO_DISK) {
        Outcome::NoDisk
    } else {
        Outcome::Failed
    }
}

/// Whether a source id is of a changed SQLite, as libSQL is: <https://sqlite.org/c3ref/c_source_id.html>. Such an id ends with
/// `alt` and a digit.
#[must_use]
pub fn is_changed_sqlite(source_id: &str) -> bool {
    source_id.trim_end_matches(|digit: char| digit.is_ascii_digit()).ends_with("alt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libsql_is_told_from_sqlite() {
        let date = "2024-01-30 16:01:20 ";
        let hash = "e876e51a0ed5c5b3126f52e532044363a014bc594cfefa87ffb5b82257cc";
        assert!(is_changed_sqlite(&format!("{date}{hash}alt1")));
        assert!(!is_changed_sqlite(&format!("{date}{hash}4a04")));
    }

    #[test]
    fn errors_of_a_server_that_cannot_work_are_recognised() {
        for (error, expected) in [
            (
                r#"Hrana: `api error: `{"error":"Timed out while opening database connection"}``"#,
                Outcome::NotRun,
            ),
            (r#"Hrana: `api error: `{"error":"Too many concurrent requests"}``"#, Outcome::NotRun),
            (
                "Hrana: `stream error: `Error { message: \"SQLite error: database is locked\", code: \"SQLITE_BUSY\" }``",
                Outcome::NotRun,
            ),
            (
                "Hrana: `cursor error: `error at step 0: (error code: SQLITE_INTERRUPT) `SQLite error: interrupted```",
                Outcome::NotRun,
            ),
            (
                "Hrana: `http error: `error trying to connect: tcp connect error: Connection refused (os error 111)``",
                Outcome::NotRun,
            ),
            ("unable to open database file", Outcome::NotRun),
            ("Hrana: `http error: `connection closed before message completed``", Outcome::Unknown),
            (
                "Hrana: `cursor error: `cursor error: `error reading a body from connection: unexpected EOF during \
                 chunk size line```",
                Outcome::Unknown,
            ),
            (
                r#"Hrana: `api error: `{"message":"The stream has expired due to inactivity","code":"STREAM_EXPIRED"}``"#,
                Outcome::NotRun,
            ),
            ("unknown: the database cannot be reached", Outcome::Unknown),
            ("failed: UNIQUE constraint failed: t.text_of_a_database is locked", Outcome::Failed),
            (
                "Hrana: `stream error: `Error { message: \"Transaction timed-out\", code: \"TRANSACTION_TIMEOUT\" }``",
                Outcome::Unknown,
            ),
            (
                "Hrana: `stream error: `Error { message: \"SQLite error: database or disk is full\", code: \"SQLITE_FULL\" }``",
                Outcome::NoDisk,
            ),
            ("disk I/O error", Outcome::NoDisk),
            (r#"Hrana: `api error: `{"error":"Authentication failed"}``"#, Outcome::Failed),
            ("SQLite error: no such table: usage", Outcome::Failed),
        ] {
            assert_eq!(outcome(error), expected, "{error}");
        }
    }
}
