//! The overview: requests that failed, the pace of the month; and the warning of the quota, which all pages have.

use platen_harness::browser::Theme;

use super::support::{Person, between, insert, new_email, now, owner_page, person};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/overview/the_last_failed_requests", failed),
        Case::any_database("dashboard/overview/the_pace_of_the_month", pace),
        Case::any_database("dashboard/overview/a_quota_warns_on_every_page", warning),
        Case::own_server("dashboard/overview/a_metric_counts_accounts_near_their_quota", metric)
            .not_on_spin("Spin has no metrics"),
        Case::any_database("dashboard/overview/a_chart_has_the_value_of_a_day", chart),
        Case::any_database("dashboard/overview/a_menu_on_phones_and_a_sidebar", navigation),
    ]
}

async fn failed(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Unlimited).await?;
    let page = person.get("/dashboard").await?.is(200)?.body;
    ensure!(page.contains("No request failed in the last 30 days."), "{page}");
    insert(&app, &account, 8, &[("request_id", "'good-' || i")]).await?;
    let columns = [
        ("request_id", "'bad-' || i || '-'"),
        ("status", "422"),
        ("code", "'element_not_found'"),
        ("field", "'selector'"),
    ];
    insert(&app, &account, 8, &columns).await?;
    // Those of another account.
    insert(&app, &app.operator.account(Quota::Of(1)).await?, 3, &[("status", "504")]).await?;
    let page = person.get("/dashboard").await?.is(200)?.body;
    let rows: Vec<_> = page.split("data-label=\"Request\">").skip(1).collect();
    ensure!(rows.len() == 5, "{} rows: {page}", rows.len());
    for (row, id) in rows.iter().zip(1..) {
        ensure!(
            row.contains(&format!("bad-{id}-"))
                && row.contains("422 Page failed")
                && row.contains("Field: selector"),
            "{row}"
        );
    }
    let link = between(&page, "data-label=\"Request\"><a href=\"", "\"")?;
    let request = person.get(&link).await?.is(200)?.body;
    ensure!(request.contains("bad-1-") && request.contains("Open in the playground"), "{request}");
    ensure!(page.contains("href=\"/dashboard/requests?status=failed\""), "{page}");
    Ok(())
}

/// The figures of the forecast, compared with what the reader can compute from them.
async fn pace(stage: Stage) -> Result<()> {
    const ATTEMPTS: i64 = 3_000;
    let (app, account, mut person) = person(&stage, Quota::Of(4_000)).await?;
    ensure!(!person.get("/dashboard").await?.is(200)?.body.contains("id=\"forecast\""), "a pace of nothing");
    app.execute(&format!(
        "INSERT INTO usage (account_id, month, attempts) VALUES ('{}', strftime('%Y-%m', 'now'), {ATTEMPTS})",
        account.id
    ))
    .await?;
    let page = person.get("/dashboard").await?.is(200)?.body;
    let today = time::OffsetDateTime::from_unix_timestamp(i64::try_from(now()?)?)?.date();
    if today.day() == 1 {
        ensure!(!page.contains("id=\"forecast\""), "a forecast on the first day: {page}");
        return Ok(());
    }
    let text = between(&page, "id=\"forecast\">", "<")?;
    ensure!(
        person.get("/dashboard/usage").await?.is(200)?.body.contains(" days. At this pace "),
        "not on Usage"
    );
    let (a_day, days) = text.split_once(" a day over ").context("a mean")?;
    let (days, rest) = days.split_once(" days. At this pace ").context("days")?;
    let (a_day, days): (f64, f64) = (a_day.replace(',', "").parse()?, days.parse()?);
    ensure!(days >= f64::from(today.day() - 1) && days < f64::from(today.day()), "{text}");
    let whole = f64::from(i32::try_from(ATTEMPTS)?);
    ensure!((a_day - whole / days).abs() <= 1.0 + whole / days / 100.0, "{text}");
    if let Some(end) = rest.strip_prefix("the quota ends on ") {
        let left = 1_000.0 / (whole / days);
        let expected =
            (1..40).map(|later| today + time::Duration::days(later - 1)).find(|day| format!("{day}.") == end);
        let later = (expected.context("a day from today on")? - today).whole_days();
        ensure!((f64::from(i32::try_from(later)?) - left).abs() <= 1.1, "{text}");
    } else {
        let month =
            rest.strip_prefix("the month comes to ").context("a sum")?.trim_end_matches('.').replace(',', "");
        let expected = whole / days * f64::from(today.month().length(today.year()));
        ensure!(
            (month.parse::<f64>()? - expected).abs() <= expected / 100.0 + 1.0 && expected < 4_050.0,
            "{text}"
        );
    }
    Ok(())
}

async fn warning(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Of(5)).await?;
    let template = person.new_template("t", "x").await?;
    let target = app.target(&account);
    let pages = [
        "",
        "/keys",
        "/templates",
        &format!("/templates/{template}"),
        "/playground",
        "/requests",
        "/usage",
        "/people",
        "/you",
    ];
    let mut check = async |expected: Option<&str>| {
        for path in pages {
            let page = person.get(&format!("/dashboard{path}")).await?.is(200)?.body;
            let shown = between(&page, "id=\"quota-warning\" role=\"status\">", " <a");
            match expected {
                None => ensure!(shown.is_err(), "{path}: {shown:?}"),
                Some(expected) => ensure!(shown?.starts_with(expected), "{path}: {page}"),
            }
        }
        anyhow::Ok(())
    };
    for _ in 0..3 {
        target.renders().await?;
    }
    check(None).await?;
    target.renders().await?;
    check(Some("80 % of this month’s 5 attempts are used. After them, requests are refused until ")).await?;
    target.renders().await?;
    check(Some("All 5 attempts of this month are used. Requests are refused until ")).await?;
    // An operator without an account, and another account, have no warning.
    let mut operator = Person::invited(&app, &new_email("op"), &["--operator"]).await?;
    ensure!(!operator.get("/dashboard/operator").await?.is(200)?.body.contains("quota-warning"));
    Ok(())
}

async fn chart(stage: Stage) -> Result<()> {
    let (app, account, page) = owner_page(&stage, Quota::Unlimited).await?;
    let sql = "INSERT INTO usage_days (account_id, day, attempts, failures) VALUES";
    app.execute(&format!("{sql} ('{}', date('now'), 1234, 5)", account.id)).await?;
    page.go(&format!("{}/dashboard", app.base_url)).await?;
    let scale = "document.querySelector('.scale').innerText.split(/\\s+/).join(' ')";
    ensure!(page.text(scale).await? == "2,000 1,000 0", "{}", page.text(scale).await?);
    page.eval("document.querySelector('.chart g:last-of-type rect').dispatchEvent(new PointerEvent('pointerover', { bubbles: true }))").await?;
    let value = page.text("document.querySelector('.figure output').textContent").await?;
    ensure!(value.ends_with(": 1,234 attempts, 5 failed"), "{value}");
    // The pictures of starters are loaded.
    page.go(&format!("{}/dashboard/templates", app.base_url)).await?;
    page.wait("[...document.querySelectorAll('.starters img')].filter((it) => it.complete && it.naturalWidth >= 200).length === 8")
        .await
}

async fn navigation(stage: Stage) -> Result<()> {
    let (app, _, page) = owner_page(&stage, Quota::Of(9)).await?;
    let is_shown = "document.querySelector('#nav a[href=\"/dashboard/usage\"]').checkVisibility()";
    let header = "document.querySelector('header').getBoundingClientRect()";
    for is_scripted in [true, false] {
        page.enable_scripts(is_scripted).await?;
        page.set_viewport(390, 844, Theme::Light).await?;
        page.go(&format!("{}/dashboard/keys", app.base_url)).await?;
        ensure!(page.eval(is_shown).await? == false, "the menu is open");
        ensure!(page.eval(&format!("{header}.height <= 64")).await? == true, "the header of a phone is high");
        page.eval("document.querySelector('[popovertarget=nav]').focus()").await?;
        page.type_text(" ").await?;
        page.wait(is_shown).await?;
        page.press("Usage").await?.shows("Last 30 days").await?;
        page.set_viewport(1200, 800, Theme::Light).await?;
        ensure!(page.eval(is_shown).await? == true, "no navigation");
        let is_beside =
            format!("{header}.right <= document.querySelector('main').getBoundingClientRect().left");
        ensure!(page.eval(&is_beside).await? == true, "no sidebar at 1200 pixels");
    }
    Ok(())
}

async fn metric(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let app = &stand_in.app;
    for (quota, attempts, disabled_at) in
        [(10, 7, "NULL"), (10, 8, "NULL"), (10, 9, "NULL"), (10, 10, "NULL"), (5, 6, "1"), (1, 0, "NULL")]
    {
        let account = app.operator.account(Quota::Of(quota)).await?;
        app.execute(&format!(
            "INSERT INTO usage (account_id, month, attempts) VALUES ('{0}', strftime('%Y-%m', 'now'), {attempts}), \
             ('{0}', '2001-01', 10)",
            account.id
        ))
        .await?;
        app.execute(&format!("UPDATE accounts SET disabled_at = {disabled_at} WHERE id = '{}'", account.id))
            .await?;
    }
    app.until_metric("platen_accounts_near_quota{percent=\"80\"}", 2).await?;
    app.until_metric("platen_accounts_near_quota{percent=\"100\"}", 1).await
}
