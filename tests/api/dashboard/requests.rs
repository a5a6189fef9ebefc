//! Requests that are refused before an attempt is recorded: their rows, and the limit of those.

use futures::future::try_join_all;
use http::header::CONTENT_TYPE;
use platen_harness::client::Call;

use super::support::{Person, between, insert, new_email, now, person};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/requests/refused_ones_are_listed", refused),
        Case::any_database("dashboard/requests/a_flood_of_refused_ones_is_limited", flood),
        Case::any_database("dashboard/requests/the_newest_refused_ones_are_kept", newest),
        Case::any_database("dashboard/requests/the_version_of_the_template_is_linked", version),
    ]
}

const VALUE: &str = "value-of-the-caller";

const UNKNOWN: &str = "a field that the endpoint does not know.";

/// Request id, request, status, code, field and a part of the sentence.
type Refused = (&'static str, Call, u16, &'static str, &'static str, &'static str);

/// Requests that are refused when the quota is spent.
fn calls(target: &Target, template: &str) -> Vec<Refused> {
    let text = target.post(RENDER, VALUE).header(CONTENT_TYPE, b"text/plain");
    let field = target.render(&json!({ "html": VALUE, "width": VALUE }));
    let unknown = target.render(&json!({ "html": VALUE, (VALUE): VALUE }));
    let member = target.render(&json!({ "html": VALUE, "format": "pdf", "protection": { (VALUE): VALUE } }));
    let of_array = json!({ "html": VALUE, "format": "pdf", "attachments": [{ (VALUE): VALUE }] });
    let of_array = target.render(&of_array);
    let variable = json!({ "templateId": template, "variables": { (VALUE): [VALUE] } });
    let variable = target.render_template(&variable);
    let conflict = json!({ "html": VALUE, "format": "pdf", "singlePage": true, "pageRanges": "1" });
    let conflict = target.render(&conflict);
    let no_template = target.render_template(&json!({ "templateId": VALUE }));
    let missing = target.render_template(&json!({ "templateId": template }));
    let quota = target.render(&json!({ "url": format!("https://host.example/{VALUE}") }));
    vec![
        ("r-type", text, 415, "unsupported_content_type", "", "The content type was not application/json."),
        ("r-json", target.post(RENDER, VALUE), 400, "invalid_json", "", "was not a JSON object in UTF-8."),
        ("r-field", field, 400, "invalid_field", "width", "The value of a field broke its rule."),
        ("r-unknown", unknown, 400, "unknown_field", "…", UNKNOWN),
        ("r-member", member, 400, "unknown_field", "protection.…", UNKNOWN),
        ("r-array", of_array, 400, "unknown_field", "attachments[0].…", UNKNOWN),
        ("r-variable", variable, 400, "invalid_field", "variables", "The value of a field broke its rule."),
        ("r-conflict", conflict, 400, "conflicting_fields", "singlePage", "excluded each other."),
        ("r-template", no_template, 404, "template_not_found", "templateId", "had no such template."),
        (
            "r-missing",
            missing,
            400,
            "missing_template_variable",
            "variables",
            "for which no value was given.",
        ),
        ("r-none", target.post(TEMPLATE, ""), 400, "invalid_json", "", "was not a JSON object in UTF-8."),
        ("r-quota", quota, 429, "quota_exhausted", "", "All attempts of the month were used."),
    ]
}

async fn refused(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Of(1)).await?;
    let template = person.new_template("with variables", "<p>{{ a }}</p>").await?;
    let target = app.target(&account);
    let html = json!({ "html": "x" });
    let unknown = target.with_unknown_key();
    unknown.render(&html).send().await?.error(401, "Invalid API key")?;
    unknown.render(&json!({})).send().await?.error(401, "Invalid API key")?;
    target.render(&html).key("junk").send().await?.error(401, "Invalid API key")?;
    target.render(&html).request_id("good").send().await?.file("image/png")?;
    for (id, call, status, code, field, sentence) in calls(&target, &template) {
        let answer = call.request_id(id).send().await?;
        ensure!(answer.status == status, "{id}: {}", answer.summary());
        app.until_rows(&account, &format!("request_id = '{id}'"), 1).await?;
        let found = person.get(&format!("/dashboard/requests?id={id}")).await?.is(200)?.body;
        ensure!(found.contains(&format!("<code>{id}</code>")) && found.contains(sentence), "{id}: {found}");
        ensure!(found.matches("data-label=\"Request\"").count() == 1, "{id}: {found}");
        let page = between(&found, "<td data-label=\"Request\"><a href=\"", "\"")?;
        let page = person.get(&page).await?.is(200)?.body;
        for part in [
            sentence,
            id,
            &format!("{status} "),
            &format!("<code>{code}</code>"),
            "Does not count",
            "<code>/v1/render",
        ] {
            ensure!(page.contains(part), "{id}: no {part} in {page}");
        }
        let csv = person.get(&format!("/dashboard/requests.csv?id={id}")).await?.is(200)?.body;
        let line = csv.lines().nth(1).context("a line")?;
        ensure!(
            line.contains(&format!(",{status},no,")) && line.contains(&format!(",{id},{code},{field},")),
            "{csv}"
        );
        for text in [found, page, csv] {
            ensure!(!text.contains(VALUE), "{id} shows what was sent: {text}");
        }
    }
    // Nothing else has a row, nothing of them is counted, and the key was used.
    ensure!(app.rows(&account, "true").await? == 13, "other rows");
    ensure!(app.rows(&account, "rejected = 1 AND counted = 0 AND refunded_month IS NULL").await? == 12);
    let leaks = "template_id LIKE '%value-of%' OR host LIKE '%value-of%' OR field LIKE '%value-of%'";
    ensure!(app.rows(&account, leaks).await? == 0, "values were stored");
    ensure!(app.rows(&account, "host = 'host.example' AND status = 429").await? == 1, "no host");
    ensure!(app.rows(&account, &format!("template_id = '{template}' AND status = 400")).await? == 1);
    ensure!(app.operator.attempts(&account.id).await? == 1, "the quota");
    for table in ["usage_days", "usage_parts"] {
        let sql = format!(
            "SELECT sum(attempts) * 10 + sum(failures) FROM {table} WHERE account_id = '{}'",
            account.id
        );
        ensure!(app.execute(&sql).await? == Some(10), "{table}");
    }
    let good = person.get("/dashboard/requests?status=ok").await?.is(200)?.body;
    ensure!(good.contains("<code>good</code>") && !good.contains("<code>r-"), "{good}");
    Ok(())
}

/// Refused requests at once: some have rows, and every successful one has its row.
async fn flood(stage: Stage) -> Result<()> {
    const GOOD: i64 = 20;
    let (app, account, target) = stage.account_with_key(Quota::Unlimited).await?;
    let refused = (0..200).map(|_| target.post(RENDER, "{}").send());
    let good = (0..GOOD).map(|_| target.minimal().send());
    let (refused, good) = tokio::try_join!(try_join_all(refused), try_join_all(good))?;
    ensure!(refused.iter().all(|answer| answer.status == 400), "another answer");
    ensure!(good.iter().all(|answer| answer.status == 200), "a render failed");
    app.until_rows(&account, "status = 200", GOOD).await?;
    // Its row is written after those of the requests before.
    target.minimal().request_id("last").send().await?.file("image/png")?;
    app.until_rows(&account, "request_id = 'last'", 1).await?;
    let most = format!(
        "SELECT max(c) FROM (SELECT count(*) AS c FROM attempts WHERE account_id = '{}' AND rejected = 1 GROUP BY at / 60)",
        account.id
    );
    // Other instances may still be writing theirs.
    wait::until_true("30 rows in a minute", async || {
        let most = app.execute(&most).await?.context("a count")?;
        ensure!(most <= 30, "{most} rows in a minute");
        Ok(most == 30)
    })
    .await?;
    ensure!(app.rows(&account, "status = 200").await? == GOOD + 1, "a row was lost");
    // The database has the same limit for the rows of several servers.
    let other = app.operator.account(Quota::Unlimited).await?;
    let minute = format!("{} + i % 60", now()? / 60 * 60 - 600);
    insert(&app, &other, 100, &[("rejected", "1"), ("status", "400"), ("at", &minute)]).await?;
    ensure!(app.rows(&other, "true").await? == 30, "rows of one minute");
    insert(&app, &other, 100, &[("at", &minute)]).await?;
    ensure!(app.rows(&other, "true").await? == 130, "rows of attempts are not limited");
    Ok(())
}

async fn newest(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let (account, other) =
        (app.operator.account(Quota::Unlimited).await?, app.operator.account(Quota::Unlimited).await?);
    let old = format!("{} + i * 10", now()? - 60_000);
    for account in [&account, &other] {
        insert(app, account, 50, &[("at", &old)]).await?;
    }
    insert(app, &other, 50, &[("rejected", "1"), ("status", "400"), ("at", &old)]).await?;
    insert(app, &account, 5_040, &[("rejected", "1"), ("status", "400"), ("at", &old)]).await?;
    let newest = format!("rejected = 1 AND at > {} + 400", now()? - 60_000);
    ensure!(app.rows(&account, "rejected = 1").await? == 5_000, "kept");
    ensure!(app.rows(&account, &newest).await? >= 4_999, "others than the newest are kept");
    ensure!(app.rows(&account, "rejected = 0").await? == 50, "rows of attempts were deleted");
    ensure!(app.rows(&other, "true").await? == 100, "rows of another account were deleted");
    Ok(())
}

/// The version that a request has rendered, whatever happens to the template afterwards.
async fn version(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let (app, account) = (stand_in.app.service(), &stand_in.account);
    let mut owner = Person::of(&app, account).await?;
    let mut operator = Person::invited(&app, &new_email("op"), &["--operator"]).await?;
    let template = owner.new_template("versions", "<p>0</p>").await?;
    let path = format!("/dashboard/templates/{template}");
    let target = app.target(account);
    let call = |id: &str| target.render_template(&json!({ "templateId": template })).request_id(id);
    // The template is saved while its first content is rendered.
    let latch = stand_in.farm.hold(account.id.as_str());
    let held = call("held").send();
    let save = async {
        stand_in.farm.until_received_from(account.id.as_str()).await?;
        owner.post(&path, &[("name", "versions"), ("html", "<p>1</p>")]).await?.is(303)?;
        latch.open();
        anyhow::Ok(())
    };
    let (held, saved) = tokio::join!(held, save);
    saved?;
    held?.file("image/png")?;
    call("second").send().await?.file("image/png")?;
    // Other samples are no other version.
    let samples = [("name", "versions"), ("html", "<p>1</p>"), ("sample.a", "b")];
    owner.post(&path, &samples).await?.is(303)?;
    call("samples").send().await?.file("image/png")?;
    owner.post(&format!("{path}/versions/1/restore"), &[]).await?.is(303)?;
    call("restored").send().await?.file("image/png")?;
    target
        .render_template(&json!({ "templateId": template, "width": "a" }))
        .request_id("refused")
        .send()
        .await?;
    target.render(&json!({ "html": "<p>0</p>" })).request_id("markup").send().await?.file("image/png")?;
    app.until_rows(
        account,
        "request_id IN ('held', 'second', 'samples', 'restored', 'refused', 'markup')",
        6,
    )
    .await?;
    let kept = |number: u32| format!("<a href=\"{path}/versions/{number}\">Version {number}</a>");
    let current = format!("<a href=\"{path}\">Current version</a>");
    let gone = |number: u32| format!("Version {number} <span class=\"dim\">not kept any more</span>");
    let shown = [
        ("held", Some(kept(1))),
        ("second", Some(kept(2))),
        ("samples", Some(kept(2))),
        ("restored", Some(current.clone())),
        ("refused", None),
        ("markup", None),
    ];
    shows(&mut owner, &shown).await?;
    for (number, html) in [(1, "0"), (2, "1")] {
        let page = owner.get(&format!("{path}/versions/{number}")).await?.is(200)?.body;
        ensure!(page.contains(&format!("&#60;p&#62;{html}&#60;/p&#62;")), "version {number}: {page}");
    }
    // Only the last version is kept.
    let retention = [("versions", "1"), ("attempts", "30"), ("confirmed", "1")];
    operator.post("/dashboard/operator/retention", &retention).await?.is(303)?;
    owner.post(&path, &[("name", "versions"), ("html", "<p>2</p>")]).await?.is(303)?;
    let shown = [("held", Some(gone(1))), ("second", Some(gone(2))), ("restored", Some(kept(3)))];
    shows(&mut owner, &shown).await?;
    call("latest").send().await?.file("image/png")?;
    app.until_rows(account, "request_id = 'latest'", 1).await?;
    shows(&mut owner, &[("latest", Some(current))]).await?;
    let csv = owner.get("/dashboard/requests.csv").await?.is(200)?.body;
    let ends = |id: &str, end: &str| {
        csv.lines().any(|line| line.contains(&format!(",{id},")) && line.ends_with(end))
    };
    for (id, end) in [("held", ",1"), ("samples", ",2"), ("latest", ",4"), ("markup", ",")] {
        ensure!(ends(id, end), "{id}: {csv}");
    }
    owner.post(&format!("{path}/delete"), &[]).await?.is(303)?;
    shows(&mut owner, &[("latest", None)]).await?;
    Ok(())
}

/// What the pages of requests, by their ids, say about the template's version.
async fn shows(person: &mut Person, requests: &[(&str, Option<String>)]) -> Result<()> {
    for (id, expected) in requests {
        let found = person.get(&format!("/dashboard/requests?id={id}")).await?.is(200)?.body;
        let page = between(&found, "<td data-label=\"Request\"><a href=\"", "\"")?;
        let page = person.get(&page).await?.is(200)?.body;
        let shown = between(&page, "<dt>Version of the template</dt><dd>", "</dd>").ok();
        ensure!(shown == *expected, "{id}: {shown:?}, not {expected:?}");
    }
    Ok(())
}
