//! Why the database did not do what was requested.

use super::result::MAX_RESULT_BYTES;

/// Invariant: `Display` has SQLite's message about the statement, and no path or address except that of
/// [`DbError::Missing`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum DbError {
    /// The file does not exist, and this purpose does not create it.
    #[error("there is no database at {0}")]
    Missing(String),
    /// The file cannot be opened, or the server cannot be reached.
    #[error("the database cannot be reached")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server does not accept connections.
    #[error("the database cannot be reached")]
    Absent(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the database server refused the token")]
    Unauthorized,
    #[error("{message}")]
    Statement {
        /// The message of SQLite or of the server.
        message: String,
        /// The disk or the database is full.
        full: bool,
    },
    #[error("the result is over {MAX_RESULT_BYTES} bytes")]
    TooLarge,
    #[error("the thread that ran the statement panicked")]
    Panicked,
}

impl DbError {
    pub(super) fn unreachable(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unreachable(Box::new(error))
    }
}
