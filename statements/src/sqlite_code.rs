//! What the result codes of SQLite say about a statement: <https://sqlite.org/rescode.html>.
//!
//! Invariant: a file, a libSQL server and Spin are judged by the same table: by the number, by the name or, where a platform
//! passes on no more, by SQLite's text. What is not in it is an error of the statement.

use Outcome::{Away, Failed, NotRun, Unable};

use crate::retry::Outcome;

/// Number, name, SQLite's text, what it says.
const CODES: [(i32, &str, &str, Outcome); 13] = [
    // The file or its directory belongs to another user.
    (3, "SQLITE_PERM", "access permission denied", Unable),
    (5, "SQLITE_BUSY", "database is locked", NotRun),
    (6, "SQLITE_LOCKED", "database table is locked", NotRun),
    (7, "SQLITE_NOMEM", "out of memory", Away),
    // Also a file system that the kernel makes read-only because its disk fails.
    (8, "SQLITE_READONLY", "attempt to write a readonly database", Unable),
    // What is interrupted is undone.
    (9, "SQLITE_INTERRUPT", "interrupted", NotRun),
    // A disk that fails or is over a quota, a network file system that is away.
    (10, "SQLITE_IOERR", "disk I/O error", Unable),
    (11, "SQLITE_CORRUPT", "database disk image is malformed", Failed),
    (13, "SQLITE_FULL", "database or disk is full", Unable),
    // Also for lack of file descriptors.
    (14, "SQLITE_CANTOPEN", "unable to open database file", Away),
    // Several processes have opened the log at the same time.
    (15, "SQLITE_PROTOCOL", "locking protocol", NotRun),
    // The file is as large as the system allows.
    (22, "SQLITE_NOLFS", "large file support is disabled", Unable),
    (26, "SQLITE_NOTADB", "file is not a database", Failed),
];

/// Extended codes of `SQLITE_IOERR` that say something else.
const OF_IOERR: [(i32, Outcome); 6] = [
    // `_NOMEM`, and those of the index of the log, for lack of file descriptors or memory: `_SHMOPEN`, `_SHMSIZE`, `_SHMMAP`.
    (3082, Away),
    (4618, Away),
    (4874, Away),
    (5386, Away),
    // The file is damaged: `_SHORT_READ`, it ends too early; `_DATA`, a checksum is wrong.
    (522, Failed),
    (8202, Failed),
];

impl Outcome {
    /// What an extended result code says.
    #[must_use]
    pub fn of_sqlite_code(code: i32) -> Self {
        let extended = OF_IOERR.into_iter().find(|(number, _)| *number == code);
        let primary = || CODES.into_iter().find(|(number, ..)| *number == code & 0xff);
        extended.map(|(_, outcome)| outcome).or_else(|| Some(primary()?.3)).unwrap_or(Failed)
    }

    /// What a text says that has the name or the text of a result code.
    #[must_use]
    pub fn of_sqlite_text(text: &str) -> Option<Self> {
        let is_in =
            |(_, name, message, _): &(_, &str, &str, _)| text.contains(name) || text.contains(message);
        CODES.into_iter().find(is_in).map(|(.., outcome)| outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_an_outcome_by_number_and_by_text() {
        for (code, text, expected) in [
            (5, "SQLITE_BUSY", NotRun),
            (517, "SQLITE_BUSY_SNAPSHOT", NotRun),
            (262, "database table is locked: attempts", NotRun),
            (8, "attempt to write a readonly database", Unable),
            (1032, "SQLITE_READONLY_DBMOVED", Unable),
            (778, "SQLITE_IOERR_WRITE", Unable),
            (8458, "disk I/O error", Unable),
            (13, "SQLite error: database or disk is full", Unable),
            (14, "SQLITE_CANTOPEN", Away),
            (11, "database disk image is malformed", Failed),
            (26, "SQLITE_NOTADB", Failed),
        ] {
            assert_eq!(Outcome::of_sqlite_code(code), expected, "{code}");
            assert_eq!(Outcome::of_sqlite_text(text), Some(expected), "{text}");
        }
        for (code, expected) in [(3082, Away), (522, Failed), (19, Failed), (1, Failed)] {
            assert_eq!(Outcome::of_sqlite_code(code), expected, "{code}");
        }
        assert_eq!(Outcome::of_sqlite_text("UNIQUE constraint failed: keys.hash"), None);
    }
}
