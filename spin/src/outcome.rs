//! What the errors of a database say about the statement, and which kind of database it is.
//!
//! `platen up` says it with the name of an [`Outcome`]. Spin passes errors on as text, so those of SQLite, of its libSQL
//! client and of the server (sqld 0.24) are recognised by their text.

use platen_statements::Outcome;

/// Texts of the client and of the server; the others are those of SQLite's codes.
const TEXTS: &[(&str, Outcome)] = &[
    ("Timed out while opening database connection", Outcome::NotRun),
    ("Too many concurrent requests", Outcome::NotRun),
    ("TRANSACTION_BUSY", Outcome::NotRun),
    // The connection was idle for 10 s, or the server has restarted since.
    ("The stream has expired", Outcome::NotRun),
    ("invalid baton", Outcome::NotRun),
    ("error trying to connect", Outcome::Away),
    ("tcp connect error", Outcome::Away),
    ("dns error", Outcome::Away),
    ("Hrana: `http error", Outcome::Unknown),
    ("error reading a body from connection", Outcome::Unknown),
    // sqld gives the write lock of a connection to another one after 5 s.
    ("Transaction timed-out", Outcome::Unknown),
    // The operator of the server allows no writing, or nothing at all.
    ("BLOCKED", Outcome::Unable),
];

/// What an error with this text says about its statement.
#[must_use]
pub fn outcome(text: &str) -> Outcome {
    if let Some(outcome) = text.split_once(": ").and_then(|(name, _)| name.parse().ok()) {
        return outcome;
    }
    let known = TEXTS.iter().find(|(part, _)| text.contains(part)).map(|(_, outcome)| *outcome);
    // sqld interrupts what runs on a connection if the client closes the response to the statement before at its last row.
    // Spin does.
    known.or_else(|| Outcome::of_sqlite_text(text)).unwrap_or(Outcome::Failed)
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
                Outcome::Away,
            ),
            ("unable to open database file", Outcome::Away),
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
                Outcome::Unable,
            ),
            ("disk I/O error", Outcome::Unable),
            ("attempt to write a readonly database", Outcome::Unable),
            (
                "Hrana: `stream error: `Error { message: \"SQLite error: attempt to write a readonly database\", code: \"SQLITE_READONLY\" }``",
                Outcome::Unable,
            ),
            (
                "Hrana: `stream error: `Error { message: \"Operation was blocked\", code: \"BLOCKED\" }``",
                Outcome::Unable,
            ),
            ("Hrana: `http error: `operation interrupted``", Outcome::Unknown),
            ("database disk image is malformed", Outcome::Failed),
            (r#"Hrana: `api error: `{"error":"Authentication failed"}``"#, Outcome::Failed),
            ("SQLite error: no such table: usage", Outcome::Failed),
        ] {
            assert_eq!(outcome(error), expected, "{error}");
        }
    }
}
