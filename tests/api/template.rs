//! Saved templates: their owner, their variables, and their renders.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use platen_harness::{client::ErrorBody, operator::Operator};
use platen_shared::{
    job::{Output, Source},
    limits,
};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_template("template/rendered_text", rendered_text),
        Case::any_template("template/rendered_markup", rendered_markup),
        Case::any_server("template/unknown_ids", unknown_ids),
        Case::any_database("template/of_another_account", of_another_account),
        Case::any_database("template/saved_again_and_deleted", saved_again_and_deleted),
        Case::own_server("template/without_placeholders", without_placeholders),
        Case::own_server("template/placeholder_forms", placeholder_forms),
        Case::own_server("template/names_of_any_script", names_of_any_script),
        Case::own_server("template/filled_to_the_limit", filled_to_the_limit),
        Case::own_server("template/largest", largest),
        Case::any_database("template/filled_with_nothing", filled_with_nothing),
        Case::any_database("template/has_options", has_options),
        Case::any_database(
            "template/keeps_its_options_or_takes_new_ones",
            keeps_its_options_or_takes_new_ones,
        ),
        Case::any_template("template/largest_assets", largest_assets),
        Case::any_template("template/same_file_with_its_options_or_those_of_the_request", same_file),
    ]
}

fn fixture(target: &Target, variables: &Value) -> Value {
    json!({ "templateId": target.template_id, "variables": variables, "format": "pdf" })
}

async fn rendered_text(stage: Stage) -> Result<()> {
    let target = stage.target().await?;
    // As JSON text, because serde_json formats numbers in its own way.
    let body =
        fixture(&target, &json!({ "customer": "<b>Zoë</b> & \"Søn's\"", "total": "TOTAL", "markup": "" }));
    let body = body.to_string().replace("\"TOTAL\"", "10.50");
    let answer = target.post(platen_harness::client::TEMPLATE, body).send().await?;
    let text = Pdf::parse(answer.file("application/pdf")?)?.text()?;
    ensure!(text.contains("Customer: <b>Zoë</b> & \"Søn's\""), "{text}");
    ensure!(text.contains("Total: 10.50"), "{text}");
    ensure!(answer.file_name()? == "fixture-template.pdf", "{}", answer.file_name()?);
    Ok(())
}

async fn rendered_markup(stage: Stage) -> Result<()> {
    let target = stage.target().await?;
    let variables = json!({ "customer": "c", "total": 1, "markup": "<i>in</i><script>document.write('script')</script>" });
    let answer = target.render_template(&fixture(&target, &variables)).send().await?;
    let text = Pdf::parse(answer.file("application/pdf")?)?.text()?;
    ensure!(text.contains("inscript"), "{text}");
    Ok(())
}

async fn unknown_ids(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let long = "x".repeat(100_000);
    for id in ["", "x", "tpl_", "tpl_aaaaaaaaaaaaaaaaaaaa", "' OR 1=1 --", "%", "*", "\0", "é", "../x", &long]
    {
        let answer = target.render_template(&json!({ "templateId": id })).send().await?;
        answer.error(404, "Template not found").with_context(|| format!("{id:.40}"))?;
    }
    Ok(())
}

async fn names_of_any_script(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let operator = &stand_in.app.operator;
    // One accent is a character of its own in the template, the other one in the request.
    let (account, id) = saved(operator, "{{gro\u{308}ße}} {{ 名前 }} {{{ prénom.x }}}").await?;
    let target = stand_in.app.target(&account);
    let render = async |variables: Value| {
        let body =
            json!({ "templateId": id, "variables": variables, "format": "pdf", "headerHtml": "{{ größe }}" });
        target.render_template(&body).send().await
    };
    render(json!({ "größe": "XL", "名前": "佐藤", "pre\u{301}nom.x": "Zoë" })).await?;
    let received = stand_in.farm.received_from(&account.id);
    let job = &received.first().context("the farm received nothing")?.job;
    let (Source::Html(html), Output::Pdf(pdf)) = (&job.source, &job.options.output) else {
        anyhow::bail!("another job: {job:?}")
    };
    ensure!(html.as_str() == "XL 佐藤 Zoë", "{}", html.as_str());
    ensure!(pdf.header.as_ref().is_some_and(|header| header.as_str() == "XL"), "{:?}", pdf.header);
    let missing = "Missing template variables \"größe\", \"名前\"";
    render(json!({ "prénom.x": "Zoë" })).await?.error(400, missing)?;
    ensure!(operator.attempts(&account.id).await? == 1, "a 400 was counted");
    let twice = json!({ "größe": 1, "gro\u{308}ße": 2, "名前": 3, "prénom.x": 4 });
    render(twice).await?.error(400, "\"variables\" holds \"größe\" twice")
}

/// Saves a template for a new account.
async fn saved(operator: &Operator, html: &str) -> Result<(platen_harness::operator::Account, String)> {
    let account = operator.account(Quota::Unlimited).await?;
    let id = operator.template(&account.id, "T", html).await?;
    Ok((account, id))
}

async fn of_another_account(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let operator = &service.operator;
    let (owner, id) = saved(operator, "<p>{{ secret }}</p>").await?;
    let other = operator.account(Quota::Of(5)).await?;
    let body = json!({ "templateId": id, "variables": { "secret": 1 } });
    let answer = service.target(&other).render_template(&body).send().await?;
    answer.error(404, "Template not found")?;
    // The answer does not reveal which variables it has.
    let answer = service.target(&other).render_template(&json!({ "templateId": id })).send().await?;
    answer.error(404, "Template not found")?;
    ensure!(operator.attempts(&other.id).await? == 0, "a 404 was counted");
    stage.no_job_was_received(&other).await?;
    service.target(&owner).render_template(&body).send().await?.file("image/png")?;
    Ok(())
}

async fn saved_again_and_deleted(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let operator = &service.operator;
    let (account, id) = saved(operator, "old {{ a }}").await?;
    let target = service.target(&account);
    let render = async |variables: Value| {
        target.render_template(&json!({ "templateId": id, "variables": variables })).send().await
    };
    render(json!({ "a": 1 })).await?.file("image/png")?;
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), "new {{ b }}")?;
    let path = file.path().to_str().context("a UTF-8 path")?;
    operator.run(&["template", "put", "--account", &account.id, "--name", "N", "--id", &id, path]).await?;
    render(json!({ "a": 1 })).await?.error(400, "Missing template variable \"b\"")?;
    let answer = render(json!({ "b": 2 })).await?;
    answer.file("image/png")?;
    ensure!(answer.file_name()? == "n.png", "{}", answer.file_name()?);
    operator.run(&["template", "delete", &id]).await?;
    render(json!({ "b": 2 })).await?.error(404, "Template not found")
}

async fn without_placeholders(stage: Stage) -> Result<()> {
    filled(&stage, "<p>plain</p>", json!({}), "<p>plain</p>").await?;
    let stand_in = stage.stand_in().await?;
    let (account, id) = saved(&stand_in.app.operator, "<p>plain</p>").await?;
    let answer = stand_in.app.target(&account).render_template(&json!({ "templateId": id })).send().await?;
    answer.file("image/png").context("variables are optional")?;
    Ok(())
}

/// Renders a template and compares the markup the farm receives.
async fn filled(stage: &Stage, template: &str, variables: Value, expected: &str) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let (account, id) = saved(&stand_in.app.operator, template).await?;
    let body = json!({ "templateId": id, "variables": variables });
    stand_in.app.target(&account).render_template(&body).send().await?.file("image/png")?;
    let received = stand_in.farm.received_from(&account.id);
    let job = &received.first().context("the farm received nothing")?.job;
    let Source::Html(html) = &job.source else { anyhow::bail!("not markup: {:?}", job.source) };
    ensure!(html.as_str() == expected, "{template:?} became {:?}, not {expected:?}", html.as_str());
    Ok(())
}

async fn placeholder_forms(stage: Stage) -> Result<()> {
    // One template, because each needs two commands.
    let template = "{{a}}|{{ a }}|{{\ta\n}}|{{{a}}}|{{{ a }}}|{{ a-b.c_1 }}|{{_}}|{{ 1a }}|{{ a b }}|{{}}|{{ a }|{ a }|\
        {{{ a }}|{{ a }}}|{{€}}|{{#if a}}|a{{b:1}}|{{ a";
    let variables = json!({ "a": "<&>", "a-b.c_1": "x", "_": "y", "b": "z" });
    let expected = "&lt;&amp;&gt;|&lt;&amp;&gt;|&lt;&amp;&gt;|<&>|<&>|x|y|{{ 1a }}|{{ a b }}|{{}}|{{ a }|{ a }|\
        {&lt;&amp;&gt;|&lt;&amp;&gt;}|{{€}}|{{#if a}}|a{{b:1}}|{{ a";
    filled(&stage, template, variables, expected).await
}

async fn filled_to_the_limit(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let (account, id) = saved(&stand_in.app.operator, "{{{ v }}}{{ v }}").await?;
    let target = stand_in.app.target(&account);
    let render = async |value: String| {
        target.render_template(&json!({ "templateId": id, "variables": { "v": value } })).send().await
    };
    let half = limits::MAX_HTML_BYTES / 2;
    render("a".repeat(half)).await?.file("image/png")?;
    let message = "The filled template must be at most 5242880 bytes of UTF-8";
    render("a".repeat(half + 1)).await?.error(400, message)?;
    // Escaping makes it larger.
    render("<".repeat(half)).await?.error(400, message)?;
    let attempts = stand_in.app.operator.attempts(&account.id).await?;
    ensure!(attempts == 1, "a 400 was counted: {attempts} attempts");
    Ok(())
}

/// A template that hardly compresses: sqld accepts rows of up to 5,000,000 bytes.
async fn largest(stage: Stage) -> Result<()> {
    let mut characters =
        (b'0'..=b'9').chain(b'A'..=b'Z').chain(b'a'..=b'z').map(char::from).collect::<Vec<_>>();
    characters.extend(['é', '€']);
    let mut html = String::from("{{ a }}");
    let mut random: u32 = 1;
    while html.len() + 'é'.len_utf8() < limits::MAX_HTML_BYTES {
        // The linear congruential generator of Numerical Recipes; its upper bits are random enough.
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        html.push(characters[(random >> 26) as usize]);
    }
    html.extend(std::iter::repeat_n('x', limits::MAX_HTML_BYTES - html.len()));
    let expected = html.replace("{{ a }}", "1");
    filled(&stage, &html, json!({ "a": 1 }), &expected).await
}

/// The largest files, beside markup and beside a template.
async fn largest_assets(stage: Stage) -> Result<()> {
    let target = stage.target().await?;
    let style = "body { visibility: hidden }";
    let large = BASE64_STANDARD.encode(vec![b'x'; limits::MAX_ASSET_BYTES - style.len()]);
    let assets = |large: &str| json!({ "large": { "content": large }, "style.css": { "text": style } });
    let html = "<link rel=stylesheet href=style.css><p>Text";
    let render = async |large: &str| {
        let body = json!({ "html": html, "format": "pdf", "assets": assets(large) });
        target.post(RENDER, body.to_string()).send().await
    };
    let text = Pdf::parse(render(&large).await?.file("application/pdf")?)?.text()?;
    ensure!(text.trim().is_empty(), "{text}");
    let message = "\"assets\" must have at most 20971520 bytes in all";
    render(&format!("QUFB{large}")).await?.error(400, message)?;
    let mut body = fixture(&target, &json!({ "customer": "a", "total": 1, "markup": "" }));
    body["assets"] = assets(&large);
    target.render_template(&body).send().await?.file("application/pdf")?;
    Ok(())
}

async fn filled_with_nothing(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let (account, id) = saved(&service.operator, "{{ a }}").await?;
    let body = json!({ "templateId": id, "variables": { "a": "" } });
    let answer = service.target(&account).render_template(&body).send().await?;
    answer.error(400, "The filled template is empty")
}

/// Saves a template with options for a new account.
async fn saved_with(
    operator: &Operator,
    html: &str,
    options: &Value,
) -> Result<(platen_harness::operator::Account, String)> {
    let account = operator.account(Quota::Of(9)).await?;
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), options.to_string())?;
    let id = operator.template_with(&account.id, "T", html, Some(file.path())).await?;
    Ok((account, id))
}

async fn has_options(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let options =
        json!({ "format": "pdf", "margin": "9cm", "headerHtml": "{{ head }}", "footerHtml": "{{ foot }}" });
    let (account, id) = saved_with(&service.operator, "<p>{{ text }}</p>", &options).await?;
    let target = service.target(&account);
    let render = async |variables: &[&str], mut fields: Value| {
        let variables: BTreeMap<&str, &str> = variables.iter().map(|name| (*name, *name)).collect();
        fields["templateId"] = id.as_str().into();
        fields["variables"] = json!(variables);
        target.render_template(&fields).send().await
    };
    render(&["text", "head", "foot"], json!({})).await?.file("application/pdf")?;
    // A header that is not printed needs no values.
    let missing = |names: &str| format!("Missing template variable{names}");
    render(&["text"], json!({})).await?.error(400, &missing("s \"foot\", \"head\""))?;
    render(&["text"], json!({ "headerHtml": "<b>x</b>" })).await?.error(400, &missing(" \"foot\""))?;
    render(&["text", "foot"], json!({ "headerHtml": "<b>x</b>" })).await?.file("application/pdf")?;
    render(&["text"], json!({ "headerHtml": "", "footerHtml": "{{ text }}" }))
        .await?
        .file("application/pdf")?;
    render(&["text"], json!({ "format": "png" })).await?.file("image/png")?;
    render(&["text", "foot"], json!({ "headerHtml": "{{ other }}" }))
        .await?
        .error(400, &missing(" \"other\""))?;
    let message = "\"margin\" leaves no space for the page (\"margin\" of the template)";
    let refused = render(&["text", "head", "foot"], json!({ "pdfFormat": "A6" })).await?;
    refused.error(400, message)?;
    ensure!(ErrorBody::read(refused.status, &refused.body)?.field.as_deref() == Some("margin"));
    let attempts = service.operator.attempts(&account.id).await?;
    ensure!(attempts == 4, "{attempts} attempts were counted");
    Ok(())
}

async fn keeps_its_options_or_takes_new_ones(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let operator = &service.operator;
    let (account, id) = saved_with(operator, "a", &json!({ "format": "webp", "width": 300 })).await?;
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().to_str().context("a UTF-8 path")?;
    std::fs::write(file.path(), "{}")?;
    let put = ["template", "put", "--account", &account.id, "--name", "T", "--id", &id, path];
    let format = async || {
        let answer = service.target(&account).render_template(&json!({ "templateId": id })).send().await?;
        ensure!(answer.status == 200, "{}", answer.summary());
        anyhow::Ok(answer.file_name()?.to_owned())
    };
    ensure!(format().await? == "t.webp");
    operator.run(&put).await?;
    ensure!(format().await? == "t.webp", "the options are not kept");
    let shown = String::from_utf8(operator.output(&["template", "show", "--options", &id])?.stdout)?;
    ensure!(shown == "{\n  \"format\": \"webp\",\n  \"width\": 300\n}\n", "{shown}");
    operator.run(&[&put[..], &["--options", path]].concat()).await?;
    ensure!(format().await? == "t.png", "the options are not replaced");
    std::fs::write(file.path(), "{\"fileName\": \"x\"}")?;
    let Err(refused) = operator.run(&[&put[..], &["--options", path]].concat()).await else {
        anyhow::bail!("a field that is no option of a template is saved");
    };
    ensure!(format!("{refused:#}").contains("Unknown field \"fileName\""), "{refused:#}");
    Ok(())
}

/// A template with options, a request that has them, and `platen render`.
async fn same_file(stage: Stage) -> Result<()> {
    let service = stage.real_service().await?;
    let html = "<body style='background:teal'><h1>{{ text }}</h1>";
    let options =
        json!({ "width": 300, "height": 200, "deviceScaleFactor": 2, "css": "h1 { color: white }" });
    let (account, id) = saved_with(&service.operator, html, &options).await?;
    let target = service.target(&account);
    let with = json!({ "templateId": id, "variables": { "text": "A" } });
    let mut without = options.clone();
    without["html"] = html.replace("{{ text }}", "A").into();
    let [with, without] =
        [target.render_template(&with).send().await?, target.render(&without).send().await?];
    ensure!(with.file("image/png")? == without.file("image/png")?, "other bytes");
    let directory = tempfile::tempdir()?;
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text)?;
        path.into_os_string().into_string().map_err(|_| anyhow::anyhow!("not a UTF-8 path"))
    };
    let (page, options) = (file("page.html", html)?, file("options.json", &options.to_string())?);
    let render =
        ["render", &page, "-o", "-", "--variables", "{\"text\":\"A\"}", "--template-options", &options];
    let output = std::process::Command::new(&stage.suite.settings().platen).args(render).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    ensure!(output.stdout == with.body, "platen render gives other bytes");
    Ok(())
}
