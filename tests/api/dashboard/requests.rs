//! The list of requests: refused ones, filters, pages, and the limit of rows of refused ones.

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use http::header::CONTENT_TYPE;
use platen_shared::key::{ApiKey, RANDOM_BYTES};
use platen_tests::{
    case::Case,
    client::{RENDER, TEMPLATE},
    operator::{Account, Quota},
    service::Service,
    suite::Stage,
    wait,
};
use serde_json::json;

use super::support::{Person, between};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/requests/refused_ones_are_listed", refused),
        Case::any_database("dashboard/requests/a_flood_of_refused_ones_is_limited", flood),
        Case::any_database("dashboard/requests/the_newest_refused_ones_are_kept", newest),
        Case::any_database("dashboard/requests/filters_and_pages", filters),
        Case::any_database("dashboard/requests/stored_text_is_not_markup", stored_text),
    ]
}

/// Inserts `count` rows of an account; the columns are expressions of `i`, from 1.
pub(super) async fn insert(
    app: &Service,
    account: &Account,
    count: u32,
    columns: &[(&str, &str)],
) -> Result<()> {
    let mut all = vec![
        ("account_id", format!("'{}'", account.id)),
        ("key_id", format!("'{}'", account.key_id)),
        ("key_name", "'k'".to_owned()),
        ("endpoint", "'render'".to_owned()),
        ("format", "'png'".to_owned()),
        ("status", "200".to_owned()),
        ("counted", "0".to_owned()),
        ("ms", "1".to_owned()),
        ("at", format!("{} - i", now()?)),
        ("request_id", "'row-' || i".to_owned()),
    ];
    for (name, value) in columns {
        all.retain(|(known, _)| known != name);
        all.push((name, (*value).to_owned()));
    }
    let (names, values): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let (names, values) = (names.join(", "), values.join(", "));
    let sql = format!(
        "INSERT INTO attempts ({names}) WITH RECURSIVE n(i) AS \
         (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count}) SELECT {values} FROM n"
    );
    app.execute(&sql).await?;
    Ok(())
}

pub(super) fn now() -> Result<u64> {
    Ok(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs())
}

async fn count(app: &Service, account: &Account, condition: &str) -> Result<i64> {
    let sql = format!("SELECT count(*) FROM attempts WHERE account_id = '{}' AND {condition}", account.id);
    app.execute(&sql).await?.context("a count")
}

async fn until_count(app: &Service, account: &Account, condition: &str, expected: i64) -> Result<()> {
    wait::until_some(&format!("{expected} rows with {condition}"), async || {
        Ok((count(app, account, condition).await? == expected).then_some(()))
    })
    .await
}

async fn refused(stage: Stage) -> Result<()> {
    const VALUE: &str = "value-of-the-caller";
    let app = &*stage.service().await?;
    let account = app.operator.account(Quota::Of(1)).await?;
    let mut person = Person::of(app, &account).await?;
    let template = person.new_template("with variables", "<p>{{ a }}</p>").await?;
    let target = app.target(&account);
    let html = json!({ "html": "x" });
    let unknown = target.with_key(ApiKey::from_random(rand::random::<[u8; RANDOM_BYTES]>()).expose());
    unknown.render(&html).send().await?.error(401, "Invalid API key")?;
    unknown.render(&json!({})).send().await?.error(401, "Invalid API key")?;
    target.render(&html).key("junk").send().await?.error(401, "Invalid API key")?;
    target.render(&html).request_id("good").send().await?.file("image/png")?;
    let text = target.render(&html).header(CONTENT_TYPE, b"text/plain");
    for (id, call, status, code, field, sentence) in [
        ("r-type", text, 415, "unsupported_content_type", "", "The content type was not application/json."),
        (
            "r-json",
            target.post(RENDER, VALUE),
            400,
            "invalid_json",
            "",
            "The body was not a JSON object in UTF-8.",
        ),
        (
            "r-field",
            target.render(&json!({ "html": VALUE, "width": VALUE })),
            400,
            "invalid_field",
            "width",
            "The value of a field broke its rule.",
        ),
        (
            "r-unknown",
            target.render(&json!({ "html": VALUE, "<b>\n": VALUE })),
            400,
            "unknown_field",
            "<b>\u{fffd}",
            "The body had a field that the endpoint does not know.",
        ),
        (
            "r-conflict",
            target.render(&json!({ "html": VALUE, "format": "pdf", "singlePage": true, "pageRanges": "1" })),
            400,
            "conflicting_fields",
            "singlePage",
            "Two fields, or a field and the format, excluded each other.",
        ),
        (
            "r-template",
            target.render_template(&json!({ "templateId": VALUE })),
            404,
            "template_not_found",
            "templateId",
            "The account had no such template.",
        ),
        (
            "r-missing",
            target.render_template(&json!({ "templateId": template })),
            400,
            "missing_template_variable",
            "variables",
            "The template has placeholders for which no value was given.",
        ),
        (
            "r-none",
            target.post(TEMPLATE, ""),
            400,
            "invalid_json",
            "",
            "The body was not a JSON object in UTF-8.",
        ),
        (
            "r-quota",
            target.render(&json!({ "url": format!("https://host.example/{VALUE}") })),
            429,
            "quota_exhausted",
            "",
            "All attempts of the month were used.",
        ),
    ] {
        let answer = call.request_id(id).send().await?;
        ensure!(answer.status == status, "{id}: {}", answer.summary());
        until_count(app, &account, &format!("request_id = '{id}'"), 1).await?;
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
            ensure!(!text.contains(VALUE) && !text.contains("<b>\n"), "{id} shows what was sent: {text}");
        }
    }
    // Nothing else has a row, nothing of them is counted, and the key was used.
    ensure!(count(app, &account, "true").await? == 10, "other rows");
    ensure!(count(app, &account, "rejected = 1 AND counted = 0 AND refunded_month IS NULL").await? == 9);
    let leaks = "template_id LIKE '%value-of%' OR host LIKE '%value-of%' OR field LIKE '%value-of%'";
    ensure!(count(app, &account, leaks).await? == 0, "values were stored");
    ensure!(count(app, &account, "host = 'host.example' AND status = 429").await? == 1, "no host");
    ensure!(count(app, &account, &format!("template_id = '{template}' AND status = 400")).await? == 1);
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
    let app = &*stage.service().await?;
    let account = app.operator.account(Quota::Unlimited).await?;
    let target = app.target(&account);
    let refused = (0..200).map(|_| target.post(RENDER, "{}").send());
    let good = (0..GOOD).map(|_| target.render(&json!({ "html": "x" })).send());
    let (refused, good) = tokio::try_join!(try_join_all(refused), try_join_all(good))?;
    ensure!(refused.iter().all(|answer| answer.status == 400), "another answer");
    ensure!(good.iter().all(|answer| answer.status == 200), "a render failed");
    until_count(app, &account, "status = 200", GOOD).await?;
    // Its row is written after those of the requests before.
    target.render(&json!({ "html": "x" })).request_id("last").send().await?.file("image/png")?;
    until_count(app, &account, "request_id = 'last'", 1).await?;
    let most = format!(
        "SELECT max(c) FROM (SELECT count(*) AS c FROM attempts WHERE account_id = '{}' AND rejected = 1 GROUP BY at / 60)",
        account.id
    );
    ensure!(app.execute(&most).await? == Some(30), "{:?} rows in a minute", app.execute(&most).await?);
    ensure!(count(app, &account, "status = 200").await? == GOOD + 1, "a row was lost");
    // The database has the same limit for the rows of several servers.
    let other = app.operator.account(Quota::Unlimited).await?;
    let minute = format!("{} + i % 60", now()? / 60 * 60 - 600);
    insert(app, &other, 100, &[("rejected", "1"), ("status", "400"), ("at", &minute)]).await?;
    ensure!(count(app, &other, "true").await? == 30, "rows of one minute");
    insert(app, &other, 100, &[("at", &minute)]).await?;
    ensure!(count(app, &other, "true").await? == 130, "rows of attempts are not limited");
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
    ensure!(count(app, &account, "rejected = 1").await? == 5_000, "kept");
    ensure!(count(app, &account, &newest).await? >= 4_999, "others than the newest are kept");
    ensure!(count(app, &account, "rejected = 0").await? == 50, "rows of attempts were deleted");
    ensure!(count(app, &other, "true").await? == 100, "rows of another account were deleted");
    Ok(())
}

async fn filters(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let account = app.operator.account(Quota::Unlimited).await?;
    let mut person = Person::of(app, &account).await?;
    let (key, _) = person.new_key("filtered key").await?;
    let template = person.new_template("filtered template", "x").await?;
    // One in ten of each kind; all within one second, so that only the id has their order.
    let at = now()?.to_string();
    let of = |kind: u32, value: &str, other: &str| {
        format!("CASE WHEN i % 10 = {kind} THEN {value} ELSE {other} END")
    };
    let columns = [
        ("at", at.clone()),
        ("status", "CASE i % 10 WHEN 1 THEN 502 WHEN 2 THEN 499 ELSE 200 END".to_owned()),
        ("code", "CASE i % 10 WHEN 1 THEN 'broken' WHEN 2 THEN 'cancelled' END".to_owned()),
        ("key_id", of(3, &format!("'{key}'"), &format!("'{}'", account.key_id))),
        ("template_id", of(4, &format!("'{template}'"), "NULL")),
        ("request_id", "'batch-' || (i % 10) || '-' || i".to_owned()),
    ];
    let columns: Vec<(&str, &str)> = columns.iter().map(|(name, value)| (*name, value.as_str())).collect();
    insert(app, &account, 600, &columns).await?;
    // Rows of other days.
    let midnight = i64::try_from(now()? / 86_400 * 86_400)? - 10 * 86_400;
    let at = format!("{midnight} - 1 + i * 43200");
    insert(app, &account, 3, &[("at", &at), ("request_id", "'old-' || i")]).await?;
    let date = |at: i64| anyhow::Ok(time::OffsetDateTime::from_unix_timestamp(at)?.date());
    let (day, next) = (date(midnight)?, date(midnight + 86_400)?);
    for (query, expected) in [
        ("", 603),
        ("status=ok", 483),
        ("status=failed", 120),
        ("status=502", 60),
        ("status=499", 60),
        ("status=504", 0),
        (&format!("key={key}"), 60),
        (&format!("template={template}"), 60),
        (&format!("key={key}&template={template}"), 0),
        (&format!("key={}&status=502", account.key_id), 60),
        (&format!("key={}&status=ok&template={template}", account.key_id), 60),
        ("key=nothing", 0),
        ("id=batch-3-", 60),
        ("id=batch-3-13", 2),
        ("id=BATCH", 0),
        ("id=%25", 0),
        ("id=batch&status=failed", 120),
        (&format!("from={day}&to={day}"), 2),
        (&format!("from={next}&to={next}"), 1),
        (&format!("to={next}"), 3),
        ("from=2999-01-01", 0),
    ] {
        let csv = person.get(&format!("/dashboard/requests.csv?{query}")).await?.is(200)?.body;
        ensure!(csv.lines().count() == expected + 1, "{query}: {} lines", csv.lines().count());
        // All pages together have the same rows in the same order.
        let mut ids = Vec::new();
        let mut path = format!("/dashboard/requests?{query}");
        loop {
            let page = person.get(&path).await?.is(200)?.body;
            ensure!(
                (page.contains("No requests match") || page.contains("id=\"requests\"")),
                "{query}: {page}"
            );
            let cells = page.split("<td data-label=\"Request\">").skip(1);
            let found: Vec<String> = cells.map(|cell| between(cell, "<code>", "<")).collect::<Result<_>>()?;
            ensure!(found.len() <= 50, "{query}: {} rows", found.len());
            ids.extend(found);
            let Ok(older) = between(&page, "rel=\"next\"", ">") else { break };
            ensure!(older.is_empty(), "{older}");
            let link = page.split("rel=\"next\"").next().and_then(|before| before.rsplit("href=\"").next());
            path =
                link.context("a link")?.trim_end_matches("\" ").replace("&#38;", "&").replace("&amp;", "&");
        }
        let exported: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').nth(9)).collect();
        ensure!(ids == exported, "{query}: the pages have {ids:?}");
    }
    let page = person.get("/dashboard/requests?from=29.02.2024&status=502").await?.is(200)?.body;
    ensure!(page.contains("Enter a date as YYYY-MM-DD.") && page.contains("value=\"29.02.2024\""), "{page}");
    // The addresses of the list before.
    for (old, new) in [
        ("usage?failures=1", "requests?status=failed"),
        ("usage?before=5.6", "requests?before=5.6"),
        ("usage.csv", "requests.csv"),
        ("usage.csv?failures=1", "requests.csv?status=failed"),
    ] {
        let moved = person.get(&format!("/dashboard/{old}")).await?.is(303)?;
        ensure!(moved.location() == format!("/dashboard/{new}"), "{old}: {}", moved.location());
    }
    Ok(())
}

async fn stored_text(stage: Stage) -> Result<()> {
    const TEXT: &str = "<script>pwned=1</script>\"><img src=x onerror=pwned=1>";
    let app = &*stage.service().await?;
    let account = app.operator.account(Quota::Unlimited).await?;
    let mut person = Person::of(app, &account).await?;
    let text = format!("'{TEXT}'");
    let formula = format!("'=1+' || '{TEXT}'");
    let columns: Vec<(&str, &str)> =
        ["request_id", "key_name", "template_id", "field", "code", "format", "endpoint"]
            .iter()
            .map(|name| (*name, text.as_str()))
            .chain([("host", formula.as_str()), ("status", "422"), ("id", "9000000000000000000 - i")])
            .collect();
    // The id is unique in the database, which has rows of other cases.
    let columns: Vec<_> = columns.into_iter().filter(|(name, _)| *name != "id").collect();
    insert(app, &account, 1, &columns).await?;
    insert(
        app,
        &account,
        1,
        &columns.iter().copied().filter(|(name, _)| *name != "template_id").collect::<Vec<_>>(),
    )
    .await?;
    let list = person.get("/dashboard/requests").await?.is(200)?.body;
    let link = between(&list, "<td data-label=\"Request\"><a href=\"", "\"")?;
    let page = person.get(&link).await?.is(200)?.body;
    for body in [list, page] {
        ensure!(
            body.contains("pwned=1") && !body.contains("<script>pwned") && !body.contains("<img src=x"),
            "{body}"
        );
    }
    let csv = person.get("/dashboard/requests.csv").await?.is(200)?.body;
    ensure!(csv.contains(",\"'=1+<script>"), "{csv}");
    Ok(())
}
