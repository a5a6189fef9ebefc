//! The list of requests, the page of one, and the lines of the CSV export.

use askama::Template;
use platen_shared::{endpoint::Endpoint, id::TemplateId, page_report::MAX_COUNT, reason::Reason};
use platen_statements::{
    keys::Key,
    links::Link,
    requests::{RequestEntry, VersionPlace},
};

use super::Layout;
use crate::{
    filter::{FilterForm, status_text},
    format,
};

/// Address of the list.
pub(crate) const PATH: &str = "/dashboard/requests";
/// Address of the CSV export.
pub(crate) const EXPORT_PATH: &str = "/dashboard/requests.csv";

/// The first line of the CSV export.
pub(crate) const CSV_HEADER: &str = "time,key,endpoint,format,status,counted,duration_ms,size_bytes,result,\
    request_id,code,field,failure,template_id,template,host,queue_ms,render_ms,\
    page_errors,failed_requests,page_host,template_version\r\n";

#[derive(Debug, Template)]
#[template(path = "requests.html")]
pub(crate) struct RequestsPage {
    pub(crate) layout: Layout,
    pub(crate) form: FilterForm,
    /// The keys of the account.
    pub(crate) keys: Vec<Key>,
    /// The links of the account.
    pub(crate) links: Vec<Link>,
    /// Templates whose names have the words of the filter, if they are several.
    pub(crate) templates: Vec<(TemplateId, String)>,
    /// One page of requests, newest first.
    pub(crate) requests: Vec<RequestEntry>,
    /// Days for which requests are kept.
    pub(crate) kept_days: u32,
    pub(crate) has_newer: bool,
    /// Where the next page starts, if there is one.
    pub(crate) next: Option<String>,
}

impl RequestsPage {
    /// Whether the form has a key or link that cannot be chosen, such as one that was deleted.
    fn has_other_key(&self) -> bool {
        let chosen = self.form.value("key");
        !chosen.is_empty()
            && self.keys.iter().all(|key| key.id.as_str() != chosen)
            && self.links.iter().all(|link| link.id.as_str() != chosen)
    }
}

#[derive(Debug, Template)]
#[template(path = "request.html")]
pub(crate) struct RequestPage {
    pub(crate) layout: Layout,
    pub(crate) request: RequestEntry,
    /// Where the content of the template is that was rendered, if there was one and the account still has the template.
    pub(crate) version: Option<(u32, VersionPlace)>,
}

impl RequestPage {
    /// The host of the page that was captured, if it is another one than that of the URL.
    fn page_host(&self) -> Option<&str> {
        self.request.page_host.as_deref().filter(|host| Some(*host) != self.request.host.as_deref())
    }

    /// The address of the playground with what is stored of the request.
    fn playground(&self) -> String {
        let request = &self.request;
        let host = request.host.as_ref().map(|host| format!("https://{host}/"));
        let template = request.template_id.as_ref().filter(|_| request.template_name.is_some());
        let format = Some(&request.format).filter(|format| !format.is_empty());
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in [("template", template), ("url", host.as_ref()), ("format", format)] {
            if let Some(value) = value {
                query.append_pair(name, value);
            }
        }
        format!("/dashboard/playground?{}", query.finish())
    }
}

/// The class of the tag of a status. A client that disconnected has not failed.
pub(crate) fn level(request: &RequestEntry) -> &'static str {
    match request.status {
        ..400 => "on",
        499 => "off",
        _ => "bad",
    }
}

/// What failed, in words; `None` for a successful request, or one of which it is not known.
fn failure(request: &RequestEntry) -> Option<&str> {
    let code = request.code.as_deref()?;
    Some(Reason::find(code).map_or(code, |reason| reason.sentence()))
}

/// Why it failed, the field that is the cause, and that it does not count; empty for a successful request.
pub(crate) fn error(request: &RequestEntry) -> String {
    let field = request.field.as_ref().map(|field| format!("Field: {field}"));
    let uncounted = (!request.counted).then(|| "not counted".to_owned());
    let parts = [failure(request).map(str::to_owned), field, uncounted];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// The `code` that the client has received.
fn error_code(request: &RequestEntry) -> Option<&'static str> {
    Some(Reason::find(request.code.as_deref()?)?.error_code()?.as_str())
}

/// A number of errors or failed requests.
fn count(count: u64) -> String {
    let number = format::number(&count);
    if count < MAX_COUNT.into() { number } else { format!("{number} or more") }
}

fn path(request: &RequestEntry) -> &'static str {
    match request.endpoint.as_str() {
        "template" => Endpoint::Template.path(),
        "link" => "/v1/links/…",
        _ => Endpoint::Render.path(),
    }
}

pub(crate) fn size(request: &RequestEntry) -> String {
    request.bytes.map_or_else(|| "–".to_owned(), format::size)
}

pub(crate) fn milliseconds(time: Option<&u64>) -> String {
    time.map_or_else(|| "–".to_owned(), |time| format!("{} ms", format::number(time)))
}

pub(crate) fn csv_line(request: &RequestEntry) -> String {
    let number = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    let text = |text: &'_ Option<String>| text.clone().unwrap_or_default();
    format::csv_line(&[
        &request.at.to_string(),
        &text(&request.key_name),
        path(request),
        &request.format,
        &request.status.to_string(),
        if request.counted { "yes" } else { "no" },
        &request.ms.to_string(),
        &number(request.bytes),
        status_text(request.status),
        &request.request_id,
        error_code(request).unwrap_or_default(),
        &text(&request.field),
        failure(request).unwrap_or_default(),
        &text(&request.template_id),
        &text(&request.template_name),
        &text(&request.host),
        &number(request.queued_ms),
        &number(request.render_ms),
        &number(request.page_errors),
        &number(request.failed_requests),
        &text(&request.page_host),
        &number(request.template_version.map(u64::from)),
    ])
}

#[cfg(test)]
mod tests {
    use platen_statements::Timestamp;

    use super::*;

    fn request(status: u16, code: Option<&str>) -> RequestEntry {
        RequestEntry {
            id: 1,
            at: Timestamp(0),
            status,
            counted: false,
            code: code.map(str::to_owned),
            field: None,
            request_id: "r".to_owned(),
            key_name: Some("a".to_owned()),
            key_id: None,
            template_id: None,
            template_name: None,
            template_version: None,
            host: Some("a.example".to_owned()),
            endpoint: "render".to_owned(),
            format: "png".to_owned(),
            ms: 12,
            queued_ms: Some(3),
            render_ms: None,
            bytes: None,
            page_errors: None,
            failed_requests: None,
            page_host: None,
        }
    }

    #[test]
    fn failures_are_sentences() {
        let busy = request(503, Some("queue_full"));
        assert_eq!(failure(&busy), Some("All renderers were busy, and their queue was full."));
        assert_eq!((error_code(&busy), level(&busy)), (Some("renderer_busy"), "bad"));
        let of_field =
            RequestEntry { field: Some("width".to_owned()), ..request(400, Some("invalid_field")) };
        assert!(error(&of_field).ends_with("Field: width · not counted"), "{}", error(&of_field));
        let later = request(400, Some("of_another_version"));
        assert_eq!((failure(&later), error_code(&later)), (Some("of_another_version"), None));
        let good = request(200, None);
        assert_eq!((failure(&good), level(&good)), (None, "on"));
    }
}
