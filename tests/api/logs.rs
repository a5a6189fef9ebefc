//! The log of the server.

use nix::sys::signal::Signal;
use platen_shared::refusal::{FirstError, PageTexts};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    const FLAG: &str = "a flag of platen up";
    vec![
        Case::own_server("logs/with_the_json_format_every_line_is_one_object", json_lines).not_on_spin(FLAG),
        Case::own_server("logs/a_text_of_a_page_is_for_its_caller_only", texts_of_pages).not_on_spin(FLAG),
        Case::own_server("logs/a_text_of_a_refusal_is_for_its_caller_only", texts_of_refusals),
    ]
}

async fn json_lines(stage: Stage) -> Result<()> {
    let farm = StandInFarm::start(FARM_TOKEN).await?;
    let mut options = Options::with_farm(stage.deployment, farm.url());
    options.arguments.extend(["--log-format".to_owned(), "json".to_owned()]);
    let mut app = stage.start(&options).await?;
    let (_, target) = app.account(Quota::Unlimited).await?;
    let rendered = target.minimal().send().await?;
    rendered.file("image/png")?;
    let refused = target.render(&json!({ "html": 1 })).send().await?;
    // The dashboard's lines have the first segment of a path, if the router knows it.
    let sections = [("people", "people"), ("theme", "theme"), ("S3cret", "none")];
    for (segment, _) in sections {
        let call = target.post(&format!("/dashboard/{segment}"), "").method(http::Method::GET);
        call.request_id(&format!("section-{segment}")).send().await?;
    }
    app.process.signal(Signal::SIGTERM)?;
    app.process.wait_for(|log| log.contains("\"stopped\"").then_some(())).await?;
    ensure!(app.process.ended().await?.success(), "{}", app.process.log());

    let log = app.process.log();
    let lines = log.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned()));
    let lines = lines.collect::<Result<Vec<Value>>>()?;
    for line in &lines {
        let has_text = |name: &&str| line[*name].as_str().is_some_and(|text| !text.is_empty());
        ensure!(["timestamp", "level", "message"].iter().all(has_text), "{line}");
    }
    for (answer, status) in [(&rendered, 200), (&refused, 400)] {
        let id = answer.header(wire::REQUEST_ID)?;
        let found = lines.iter().find(|line| line["request_id"] == id && line["component"] == "edge");
        let line = found.with_context(|| format!("no line of the edge about {id} in\n{log}"))?;
        ensure!(line["status"] == status && line["endpoint"] == "render" && line["ms"].is_u64(), "{line}");
    }
    for (segment, section) in sections {
        let found = lines.iter().find(|line| line["request_id"] == format!("section-{segment}"));
        let line = found.with_context(|| format!("no line about {segment} in\n{log}"))?;
        ensure!(line["section"] == section, "{line}");
    }
    Ok(())
}

/// A part of a template's value, which a page shows in an error.
const TEXT: &str = "S3cret";

/// Nothing but answers has the text: no line of the log with all levels, no row, no metric.
async fn texts_of_pages(stage: Stage) -> Result<()> {
    let options = Options::own_farm(stage.deployment).arguments(&["--log", "trace"]);
    let app = stage.start(&options).await?;
    let (account, target) = app.account(Quota::Unlimited).await?;
    let html = "<p>{{ a }}</p><script>data = document.querySelector('p').textContent</script>";
    let id = app.operator.template(&account.id, "t", html).await?;
    let mut renders = 0;
    for function in ["JSON.parse(data)", "(() => { throw data })()", "document.querySelector(data + '[')"] {
        let body = json!({ "templateId": id, "variables": { "a": TEXT }, "waitForFunction": function });
        let answer = target.render_template(&body).send().await?;
        let is_named = String::from_utf8_lossy(&answer.body).contains(TEXT);
        ensure!(answer.status == 422 && is_named, "{function}: {}", answer.summary());
        renders += 1;
    }
    app.until_rows(&account, "status = 422 AND code = 'function_failed'", renders).await?;
    let html = "<p>{{ a }}</p><img src='http://{{ a }}.invalid/{{ a }}'><script>throw document.querySelector('p').textContent</script>";
    let id = app.operator.template(&account.id, "u", html).await?;
    let numbers =
        ["page_errors = 1 AND failed_requests IS NULL", "page_errors IS NULL AND failed_requests = 1"];
    for (problem, numbers) in ["pageErrors", "failedRequests"].into_iter().zip(numbers) {
        let body = json!({ "templateId": id, "variables": { "a": TEXT }, "failOn": [problem] });
        let answer = target.render_template(&body).send().await?;
        let is_named = String::from_utf8_lossy(&answer.body).to_lowercase().contains(&TEXT.to_lowercase());
        ensure!(answer.status == 422 && is_named, "{problem}: {}", answer.summary());
        app.until_rows(&account, &format!("status = 422 AND code = 'fail_on' AND {numbers}"), 1).await?;
    }
    only_in_answers(&app).await
}

/// The same for each refusal that has a text.
async fn texts_of_refusals(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let target = stand_in.app.target(&stand_in.account);
    let first_error = || FirstError(Some(TEXT.into()));
    for refusal in [
        Refusal::FunctionFailed { message: TEXT.into(), first_error: first_error() },
        Refusal::ElementNotVisible { first_error: first_error() },
        Refusal::FailOn { errors: 1, failed_requests: 0, first: PageTexts(vec![TEXT.into()]) },
        Refusal::StandardNotMet { rule: TEXT.into() },
        Refusal::TemplateFailed { field: None, line: 1, message: TEXT.into() },
    ] {
        stand_in.farm.behave(&stand_in.account.id, Behaviour::Refuse(refusal.clone()));
        let answer = target.minimal().send().await?;
        answer.error(refusal.reason().status(), &refusal.to_string())?;
    }
    stand_in.app.until_rows(&stand_in.account, "status = 422", 4).await?;
    only_in_answers(&stand_in.app).await
}

async fn only_in_answers(app: &TestApp) -> Result<()> {
    for (table, columns) in [
        (
            "attempts",
            "coalesce(code, '') || coalesce(field, '') || coalesce(host, '') || coalesce(template_id, '') || request_id",
        ),
        ("usage_parts", "key_id || template_id"),
    ] {
        let sql = format!("SELECT count(*) FROM {table} WHERE instr({columns}, '{TEXT}')");
        ensure!(app.execute(&sql).await? == Some(0), "{table} has the text");
    }
    let log = app.follow_logs().iter().map(|log| log.borrow().clone()).collect::<String>();
    ensure!(log.contains("the farm answered 422"), "{log}");
    let line = log.lines().find(|line| line.contains(TEXT));
    ensure!(line.is_none(), "{line:?}");
    if let Ok(url) = app.metrics_url() {
        let metrics = reqwest::Client::new().get(url).bearer_auth(FARM_TOKEN).send().await?.text().await?;
        ensure!(!metrics.contains(TEXT), "{metrics}");
    }
    Ok(())
}
