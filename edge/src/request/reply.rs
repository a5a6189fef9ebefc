//! Responses: headers of the edge only, never copied from the farm, and a body that is relayed unread if it is
//! large.
//!
//! Invariant: every response has `x-request-id`, and `cache-control: no-store` unless it is a file of a link. A file keeps its declared
//! length, so that a client detects a truncated transfer.

use platen_shared::{
    format::OutputFormat,
    link::LinkFile,
    openapi,
    page_report::{PAGE_STATUS, PageReport},
    refusal::Refusal,
    wire,
};
use platen_spin::body::{self, Headers, Transfer, fields};
use spin_sdk::wasip3::http::types::Response;

use super::{context::RequestContext, farm::FileBody};
use crate::api_error::ApiError;

/// A response.
pub(super) struct Reply {
    pub(super) response: Response,
    /// `None` if the platform has the body.
    pub(super) transfer: Option<Transfer>,
}

/// A rendered file.
pub(super) struct File {
    pub(super) format: OutputFormat,
    pub(super) disposition: String,
    pub(super) body: FileBody,
    pub(super) page: PageReport,
}

/// What a good address of a link gets.
pub(super) struct Answer {
    /// Seconds for which it may be cached.
    pub(super) max_age: u32,
    pub(super) content: Content,
}

pub(super) enum Content {
    /// It has another spelling.
    Redirect { location: String },
    /// The body is `None` where only the head of the response is asked for.
    File { file: LinkFile, body: Option<FileBody> },
}

pub(super) fn file(file: File, context: &RequestContext) -> Reply {
    let mut headers = headers(context);
    push(&mut headers, "content-type", file.format.content_type());
    push(&mut headers, "content-disposition", file.disposition);
    // Browsers must not guess another type, because the content comes from untrusted markup.
    push(&mut headers, "x-content-type-options", "nosniff");
    for (name, value) in file.page.headers() {
        push(&mut headers, name, value);
    }
    relayed(headers, file.body)
}

/// The response to an address of a link.
pub(super) fn link(Answer { max_age, content }: Answer, context: &RequestContext) -> Reply {
    let mut headers = Headers::new();
    push(&mut headers, wire::REQUEST_ID, context.trace.request_id.as_str());
    push(&mut headers, "cache-control", format!("public, max-age={max_age}"));
    push(&mut headers, "access-control-allow-origin", "*");
    push(&mut headers, "x-content-type-options", "nosniff");
    match content {
        Content::Redirect { location } => {
            push(&mut headers, "location", location);
            buffered(308, headers, Vec::new())
        }
        Content::File { file, body } => {
            push(&mut headers, "content-type", file.format.content_type());
            push(&mut headers, "content-disposition", format!("inline; filename=\"{}\"", file.name()));
            if let Some(body) = body {
                return relayed(headers, body);
            }
            // The length is known when the file is.
            let (response, transfer) = body::streamed(200, &headers, async |_| true);
            Reply { response, transfer: Some(transfer) }
        }
    }
}

fn relayed(mut headers: Headers, body: FileBody) -> Reply {
    match body {
        FileBody::Whole(bytes) => buffered(200, headers, bytes),
        FileBody::Stream { length, contents, trailers } => {
            if let Some(length) = length {
                push(&mut headers, "content-length", length.to_string());
            }
            let (response, _sent) = Response::new(fields(&headers), Some(contents), trailers);
            Reply { response, transfer: None }
        }
    }
}

/// The `OpenAPI` document, which scripts of all origins may read.
pub(super) fn document(context: &RequestContext) -> Reply {
    let mut headers = headers(context);
    push(&mut headers, "content-type", "application/json");
    push(&mut headers, "access-control-allow-origin", "*");
    buffered(200, headers, openapi::served().into_bytes())
}

pub(super) fn error(error: &ApiError, context: &RequestContext) -> Reply {
    let mut headers = headers(context);
    push(&mut headers, "content-type", "application/json");
    if let Some(seconds) = error.retry_after() {
        push(&mut headers, "retry-after", seconds.to_string());
    }
    if context.is_of_link {
        return buffered(error.reason().status(), headers, error.body_of_link());
    }
    match error {
        ApiError::MethodNotAllowed { allowed } => push(&mut headers, "allow", *allowed),
        ApiError::InvalidKey => push(&mut headers, "www-authenticate", "Bearer"),
        ApiError::UnsupportedContentEncoding => push(&mut headers, "accept-encoding", "identity"),
        ApiError::Refused { refusal: Refusal::PageStatus { status, .. }, .. } => {
            push(&mut headers, PAGE_STATUS, status.to_string());
        }
        _ => {}
    }
    buffered(error.reason().status(), headers, error.body())
}

fn buffered(status: u16, headers: Headers, body: Vec<u8>) -> Reply {
    let (response, transfer) = body::buffered(status, headers, body);
    Reply { response, transfer: Some(transfer) }
}

fn headers(context: &RequestContext) -> Headers {
    let mut headers = Headers::new();
    push(&mut headers, wire::REQUEST_ID, context.trace.request_id.as_str());
    push(&mut headers, "cache-control", "no-store");
    if let Some(usage) = context.usage.as_ref().filter(|_| !context.is_of_link) {
        for (name, value) in usage.headers(&context.month) {
            push(&mut headers, name, value);
        }
    }
    headers
}

fn push(headers: &mut Headers, name: &str, value: impl Into<Vec<u8>>) {
    headers.push((name.to_owned(), value.into()));
}
