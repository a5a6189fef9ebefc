//! A template in Jinja in the dashboard: saved, refused, versioned, copied, and shown in the playground.

use super::support::{Person, between, person};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::any_database("dashboard/languages/a_template_in_jinja_keeps_its_language", keeps_its_language)]
}

const NEW: &str = "/dashboard/templates/new";
const LOOP: &str = "<p>{% for row in rows %}{{ row.price }}{% endfor %}</p>";
const DATA: &str = "{\"rows\": [{\"price\": 10.50}]}";

fn fields<'f>(language: &'f str, html: &'f str, data: &'f str) -> [(&'f str, &'f str); 4] {
    [("name", "Invoice"), ("language", language), ("html", html), ("sampleData", data)]
}

async fn keeps_its_language(stage: Stage) -> Result<()> {
    let (app, _, mut ann) = person(&stage, Quota::Of(1)).await?;
    for (html, data, message) in [
        ("<p>\n{% for row in rows %}", DATA, "Template line 2: "),
        (LOOP, "[]", "The sample values must be an object."),
        (LOOP, "{", "The sample values are not valid JSON: "),
        (LOOP, "{\"a\":1,\"a\":2}", "The sample values holds &#34;a&#34; twice in one object."),
    ] {
        let page = ann.post(NEW, &fields("jinja", html, data)).await?.is(422)?;
        ensure!(page.body.contains(message), "{html} {data}: {}", page.body);
    }
    let footer = [&fields("jinja", LOOP, DATA)[..], &[("format", "pdf"), ("footerHtml", "{{")]].concat();
    let page = ann.post(NEW, &footer).await?.is(422)?;
    ensure!(page.body.contains("of the template, line 1: "), "{}", page.body);

    let created = ann.post(NEW, &fields("jinja", LOOP, DATA)).await?.is(303)?;
    let id = between(created.location(), "/dashboard/templates/", "?")?;
    let path = format!("/dashboard/templates/{id}");
    is_jinja(&mut ann, &path, true).await?;
    let shown = ann.get(&path).await?.body;
    ensure!(
        shown.contains("name=\"data\" value=\"{&#34;rows&#34;: [{&#34;price&#34;: 10.50}]}\""),
        "{shown}"
    );
    let unchanged =
        ann.post(&path, &[&fields("jinja", LOOP, DATA)[..], &[("revision", "1")]].concat()).await?;
    ensure!(unchanged.location().contains("template-unchanged"), "{}", unchanged.location());

    // Another language alone is another version, which a restored one replaces.
    let placeholders = [&fields("placeholders", LOOP, "{}")[..], &[("revision", "1")]].concat();
    ann.post(&path, &placeholders).await?.is(303)?;
    is_jinja(&mut ann, &path, false).await?;
    let version = format!("{path}/versions/1");
    let page = ann.get(&version).await?.is(200)?;
    ensure!(page.body.contains(", in Jinja."), "{}", page.body);
    ann.post(&format!("{version}/restore"), &[]).await?.is(303)?;
    is_jinja(&mut ann, &path, true).await?;
    let copy = ann.post(&format!("{path}/duplicate"), &[]).await?.is(303)?;
    is_jinja(&mut ann, &between(copy.location(), "", "?")?, true).await?;

    let of_playground = ann.get(&format!("/dashboard/playground/template?id={id}")).await?.is(200)?;
    let json: Value = serde_json::from_str(&of_playground.body)?;
    ensure!(json["data"].is_string() && json["variables"].is_null(), "{json}");
    let listed = app.operator.run(&["template", "list"]).await?;
    let listed = listed.as_array().context("no list")?.iter().filter(|it| it["id"] == *id);
    ensure!(listed.map(|it| it["language"].clone()).eq([json!("jinja")]));
    Ok(())
}

async fn is_jinja(ann: &mut Person, path: &str, expected: bool) -> Result<()> {
    let page = ann.get(path).await?.is(200)?;
    let is_chosen = page.body.contains("<option value=\"jinja\" selected>");
    ensure!(is_chosen == expected, "{path}: {}", page.body);
    Ok(())
}
