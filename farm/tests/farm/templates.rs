//! Templates in Jinja: filled as the page written by hand, refused as the contract says, and hostile ones.

mod hostile;
mod invoice;

use std::sync::Arc;

use platen_harness::wait::MAX_WAIT;
use platen_shared::{
    job::{JinjaTemplate, RenderJob, Source},
    refusal::{Refusal, TemplateLimit},
};
use serde_json::{Value, json};

use crate::support::{Shared, green_if, paged, pdf_of, small};

tests! {
    "an invoice from a template is the page written by hand" => invoice::by_hand,
    "headers and footers of a template are filled" => headers,
    "a template that fails has an error with its line" => failures,
    "a template has the largest data and the largest text" => large,
    "a hostile template ends within its CPU time" => hostile::limits,
    "jobs are rendered beside hostile templates" => hostile::neighbours,
}

/// A job with a template in place of its markup.
fn filled(mut job: RenderJob, template: &str, data: &Value) -> RenderJob {
    let template = json!({ "markup": template, "data": data });
    job.source = Source::Jinja(serde_json::from_value::<JinjaTemplate>(template).unwrap());
    job
}

/// A small picture.
fn picture(template: &str, data: &Value) -> RenderJob {
    filled(small(json!({ "html": "x" })), template, data)
}

async fn headers(shared: Arc<Shared>) {
    let fields = json!({
        "html": "x", "margin": "25mm", "timezone": "Asia/Tokyo",
        "headerHtml": "<p>Invoice {{ number }}", "footerHtml": "<p>{{ paid | date('%d.%m. %H:%M') }}",
        "headerFirstHtml": "<p>First {{ number }}", "footerFirstHtml": "{% if not number %}x{% endif %}",
    });
    let data = json!({ "number": 7, "paid": "2026-11-28T23:30:00Z" });
    let template = "<p>A{{ number }}<p style='break-before:page'>B";
    let file = shared.file(&filled(paged(fields.clone()), template, &data)).await;
    let text = pdf_of(&file).text().unwrap();
    for expected in ["A7", "B", "First 7", "Invoice 7", "29.11. 08:30"] {
        assert_eq!(text.matches(expected).count(), 1, "{expected} in {text:?}");
    }
    let refusal = shared.render(&filled(paged(fields), template, &json!({ "number": 7 }))).await.unwrap_err();
    assert_eq!(refusal.to_string(), "\"footerHtml\" of the template, line 1: \"paid\" is undefined");
    let long = json!({ "html": "x", "headerHtml": "{{ 'x' * 70000 }}" });
    let refusal = shared.render(&filled(paged(long), "x", &json!({}))).await.unwrap_err();
    assert_eq!(refusal, Refusal::TemplateLimitExceeded { limit: TemplateLimit::Text });
}

async fn failures(shared: Arc<Shared>) {
    let render = |template: &'static str| {
        let job = picture(template, &json!({ "items": [{ "n": "Pen" }], "none": null }));
        let shared = Arc::clone(&shared);
        async move { shared.farm.render(&job, MAX_WAIT).await.map(|_| ()) }
    };
    for (template, expected) in [
        (
            "<p>\n{% for item in items %}\n{{ item.price }}{% endfor %}",
            "Template line 3: \"item.price\" is undefined",
        ),
        ("{{ 1 / 0 }}", "Template line 1: unable to calculate 1 / 0"),
        ("\n{% if %}", "Template line 2: unexpected end of block"),
    ] {
        let refusal = render(template).await.unwrap_err();
        assert!(matches!(refusal, Refusal::TemplateFailed { .. }), "{refusal:?}");
        assert_eq!(refusal.to_string(), expected);
        assert!(!refusal.is_counted());
    }
    assert_eq!(render("{% if none %}x{% endif %}").await.unwrap_err(), Refusal::EmptyTemplate);
    render("<p>{{ items[0].n }}").await.unwrap();
}

async fn large(shared: Arc<Shared>) {
    let row = json!({ "n": "Pen", "of": "a length that makes it 5 MB", "price": 1.1 });
    let count = 80_000;
    let data = json!({ "rows": vec![row; count] });
    let template = green_if("'{{ rows | length }} {{ rows[-1].n }}' == '80000 Pen'");
    shared.expect_green(&picture(&template, &data)).await;
    let text = json!({ "text": "x".repeat(5_000_000) });
    let template = green_if("document.body.dataset.text.length == 5000000")
        .replace("<body", "<body data-text='{{ text }}'");
    shared.expect_green(&picture(&template, &text)).await;
    let refusal = shared.render(&picture("{{ text }}{{ text }}", &text)).await.unwrap_err();
    assert_eq!(refusal, Refusal::TemplateLimitExceeded { limit: TemplateLimit::Text });
    assert!(refusal.is_counted());
}
