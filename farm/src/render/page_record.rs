//! What the page of a job has done: its errors, its failed requests, and its address.
//!
//! Errors are exceptions and rejected promises that nothing in a document or frame has handled. Those of a worker are events of
//! its page, which Chromium does not report as errors. A request fails if it has no response, or a status of 400 or more, unless
//! the page or the request for the render has stopped it. A redirect is a part of its request, and a preflight one of the request
//! that follows it.
//!
//! Invariant: a text has at most [`MAX_TEXT_CHARS`] characters and no control characters. It is for the caller alone, so it is
//! neither logged nor shown by `Debug`.

use std::collections::HashMap;

use chromiumoxide_cdp::cdp::js_protocol::runtime::EventExceptionRevoked;
use platen_cdp::Event;
use platen_shared::{
    job::PageProblem,
    page_report::{self, PageReport},
    refusal::{PageText, PageTexts, Refusal},
};
use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;
use url::Url;

use crate::egress::JobEgress;

/// Characters of a text.
const MAX_TEXT_CHARS: usize = 200;
/// Characters of the method in a text.
const MAX_METHOD_CHARS: usize = 16;
/// Texts that are kept of errors, and of failed requests.
const MAX_PROBLEMS: usize = 64;
/// Errors and failed requests that the message of a refusal has.
const MAX_NAMED: usize = 3;
/// Bytes that are kept of an address.
const MAX_ADDRESS_BYTES: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct PageRecord {
    errors: u32,
    failed_requests: u32,
    /// The first of both kinds.
    first: Vec<Problem>,
    /// Requests in progress that may fail.
    open: HashMap<String, SentLine>,
    /// Address of the main document.
    url: Option<String>,
    /// The host that no text may show.
    pub(super) hidden_host: Option<String>,
}

#[derive(Debug)]
struct Problem {
    kind: Kind,
    text: PageText,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An error, with Chromium's number of it.
    Error(i64),
    FailedRequest,
}

impl Problem {
    fn is_error(&self) -> bool {
        matches!(self.kind, Kind::Error(_))
    }
}

#[derive(Debug)]
struct SentLine {
    method: String,
    url: String,
}

impl PageRecord {
    /// Something was thrown, or a promise rejected, that nothing has handled.
    pub(super) fn thrown(&mut self, event: &Event) {
        self.errors += 1;
        let kept = self.first.iter().filter(|problem| problem.is_error()).count();
        if kept < MAX_PROBLEMS {
            let thrown = event.read::<Thrown>().map(|thrown| thrown.exception_details).unwrap_or_default();
            let kind = Kind::Error(thrown.exception_id);
            self.first
                .push(Problem { kind, text: cut(&self.without_host(thrown.text()), MAX_TEXT_CHARS).into() });
        }
    }

    /// A promise of [`Self::thrown`] was handled later.
    pub(super) fn revoked(&mut self, event: &EventExceptionRevoked) {
        self.errors = self.errors.saturating_sub(1);
        self.first.retain(|problem| problem.kind != Kind::Error(event.exception_id));
    }

    /// A request was sent, or is redirected.
    pub(super) fn sent(&mut self, id: &str, method: &str, url: &str, egress: &JobEgress) {
        let cut = url.floor_char_boundary(MAX_ADDRESS_BYTES);
        let parsed = Url::parse(&url[..cut]).ok();
        if parsed.is_none_or(|url| url.path() != "/favicon.ico" && !egress.blocks(&url)) {
            let line = SentLine { method: method.to_owned(), url: url[..cut].to_owned() };
            self.open.insert(id.to_owned(), line);
        } else {
            self.open.remove(id);
        }
    }

    /// A request has a response with this status.
    pub(super) fn responded(&mut self, id: &str, status: i64) {
        if status >= 400
            && let Some(line) = self.open.remove(id)
        {
            self.failed(&line, &status.to_string());
        }
    }

    /// A request has ended; `error` is Chromium's if it has no response, or not all of it, and nothing has stopped it.
    pub(super) fn ended(&mut self, id: &str, error: Option<RequestError<'_>>, egress: &JobEgress) {
        if let Some(line) = self.open.remove(id)
            && let Some(error) = error
        {
            self.failed(&line, error.reason(&line.url, egress));
        }
    }

    fn failed(&mut self, line: &SentLine, reason: &str) {
        self.failed_requests += 1;
        let kept = self.first.iter().filter(|problem| !problem.is_error()).count();
        if kept < MAX_PROBLEMS {
            self.first.push(Problem {
                kind: Kind::FailedRequest,
                text: line.text(reason, |url| self.without_host(url)),
            });
        }
    }

    /// A text without the origin and the host that it may not show.
    fn without_host(&self, text: String) -> String {
        let Some(host) = &self.hidden_host else { return text };
        text.replace(&format!("https://{host}"), "").replace(host, "")
    }

    /// The main frame shows a document with this address.
    pub(super) fn shows(&mut self, url: &str) {
        self.url = Some(url.to_owned());
    }

    /// Adds what the page has done to the report of its file.
    pub(super) fn add_to(&self, report: &mut PageReport) {
        report.errors = self.errors.min(page_report::MAX_COUNT);
        report.failed_requests = self.failed_requests.min(page_report::MAX_COUNT);
        let mut url = self.url.as_ref().and_then(|url| Url::parse(url).ok());
        url.iter_mut().for_each(without_credentials);
        report.url = url.map(String::from).filter(|url| page_report::is_header_value(url));
    }

    /// The texts of the first errors and failed requests, in their order.
    pub(super) fn problems(&self) -> Vec<PageText> {
        self.first.iter().map(|problem| problem.text.clone()).collect()
    }

    /// # Errors
    /// [`Refusal::FailOn`] if the page has done something of `fail_on`.
    pub(super) fn check(&self, fail_on: &[PageProblem]) -> Result<(), Refusal> {
        let of =
            |kind, count: u32| if fail_on.contains(&kind) { count.min(page_report::MAX_COUNT) } else { 0 };
        let errors = of(PageProblem::PageErrors, self.errors);
        let failed_requests = of(PageProblem::FailedRequests, self.failed_requests);
        if errors == 0 && failed_requests == 0 {
            return Ok(());
        }
        let is_of = |problem: &&Problem| if problem.is_error() { errors > 0 } else { failed_requests > 0 };
        let first = self.first.iter().filter(is_of).take(MAX_NAMED).map(|problem| problem.text.clone());
        Err(Refusal::FailOn { errors, failed_requests, first: PageTexts(first.collect()) })
    }

    /// `refusal` with the page's first error, if it names that.
    pub(super) fn explain(&self, refusal: Refusal) -> Refusal {
        let error = self.first.iter().find(|problem| problem.is_error());
        refusal.with_first_error(error.map(|problem| problem.text.clone()))
    }
}

impl SentLine {
    /// Method, address and reason, of which the address is cut.
    fn text(&self, reason: &str, without_host: impl Fn(String) -> String) -> PageText {
        let method: String = clean(&self.method).take(MAX_METHOD_CHARS).collect();
        let mut url = self.url.clone();
        if let Ok(mut parsed) = Url::parse(&url) {
            without_credentials(&mut parsed);
            url = parsed.into();
        }
        url = without_host(url);
        let room = MAX_TEXT_CHARS.saturating_sub(method.chars().count() + reason.chars().count() + 2);
        format!("{method} {} {reason}", cut(&url, room)).into()
    }
}

/// Chromium's error of a request.
pub(super) struct RequestError<'e> {
    /// Its name, such as `net::ERR_FAILED`.
    pub(super) name: &'e str,
    /// The response does not allow the origin of the page to read it.
    pub(super) is_cors: bool,
}

impl<'e> RequestError<'e> {
    fn reason(&self, url: &str, egress: &JobEgress) -> &'e str {
        let refusal = Url::parse(url).ok().and_then(|url| egress.refusal(&url));
        match refusal {
            _ if self.is_cors => "blocked by CORS",
            Some(Refusal::AddressNotPublic { .. } | Refusal::PortNotAllowed { .. }) => "not public",
            Some(Refusal::NameNotFound { .. }) => "name not found",
            Some(Refusal::NameServerFailed) => "name server failed",
            Some(Refusal::ConnectionRefused { .. }) => "connection refused",
            Some(_) => "connection failed",
            None if self.name == "net::ERR_UNSAFE_PORT" => "not public",
            None => self.name.strip_prefix("net::").unwrap_or(self.name),
        }
    }
}

fn without_credentials(url: &mut Url) {
    // A URL that cannot have them has none.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
}

fn clean(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|it| !it.is_control())
}

/// The first line of a text, of at most `max` characters.
fn cut(text: &str, max: usize) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if clean(line).nth(max).is_none() {
        return clean(line).collect();
    }
    clean(line).take(max.saturating_sub(1)).chain(['…']).collect()
}

/// `Runtime.exceptionThrown`, of which only these fields are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thrown {
    exception_details: Details,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    exception_id: i64,
    #[serde(default)]
    text: Lossy,
    exception: Option<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    r#type: String,
    /// Set for `null`, which has no value here.
    subtype: Option<String>,
    description: Option<Lossy>,
    value: Option<Box<RawValue>>,
}

impl Details {
    /// The message of an `Error` with its name, or the value that is no `Error`.
    fn text(self) -> String {
        let Some(exception) = self.exception else { return self.text.0 };
        let value = exception.value.map(|value| {
            serde_json::from_str::<Lossy>(value.get()).map_or_else(|_| value.get().to_owned(), |text| text.0)
        });
        let description = exception.description.map(|text| text.0);
        description.or(value).or(exception.subtype).unwrap_or(exception.r#type)
    }
}

/// A text that may have lone surrogates, which are replaced.
#[derive(Default)]
struct Lossy(String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl de::Visitor<'_> for Bytes {
            type Value = Lossy;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E: de::Error>(self, text: &[u8]) -> Result<Lossy, E> {
                Ok(Lossy(String::from_utf8_lossy(text).into_owned()))
            }
        }
        // Unlike a string, bytes may have lone surrogates.
        deserializer.deserialize_bytes(Bytes)
    }
}
