//! The classes of failures after an attempt was recorded: one public status each, and whether the
//! attempt counts.
//!
//! Invariant: the only place where a status of a failed attempt and its effect on the quota are
//! written. Edge and farm both ask here, so they cannot disagree. Not here: what is refused before
//! an attempt is recorded (the edge's `ApiError`).

/// Whose fault it is that an attempt gave no file, and how far it had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
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
    /// A fault of the service outside of the renderer: its database, a setting, a damaged template.
    Internal,
}

impl FailureClass {
    /// The HTTP status; 499 is for logs and the usage table, because its caller is gone.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
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
            Self::RendererUnavailable | Self::Internal => false,
            Self::Cancelled { page_ran } => page_ran,
        }
    }

    /// Its name in log lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PageFailed => "page_failed",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::RendererFailed => "renderer_failed",
            Self::RendererUnavailable => "renderer_unavailable",
            Self::Cancelled { .. } => "cancelled",
            Self::Internal => "internal",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_one_status_and_counts_or_not() {
        for (class, status, counted, name) in [
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
