//! Which errors of a database are those of a server that is busy or absent, or of its disk; and which kind of database it is.
//!
//! Spin passes errors on as text, so they are recognised by their text: those of the libSQL client and of the
//! server (sqld 0.24), and those of `platen up`.

/// What an error says about the statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// The server was not reached, or refused the statement before it ran.
    Refused,
    /// The connection failed. Whether the statement ran is not known.
    Unknown,
    /// The disk is full or fails, which will not have changed a moment later.
    NoDisk,
    /// The server works, and the statement is at fault.
    Available,
}

const REFUSED: &[&str] = &[
    "Timed out while opening database connection",
    "Too many concurrent requests",
    "database is locked",
    "SQLITE_BUSY",
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
    "the database cannot be reached",
    // sqld gives the write lock of a connection to another one after 5 s.
    "Transaction timed-out",
];
const NO_DISK: &[&str] = &["database or disk is full", "SQLITE_FULL", "disk I/O error", "SQLITE_IOERR"];

impl Availability {
    /// Of an error with this text.
    #[must_use]
    pub fn of(error: &str) -> Self {
        let has = |texts: &[&str]| texts.iter().any(|text| error.contains(text));
        if has(REFUSED) {
            Self::Refused
        } else if has(UNKNOWN) {
            Self::Unknown
        } else if has(NO_DISK) {
            Self::NoDisk
        } else {
            Self::Available
        }
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
                Availability::Refused,
            ),
            (r#"Hrana: `api error: `{"error":"Too many concurrent requests"}``"#, Availability::Refused),
            (
                "Hrana: `stream error: `Error { message: \"SQLite error: database is locked\", code: \"SQLITE_BUSY\" }``",
                Availability::Refused,
            ),
            (
                "Hrana: `http error: `error trying to connect: tcp connect error: Connection refused (os error 111)``",
                Availability::Refused,
            ),
            ("unable to open database file", Availability::Refused),
            ("Hrana: `http error: `connection closed before message completed``", Availability::Unknown),
            (
                "Hrana: `cursor error: `cursor error: `error reading a body from connection: unexpected EOF during \
                 chunk size line```",
                Availability::Unknown,
            ),
            (
                r#"Hrana: `api error: `{"message":"The stream has expired due to inactivity","code":"STREAM_EXPIRED"}``"#,
                Availability::Refused,
            ),
            ("the database cannot be reached", Availability::Unknown),
            (
                "Hrana: `stream error: `Error { message: \"Transaction timed-out\", code: \"TRANSACTION_TIMEOUT\" }``",
                Availability::Unknown,
            ),
            (
                "Hrana: `stream error: `Error { message: \"SQLite error: database or disk is full\", code: \"SQLITE_FULL\" }``",
                Availability::NoDisk,
            ),
            ("disk I/O error", Availability::NoDisk),
            (r#"Hrana: `api error: `{"error":"Authentication failed"}``"#, Availability::Available),
            ("SQLite error: no such table: usage", Availability::Available),
        ] {
            assert_eq!(Availability::of(error), expected, "{error}");
        }
    }
}
