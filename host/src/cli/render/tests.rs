//! The jobs of commands. `tests/` of this crate has the files.

use clap::FromArgMatches as _;
use platen_shared::job::Source;
use serde_json::json;

use super::*;

fn job(arguments: &[&str]) -> Result<RenderJob> {
    let command = RenderCommand::augment_args(clap::Command::new("render")).no_binary_name(true);
    RenderCommand::from_arg_matches(&command.try_get_matches_from(arguments)?)?.job()
}

#[test]
fn the_options_follow_the_api() {
    let url = "https://example.com/";
    for (arguments, mut body) in [
        (&["a.PDF"][..], json!({ "format": "pdf" })),
        (&["-"], json!({})),
        (&["-", "--format", "jpg"], json!({ "format": "jpg" })),
        (
            &["a.webp", "--width", "7680", "--device-scale-factor", "0.5", "--full-page"],
            json!({ "format": "webp", "width": 7680, "deviceScaleFactor": 0.5, "fullPage": true }),
        ),
        (
            &["a.png", "--clip", "1,2,30,40", "--omit-background", "--java-script=false"],
            json!({ "clip": { "x": 1, "y": 2, "width": 30, "height": 40 }, "omitBackground": true, "javaScript": false }),
        ),
        (
            &["a.pdf", "--pdf-format", "letter", "--scale", "2", "--margin", "12mm", "--tagged"],
            json!({ "format": "pdf", "pdfFormat": "letter", "scale": 2, "margin": "12mm", "tagged": true }),
        ),
        (
            &["a.pdf", "--margin", r#"{"top":"1in"}"#, "--header-html", "<b>x</b>"],
            json!({ "format": "pdf", "margin": { "top": "1in" }, "headerHtml": "<b>x</b>" }),
        ),
    ] {
        body["url"] = url.into();
        let request = RenderRequest::parse(Endpoint::Render, body.to_string().as_bytes()).unwrap();
        let expected = request.into_job(AccountId::from_text("operator"), None).unwrap();
        let given = job(&[&[url, "-o"], arguments].concat()).unwrap();
        let [given, expected] = [given, expected].map(|job| serde_json::to_value(job).unwrap());
        assert_eq!(given, expected, "{arguments:?}");
    }
    for bad in [
        &["a.gif"][..],
        &["a.png", "--width", "0"],
        &["a.png", "--width", "NaN"],
        &["a.pdf", "--scale", "2.1"],
        &["a.png", "--wait-for-timeout", "10001"],
        &["a.png", "--wait-until", "idle"],
        &["a.png", "--clip", "1,2,3"],
        &["a.png", "--quality", "50"],
        &["a.pdf", "--margin", "-1"],
        &["a.pdf", "--css", "@/no/such/file.css"],
        &["a.png", "--width", "7680", "--height", "7680", "--device-scale-factor", "4"],
    ] {
        job(&[&[url, "-o"], bad].concat()).unwrap_err();
    }
    job(&[url, "-o", "a.png", "--variables", "{}"]).unwrap_err();
    job(&["/no/such/file.html", "-o", "a.png"]).unwrap_err();
}

#[test]
fn variables_fill_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let (page, data) = (directory.path().join("page.html"), directory.path().join("data.json"));
    std::fs::write(&page, "<p>{{ name }} {{ total }}").unwrap();
    std::fs::write(&data, r#"{"name": "A&B", "total": 10.50}"#).unwrap();
    let page = page.to_str().unwrap();
    let filled = |variables: &str| job(&[page, "-o", "a.pdf", "--variables", variables]);
    let Source::Html(html) = filled(&format!("@{}", data.display())).unwrap().source else {
        panic!("not HTML")
    };
    assert_eq!(html.as_str(), "<p>A&amp;B 10.50");
    let error = filled(r#"{"name": "x"}"#).unwrap_err().to_string();
    assert!(error.contains("total"), "{error}");
    filled("[1]").unwrap_err();
    filled("{").unwrap_err();
    filled(r#"{"name": 1}, "url": "x""#).unwrap_err();
}

#[test]
fn data_makes_a_file_a_template_in_jinja() {
    let directory = tempfile::tempdir().unwrap();
    let (page, values) = (directory.path().join("page.html"), directory.path().join("values.json"));
    std::fs::write(&page, "{% for row in rows %}{{ row.price }}{% endfor %}").unwrap();
    let json = r#"{"rows": [{"price": 10.50}]}"#;
    std::fs::write(&values, json).unwrap();
    let page = page.to_str().unwrap();
    let data = format!("@{}", values.display());
    let given = job(&[page, "-o", "a.pdf", "--data", &data, "--variables", "{\"n\":1}"]).unwrap();
    let Source::Jinja(template) = given.source else { panic!("{given:?}") };
    assert_eq!((template.data.as_json(), template.variables.len()), (json, 1));
    job(&[page, "-o", "a.pdf", "--data", "[]"]).unwrap_err();
    job(&["https://example.com/", "-o", "a.png", "--data", "{}"]).unwrap_err();
    job(&[page, "-o", "a.pdf", "--template-options", &data[1..]]).unwrap_err();
}
