//! Requests for templates with options. `tests/golden` has the fields and the messages.

use super::*;

fn error(endpoint: Endpoint, body: &str) -> String {
    RenderRequest::parse(endpoint, body.as_bytes()).unwrap_err().to_string()
}

/// The job of a request for a template.
fn job_of(request: RenderRequest, html: &str, options: &str) -> Result<RenderJob, InvalidRequest> {
    job_in(Language::Placeholders, request, html, options)
}

fn job_in(
    language: Language,
    request: RenderRequest,
    html: &str,
    options: &str,
) -> Result<RenderJob, InvalidRequest> {
    let options = TemplateOptions::parse(options.as_bytes()).unwrap();
    let template = SavedTemplate { html, language, options: &options };
    request.into_job(AccountId::from_text("acc"), Some(template))
}

#[test]
fn a_template_in_jinja_is_sent_with_its_values() {
    let parse = |values: &str| {
        let body = format!(r#"{{"templateId":"t","format":"pdf","headerHtml":"{{{{ h }}}}",{values}}}"#);
        RenderRequest::parse(Endpoint::Template, body.as_bytes())
    };
    let data = r#"{ "rows": [{"price": 10.50}], "id": 12345678901234567890123 }"#;
    let request = parse(&format!(r#""data":{data},"variables":{{"n":1.0,"t":"1.0"}}"#)).unwrap();
    let options = r#"{"format":"pdf","footerHtml":"{% if f %}{% endif %}"}"#;
    let job = job_in(Language::Jinja, request.clone(), "{{ rows }}", options).unwrap();
    let Source::Jinja(template) = &job.source else { panic!("{job:?}") };
    assert_eq!((template.markup.as_str(), template.data.as_json()), ("{{ rows }}", data));
    let variables = [("n", Variable::Number("1.0".to_owned())), ("t", Variable::Text("1.0".to_owned()))];
    assert_eq!(template.variables, variables.map(|(name, value)| (name.to_owned(), value)).into());
    let Output::Pdf(pdf) = &job.options.output else { panic!("{job:?}") };
    let texts = [&pdf.header, &pdf.footer].map(|text| text.as_ref().map(HeaderHtml::as_str));
    assert_eq!(texts, [Some("{{ h }}"), Some("{% if f %}{% endif %}")]);
    let refused = job_in(Language::Placeholders, request, "{{ rows }}", "{}").unwrap_err();
    assert_eq!(
        (refused.to_string().as_str(), refused.field().as_deref()),
        (
            "\"data\" is for templates in Jinja; this one has placeholders, whose values are \"variables\"",
            Some("data")
        )
    );
    let both = parse(r#""data":{"a":1,"n":{}},"variables":{"n":1}"#).unwrap_err();
    assert_eq!(both.to_string(), "\"data\" has \"n\", and \"variables\" has it too");
    let large = parse(r#""variables":{"n":1e400}"#).unwrap();
    let error = job_in(Language::Jinja, large, "x", "{}").unwrap_err();
    assert_eq!(error.to_string(), "\"variables\" must have numbers up to 1.7e308");
    let none = RenderRequest::parse(Endpoint::Template, br#"{"templateId":"t"}"#).unwrap();
    let job = job_in(Language::Jinja, none, "x", "{}").unwrap();
    assert!(matches!(job.source, Source::Jinja(template) if template.data.as_json() == "{}"));
}

#[test]
fn defaults_are_those_of_the_contract() {
    let request = RenderRequest::parse(Endpoint::Render, br#"{"html":"x"}"#).unwrap();
    assert_eq!(request.format(), Some(OutputFormat::DEFAULT));
    let job = request.into_job(AccountId::from_text("acc"), None).unwrap();
    let json = serde_json::to_value(&job).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "account": "acc",
            "source": { "html": "x" },
            "options": {
                "viewport": { "width": 1280.0, "height": 720.0, "device_scale_factor": 1.0, "mobile": false },
                "environment": {
                    "media": null,
                    "color_scheme": "light",
                    "reduced_motion": false,
                    "time_zone": null,
                    "locale": null,
                    "java_script": true,
                    "user_agent": null,
                },
                "css": null,
                "wait_until": "load",
                "wait_for_timeout": 0.0,
                "wait_for_selector": null,
                "wait_for_function": null,
                "fail_on_http_status": false,
                "assets": null,
                "base_url": null,
                "fail_on": [],
                "block_hosts": [],
                "animations": "finish",
                "scroll": true,
                "output": {
                    "image": {
                        "format": "png",
                        "quality": 80.0,
                        "omit_background": false,
                        "optimize_for_speed": true,
                        "region": "viewport",
                    },
                },
            },
        })
    );
    assert_eq!(serde_json::from_value::<RenderJob>(json).unwrap(), job);
}

#[test]
fn a_field_of_a_request_replaces_those_of_the_template_that_it_excludes() {
    for (template, given, expected) in [
        ("", "", ""),
        (r#""format":"pdf","landscape":true,"margin":{"top":"1cm","left":9}"#, "", ""),
        (
            r#""format":"pdf","landscape":true,"margin":{"top":"1cm"}"#,
            r#""landscape":false,"margin":{"left":1}"#,
            r#""format":"pdf","margin":{"left":1}"#,
        ),
        (
            r#""pdfFormat":"A5","format":"pdf""#,
            r#""pdfWidth":"9cm","pdfHeight":"9cm""#,
            r#""format":"pdf","pdfWidth":"9cm","pdfHeight":"9cm""#,
        ),
        (
            r#""pdfWidth":"9cm","pdfHeight":"9cm","format":"pdf""#,
            r#""pdfFormat":"A5""#,
            r#""format":"pdf","pdfFormat":"A5""#,
        ),
        (
            r#""pdfWidth":"9cm","pdfHeight":"9cm","format":"pdf""#,
            r#""pdfHeight":"8cm""#,
            r#""format":"pdf","pdfWidth":"9cm","pdfHeight":"8cm""#,
        ),
        (r##""selector":"#a""##, r#""fullPage":true"#, r#""fullPage":true"#),
        (r#""fullPage":true"#, r##""selector":"#a""##, r##""selector":"#a""##),
        (r#""clip":{"x":0,"y":0,"width":1,"height":1}"#, r#""fullPage":false"#, ""),
        (r#""format":"pdf","singlePage":true"#, r#""pageRanges":"1""#, r#""format":"pdf","pageRanges":"1""#),
        (r#""format":"pdf","pageRanges":"1""#, r#""singlePage":true"#, r#""format":"pdf","singlePage":true"#),
        (
            r#""format":"pdf","metadata":{"title":"a","author":"b"},"headerFirstHtml":"{{ missing }}""#,
            r#""metadata":{"title":"c"},"headerFirstHtml":"""#,
            r#""format":"pdf","metadata":{"title":"c"},"headerFirstHtml":"""#,
        ),
        (
            r#""format":"pdf","pdfStandard":"pdf/a-2b","tagged":true"#,
            r#""protection":{"userPassword":"a"}"#,
            r#""format":"pdf","tagged":true,"protection":{"userPassword":"a"}"#,
        ),
        (
            r#""format":"pdf","pdfStandard":"pdf/a-3b""#,
            r#""attachments":[{"name":"a","content":"QQ=="}]"#,
            r#""format":"pdf","pdfStandard":"pdf/a-3b","attachments":[{"name":"a","content":"QQ=="}]"#,
        ),
        // What does not fit the format is left out.
        (r#""format":"pdf","metadata":{"title":"a"},"pdfStandard":"pdf/ua-1""#, r#""format":"png""#, ""),
        (r#""format":"webp","quality":7,"width":9"#, r#""format":"png""#, r#""width":9"#),
        (r#""format":"png","omitBackground":true"#, r#""format":"jpeg""#, r#""format":"jpeg""#),
        (r#""optimizeForSpeed":false"#, r#""format":"webp""#, r#""format":"webp""#),
        (r#""format":"jpeg","quality":7"#, r#""format":"pdf""#, r#""format":"pdf""#),
        (r#""format":"pdf","headerHtml":"{{ missing }}","margin":"1cm""#, r#""format":"png""#, ""),
        // The format of the template makes a field of the request valid.
        (r#""format":"jpeg""#, r#""quality":7"#, r#""format":"jpeg","quality":7"#),
    ] {
        let options = |fields: &str| {
            let comma = if fields.is_empty() { "" } else { "," };
            let body = format!(r#"{{"templateId":"t"{comma}{fields}}}"#);
            RenderRequest::parse(Endpoint::Template, body.as_bytes()).unwrap()
        };
        let found = job_of(options(given), "x", &format!("{{{template}}}")).unwrap();
        let expected = if expected.is_empty() && given.is_empty() { template } else { expected };
        assert_eq!(found, job_of(options(expected), "x", "{}").unwrap(), "{template} {given}");
    }
}

#[test]
fn rules_between_fields_are_checked_with_those_of_the_template() {
    let too_wide = r#"{"width":7000,"deviceScaleFactor":1}"#;
    for (template, given, message, field) in [
        (
            r#"{"format":"pdf","margin":"9cm"}"#,
            r#""pdfFormat":"A6""#,
            "\"margin\" leaves no space for the page (\"margin\" of the template)",
            "margin",
        ),
        (
            r#"{"format":"png"}"#,
            r#""quality":7"#,
            "\"quality\" must not be given with \"format\": \"png\" (\"format\" of the template)",
            "quality",
        ),
        (
            r#"{"format":"pdf","pdfStandard":["pdf/a-2b","pdf/ua-1"]}"#,
            r#""attachments":[{"name":"a","content":""}]"#,
            "\"attachments\" must not be given with \"pdfStandard\": \"pdf/a-2b\" (\"pdfStandard\" of the template)",
            "attachments",
        ),
        (
            "{}",
            r#""protection":{"userPassword":"a"}"#,
            "\"protection\" must not be given with \"format\": \"png\"",
            "protection",
        ),
        (
            "{}",
            r#""pdfWidth":"9cm","format":"pdf""#,
            "\"pdfHeight\" is required with \"pdfWidth\"",
            "pdfHeight",
        ),
        (
            too_wide,
            r#""height":7000,"deviceScaleFactor":2"#,
            "The image would have 196000000 pixels; at most 100000000 are allowed. Lower \"width\", \"height\" or \"deviceScaleFactor\" (\"width\" of the template)",
            "width",
        ),
    ] {
        let body = format!(r#"{{"templateId":"t",{given}}}"#);
        let request = RenderRequest::parse(Endpoint::Template, body.as_bytes()).unwrap();
        let error = job_of(request, "x", template).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.field().as_deref()), (message, Some(field)));
    }
    // What no template can make valid is refused without it.
    for (given, message) in [
        (r#""fullPage":true,"selector":"a""#, "\"selector\" must not be given together with \"fullPage\""),
        (r#""quality":7,"format":"png""#, "\"quality\" must not be given with \"format\": \"png\""),
        (
            r#""pdfHeight":"9cm","pdfFormat":"A4""#,
            "\"pdfHeight\" must not be given together with \"pdfFormat\"",
        ),
    ] {
        assert_eq!(error(Endpoint::Template, &format!(r#"{{"templateId":"t",{given}}}"#)), message);
    }
}

#[test]
fn the_url_of_the_operator_has_any_host() {
    let parse = |body: &str| {
        let parsed = RenderRequest::parse_of_operator(Endpoint::Render, body.as_bytes());
        parsed.map(|_| ()).map_err(|error| error.to_string())
    };
    for host in ["127.0.0.1:5173", "localhost:5173", "[::1]", "printer.local", "10.0.0.1", "example.com"] {
        assert_eq!(parse(&format!(r#"{{"url":"http://{host}/"}}"#)), Ok(()), "{host}");
    }
    for (body, message) in [
        (r#"{"url":"ftp://127.0.0.1/"}"#, "\"url\" must use http or https"),
        (r#"{"url":"http://a:b@localhost/"}"#, "\"url\" must not contain a user name or password"),
        (r#"{"url":"/a"}"#, "\"url\" must be an absolute http or https URL"),
        (
            r#"{"url":"http://localhost:1/","blockHosts":["LOCALHOST"]}"#,
            "\"blockHosts\" must not have the host of \"url\"",
        ),
        (
            r#"{"html":"x","baseUrl":"http://127.0.0.1/"}"#,
            "\"baseUrl\" must be reachable from the public internet",
        ),
    ] {
        assert_eq!(parse(body), Err(message.to_owned()), "{body}");
    }
    // A farm in another process does not read a job with it.
    let body = br#"{"url":"http://127.0.0.1/"}"#;
    let request = RenderRequest::parse_of_operator(Endpoint::Render, body).unwrap();
    let json = serde_json::to_string(&request.into_job(AccountId::from_text("a"), None).unwrap()).unwrap();
    assert!(serde_json::from_str::<RenderJob>(&json).is_err());
}

#[test]
fn the_document_names_the_fields_that_a_format_refuses() {
    let (_, rest) =
        include_str!("../../../docs/api.md").split_once("but for these, which are a 400: ").unwrap();
    let (sentence, _) = rest.split_once(". ").unwrap();
    let named: Vec<&str> = sentence.split('`').skip(1).step_by(2).collect();
    let formats = ["png", "jpeg", "webp", "pdf"].map(|name| name.parse::<OutputFormat>().unwrap());
    let is_refused = |name: &FieldName| formats.iter().any(|format| name.is_refused_with(*format));
    let refused: Vec<&str> = FieldName::all().filter(is_refused).map(FieldName::as_str).collect();
    assert_eq!(named, refused);
}

#[test]
fn passwords_are_not_in_debug_texts() {
    for body in [
        r#"{"html":"x","format":"pdf","protection":{"userPassword":"sesame","ownerPassword":"sesame"}}"#,
        r#"{"templateId":"t","format":"pdf","protection":{"userPassword":"sesame"}}"#,
    ] {
        let endpoint = if body.contains("html") { Endpoint::Render } else { Endpoint::Template };
        let request = RenderRequest::parse(endpoint, body.as_bytes()).unwrap();
        assert!(!format!("{request:?}").contains("sesame"));
        let job = job_of(request, "x", "{}").unwrap();
        assert!(!format!("{job:?}").contains("sesame"));
    }
}

#[test]
fn options_of_a_template_are_valid_by_themselves() {
    let parse = |json: &str| TemplateOptions::parse(json.as_bytes()).map_err(|error| error.to_string());
    let options = parse(" {\"width\" : 9.0, \"margin\":{ \"top\": 1 }\n, \"format\":\"pdf\"}").unwrap();
    assert_eq!(options.as_json(), r#"{"format":"pdf","width":9.0,"margin":{"top":1}}"#);
    assert_eq!(
        options.lines(),
        "{\n  \"format\": \"pdf\",\n  \"width\": 9.0,\n  \"margin\": {\"top\":1}\n}\n"
    );
    assert_eq!(TemplateOptions::stored(options.as_json().to_owned()), Some(options));
    assert_eq!(parse("{}"), Ok(TemplateOptions::default()));
    for (json, message) in [
        ("[]", "The body must be a JSON object"),
        (r#"{"fileName":"a"}"#, "Unknown field \"fileName\""),
        (r#"{"html":"a"}"#, "Unknown field \"html\""),
        (r#"{"format":"pdf","protection":{"userPassword":"a"}}"#, "Unknown field \"protection\""),
        (r#"{"format":"pdf","attachments":[]}"#, "Unknown field \"attachments\""),
        (r#"{"format":"pdf","invoiceXml":""}"#, "Unknown field \"invoiceXml\""),
        (r#"{"quality":7}"#, "\"quality\" must not be given with \"format\": \"png\""),
        (r#"{"pdfWidth":"9cm"}"#, "\"pdfHeight\" is required with \"pdfWidth\""),
        (r#"{"width":0}"#, "\"width\" must be a whole number from 1 to 7680"),
    ] {
        assert!(parse(json).unwrap_err().starts_with(message), "{json}: {:?}", parse(json));
    }
}
