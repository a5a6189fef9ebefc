//! The list of requests: filters, pages, times, and stored text.

use platen_harness::browser::Theme;

use super::support::{between, insert, now, owner_page, person};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/requests/filters_and_pages", filters),
        Case::any_database("dashboard/requests/times_are_in_utc_and_local_in_the_tooltip", times),
        Case::any_database("dashboard/requests/stored_text_is_not_markup", stored_text),
        Case::any_database("dashboard/requests/a_template_is_found_by_words_of_its_name", by_template),
        Case::any_database("dashboard/requests/the_error_is_shown_at_every_width", error_column),
    ]
}

async fn filters(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Unlimited).await?;
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
    insert(&app, &account, 600, &columns).await?;
    // Rows of other days.
    let midnight = i64::try_from(now()? / 86_400 * 86_400)? - 10 * 86_400;
    let at = format!("{midnight} - 1 + i * 43200");
    insert(&app, &account, 3, &[("at", &at), ("request_id", "'old-' || i")]).await?;
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
            ensure!(ids.is_empty() != page.contains("Newest"), "{query}: the link to the newest page");
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
    let page = person.get(&format!("/dashboard/requests?from={next}&to={day}")).await?.is(200)?.body;
    ensure!(page.contains("The last day is before the first one."), "{page}");
    Ok(())
}

/// Checks in a browser: times with and without scripts, and the form without them.
async fn times(stage: Stage) -> Result<()> {
    let (app, account, page) = owner_page(&stage, Quota::Unlimited).await?;
    let at = i64::try_from(now()? / 86_400 * 86_400)? - 86_400 + 20 * 3_600 + 61;
    insert(&app, &account, 1, &[("at", &at.to_string()), ("status", "502")]).await?;
    let date = |at: i64| anyhow::Ok(time::OffsetDateTime::from_unix_timestamp(at)?.date());
    let utc = format!("{} 20:01:01", date(at)?);
    let local = format!("{} 05:01:01", date(at + 9 * 3_600)?);
    page.set_time_zone("Asia/Tokyo").await?;
    let list = format!("{}/dashboard/requests", app.base_url);
    let time = "document.querySelector('time').textContent + ' / ' + document.querySelector('time').title";
    page.go(&list).await?;
    let shown = page.text(time).await?;
    ensure!(shown == format!("{utc} / {local} GMT+9"), "{shown}");
    page.shows("Point at one to see it in your time zone.").await?;
    page.press("row-1").await?.shows(&format!("{utc} UTC")).await?;
    ensure!(page.text(time).await? == shown, "another form on the page of the request");
    page.enable_scripts(false).await?;
    page.go(&list).await?;
    let shown = page.text(time).await?;
    ensure!(shown == format!("{utc} / {utc} UTC"), "{shown}");
    page.shows("Times are in UTC.").await?;
    page.go(&format!("{}/dashboard/playground", app.base_url)).await?;
    ensure!(page.eval("document.querySelector('footer').checkVisibility()").await? == false, "no times");
    ensure!(!page.body().await?.contains("Only “Render” runs scripts"), "a text about scripts, without them");
    page.go(&list).await?;
    let is_open = "document.querySelector('.folded').open";
    ensure!(page.eval(is_open).await? == false, "the filters are not folded");
    // A single status is a chip while it is chosen.
    page.choose("#status", "504").await?;
    page.press("Filter").await?.shows("No requests match this filter.").await?;
    let chips = "document.querySelector('.chips').innerText.split(/\\s*\\n\\s*/).join(', ')";
    let shown = page.text(chips).await?;
    ensure!(shown == "All, Successful, Failed or refused, 504 Timed out", "the chips are {shown}");
    page.press("Failed or refused").await?;
    ensure!(page.eval(is_open).await? == false, "the filters are not folded again");
    page.eval("document.querySelector('.folded > summary').click()").await?;
    page.submit(&[("#id", "row-")], "Filter").await?.shows("502 Renderer failed").await?;
    ensure!(page.eval(is_open).await? == true, "a filter is hidden");
    let chosen = page
        .text("document.querySelector('.chips [aria-current=true]').textContent + document.querySelector('#id').value")
        .await?;
    ensure!(chosen == "Failed or refusedrow-", "the page shows {chosen}");
    // A chip keeps the other filters.
    page.press("Successful").await?.shows("No requests match this filter.").await?;
    ensure!(page.value("#id").await? == "row-", "the filter is lost");
    Ok(())
}

async fn stored_text(stage: Stage) -> Result<()> {
    const TEXT: &str = "<script>pwned=1</script>\"><img src=x onerror=pwned=1>";
    let (app, account, mut person) = person(&stage, Quota::Unlimited).await?;
    let text = format!("'{TEXT}'");
    let formula = format!("'=1+' || '{TEXT}'");
    let columns: Vec<(&str, &str)> =
        ["request_id", "key_name", "template_id", "field", "code", "format", "endpoint"]
            .iter()
            .map(|name| (*name, text.as_str()))
            .chain([("host", formula.as_str()), ("status", "422")])
            .collect();
    insert(&app, &account, 1, &columns).await?;
    let other = columns.iter().copied().filter(|(name, _)| *name != "template_id");
    insert(&app, &account, 1, &other.collect::<Vec<_>>()).await?;
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

/// Among more templates than a list has.
async fn by_template(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Unlimited).await?;
    let template = person.new_template("Letter no. 0", "x").await?;
    let copies = format!(
        "INSERT INTO templates (id, account_id, name, packed_html, options, placeholders, saved_by, created_at, updated_at) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1100) \
         SELECT t.id || '-' || i, t.account_id, 'Letter no. ' || i, t.packed_html, t.options, t.placeholders, t.saved_by, i, i \
         FROM n, templates t WHERE t.id = '{template}'"
    );
    app.execute(&copies).await?;
    let of = format!("'{template}-' || (i + 6)");
    insert(&app, &account, 3, &[("template_id", &of), ("request_id", "'of-' || (i + 6)")]).await?;
    let mut ids = async |query: &str| {
        let page = person.get(&format!("/dashboard/requests?{query}")).await?.is(200)?.body;
        let cells = page.split("<td data-label=\"Request\">").skip(1);
        let ids: Vec<String> = cells.map(|cell| between(cell, "<code>", "<")).collect::<Result<_>>()?;
        let csv = person.get(&format!("/dashboard/requests.csv?{query}")).await?.is(200)?.body;
        ensure!(csv.lines().count() == ids.len() + 1, "{query}: {csv}");
        anyhow::Ok((page, ids))
    };
    // An id, also one that the account has no more, words that only one name has, and none.
    ensure!(ids(&format!("template={template}-7")).await?.1 == ["of-7"]);
    ensure!(ids("template=1100").await?.1.is_empty());
    ensure!(ids("template=nothing").await?.0.contains("No requests match this filter."));
    app.execute(&format!("UPDATE templates SET name = 'Rechnung Straße' WHERE id = '{template}-8'")).await?;
    let (page, found) = ids("template=strasse&status=ok").await?;
    ensure!(found == ["of-8"] && page.contains("value=\"strasse\""), "{page}");
    // Words that several have.
    let (page, found) = ids("template=letter+99&status=ok").await?;
    ensure!(found.is_empty() && page.contains("20 templates have “letter 99” in their names"), "{page}");
    let link = format!("/dashboard/requests?status=ok&#38;template={template}-997\">Letter no. 997</a>");
    ensure!(page.contains(&link), "no {link} in {page}");
    ensure!(ids("template=letter").await?.0.contains("these are the first 30"));
    app.execute(&format!("DELETE FROM templates WHERE id = '{template}-9'")).await?;
    ensure!(ids(&format!("template={template}-9")).await?.1 == ["of-9"], "a deleted template");
    Ok(())
}

async fn error_column(stage: Stage) -> Result<()> {
    let (app, account, page) = owner_page(&stage, Quota::Unlimited).await?;
    insert(&app, &account, 1, &[("status", "422"), ("code", "'element_not_found'"), ("bytes", "1")]).await?;
    page.go(&format!("{}/dashboard/requests", app.base_url)).await?;
    let shown =
        |label: &str| format!("document.querySelector('#requests [data-label={label}]').checkVisibility()");
    for (width, has_size) in [(390, false), (800, false), (1024, false), (1440, true), (1920, true)] {
        page.set_viewport(width, 800, Theme::Light).await?;
        ensure!(page.eval(&shown("Error")).await? == true, "no error at {width}");
        ensure!(page.eval(&shown("Size")).await? == has_size, "the size at {width}");
    }
    Ok(())
}
