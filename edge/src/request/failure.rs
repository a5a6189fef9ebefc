//! Why a request has failed.

use std::error::Error;

use platen_spin::{database::DatabaseError, platform::with_causes};

use crate::api_error::ApiError;

/// Why a request has failed: the public error, and a cause for the access log only.
pub(super) struct Failure {
    pub(super) error: ApiError,
    pub(super) cause: Option<String>,
    pub(super) times: FarmTimes,
}

/// How long a job took at the farm, in milliseconds, where the farm says so.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FarmTimes {
    /// The time until it had a slot.
    pub(super) queued_ms: Option<u64>,
    /// The time in its slot.
    pub(super) render_ms: Option<u64>,
}

impl<E: Into<ApiError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), cause: None, times: FarmTimes::default() }
    }
}

impl Failure {
    pub(super) fn new(error: impl Into<ApiError>, cause: String) -> Self {
        Self { cause: Some(cause), ..Self::from(error) }
    }

    pub(super) fn database(cause: &DatabaseError) -> Self {
        let error = match cause {
            DatabaseError::Unavailable(..) => ApiError::DatabaseUnavailable,
            DatabaseError::Failed(_) | DatabaseError::Data(_) => ApiError::Internal,
        };
        Self::new(error, cause.to_string())
    }

    pub(super) fn internal<E: Error + 'static>(cause: E) -> Self {
        Self::new(ApiError::Internal, with_causes(&cause))
    }
}
