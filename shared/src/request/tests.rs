//! The rules of the parser. The black-box tests have one golden case for each message.

use super::*;

fn error(endpoint: Endpoint, body: &str) -> String {
    RenderRequest::parse(endpoint, body.as_bytes()).unwrap_err().to_string()
}

#[test]
fn defaults_are_those_of_the_contract() {
    let request = RenderRequest::parse(Endpoint::Render, br#"{"html":"x"}"#).unwrap();
    assert_eq!(request.content_disposition(None), "attachment; filename=\"render.png\"");
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
                "fail_on_http_status": false,
                "animations": "finish",
                "scroll": true,
                "output": {
                    "image": {
                        "format": "png", "quality": 80.0, "omit_background": false, "region": "viewport",
                    },
                },
            },
        })
    );
    assert_eq!(serde_json::from_value::<RenderJob>(json).unwrap(), job);
}

#[test]
fn messages_name_the_field_and_the_rule() {
    let table = [
        ("", "The body is empty; it must be a JSON object"),
        ("[]", "The body must be a JSON object"),
        ("\u{feff}{}", "The body must be JSON without a byte order mark"),
        ("{}", "\"html\" or \"url\" is required"),
        (r#"{"html":"x","fullpage":true}"#, "Unknown field \"fullpage\". Did you mean \"fullPage\"?"),
        (r#"{"html":"x","foo":1}"#, "Unknown field \"foo\""),
        (r#"{"html":"x","html":"y"}"#, "Field \"html\" is given twice"),
        (r#"{"html":"x","scale":3}"#, "\"scale\" must be a number from 0.1 to 2"),
        (r#"{"html":"x","width":1.5}"#, "\"width\" must be a whole number from 1 to 7680"),
        (r#"{"html":"x","width":1e400}"#, "\"width\" must be a whole number from 1 to 7680"),
        (r#"{"html":"\ud800"}"#, "\"html\" must be valid Unicode text"),
        (r#"{"html":null}"#, "\"html\" must be a string"),
        (r#"{"html":"x","url":1}"#, "\"url\" must be a string"),
        (r#"{"html":"x"} x"#, "The body is not valid JSON: trailing characters at line 1 column 14"),
    ];
    for (body, message) in table {
        assert_eq!(error(Endpoint::Render, body), message, "{body}");
    }
}

#[test]
fn field_names_are_those_of_the_contract() {
    let names = |endpoint| FieldName::of_endpoint(endpoint).map(FieldName::as_str).collect::<Vec<_>>();
    let shared = [
        "format",
        "pdfFormat",
        "printBackground",
        "scale",
        "fileName",
        "width",
        "height",
        "deviceScaleFactor",
        "fullPage",
        "waitUntil",
        "waitForTimeout",
        "landscape",
        "margin",
        "pdfWidth",
        "pdfHeight",
        "preferCssPageSize",
        "singlePage",
        "headerHtml",
        "footerHtml",
        "pageRanges",
        "tagged",
        "outline",
        "quality",
        "omitBackground",
        "selector",
        "clip",
        "mediaType",
        "colorScheme",
        "reducedMotion",
        "waitForSelector",
        "timezone",
        "locale",
        "css",
        "javaScript",
        "animations",
        "scroll",
        "userAgent",
        "mobile",
        "failOnHttpStatus",
    ];
    assert_eq!(names(Endpoint::Render), [&["html", "url"][..], &shared].concat());
    assert_eq!(names(Endpoint::Template), [&["templateId", "variables"][..], &shared].concat());
}

#[test]
fn numbers_in_variables_keep_their_spelling() {
    let body = br#"{"templateId":"t","variables":{"a":10.50,"b":"x\n","c":-0}}"#;
    let request = RenderRequest::parse(Endpoint::Template, body).unwrap();
    let job = request.into_job(AccountId::from_text("acc"), Some("{{a}}|{{b}}|{{c}}")).unwrap();
    assert_eq!(job.source, Source::Html(Html::try_from("10.50|x\n|-0".to_owned()).unwrap()));
    assert_eq!(
        error(Endpoint::Template, r#"{"templateId":"t","variables":{"a":[1]}}"#),
        "\"variables\" must hold strings and numbers only; \"a\" is neither"
    );
    assert_eq!(
        error(Endpoint::Template, r#"{"templateId":"t","variables":{"a":1,"\u0061":1}}"#),
        "\"variables\" holds \"a\" twice"
    );
    assert_eq!(error(Endpoint::Template, r#"{"templateId":"t","html":"x"}"#), "Unknown field \"html\"");
}

#[test]
fn a_deeply_nested_body_does_not_exhaust_the_stack() {
    let deep = format!("{{\"html\":{}{}}}", "[".repeat(500_000), "]".repeat(500_000));
    assert_eq!(error(Endpoint::Render, &deep), "\"html\" must be a string");
}

#[test]
fn a_pdf_is_as_wide_as_its_sheet_between_the_margins() {
    for (fields, width) in [
        ("", 718),
        (r#","landscape":true"#, 1_047),
        (r#","pdfFormat":"Letter""#, 740),
        (r#","margin":0"#, 794),
        (r#","margin":{"left":"1in"}"#, 698),
        (r#","scale":0.5"#, 1_436),
        (r#","scale":0.1,"pdfFormat":"A0""#, 7_680),
        (r#","pdfWidth":"80mm","pdfHeight":"200mm","margin":"4mm""#, 272),
        (r#","pdfWidth":"10mm","pdfHeight":"10mm""#, 1),
        (r#","preferCssPageSize":true,"margin":"20cm""#, 1),
        (r#","width":1280"#, 1_280),
    ] {
        let body = format!(r#"{{"html":"x","format":"pdf"{fields}}}"#);
        let request = RenderRequest::parse(Endpoint::Render, body.as_bytes()).unwrap();
        let viewport = request.into_job(AccountId::from_text("acc"), None).unwrap().options.viewport;
        assert_eq!((viewport.width.get(), viewport.height.get()), (width, 720), "{fields}");
    }
}
