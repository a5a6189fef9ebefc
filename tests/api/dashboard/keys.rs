//! API keys: names, expiry, rolling, and their use in the last 30 days.

use super::support::{Person, new_email, owner_page, person};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/keys/rename_expire_and_roll", rename_expire_roll),
        Case::any_database("dashboard/keys/a_rolled_key_is_valid_for_its_grace", grace),
        Case::any_database("dashboard/keys/first_steps_end", first_steps),
        Case::any_database("dashboard/keys/usage_by_key_and_template", usage_by_part),
    ]
}

async fn is_accepted(target: &Target) -> Result<bool> {
    let answer = target.minimal().send().await?;
    match answer.status {
        200 => Ok(true),
        401 => answer.error(401, "Invalid API key").map(|()| false),
        status => anyhow::bail!("{status}"),
    }
}

async fn rename_expire_roll(stage: Stage) -> Result<()> {
    let (app, account, page) = owner_page(&stage, Quota::Of(20)).await?;
    page.go(&format!("{}/dashboard/keys", app.base_url)).await?;
    // An error is at its own field, and the other one is kept.
    page.fill("#name", "web").await?;
    page.choose("#expires", "2001-01-01").await?;
    page.press("Create key").await?;
    page.wait("document.querySelector('#expires-error')?.textContent.includes('not over yet')").await?;
    ensure!(page.value("#name").await? == "web", "the name is lost");
    page.choose("#expires", "2999-12-31").await?;
    page.press("Create key").await?.shows("after 2999-12-31").await?;
    let secret = page.text("document.querySelector('#key').textContent").await?;
    let target = app.target(&account).with_key(&secret);
    ensure!(is_accepted(&target).await?, "the new key is refused");

    page.press("web").await?;
    page.submit(&[("#name", "web server")], "Rename").await?.shows("API key renamed.").await?;
    page.submit(&[("#name", " ")], "Rename").await?;
    page.wait("document.querySelector('#name-error')").await?;
    page.choose("#expires", "").await?;
    page.press("Change expiry").await?.shows("Expiry of the API key changed.").await?;
    ensure!(page.value("#expires").await?.is_empty(), "an expiry");
    let id = page.text("location.pathname.split('/')[3]").await?;

    // A key that has expired is refused, and the page says so.
    app.execute(&format!("UPDATE api_keys SET expires_at = 1 WHERE id = '{id}'")).await?;
    ensure!(!is_accepted(&target).await?, "an expired key is accepted");
    page.go(&format!("{}/dashboard/keys/{id}", app.base_url)).await?.shows("Expired").await?;
    page.choose("#expires", "2999-12-31").await?;
    page.press("Change expiry").await?;
    ensure!(is_accepted(&target).await?, "the key is refused");

    // Rolling: the new key is shown once, the old one works for now.
    page.choose("#grace", "1h").await?;
    page.press("Roll key").await?.shows("New API key “web server”").await?;
    let new = page.text("document.querySelector('#key').textContent").await?;
    let new_target = app.target(&account).with_key(&new);
    ensure!(new != secret && is_accepted(&target).await? && is_accepted(&new_target).await?);
    // The command line shows states in words, and deletes.
    let list = app.operator.run(&["key", "list", "--account", &account.id]).await?;
    let keys = list.as_array().context("a list")?;
    let named = |name: &str| keys.iter().filter(|key| key["name"] == name).count();
    ensure!(named("web server") == 2 && keys.len() == 3, "{list}");
    app.operator.run(&["key", "delete", &id]).await?;
    ensure!(!is_accepted(&target).await? && is_accepted(&new_target).await?, "the wrong key is deleted");
    ensure!(app.operator.run(&["key", "delete", &id]).await.is_err(), "deleted twice");
    Ok(())
}

async fn grace(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Of(20)).await?;
    let (id, secret) = person.new_key("k").await?;
    let target = app.target(&account).with_key(&secret);
    let expires = async || app.execute(&format!("SELECT expires_at FROM api_keys WHERE id = '{id}'")).await;
    for bad in ["", "25h", "-1", "1"] {
        person.post(&format!("/dashboard/keys/{id}/roll"), &[("grace", bad)]).await?.is(404)?;
    }
    person.post(&format!("/dashboard/keys/{id}/roll"), &[("grace", "24h")]).await?.is(303)?;
    let day = expires().await?.context("no expiry")?;
    ensure!(is_accepted(&target).await?, "the old key is refused within its grace");
    // A second roll with a longer grace does not lengthen it; one without grace ends it.
    person.post(&format!("/dashboard/keys/{id}/roll"), &[("grace", "7d")]).await?.is(303)?;
    ensure!(expires().await? == Some(day), "the grace became longer");
    let asked = person.post(&format!("/dashboard/keys/{id}/roll"), &[("grace", "0")]).await?.is(200)?;
    ensure!(asked.body.contains("Roll the API key “k”"), "{}", asked.body);
    ensure!(is_accepted(&target).await?, "the key is rolled without a confirmation");
    let confirmed = [("grace", "0"), ("confirmed", "1")];
    person.post(&format!("/dashboard/keys/{id}/roll"), &confirmed).await?.is(303)?;
    ensure!(!is_accepted(&target).await?, "the old key is accepted after its grace");
    let list = app.operator.run(&["key", "list", "--account", &account.id]).await?;
    ensure!(list.as_array().is_some_and(|keys| keys.len() == 5), "{list}");
    Ok(())
}

async fn usage_by_part(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Of(5)).await?;
    let (id, secret) = person.new_key("counted key").await?;
    let template = person.new_template("counted template", "<p>{{ a }}</p>").await?;
    let target = app.target(&account).with_key(&secret);
    target.renders().await?;
    let body = json!({ "templateId": template, "variables": { "a": "1" } });
    for _ in 0..3 {
        target.render_template(&body).send().await?.file("image/png")?;
    }
    // Four of five: the page warns. The table has the attempts by key and by template.
    let compact = |body: &str| body.split_whitespace().collect::<Vec<_>>().join(" ");
    let is_counted = async || {
        let page = compact(&person.clone().get("/dashboard/usage").await?.body);
        let by_key =
            page.contains("counted key</a></th> <td data-label=\"Attempts\" class=\"number\">4</td>");
        let by_template =
            page.contains("counted template</a></th> <td data-label=\"Attempts\" class=\"number\">3</td>");
        let warned = page.contains("80 % of this month’s 5 attempts are used.");
        Ok((by_key && by_template && warned).then_some(()))
    };
    wait::until_some("the attempts are counted by key and template", is_counted).await?;
    ensure!(
        compact(&person.get("/dashboard/keys").await?.body)
            .contains("\"Last 30 days\" class=\"number if-wide\">4</td>")
    );
    let page = person.get(&format!("/dashboard/keys/{id}")).await?.is(200)?;
    ensure!(page.body.contains("<strong>4</strong> attempts"), "{}", page.body);
    target.renders().await?;
    let page = person.get("/dashboard/usage").await?.is(200)?;
    ensure!(page.body.contains("All 5 attempts of this month are used."), "{}", page.body);
    // The months before are kept.
    for (months, attempts) in [(1, 1_234), (2, 77)] {
        app.execute(&format!(
            "INSERT INTO usage (account_id, month, attempts) \
             VALUES ('{}', strftime('%Y-%m', 'now', 'start of month', '-{months} months'), {attempts})",
            account.id
        ))
        .await?;
    }
    let page = person.get("/dashboard/usage").await?.is(200)?;
    ensure!(page.body.contains(": 1,234 attempts.</p>"), "{}", page.body);
    // A deleted key keeps its count, without its name.
    person.post(&format!("/dashboard/keys/{id}/delete"), &[]).await?.is(303)?;
    let page = compact(&person.get("/dashboard/usage").await?.body);
    ensure!(page.contains(&format!("Deleted <code>{id}</code>")), "{page}");
    Ok(())
}

/// Each step is done by what the account has, and the list ends with the third one.
async fn first_steps(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let account = app.operator.account(Quota::Of(5)).await?;
    app.operator.run(&["key", "delete", account.key_id.as_str()]).await?;
    let mut person = Person::of(app, &account).await?;
    let done = async |person: &mut Person| {
        let page = person.get("/dashboard").await?.is(200)?.body;
        let Some((_, steps)) = page.split_once("<ol class=\"steps\">") else { return Ok(None) };
        let steps = steps.split("</ol>").next().unwrap_or_default();
        anyhow::Ok(Some(steps.split("<li").skip(1).map(|step| step.contains("Done")).collect::<Vec<_>>()))
    };
    ensure!(done(&mut person).await? == Some(vec![false; 4]), "the steps of a new account");
    person.post("/dashboard/people/invite", &[("email", &new_email("next"))]).await?.is(303)?;
    ensure!(done(&mut person).await? == Some(vec![false, false, false, true]), "after an invite");
    let (_, secret) = person.new_key("web").await?;
    ensure!(done(&mut person).await? == Some(vec![true, false, false, true]), "after a key");
    let target = app.target(&account).with_key(&secret);
    target.renders().await?;
    wait::until_true("the render is counted", async || {
        Ok(done(&mut person.clone()).await? == Some(vec![true, true, false, true]))
    })
    .await?;
    person.new_template("card", "x").await?;
    ensure!(done(&mut person).await?.is_none(), "the steps are still listed");
    ensure!(app.operator.attempts(&account.id).await? == 1, "a step costs an attempt");
    Ok(())
}
