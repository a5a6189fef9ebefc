//! The failure of a request.

use std::{error::Error, time::Duration};

use platen_component::{database::DatabaseError, log::with_causes};

use crate::api_error::ApiError;

/// The public error, and a cause for the access log only.
pub(super) struct Failure {
    pub(super) error: ApiError,
    pub(super) cause: Option<String>,
    /// For how long the farm is likely to refuse further jobs of the account.
    pub(super) busy_time: Option<Duration>,
}

impl<E: Into<ApiError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { error: error.into(), cause: None, busy_time: None }
    }
}

impl Failure {
    pub(super) fn new(error: impl Into<ApiError>, cause: String) -> Self {
        Self { error: error.into(), cause: Some(cause), busy_time: None }
    }

    pub(super) fn database(cause: &DatabaseError) -> Self {
        let error = match cause {
            DatabaseError::Unavailable(_) => ApiError::DatabaseUnavailable,
            DatabaseError::Failed(_) | DatabaseError::Data(_) => ApiError::Internal,
        };
        Self::new(error, cause.to_string())
    }

    pub(super) fn internal<E: Error + 'static>(cause: E) -> Self {
        Self::new(ApiError::Internal, with_causes(&cause))
    }
}
