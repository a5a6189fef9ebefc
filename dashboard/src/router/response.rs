//! Responses and their common headers.
//!
//! Invariant: every response has a content security policy and `nosniff`, and no other site gets a referrer. Only static files,
//! whose names contain a hash, may be cached.

use std::{borrow::Cow, pin::Pin};

use askama::Template;
use platen_spin::body::{self, BodyWriter, Transfer};
use spin_sdk::wasip3::http::types::Response;

use super::request_head::RequestHead;

/// Own files only, nothing inline. `blob:` images show rendered files.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
    connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// The preview's frame shows untrusted markup, whose scripts do not run: one that does not end would stop the
/// editor. `sandbox` gives it an opaque origin, also when its address is opened directly. Markup of one member is shown to others,
/// whose browsers reach hosts that the renderer must not reach, so nothing is loaded from any.
const FRAME_POLICY: &str = "sandbox allow-scripts; default-src 'none'; \
    script-src 'self'; style-src data: blob: 'unsafe-inline'; \
    img-src data: blob:; font-src data: blob:; media-src data: blob:; \
    form-action 'none'; base-uri 'none'; frame-ancestors 'self'";

/// Writes a body; whether it is complete.
type WriteBody = Box<dyn FnOnce(BodyWriter) -> Pin<Box<dyn Future<Output = bool>>>>;

enum Body {
    Whole(Vec<u8>),
    Written(WriteBody),
}

/// A response that is not sent yet.
pub(super) struct PageResponse {
    status: u16,
    content_type: &'static str,
    cache: &'static str,
    policy: Cow<'static, str>,
    extra_headers: Vec<(&'static str, String)>,
    body: Body,
    /// Why the request was not carried out, for the log only.
    cause: Option<String>,
}

impl PageResponse {
    fn of(status: u16, content_type: &'static str, body: Vec<u8>) -> Self {
        Self {
            status,
            content_type,
            cache: "no-store",
            policy: Cow::Borrowed(POLICY),
            extra_headers: Vec::new(),
            body: Body::Whole(body),
            cause: None,
        }
    }

    pub(super) fn page(page: &impl Template) -> Result<Self, askama::Error> {
        Ok(Self::of(200, "text/html; charset=utf-8", page.render()?.into_bytes()))
    }

    pub(super) fn text(status: u16, text: &str) -> Self {
        Self::of(status, "text/plain; charset=utf-8", text.as_bytes().to_vec())
    }

    pub(super) fn json(value: &serde_json::Value) -> Self {
        Self::of(200, "application/json", value.to_string().into_bytes())
    }

    /// A file that the browser saves under this name.
    pub(super) fn download(content_type: &'static str, name: &str, body: Vec<u8>) -> Self {
        Self::of(200, content_type, body)
            .with_header("content-disposition", format!("attachment; filename=\"{name}\""))
    }

    /// A file to download, which `write` writes while it is sent.
    pub(super) fn written_download<W: Future<Output = bool> + 'static>(
        content_type: &'static str,
        name: &str,
        write: impl FnOnce(BodyWriter) -> W + 'static,
    ) -> Self {
        let mut response = Self::download(content_type, name, Vec::new());
        response.body = Body::Written(Box::new(|body| Box::pin(write(body))));
        response
    }

    /// A file that browsers may cache without limit.
    pub(super) fn immutable(content_type: &'static str, body: Vec<u8>) -> Self {
        let mut response = Self::of(200, content_type, body);
        response.cache = "public, max-age=31536000, immutable";
        response
    }

    /// Replaces the policy with that of the preview's frame, of one that loads pictures of other hosts or of one that does not.
    pub(super) fn with_frame_policy(mut self, loads_pictures: bool) -> Self {
        self.policy = if loads_pictures {
            Cow::Owned(FRAME_POLICY.replace("-src data:", "-src https: data:"))
        } else {
            Cow::Borrowed(FRAME_POLICY)
        };
        // Links of the markup, of which the policy says nothing.
        self.with_header("x-dns-prefetch-control", "off".to_owned())
    }

    /// Allows the inline styles that have this nonce: those of the code editor, which makes them in the page.
    pub(super) fn with_style_nonce(mut self, nonce: &str) -> Self {
        self.policy =
            Cow::Owned(POLICY.replace("style-src 'self'", &format!("style-src 'self' 'nonce-{nonce}'")));
        self
    }

    /// Allows frames that show rendered files (`blob:`), which browsers show with a plug-in of theirs if they are PDFs.
    pub(super) fn with_result_frame(mut self) -> Self {
        let policy = self.policy.replace("frame-src 'self'", "frame-src 'self' blob:; object-src blob:");
        self.policy = Cow::Owned(policy);
        self
    }

    /// `303 See Other`: the browser continues with a GET request.
    pub(super) fn redirect(location: &str) -> Self {
        Self::of(303, "text/plain; charset=utf-8", Vec::new()).with_header("location", location.to_owned())
    }

    pub(super) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    pub(super) fn with_header(mut self, name: &'static str, value: String) -> Self {
        self.extra_headers.push((name, value));
        self
    }

    pub(super) fn with_cause(mut self, cause: Option<String>) -> Self {
        self.cause = cause;
        self
    }

    pub(super) fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }

    pub(super) fn into_http(self, head: &RequestHead) -> (Response, Transfer) {
        let mut headers: body::Headers = Vec::new();
        let mut set = |name: &str, value: &str| headers.push((name.to_owned(), value.as_bytes().to_vec()));
        set("content-type", self.content_type);
        set("cache-control", self.cache);
        set("content-security-policy", &self.policy);
        set("x-content-type-options", "nosniff");
        // Not `no-referrer`, with which browsers send `Origin: null` with forms.
        set("referrer-policy", "same-origin");
        set("cross-origin-opener-policy", "same-origin");
        set("permissions-policy", "camera=(), geolocation=(), microphone=()");
        if head.secure {
            set("strict-transport-security", "max-age=31536000");
        }
        for (name, value) in &self.extra_headers {
            set(name, value);
        }
        match self.body {
            Body::Whole(bytes) => body::buffered(self.status, headers, bytes),
            Body::Written(write) => body::streamed(self.status, &headers, write),
        }
    }
}
