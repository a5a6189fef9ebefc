//! A request without its body.

use std::time::Duration;

use platen_shared::{
    dashboard_path,
    log_line::{LogLevel, LogLine},
};
use platen_spin::platform;
use spin_sdk::wasip3::http::types::{Fields, Method, Request};

use crate::{cookies, form::Form};

/// Method, address and headers of a request.
pub(super) struct RequestHead {
    pub(super) is_post: bool,
    /// The method is neither GET, HEAD nor POST.
    pub(super) is_unsupported: bool,
    pub(super) path: String,
    /// Path and query.
    pub(super) target: String,
    pub(super) query: Form,
    pub(super) host: String,
    /// The browser uses TLS: true for every host except loopback.
    pub(super) secure: bool,
    pub(super) user_agent: String,
    pub(super) headers: Fields,
    pub(super) request_id: String,
}

/// Characters of the `User-Agent` header that are stored.
const MAX_USER_AGENT_CHARS: usize = 200;

impl RequestHead {
    pub(super) fn of(request: &Request) -> Self {
        let headers = request.get_headers();
        let method = request.get_method();
        let target = request.get_path_with_query().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let (path, query) = (path.to_owned(), Form::parse(query.as_bytes()));
        let text = |name: &str| text(&headers, name);
        let host = text("host").or_else(|| request.get_authority()).unwrap_or_default();
        let request_id = text(platen_shared::wire::REQUEST_ID)
            .filter(|id| platen_shared::wire::is_request_id(id))
            .unwrap_or_else(|| "none".to_owned());
        let user_agent = text("user-agent").unwrap_or_default();
        Self {
            is_post: matches!(method, Method::Post),
            is_unsupported: !matches!(method, Method::Get | Method::Head | Method::Post),
            path,
            query,
            target,
            secure: !cookies::is_loopback(&host),
            host,
            user_agent: user_agent.chars().filter(|c| !c.is_control()).take(MAX_USER_AGENT_CHARS).collect(),
            request_id,
            headers,
        }
    }

    /// The value of a header that occurs exactly once.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        text(&self.headers, name)
    }

    /// The last entry of a header whose values are lists.
    pub(super) fn last(&self, name: &str) -> Option<String> {
        let values = self.headers.get(name);
        let value = std::str::from_utf8(values.last()?).ok()?;
        value.rsplit(',').next().map(|last| last.trim().to_owned())
    }

    /// The path without its empty segments.
    pub(super) fn segments(&self) -> Vec<&str> {
        dashboard_path::segments(&self.path)
    }

    /// Scheme and host of the server, for the browser.
    pub(super) fn base_url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}", self.host)
    }

    /// Writes one log line, which names only the section of the path.
    pub(super) fn log(&self, status: u16, elapsed: Duration, cause: Option<&str>) {
        let section = self.path.split('/').nth(2).unwrap_or_default();
        let section = super::SECTIONS.iter().find(|known| **known == section).unwrap_or(&"none");
        platform::log(&LogLine {
            level: if cause.is_some() { LogLevel::Warn } else { LogLevel::Info },
            message: "request".to_owned(),
            request_id: Some(self.request_id.clone()),
            section: Some((*section).to_owned()),
            status: Some(status),
            ms: u64::try_from(elapsed.as_millis()).ok(),
            cause: cause.map(str::to_owned),
            ..LogLine::default()
        });
    }
}

fn text(headers: &Fields, name: &str) -> Option<String> {
    match headers.get(name).as_slice() {
        [value] => String::from_utf8(value.clone()).ok(),
        _ => None,
    }
}
