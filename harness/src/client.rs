//! A client of the public API that checks what the contract promises for every answer.
//!
//! Invariant: [`Answer::file`] and [`Answer::error`] check everything that the contract promises for a success and
//! for a failure, so every case checks it.

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use platen_shared::{
    key::{ApiKey, RANDOM_BYTES},
    reason::ErrorCode,
    wire,
};
use serde::Deserialize;
use serde_json::{Value, json};

pub const RENDER: &str = "/v1/render";
pub const TEMPLATE: &str = "/v1/render/template";

/// A server and a key of it.
#[derive(Debug, Clone)]
pub struct Target {
    pub http: reqwest::Client,
    /// Where it listens, without a slash at the end.
    pub base_url: String,
    pub key: String,
    /// The fixture template of the key's account, if it has one.
    pub template_id: Option<String>,
}

impl Target {
    pub fn render(&self, body: &Value) -> Call {
        self.post(RENDER, body.to_string())
    }

    /// A render of a minimal page as PNG.
    pub fn minimal(&self) -> Call {
        self.render(&json!({ "html": "x" }))
    }

    /// Checks that a minimal page is rendered.
    pub async fn renders(&self) -> Result<()> {
        self.minimal().send().await?.file("image/png").map(drop)
    }

    pub fn render_template(&self, body: &Value) -> Call {
        self.post(TEMPLATE, body.to_string())
    }

    /// A request in the form of the contract: `POST`, the key, `content-type: application/json`.
    pub fn post(&self, path: &str, body: impl Into<Bytes>) -> Call {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let call = Call {
            http: self.http.clone(),
            method: Method::POST,
            url: format!("{}{path}", self.base_url),
            headers,
            body: body.into(),
        };
        call.key(&self.key)
    }

    /// This server with a key that no account has.
    pub fn with_unknown_key(&self) -> Self {
        self.with_key(ApiKey::from_random(rand::random::<[u8; RANDOM_BYTES]>()).expose())
    }

    /// This server with another key.
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), template_id: None, ..self.clone() }
    }
}

/// A request that has not been sent.
#[derive(Debug, Clone)]
pub struct Call {
    http: reqwest::Client,
    method: Method,
    url: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Call {
    pub fn method(self, method: Method) -> Self {
        Self { method, ..self }
    }

    pub fn key(self, key: &str) -> Self {
        self.header(header::AUTHORIZATION, format!("Bearer {key}").as_bytes())
    }

    /// Sets a header, which replaces all of that name.
    pub fn header(mut self, name: HeaderName, value: &[u8]) -> Self {
        let value = HeaderValue::from_bytes(value).expect("a header of a test has no control character");
        self.headers.insert(name, value);
        self
    }

    /// Adds one more header of that name.
    pub fn more(mut self, name: HeaderName, value: &[u8]) -> Self {
        let value = HeaderValue::from_bytes(value).expect("a header of a test has no control character");
        self.headers.append(name, value);
        self
    }

    pub fn without(mut self, name: &HeaderName) -> Self {
        self.headers.remove(name);
        self
    }

    pub fn request_id(self, id: &str) -> Self {
        self.header(HeaderName::from_static(wire::REQUEST_ID), id.as_bytes())
    }

    /// Sends it and returns as soon as the answer begins.
    pub async fn start(self) -> Result<reqwest::Response> {
        let request = self.http.request(self.method, self.url).headers(self.headers).body(self.body);
        Ok(request.send().await?)
    }

    /// Sends it and reads the whole answer.
    pub async fn send(self) -> Result<Answer> {
        let response = self.start().await.context("no answer")?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await.with_context(|| format!("the answer ({status}) broke off"))?;
        Ok(Answer { status, headers, body })
    }
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Texts that no public message contains, in lower case, between bars.
const LEAKS: &str = "127.0.0.1|::1|sqlite|libsql|select |insert |update |usage where\
    |/tmp|/root|/work|/home|.rs:|panicked|backtrace|wasm|chrom|os error|hyper|reqwest|tcp";

impl Answer {
    /// The value of a header that occurs exactly once.
    pub fn header(&self, name: &str) -> Result<&str> {
        let mut values = self.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => Ok(value.to_str()?),
            (None, _) => bail!("no {name} on {}", self.summary()),
            (Some(_), Some(_)) => bail!("more than one {name} on {}", self.summary()),
        }
    }

    /// Checks everything that the contract promises for a success, and returns the file.
    pub fn file(&self, content_type: &str) -> Result<&Bytes> {
        ensure!(self.status == 200, "expected a file, got {}", self.summary());
        self.common(content_type)?;
        let extension = match content_type {
            "image/png" => "png",
            "image/jpeg" => "jpg",
            "image/webp" => "webp",
            "application/pdf" => "pdf",
            other => bail!("{other} is not a media type of the contract"),
        };
        let disposition = self.header("content-disposition")?;
        let well_formed = disposition.starts_with("attachment; filename=\"")
            && disposition.ends_with(&format!(".{extension}\""));
        ensure!(well_formed, "content-disposition: {disposition}");
        self.rate_limit()?;
        ensure!(!self.headers.contains_key("retry-after"), "a success has retry-after");
        Ok(&self.body)
    }

    /// The file name in `content-disposition`.
    pub fn file_name(&self) -> Result<&str> {
        let disposition = self.header("content-disposition")?;
        let name =
            disposition.strip_prefix("attachment; filename=\"").and_then(|rest| rest.strip_suffix('"'));
        name.with_context(|| format!("content-disposition: {disposition}"))
    }

    /// Checks that this is the expected failure, and everything that the contract promises for a failure.
    pub fn error(&self, status: u16, message: &str) -> Result<()> {
        let body = ErrorBody::read(self.status, &self.body)
            .with_context(|| format!("expected {status} {message:?}, got {}", self.summary()))?;
        ensure!(
            (self.status, body.error.as_str()) == (status, message),
            "expected {status} {message:?}, got {}",
            self.summary()
        );
        self.common("application/json")?;
        let needs_retry_after = matches!(status, 429 | 503);
        ensure!(
            self.headers.contains_key("retry-after") == needs_retry_after,
            "retry-after on {}",
            self.summary()
        );
        let lower = message.to_lowercase();
        let leak = LEAKS.split('|').find(|leak| lower.contains(leak));
        ensure!(leak.is_none(), "the message {message:?} contains {leak:?}");
        // Answers before the key is looked up, or when it cannot be, have no quota.
        let has_no_quota = matches!(
            (status, message),
            (401 | 405 | 500, _)
                | (404, "Not found")
                | (503, "The service is busy, try again shortly" | "The server is busy, try again shortly")
        );
        if !has_no_quota {
            self.rate_limit()?;
        }
        Ok(())
    }

    fn common(&self, content_type: &str) -> Result<()> {
        ensure!(self.header("content-type")? == content_type, "content-type on {}", self.summary());
        ensure!(self.header("cache-control")? == "no-store", "cache-control on {}", self.summary());
        let id = self.header(wire::REQUEST_ID)?;
        ensure!(wire::is_request_id(id), "{} is {id:?}", wire::REQUEST_ID);
        let length = self.header("content-length")?;
        ensure!(length.parse() == Ok(self.body.len()), "content-length on {}", self.summary());
        Ok(())
    }

    /// Status, headers and the first bytes of the body, for messages.
    pub fn summary(&self) -> String {
        let start = String::from_utf8_lossy(&self.body[..self.body.len().min(300)]).into_owned();
        format!("{} {:?} {start:?}", self.status, self.headers)
    }
}

/// The codes whose field the message names.
const WITH_FIELD: &[ErrorCode] = &[
    ErrorCode::UnknownField,
    ErrorCode::RepeatedField,
    ErrorCode::MissingField,
    ErrorCode::InvalidField,
    ErrorCode::ConflictingFields,
];

/// The body of an error.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorBody {
    pub error: String,
    /// The code; only a 401 has none.
    pub code: Option<String>,
    pub field: Option<String>,
}

impl ErrorBody {
    /// Reads the body of an answer, and checks that the code belongs to the status, and the field to the code and the
    /// message.
    pub fn read(status: u16, body: &[u8]) -> Result<Self> {
        let text = String::from_utf8_lossy(body);
        let this: Self = serde_json::from_slice(body).with_context(|| format!("not an error: {text:?}"))?;
        if status == 401 {
            ensure!(text == r#"{"error":"Invalid API key"}"#, "the body of a 401 is {text}");
            return Ok(this);
        }
        let name = this.code.as_deref().with_context(|| format!("without a code: {text}"))?;
        let code = ErrorCode::ALL.iter().find(|code| (code.as_str(), code.status()) == (name, status));
        let code = *code.with_context(|| format!("an undocumented code of a {status}: {text}"))?;
        if WITH_FIELD.contains(&code) {
            let field = this.field.as_deref().with_context(|| format!("without a field: {text}"))?;
            // Without the parts that cannot be shown.
            let shown = field.chars().take(20).collect::<String>();
            ensure!(this.error.contains(&shown), "the message does not name the field: {text}");
        }
        Ok(this)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&'static str, &'static str)], body: &'static str) -> Answer {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        Answer { status, headers: headers.collect(), body: Bytes::from_static(body.as_bytes()) }
    }

    const PROMISED: &[(&str, &str)] = &[
        ("content-type", "application/json"),
        ("cache-control", "no-store"),
        ("x-request-id", "1"),
        ("content-length", "27"),
    ];

    #[test]
    fn an_error_is_compared_exactly() {
        let body = r#"{"error":"Invalid API key"}"#;
        answer(401, PROMISED, body).error(401, "Invalid API key").unwrap();
        answer(401, PROMISED, body).error(400, "Invalid API key").unwrap_err();
        answer(401, PROMISED, body).error(401, "Invalid key").unwrap_err();
        answer(401, &PROMISED[1..], body).error(401, "Invalid API key").unwrap_err();
        answer(401, PROMISED, r#"{"error":"Invalid API key" }"#).error(401, "Invalid API key").unwrap_err();
    }

    #[test]
    fn codes_and_fields_are_checked() {
        let read = |status, body: &str| ErrorBody::read(status, body.as_bytes());
        let valid = r#"{"error":"\"width\" must be 1","code":"invalid_field","field":"width"}"#;
        assert_eq!(read(400, valid).unwrap().field.unwrap(), "width");
        read(401, r#"{"error":"Invalid API key"}"#).unwrap();
        for (status, body) in [
            (422, valid),
            (401, r#"{"error":"Invalid API key","code":"invalid_key"}"#),
            (401, r#"{"error": "Invalid API key"}"#),
            (400, r#"{"error":"x"}"#),
            (400, r#"{"error":"x","code":"other"}"#),
            (400, r#"{"error":"x","code":"invalid_json","extra":1}"#),
            (400, r#"{"error":"\"height\" must be 1","code":"invalid_field","field":"width"}"#),
            (400, r#"{"error":"\"width\" must be 1","code":"invalid_field"}"#),
            (400, "x"),
        ] {
            read(status, body).unwrap_err();
        }
    }
}
