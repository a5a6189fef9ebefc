//! What a request says of itself, before its body.

use std::{io::Write as _, time::Duration};

use spin_sdk::wasip3::http::types::{Fields, Method, Request};

use crate::{cookies, form::Form};

/// The head of a request.
pub(super) struct RequestHead {
    pub(super) is_post: bool,
    /// Neither GET, HEAD nor POST.
    pub(super) is_odd: bool,
    pub(super) path: String,
    pub(super) query: Form,
    pub(super) host: String,
    /// Everything but this very machine.
    pub(super) secure: bool,
    pub(super) origin: Option<String>,
    pub(super) fetch_site: Option<String>,
    pub(super) cookies: Vec<Vec<u8>>,
    pub(super) content_type: Vec<Vec<u8>>,
    pub(super) none_match: Option<String>,
    pub(super) agent: String,
    pub(super) headers: Fields,
    request_id: String,
}

/// Most of a browser's name that is kept.
const AGENT_CHARS: usize = 200;

impl RequestHead {
    pub(super) fn of(request: &Request) -> Self {
        let headers = request.get_headers();
        let method = request.get_method();
        let whole = request.get_path_with_query().unwrap_or_default();
        let (path, query) = whole.split_once('?').unwrap_or((&whole, ""));
        let text = |name: &str| text(&headers, name);
        let host = text("host").or_else(|| request.get_authority()).unwrap_or_default();
        let request_id = text(platen_shared::wire::REQUEST_ID)
            .filter(|id| platen_shared::wire::is_request_id(id))
            .unwrap_or_else(|| "none".to_owned());
        let agent = text("user-agent").unwrap_or_default();
        Self {
            is_post: matches!(method, Method::Post),
            is_odd: !matches!(method, Method::Get | Method::Head | Method::Post),
            path: path.to_owned(),
            query: Form::parse(query.as_bytes()),
            secure: !cookies::is_loopback(&host),
            host,
            origin: text("origin"),
            fetch_site: text("sec-fetch-site"),
            cookies: headers.get("cookie"),
            content_type: headers.get("content-type"),
            none_match: text("if-none-match"),
            agent: agent.chars().filter(|c| !c.is_control()).take(AGENT_CHARS).collect(),
            request_id,
            headers,
        }
    }

    /// A header's text, if it is there once.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        text(&self.headers, name)
    }

    /// Where the server is, as the browser sees it.
    pub(super) fn base_url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}", self.host)
    }

    /// One line, without the address.
    pub(super) fn log(&self, status: u16, elapsed: Duration, cause: Option<&str>) {
        let section = self.path.split('/').nth(2).unwrap_or_default();
        let known = [
            "sign-in",
            "sign-out",
            "invite",
            "you",
            "keys",
            "templates",
            "usage",
            "usage.csv",
            "operator",
            "assets",
        ];
        let section = known.iter().find(|known| **known == section).unwrap_or(&"none");
        let cause = cause.map(|cause| format!(" cause={cause:?}")).unwrap_or_default();
        let line = format!(
            "platen-dashboard request_id={} section={section} status={status} ms={}{cause}\n",
            self.request_id,
            elapsed.as_millis()
        );
        // One write, so that lines of concurrent requests do not mix. Nobody can be told if it fails.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}

fn text(headers: &Fields, name: &str) -> Option<String> {
    match headers.get(name).as_slice() {
        [value] => String::from_utf8(value.clone()).ok(),
        _ => None,
    }
}
