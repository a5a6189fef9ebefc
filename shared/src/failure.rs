//! The classes of failed attempts: each has one public status, and either counts or is refunded.
//!
//! Invariant: the status of a failed attempt and its effect on the quota are defined only here, so edge
//! and farm agree. Requests that are rejected before an attempt is recorded are the edge's `ApiError`.

use strum::IntoStaticStr;

/// The cause of a failed attempt, and how far the attempt had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum FailureClass {
    /// The request is invalid in a way that only the renderer can detect, before the page runs.
    InvalidRequest,
    /// The caller's page cannot be rendered.
    PageFailed,
    /// The deadline passed while the page ran.
    DeadlineExceeded,
    /// The renderer failed while the page ran.
    RendererFailed,
    /// The renderer failed before the page ran: no slot, no browser, no name server, no farm.
    RendererUnavailable,
    /// The caller disconnected.
    Cancelled {
        /// A page had begun to run.
        page_ran: bool,
    },
    /// The service failed outside of the renderer: its database, a setting, a damaged template.
    Internal,
}

impl FailureClass {
    /// The HTTP status. 499 appears in logs and in the table of attempts only, because the caller has
    /// disconnected.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::PageFailed => 422,
            Self::DeadlineExceeded => 504,
            Self::RendererFailed => 502,
            Self::RendererUnavailable => 503,
            Self::Cancelled { .. } => 499,
            Self::Internal => 500,
        }
    }

    /// Whether the attempt counts against the quota; if not, it is refunded.
    #[must_use]
    pub fn is_counted(self) -> bool {
        match self {
            Self::PageFailed | Self::DeadlineExceeded | Self::RendererFailed => true,
            Self::InvalidRequest | Self::RendererUnavailable | Self::Internal => false,
            Self::Cancelled { page_ran } => page_ran,
        }
    }

    /// The name in log lines, in snake case.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_one_status_and_either_counts_or_does_not() {
        for (class, status, counted, name) in [
            (FailureClass::InvalidRequest, 400, false, "invalid_request"),
            (FailureClass::PageFailed, 422, true, "page_failed"),
            (FailureClass::DeadlineExceeded, 504, true, "deadline_exceeded"),
            (FailureClass::RendererFailed, 502, true, "renderer_failed"),
            (FailureClass::RendererUnavailable, 503, false, "renderer_unavailable"),
            (FailureClass::Cancelled { page_ran: true }, 499, true, "cancelled"),
            (FailureClass::Cancelled { page_ran: false }, 499, false, "cancelled"),
            (FailureClass::Internal, 500, false, "internal"),
        ] {
            assert_eq!((class.status(), class.is_counted(), class.name()), (status, counted, name));
        }
    }
}
