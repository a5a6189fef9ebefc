//! Why a job has no file.

use std::io;

use platen_cdp::CdpError;
use platen_shared::refusal::Refusal;
use tokio::task::JoinError;

use crate::page::PageError;

/// Why a job has no file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    /// The caller receives the reason; a retry would not help.
    #[error("refused")]
    Refused(#[source] Refusal),
    #[error("the page's renderer crashed")]
    Crashed,
    /// No page could be opened, or its renderer crashed, before the job started.
    #[error("no page is available")]
    NoPage,
    /// The page does not complete a step in virtual time, or uses something that virtual time does not
    /// control.
    #[error("the page needs real time")]
    NeedsRealTime,
    /// The page has another document, or is about to have one.
    #[error("the page navigates")]
    Navigates,
    /// A frame of the page does not end although its main thread responds.
    #[error("a frame does not end")]
    FrameStalled,
    #[error("the page crashed its browser")]
    BrowserCrashed,
    /// The browser exited, or answered with an error.
    #[error("the browser failed")]
    Cdp(#[from] CdpError),
    #[error("the browser's network service exited")]
    NetworkServiceExited,
    /// A network error of Chromium that no host causes; its name.
    #[error("the browser has no network: {0}")]
    NoNetwork(String),
    #[error("no port for the page's proxy")]
    ProxyPort(#[source] io::Error),
    /// An empty page does not answer.
    #[error("the browser does not respond")]
    Unresponsive,
    /// The task that opens a page panicked or was aborted.
    #[error("the task that opens a page failed")]
    Opening(#[source] JoinError),
    #[error("the browser returned no file")]
    NoFile,
    #[error("the browser's PDF cannot be read")]
    InvalidPdf(#[from] lopdf::Error),
}

impl JobError {
    /// Whether the page has caused it and would do so in the next browser as well.
    pub(crate) fn is_of_page(&self) -> bool {
        matches!(self, Self::BrowserCrashed | Self::Cdp(CdpError::TooLarge { .. }))
    }

    /// The refusal of a job that is not tried again.
    pub(crate) fn into_refusal(self) -> Refusal {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Crashed | Self::BrowserCrashed | Self::Cdp(CdpError::TooLarge { .. }) => {
                Refusal::PageCrashed
            }
            Self::FrameStalled => Refusal::Deadline,
            _ => Refusal::Broken,
        }
    }
}

impl From<PageError> for JobError {
    fn from(error: PageError) -> Self {
        match error {
            PageError::ProxyPort(error) => Self::ProxyPort(error),
            // The job has not started, so none of these counts as an attempt.
            PageError::Cdp(_) | PageError::Crashed | PageError::Timeout => Self::NoPage,
        }
    }
}
