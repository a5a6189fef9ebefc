//! The failure of a request.

use std::{error::Error, time::Duration};

use platen_spin::{database::DatabaseError, log::with_causes};

use crate::api_error::ApiError;

/// The public error, and a cause for the access log only.
pub(super) struct Failure {
    pub(super) error: ApiError,
    pub(super) cause: Option<String>,
    /// For how long the farm is likely to refuse further jobs of the account.
    pub(super) busy_time: Option<Duration>,
    pub(super) times: FarmTimes,
}

/// How long a job took at the farm, in milliseconds, where the farm says so.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FarmTimes {
    /// Until it had a slot.
    pub(super) queued_ms: Option<u64>,
    /// In its slot.
    pub(super) render_ms: Option<u64>,
}

impl<E: Into<ApiError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), cause: None, busy_time: None, times: FarmTimes::default() }
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
