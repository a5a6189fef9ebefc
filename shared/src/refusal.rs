//! The reasons for which a farm does not render a job, as JSON: `{"code": "…", …}`.
//!
//! Invariant: each has a [`Reason`] of the same name, which says what has happened, and decides the public status and whether
//! the attempt counts. The edge writes every client-visible message itself, and no message contains an address. What a page
//! has written is a [`PageText`].

use std::{borrow::Cow, fmt, ops::Deref};

use serde::{Deserialize, Serialize};
use strum::VariantNames;

use crate::{
    job::{Output, PdfStandard, RenderJob, Source},
    reason::Reason,
};

macro_rules! refusals {
    ($($refusal:ident $({ $($name:ident: $type:ty),* })? ($($message:tt)*) $(in $field:literal)?;)*) => {
        /// The reason why a job was not rendered. `Display` is the public message.
        ///
        /// `host` is that of the job's URL, `rule` that of a standard, `mebibytes` the limit, `line` that of a template from 1, and `page_ran`
        /// whether a page had begun to run. The `field` of a template that failed is that of its header or footer.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, VariantNames, thiserror::Error)]
        #[serde(tag = "code", rename_all = "snake_case")]
        #[strum(serialize_all = "snake_case")]
        #[expect(missing_docs, reason = "see the sentences of `Reason`")]
        pub enum Refusal {
            $(#[error($($message)*)] $refusal $({ $($name: $type),* })?,)*
        }

        impl Refusal {
            /// The reason.
            #[must_use]
            pub fn reason(&self) -> Reason {
                match self { $(Self::$refusal { .. } => Reason::$refusal,)* }
            }

            /// The field without which there is no such refusal.
            fn only_field(&self) -> Option<&'static str> {
                match self {
                    $($(Self::$refusal { .. } => Some($field),)?)*
                    _ => None,
                }
            }
        }
    };
}

// Name, public message, and the field of the request where it is always the same.
refusals! {
    Unauthorized ("The renderer is not available");
    InvalidJob ("The renderer is not available");
    QueueFull ("The renderer is busy, try again shortly");
    NoSlotInTime ("The renderer is busy, try again shortly");
    Draining ("The renderer is not available");
    NoBrowser ("The renderer is not available");
    TemplateFailed { field: Option<String>, line: u32, message: PageText } ("{} line {line}: {message}", text_of_template(field.as_deref()));
    TemplateLimitExceeded { limit: TemplateLimit } ("The template takes more {limit} to be filled than it may");
    EmptyTemplate ("The filled template is empty");
    NameServerFailed ("The name server did not answer, try again shortly");
    NameNotFound { host: String } ("The name \"{host}\" could not be resolved");
    AddressNotPublic { host: String } ("The address of \"{host}\" is not public");
    PortNotAllowed { host: String } ("The port of \"{host}\" is not allowed");
    ConnectionRefused { host: String } ("\"{host}\" refused the connection");
    ConnectionFailed { host: String } ("The connection to \"{host}\" failed");
    Tls { host: String } ("The TLS connection to \"{host}\" failed");
    TooManyRedirects { host: String } ("\"{host}\" redirected too many times");
    NotAPage { host: String } ("\"{host}\" did not answer with a page");
    PageStatus { host: String, status: u16 } ("\"{host}\" answered with status {status}");
    HostBlocked ("The page went to a host of \"blockHosts\"") in "blockHosts";
    FailOn { errors: u32, failed_requests: u32, first: PageTexts } ("The page had {}: {first}", counted(*errors, *failed_requests)) in "failOn";
    InvalidSelector { field: String } ("\"{field}\" must be a valid CSS selector");
    NoSuchElement ("No element of the page matches \"selector\"") in "selector";
    EmptyElement ("The element that matches \"selector\" has no area") in "selector";
    ElementNotVisible { first_error: FirstError } ("No visible element has matched \"waitForSelector\" in time{first_error}") in "waitForSelector";
    FunctionFailed { message: PageText, first_error: FirstError } ("\"waitForFunction\" failed: {message}{first_error}") in "waitForFunction";
    FunctionNotTrue { first_error: FirstError } ("\"waitForFunction\" was not true in time{first_error}") in "waitForFunction";
    PageRangeExceeded ("\"pageRanges\" has pages after the last one") in "pageRanges";
    NoSpaceBetweenMargins ("\"margin\" leaves no space for the page") in "margin";
    VerticalScale ("A page of vertical lines that begin at the right cannot be printed with \"scale\"") in "scale";
    HeaderFailed ("\"headerHtml\" or \"footerHtml\" could not be printed; they must not refer to style sheets or fonts");
    FirstPageChanged ("The page changed between its prints with \"headerFirstHtml\" or \"footerFirstHtml\" and without them");
    InvalidPassword ("\"protection\" has a password with characters that PDF does not allow") in "protection";
    NotOnePage ("The content does not fit on one page of at most {} mm", crate::limits::PDF_SIDE_MM_RANGE.end()) in "singlePage";
    StandardNotMet { rule: PageText } ("The page cannot be a file of this standard: {rule}");
    PageTooLarge ("The page is too large: its image would be over the limit of its format or of {} pixels", crate::limits::MAX_IMAGE_PIXELS);
    PageCrashed ("The page crashed while it was rendered");
    PageMemoryExceeded { mebibytes: u32 } ("The page used more memory than a page may use: {mebibytes} MiB");
    PageClosed ("The page closed itself before it was rendered");
    LoadStopped ("The page stopped loading before it was complete");
    Deadline ("The render did not finish in time");
    Broken ("The renderer failed");
    Cancelled { page_ran: bool } ("The client disconnected");
}

/// A text that may be that of a page, or of a request. It is for the caller: `Display` and JSON have it, `Debug`, which log
/// lines have, does not.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageText(String);

impl<T: Into<String>> From<T> for PageText {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl Deref for PageText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PageText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PageText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Texts as [`PageText`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PageTexts(pub Vec<PageText>);

impl fmt::Display for PageTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(|text| &**text).collect::<Vec<_>>().join("; "))
    }
}

/// The first error of the page, if it had one. `Display` is the end of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FirstError(pub Option<PageText>);

impl fmt::Display for FirstError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |text| write!(f, "; the first error of the page: {text}"))
    }
}

/// What filling a template has a maximum of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum TemplateLimit {
    /// Steps, and memory for what they make.
    #[error("steps or memory")]
    Work,
    /// Calls of macros and loops within each other.
    #[error("levels of recursion")]
    Recursion,
    /// Bytes of the filled text: 5 MiB, of a header or a footer 64 KiB.
    #[error("bytes of text")]
    Text,
}

/// The text of a template with a line: its markup, if there is no field.
pub(crate) fn text_of_template(field: Option<&str>) -> Cow<'_, str> {
    field.map_or(Cow::Borrowed("Template"), |field| format!("\"{field}\" of the template,").into())
}

/// How many errors and failed requests there were. One of both is not 0.
fn counted(errors: u32, failed_requests: u32) -> String {
    let one = |count: u32, name: &str| match count {
        0 => None,
        1 => Some(format!("1 {name}")),
        count => Some(format!("{count} {name}s")),
    };
    let both = [one(errors, "error"), one(failed_requests, "failed request")];
    both.into_iter().flatten().collect::<Vec<_>>().join(" and ")
}

impl Refusal {
    /// This one with the first error of the page, if its message names that.
    #[must_use]
    pub fn with_first_error(mut self, error: Option<PageText>) -> Self {
        if let Self::ElementNotVisible { first_error }
        | Self::FunctionFailed { first_error, .. }
        | Self::FunctionNotTrue { first_error } = &mut self
        {
            *first_error = FirstError(error);
        }
        self
    }

    /// Whether the attempt counts against the quota; if not, it is refunded.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        match self {
            Self::Cancelled { page_ran } => *page_ran,
            refusal => refusal.reason().is_counted(),
        }
    }

    /// The field of the request that is the cause, if it has one: of a host that a page has chosen there is none.
    #[must_use]
    pub fn field(&self, job: &RenderJob) -> Option<&str> {
        match self {
            Self::InvalidSelector { field } => Some(field),
            Self::TemplateFailed { field, .. } => field.as_deref(),
            Self::NameNotFound { host }
            | Self::AddressNotPublic { host }
            | Self::PortNotAllowed { host }
            | Self::ConnectionRefused { host }
            | Self::ConnectionFailed { host }
            | Self::Tls { host }
            | Self::TooManyRedirects { host }
            | Self::NotAPage { host } => {
                let (field, url) = match &job.source {
                    Source::Url(url) => ("url", url),
                    Source::Html(_) | Source::Jinja(_) => ("baseUrl", job.options.base_url.as_ref()?),
                };
                (url.as_url().host_str() == Some(host)).then_some(field)
            }
            Self::StandardNotMet { .. } => match &job.options.output {
                // A file with an invoice has a standard also where the request names none.
                Output::Pdf(pdf) if pdf.document.standard == PdfStandard::default() => Some("invoiceXml"),
                _ => Some("pdfStandard"),
            },
            refusal => refusal.only_field(),
        }
    }

    /// The `code` in JSON, which is also the name in metrics and log lines.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.reason().code()
    }

    /// The refusal of a job whose page had not begun to run: a failure that would otherwise count against
    /// the page becomes one of the renderer.
    #[must_use]
    pub fn before_page_ran(self) -> Self {
        match self {
            Self::Deadline => Self::NoSlotInTime,
            Self::Broken | Self::PageCrashed => Self::NoBrowser,
            refusal => refusal,
        }
    }

    /// Seconds for the `retry-after` header; `None` where a retry does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<u32> {
        (self.reason().status() == 503).then_some(RETRY_AFTER_SECONDS)
    }
}

/// The `retry-after` of each 503, in seconds: about the time in which a browser or a farm starts, and half of that for which a
/// job waits for a browser.
pub const RETRY_AFTER_SECONDS: u32 = 5;

#[cfg(test)]
mod tests;
