use super::*;
use crate::{endpoint::Endpoint, id::AccountId, reason::ErrorCode, request::RenderRequest};

#[test]
fn a_failure_before_the_page_ran_is_not_counted() {
    for refusal in [Refusal::Deadline, Refusal::Broken, Refusal::PageCrashed] {
        assert!(refusal.is_counted());
        assert_eq!(refusal.before_page_ran().reason().status(), 503);
    }
    // The URL of the caller is checked before a page runs, so these stay.
    let host = || "a.example".to_owned();
    for refusal in [Refusal::NameNotFound { host: host() }, Refusal::QueueFull] {
        assert_eq!(refusal.clone().before_page_ran(), refusal);
    }
}

/// A refusal with a new field is not read here: its type is [`PageText`], unless no page and no request can choose it.
#[test]
fn a_text_of_the_page_is_not_shown_by_debug() {
    for code in Refusal::VARIANTS {
        let json = serde_json::json!({
            "code": code, "message": "S3cret", "rule": "S3cret", "host": "a.example", "field": "selector",
            "status": 404, "mebibytes": 1, "page_ran": true, "errors": 1, "failed_requests": 0,
            "first": ["S3cret"], "first_error": "S3cret", "line": 1, "limit": "work",
        });
        let refusal: Refusal = serde_json::from_value(json).unwrap_or_else(|error| panic!("{code}: {error}"));
        assert!(!format!("{refusal:?}").contains("S3cret"), "{code}");
    }
    let failed = Refusal::FunctionFailed { message: "S3cret".into(), first_error: FirstError::default() };
    assert!(failed.to_string().contains("S3cret"), "the caller gets it");
}

#[test]
fn a_field_that_a_refusal_names_is_one_of_its_request() {
    let job = |body: &str| {
        let request = RenderRequest::parse(Endpoint::Render, body.as_bytes()).unwrap();
        request.into_job(AccountId::from_text("a"), None).unwrap()
    };
    let host = || "a.example".to_owned();
    let refusals = [
        Refusal::NameNotFound { host: host() },
        Refusal::AddressNotPublic { host: host() },
        Refusal::PortNotAllowed { host: host() },
        Refusal::ConnectionRefused { host: host() },
        Refusal::ConnectionFailed { host: host() },
        Refusal::Tls { host: host() },
        Refusal::TooManyRedirects { host: host() },
        Refusal::NotAPage { host: host() },
    ];
    for (body, field) in [
        (r#"{"url":"http://A.example/"}"#, Some("url")),
        (r#"{"html":"x","baseUrl":"http://a.example/"}"#, Some("baseUrl")),
        // The page has chosen the host.
        (r#"{"html":"x","baseUrl":"http://b.example/"}"#, None),
        (r#"{"html":"x","assets":{}}"#, None),
        (r#"{"html":"x"}"#, None),
    ] {
        for refusal in &refusals {
            assert_eq!(refusal.field(&job(body)), field, "{body} {refusal:?}");
        }
    }
    let mut file = job(r#"{"html":"x","format":"pdf","pdfStandard":"pdf/ua-1"}"#);
    let unmet = Refusal::StandardNotMet { rule: "r".into() };
    assert_eq!(unmet.field(&file), Some("pdfStandard"));
    if let Output::Pdf(pdf) = &mut file.options.output {
        pdf.document.standard = PdfStandard::default();
    }
    assert_eq!(unmet.field(&file), Some("invoiceXml"));
}

#[test]
fn messages_have_what_the_page_did() {
    let first = PageTexts(vec!["Error: a".into(), "GET https://a.example/ 404".into()]);
    for (errors, failed_requests, counts) in
        [(1, 0, "1 error"), (0, 2, "2 failed requests"), (3, 1, "3 errors and 1 failed request")]
    {
        let refusal = Refusal::FailOn { errors, failed_requests, first: first.clone() };
        let message = format!("The page had {counts}: Error: a; GET https://a.example/ 404");
        assert_eq!(refusal.to_string(), message);
    }
    let unmet = Refusal::FunctionNotTrue { first_error: FirstError::default() };
    assert_eq!(unmet.to_string(), "\"waitForFunction\" was not true in time");
    let explained = unmet.with_first_error(Some("Error: a".into())).to_string();
    assert_eq!(explained, "\"waitForFunction\" was not true in time; the first error of the page: Error: a");
}

#[test]
fn a_template_that_failed_is_told_with_its_line() {
    let message = || "\"item.price\" is undefined".into();
    let markup = Refusal::TemplateFailed { field: None, line: 12, message: message() };
    assert_eq!(markup.to_string(), "Template line 12: \"item.price\" is undefined");
    let field = || Some("headerHtml".to_owned());
    let header = Refusal::TemplateFailed { field: field(), line: 1, message: message() };
    assert_eq!(header.to_string(), "\"headerHtml\" of the template, line 1: \"item.price\" is undefined");
    let request = RenderRequest::parse(Endpoint::Render, br#"{"html":"x"}"#).unwrap();
    let job = request.into_job(AccountId::from_text("a"), None).unwrap();
    assert_eq!((markup.field(&job), header.field(&job)), (None, Some("headerHtml")));
    let exceeded = Refusal::TemplateLimitExceeded { limit: TemplateLimit::Work };
    let of = |refusal: &Refusal| {
        let reason = refusal.reason();
        (reason.error_code().map(ErrorCode::as_str), reason.status(), refusal.is_counted())
    };
    assert_eq!(of(&markup), (Some("template_failed"), 400, false));
    assert_eq!(of(&exceeded), (Some("template_failed"), 422, true));
    assert_eq!(exceeded.clone().before_page_ran(), exceeded);
}

#[test]
fn refusals_are_read_as_they_were_written() {
    for (refusal, json, is_counted, retry_after) in [
        (Refusal::Draining, r#"{"code":"draining"}"#, false, Some(RETRY_AFTER_SECONDS)),
        (Refusal::Tls { host: "a.example".to_owned() }, r#"{"code":"tls","host":"a.example"}"#, true, None),
        (
            Refusal::ElementNotVisible { first_error: FirstError::default() },
            r#"{"code":"element_not_visible","first_error":null}"#,
            true,
            None,
        ),
        (
            Refusal::TemplateFailed { field: None, line: 3, message: "a".into() },
            r#"{"code":"template_failed","field":null,"line":3,"message":"a"}"#,
            false,
            None,
        ),
        (
            Refusal::TemplateLimitExceeded { limit: TemplateLimit::Recursion },
            r#"{"code":"template_limit_exceeded","limit":"recursion"}"#,
            true,
            None,
        ),
        (Refusal::Cancelled { page_ran: true }, r#"{"code":"cancelled","page_ran":true}"#, true, None),
        (Refusal::Cancelled { page_ran: false }, r#"{"code":"cancelled","page_ran":false}"#, false, None),
    ] {
        assert_eq!(serde_json::to_string(&refusal).unwrap(), json);
        assert_eq!(serde_json::from_str::<Refusal>(json).unwrap(), refusal);
        assert_eq!((refusal.is_counted(), refusal.retry_after()), (is_counted, retry_after), "{json}");
    }
}
