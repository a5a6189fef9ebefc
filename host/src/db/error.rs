//! Why the database did not do what was requested.

use std::sync::Arc;

use platen_statements::Outcome;

use super::result::MAX_RESULT_BYTES;

type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Invariant: `Display` has SQLite's message about the statement, and no path or address except that of
/// [`DbError::Missing`].
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum DbError {
    /// The file does not exist, and this purpose does not create it.
    #[error("there is no database at {0}")]
    Missing(String),
    /// The file cannot be opened, such as for lack of file descriptors or memory. Nothing was done.
    #[error("unable to open database file")]
    Unopened(#[source] Cause),
    /// The server cannot be reached, or its response is not known.
    #[error("the database cannot be reached")]
    Unreachable(#[source] Cause),
    /// The server does not accept connections.
    #[error("the database cannot be reached")]
    Absent(#[source] Cause),
    /// The statement was not run, because others took too long.
    #[error("the database is busy")]
    Busy,
    #[error("the database server refused the token")]
    Unauthorized,
    #[error("{message}")]
    Statement {
        /// The message of SQLite or of the server.
        message: String,
        /// The disk or the database is full.
        full: bool,
        /// Nothing was done because of other clients.
        is_busy: bool,
    },
    #[error("the result is over {MAX_RESULT_BYTES} bytes")]
    TooLarge,
    #[error("the thread that ran the statement panicked")]
    Panicked,
}

impl DbError {
    /// What the error says about the statement.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Unopened(_) | Self::Absent(_) | Self::Busy | Self::Statement { is_busy: true, .. } => {
                Outcome::NotRun
            }
            Self::Unreachable(_) => Outcome::Unknown,
            Self::Statement { full: true, .. } => Outcome::NoDisk,
            Self::Missing(_)
            | Self::Unauthorized
            | Self::Statement { .. }
            | Self::TooLarge
            | Self::Panicked => Outcome::Failed,
        }
    }

    pub(super) fn unopened(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unopened(Arc::new(error))
    }

    pub(super) fn unreachable(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unreachable(Arc::new(error))
    }
}
