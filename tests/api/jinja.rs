//! Templates in Jinja: how they are saved, what the farm gets, what it makes of them, and whether a failure counts.

use platen_harness::client::ErrorBody;
use platen_shared::{
    job::{Output, Source, Variable},
    refusal::TemplateLimit,
};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("jinja/data_is_for_templates_in_jinja", only_in_jinja),
        Case::any_database("jinja/is_checked_when_it_is_saved", checked_when_saved),
        Case::own_server("jinja/the_farm_gets_the_values_as_they_are_spelled", sent_as_spelled),
        Case::any_template("jinja/fills_pages_and_headers", fills_pages),
        Case::any_database("jinja/escapes_what_the_document_says", escapes),
        Case::own_server("jinja/a_failure_is_given_back_and_a_limit_counts", counted),
    ]
}

/// A request as text, because `serde_json` spells numbers in its own way.
fn body(id: &str, fields: &str) -> String {
    format!("{{\"templateId\":\"{id}\",{fields}}}")
}

async fn sent_as_spelled(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let account = stand_in.app.operator.account(Quota::Unlimited).await?;
    let html = "{% for row in rows %}{{ row.price }}{% endfor %}{{ n }}";
    let id = stand_in.app.operator.jinja_template(&account.id, "An invoice", html).await?;
    let target = stand_in.app.target(&account);
    let data =
        r#"{ "rows": [{"price": 10.50}, null], "id": 123456789012345678901234567890, "größe": "\u00e9" }"#;
    let fields = format!(
        r#""data":{data},"variables":{{"n":1.0,"t":"1.0"}},"format":"pdf","headerHtml":"{{{{ größe }}}}""#
    );
    let answer = target.post(TEMPLATE, body(&id, &fields)).send().await?;
    answer.file("application/pdf")?;
    ensure!(answer.file_name()? == "an-invoice.pdf", "{}", answer.file_name()?);
    let received = stand_in.farm.received_from(&account.id);
    let job = &received.first().context("the farm received nothing")?.job;
    let (Source::Jinja(template), Output::Pdf(pdf)) = (&job.source, &job.options.output) else {
        anyhow::bail!("another job: {job:?}")
    };
    ensure!(
        template.markup.as_str() == html && template.data.as_json() == data,
        "{}",
        template.data.as_json()
    );
    let variables = [("n", Variable::Number("1.0".into())), ("t", Variable::Text("1.0".into()))];
    ensure!(template.variables == variables.map(|(name, value)| (name.to_owned(), value)).into());
    ensure!(pdf.header.as_ref().is_some_and(|header| header.as_str() == "{{ größe }}"), "{:?}", pdf.header);
    // Neither values nor a header with names of its own are needed before the farm fills them.
    target
        .post(TEMPLATE, body(&id, r#""format":"pdf","headerHtml":"{{ x }}""#))
        .send()
        .await?
        .file("application/pdf")?;
    ensure!(stand_in.app.operator.attempts(&account.id).await? == 2);
    Ok(())
}

/// A farm renders, asked by the API and by `platen render`.
async fn fills_pages(stage: Stage) -> Result<()> {
    let service = stage.real_service().await?;
    let account = service.operator.account(Quota::Of(2)).await?;
    let html = "<title>{{ number }}</title>\n{% for item in items %}<p>{{ loop.index }}: {{ item.name }} \
                {{ item.price | number(2, ',') }}</p>\n{% endfor %}<p>Sum {{ items | sum('price') }}, {{ n + 1 }}</p>";
    let id = service.operator.jinja_template(&account.id, "t", html).await?;
    let target = service.target(&account);
    let data =
        r#"{"number":"R-7","items":[{"name":"<b>A & B</b>","price":1234.5},{"name":"größe","price":0.1}]}"#;
    let options = r#""format":"pdf","headerHtml":"<p>No. {{ number }}</p>","#;
    let fields = |data: &str| format!("{options}\"variables\":{{\"n\":41}},\"data\":{data}");
    let answer = target.post(TEMPLATE, body(&id, &fields(data))).send().await?;
    let text = Pdf::parse(answer.file("application/pdf")?)?.text()?;
    for expected in ["1: <b>A & B</b> 1,234.50", "2: größe 0.10", "Sum 1234.6, 42", "No. R-7"] {
        ensure!(text.contains(expected), "{expected} is not in {text}");
    }
    let missing = fields(&data.replace("\"price\":0.1", "\"cost\":1"));
    let answer = target.post(TEMPLATE, body(&id, &missing)).send().await?;
    answer.error(400, "Template line 2: \"item.price\" is undefined")?;
    ensure!(answer.rate_limit()?.left == 1, "a 400 was counted");
    let endless = service
        .operator
        .jinja_template(
            &account.id,
            "e",
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
        )
        .await?;
    let answer = target.post(TEMPLATE, body(&endless, r#""data":{}"#)).send().await?;
    answer.error(422, "The template takes more steps or memory to be filled than it may")?;
    ensure!(answer.rate_limit()?.left == 0, "a 422 was not counted");
    Ok(())
}

/// Scripts that write this have run: it is in none of the values.
const RAN: &str = "RAN!";

/// Where `docs/templates.md` says that a value is safe, it is shown and does nothing; where the document says that it is not safe, it
/// is not.
async fn escapes(stage: Stage) -> Result<()> {
    let service = stage.real_service().await?;
    let account = service.operator.account(Quota::Unlimited).await?;
    let target = service.target(&account);
    let render = async |template: &str, value: &str| {
        let id = service.operator.jinja_template(&account.id, "t", &format!("<p>page</p>{template}")).await?;
        let data = json!({ "templateId": id, "data": { "v": value }, "format": "pdf" });
        let answer = target.post(TEMPLATE, data.to_string()).send().await?;
        Pdf::parse(answer.file("application/pdf")?)?.text()
    };
    let write = "document.body.append('RA'+'N!')";
    let element = &*format!("</p><script>{write}</script>");
    for (template, value, expected) in [
        ("<p>{{ v }}</p>", element, element),
        ("<textarea cols=70>{{ v }}</textarea>", "</textarea><img src=x onerror=\"write\">", "<img src=x"),
        (r#"<img src="data:," alt="{{ v }}">"#, &format!("\" onerror=\"{write}"), "onerror="),
        ("<img src='data:,' alt='{{ v }}'>", &format!("' onerror='{write}"), "onerror="),
        ("<script>document.body.append('value ' + {{ v | tojson }})</script>", element, element),
        (
            r#"<a href="?q={{ v | urlencode }}&r=1">a</a><script>document.body.append(document.links[0].getAttribute('href'))</script>"#,
            "a b&r=2#\"",
            "?q=a%20b%26r%3D2%23%22&r=1",
        ),
    ] {
        let text = render(template, value).await?;
        let text = text.replace(char::is_whitespace, "");
        ensure!(text.contains(&expected.replace(' ', "")), "{template}: {text}");
        ensure!(!text.contains(RAN), "{template}: a script of a value ran");
    }
    for (template, value) in [
        ("<p>{{ v | safe }}</p>", element),
        ("<img src=data:, alt={{ v }}>", &*format!("x onerror={write}")),
        (r#"<iframe src="{{ v }}"></iframe>"#, "javascript:void parent.document.body.append('RA'+'N!')"),
        ("<script>let x = {{ v }}</script>", "document.body.append(String.fromCharCode(82,65,78,33))"),
        (r#"<img src="data:," onerror="void('{{ v }}')">"#, &format!("'+{write}+'")),
        ("<style>b { display: none; {{ v }} }</style><b>RAN!</b>", "display: block"),
        (r#"<b style="display: none; {{ v }}">RAN!</b>"#, "display: block"),
    ] {
        let text = render(template, value).await?;
        ensure!(text.contains(RAN), "{template} is safe, which the document does not say: {text}");
    }
    Ok(())
}

async fn only_in_jinja(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let account = service.operator.account(Quota::Of(2)).await?;
    let target = service.target(&account);
    let render = async |id: &str, fields: &str| target.post(TEMPLATE, body(id, fields)).send().await;
    let id = service.operator.template(&account.id, "t", "<p>{{ a }}</p>").await?;
    let refused =
        "\"data\" is for templates in Jinja; this one has placeholders, whose values are \"variables\"";
    for fields in [r#""data":{}"#, r#""data":{"b":1},"variables":{"a":1}"#] {
        let answer = render(&id, fields).await?;
        answer.error(400, refused)?;
        let error = ErrorBody::read(answer.status, &answer.body)?;
        ensure!(error.field.as_deref() == Some("data") && error.code.as_deref() == Some("invalid_field"));
    }
    render(&id, r#""variables":{"a":1}"#).await?.file("image/png")?;
    // No other account learns what a template is written in.
    let other = service.operator.account(Quota::Of(1)).await?;
    let answer = service.target(&other).post(TEMPLATE, body(&id, r#""data":{}"#)).send().await?;
    answer.error(404, "Template not found")?;
    let jinja = service.operator.jinja_template(&account.id, "j", "<p>{{ a }}</p>").await?;
    let large = render(&jinja, r#""variables":{"a":1e400}"#).await?;
    large.error(400, "\"variables\" must have numbers up to 1.7e308")?;
    ensure!(service.operator.attempts(&account.id).await? == 1, "a 400 was counted");
    Ok(())
}

async fn checked_when_saved(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let operator = &service.operator;
    let account = operator.account(Quota::Unlimited).await?;
    let Err(refused) = operator.jinja_template(&account.id, "t", "<p>\n{% for x in y %}\n{{ x ").await else {
        anyhow::bail!("a template with an error is saved")
    };
    ensure!(format!("{refused:#}").contains("Template line 3: "), "{refused:#}");
    let listed = operator.run(&["template", "list", "--account", &account.id]).await?;
    ensure!(listed == json!([]), "{listed}");
    let id = operator.jinja_template(&account.id, "t", "{% if a %}b{% endif %}").await?;
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().to_str().context("a UTF-8 path")?;
    let put = ["template", "put", "--account", &account.id, "--name", "t", "--id", &id, path];
    std::fs::write(path, "{% if %}")?;
    ensure!(operator.run(&put).await.is_err(), "a template that is replaced keeps its language");
    let options = tempfile::NamedTempFile::new()?;
    let of_options = options.path().to_str().context("a UTF-8 path")?;
    std::fs::write(of_options, r#"{"format":"pdf","footerHtml":"\n{{ }}"}"#)?;
    std::fs::write(path, "{% if a %}c{% endif %}")?;
    let Err(refused) = operator.run(&[&put[..], &["--options", of_options]].concat()).await else {
        anyhow::bail!("a footer with an error is saved")
    };
    ensure!(format!("{refused:#}").contains("\"footerHtml\" of the template, line 2: "), "{refused:#}");
    let saved = operator.run(&put).await?;
    ensure!(saved["language"] == "jinja" && saved["placeholders"] == json!([]), "{saved}");
    let saved = operator.run(&[&put[..], &["--language", "placeholders"]].concat()).await?;
    ensure!(saved["language"] == "placeholders", "{saved}");
    Ok(())
}

async fn counted(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let account = stand_in.app.operator.account(Quota::Of(3)).await?;
    let id = stand_in.app.operator.jinja_template(&account.id, "t", "{{ a }}").await?;
    let target = stand_in.app.target(&account);
    let message = || "\"item.S3cret\" is undefined".into();
    let header = Some("headerHtml".to_owned());
    for (refusal, status, attempts, row) in [
        (Refusal::TemplateFailed { field: None, line: 12, message: message() }, 400, 0, "template_failed"),
        (Refusal::TemplateFailed { field: header, line: 1, message: message() }, 400, 0, "template_failed"),
        (Refusal::EmptyTemplate, 400, 0, "empty_template"),
        (Refusal::TemplateLimitExceeded { limit: TemplateLimit::Work }, 422, 1, "template_limit_exceeded"),
        (Refusal::TemplateLimitExceeded { limit: TemplateLimit::Text }, 422, 2, "template_limit_exceeded"),
    ] {
        stand_in.farm.behave(&account.id, Behaviour::Refuse(refusal.clone()));
        let answer = target.post(TEMPLATE, body(&id, r#""data":{"a":1}"#)).send().await?;
        answer.error(status, &refusal.to_string())?;
        ensure!(answer.rate_limit()?.left == 3 - attempts, "{}", answer.summary());
        let error = ErrorBody::read(answer.status, &answer.body)?;
        let code = if row == "empty_template" { "invalid_template" } else { "template_failed" };
        ensure!(error.code.as_deref() == Some(code), "{}", answer.summary());
        let is_header = matches!(refusal, Refusal::TemplateFailed { field: Some(_), .. });
        ensure!(error.field.as_deref() == is_header.then_some("headerHtml"), "{}", answer.summary());
        let counted = stand_in.app.operator.attempts(&account.id).await?;
        ensure!(counted == attempts, "{refusal}: {counted} attempts are counted");
    }
    let of = |code: &str| format!("code = '{code}'");
    stand_in.app.until_rows(&account, &of("template_failed"), 2).await?;
    stand_in.app.until_rows(&account, &of("template_limit_exceeded"), 2).await
}
