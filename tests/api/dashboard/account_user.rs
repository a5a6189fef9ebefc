//! A user of an account, in a real browser.

use super::support::{PASSWORD, accept_invite, choose, new_email, owner_page, render};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/keys_templates_and_usage", keys_templates_and_usage),
        Case::any_database("dashboard/versions_are_kept_and_restored", versions),
        Case::any_database("dashboard/works_without_scripts", without_scripts),
    ]
}

async fn keys_templates_and_usage(stage: Stage) -> Result<()> {
    let app = &*stage.real_service().await?;
    let account = app.operator.account(Quota::Of(10)).await?;
    let page = Browser::start().await?.page().await?;
    let email = new_email("ann");

    // Accept an invite, sign out, sign in again.
    accept_invite(&page, app, &email, &["--account", &account.id]).await?;
    page.shows("API Keys").await?;
    page.press("Sign out").await?.shows("You are signed out.").await?;
    page.submit(&[("#email", &email), ("#password", PASSWORD)], "Sign in").await?;
    page.press("API Keys").await?;

    // The key that the page shows is valid.
    page.submit(&[("#name", "web server")], "Create key").await?;
    let key = page.text("document.querySelector('#key').textContent").await?;
    let curl = page.text("document.querySelector('#curl').textContent").await?;
    ensure!(curl.contains(&key) && curl.contains(&app.base_url), "the curl line is {curl}");
    let target = app.target(&account).with_key(&key);
    target.render(&json!({ "html": "<h1>Hello</h1>" })).send().await?.file("image/png")?;
    page.go(&format!("{}/dashboard/keys", app.base_url)).await?;
    ensure!(!page.body().await?.contains(&key), "the key is shown twice");

    // The attempt appears in Requests and Usage.
    let requests = format!("{}/dashboard/requests", app.base_url);
    let seen = "document.querySelector('#requests tbody')?.innerText.includes('web server')";
    reload_until(&page, &requests, seen).await?;
    let text = page.body().await?;
    ensure!(text.contains("200 OK"), "{text}");
    page.go(&format!("{}/dashboard/usage", app.base_url)).await?;
    let text = page.body().await?;
    ensure!(text.contains("of 10 attempts"), "{text}");

    // A template with sample values and a live preview.
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.fill("#name", "Invoice").await?;
    page.fill("#html", "<h1 id=x>Hi {{ customer }}</h1><p>{{ total }}</p>").await?;
    page.wait(
        "document.querySelector('[data-sample=customer]') && document.querySelector('[data-sample=total]')",
    )
    .await?;
    page.fill("[data-sample=customer]", "Ada & Co").await?;
    page.fill("[data-sample=total]", "10.50").await?;
    page.press("Create template").await?.shows("Template created.").await?;
    page.wait("document.querySelector('[data-sample=customer]').value === 'Ada & Co'").await?;
    preview_shows(&page, "Ada & Co").await?;

    // The render through the public API with a render key.
    for format in ["pdf", "png"] {
        choose(&page, "format", format).await?;
        render(&page).await?;
        page.shows("Save your changes first.").await?;
        page.press("Save").await?.shows("Template saved.").await?;
        render(&page).await?;
        page.wait(&format!("document.querySelector('#rendered a')?.download === 'invoice.{format}'")).await?;
        page.shows("attempts are left this month.").await?;
        let head = "fetch(document.querySelector('#rendered a').href).then(r => r.arrayBuffer())\
             .then(b => String.fromCharCode(...new Uint8Array(b).slice(1, 4)))";
        // The policy does not allow the page to connect to `blob:`.
        ensure!(page.eval(head).await.is_err(), "the policy lets scripts fetch what it does not name");
    }
    // Errors are shown at their option, and cost no attempt.
    for (option, value, message) in [
        ("width", "0", "\"width\" must be a whole number from 1 to 7680"),
        ("width", "", "Nothing has changed since the last save."),
        ("clip.x", "0", "\"clip.y\" is required"),
        ("clip.y", "0", "\"clip.width\" is required"),
        ("clip.width", "20", "\"clip.height\" is required"),
        ("clip.height", "10", "Template saved."),
    ] {
        choose(&page, option, value).await?;
        page.press("Save").await?;
        page.shows(message).await?;
    }
    page.press("Save").await?.shows("Nothing has changed since the last save.").await?;
    render(&page).await?;
    page.wait("document.querySelector('#rendered img').naturalWidth === 20").await?;
    // The options belong to the template.
    page.go(&page.text("location.origin + location.pathname").await?).await?;
    page.wait("document.querySelector('[name=\"clip.width\"]').value === '20'").await?;
    reload_until(
        &page,
        &requests,
        "document.querySelector('#requests tbody').innerText.includes('Render button')",
    )
    .await?;
    ensure!(app.operator.attempts(&account.id).await? == 4, "each render is one attempt");
    let keys = app.operator.run(&["key", "list", "--account", &account.id]).await?;
    ensure!(!keys.to_string().contains("Render button"), "render keys are not listed: {keys}");

    // A disabled key is refused at once.
    page.go(&format!("{}/dashboard/keys", app.base_url)).await?;
    page.press("Disable web server").await?.shows("Disable the API key “web server”").await?;
    target.renders().await?;
    page.press("Disable key").await?.shows("API key disabled.").await?;
    target.minimal().send().await?.error(401, "Invalid API key")?;
    page.press("Enable web server").await?;
    target.renders().await?;
    page.press("Delete web server").await?;
    page.press("Delete key").await?.shows("API key deleted.").await?;
    target.minimal().send().await?.error(401, "Invalid API key")?;
    Ok(())
}

/// Reloads a page until its condition is true: attempts are logged after their answers.
async fn reload_until(page: &platen_harness::browser::Page, url: &str, condition: &str) -> Result<()> {
    wait::until_some(condition, async || {
        page.go(url).await?;
        Ok((page.eval(&format!("!!({condition})")).await? == true).then_some(()))
    })
    .await
}

/// The preview has another origin: the page cannot read it, but the debugger can.
async fn preview_shows(page: &platen_harness::browser::Page, text: &str) -> Result<()> {
    page.wait("document.querySelector('#preview').getBoundingClientRect().height > 100").await?;
    let blocked = page.eval("document.querySelector('#preview').contentDocument === null").await?;
    ensure!(blocked == true, "the page and its preview share an origin");
    page.frames_show(text).await
}

async fn versions(stage: Stage) -> Result<()> {
    let (app, account, page) = owner_page(&stage, Quota::Of(10)).await?;
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.submit(&[("#name", "Card"), ("#html", "<p>first {{ x }}</p>")], "Create template").await?;
    for text in ["second", "third"] {
        page.submit(&[("#html", &format!("<p>{text}</p>"))], "Save").await?.shows("Template saved.").await?;
    }
    page.press("Versions (2)").await?;
    page.press("Version 1").await?;
    ensure!(page.text("document.querySelector('.crumbs').innerText").await? == "Templates / Card / Versions");
    let shown = page.value("#markup").await?;
    ensure!(shown == "<p>first {{ x }}</p>", "version 1 is {shown}");
    page.press("Restore this version").await?.shows("Version restored.").await?;
    let html = page.value("#html").await?;
    ensure!(html == "<p>first {{ x }}</p>", "restored {html}");
    page.press("Versions (3)").await?;
    page.press("Version 3").await?;
    ensure!(page.value("#markup").await? == "<p>third</p>");
    // The public API renders the restored version, which has a placeholder.
    let id = page.text("location.pathname.split('/')[3]").await?;
    let target = app.target(&account);
    let missing = target.render_template(&json!({ "templateId": id })).send().await?;
    missing.error(400, "Missing template variable \"x\"")?;
    // The operator's command saves versions too.
    let file = tempfile::NamedTempFile::with_suffix(".html")?;
    std::fs::write(file.path(), "<p>fourth</p>")?;
    let path = file.path().to_string_lossy().into_owned();
    let put = ["template", "put", "--account", &account.id, "--name", "Card", "--id", &id, &path];
    app.operator.run(&put).await?;
    page.go(&format!("{}/dashboard/templates/{id}", app.base_url)).await?;
    page.press("Versions (4)").await?;
    // Duplicate, then delete the original.
    page.press("Card").await?;
    page.press("Duplicate").await?.shows("Template duplicated.").await?;
    ensure!(page.value("#name").await? == "Card (copy)");
    page.go(&format!("{}/dashboard/templates/{id}", app.base_url)).await?;
    page.press("Delete")
        .await?
        .shows("Delete the template “Card” with 4 earlier versions and 0 links?")
        .await?;
    page.press("Delete template").await?.shows("Template deleted, including its versions and links.").await?;
    target.render_template(&json!({ "templateId": id })).send().await?.error(404, "Template not found")?;
    page.submit(&[("#q", "cop")], "Search").await?.shows("Card (copy)").await?;
    page.go(&format!("{}/dashboard/templates?q=nothing", app.base_url)).await?;
    page.shows("No templates match").await
}

async fn without_scripts(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(10)).await?;
    let page = Browser::start().await?.page().await?;
    page.enable_scripts(false).await?;
    accept_invite(&page, &app, &new_email("cy"), &["--account", &account.id]).await?;
    page.press("API Keys").await?;
    page.submit(&[("#name", "plain")], "Create key").await?.shows("New API key “plain”").await?;
    ensure!(page.eval("document.querySelectorAll('.copy:not([hidden])').length").await? == 0);
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.submit(&[("#name", "Plain"), ("#html", "<p>{{ a }}</p>")], "Create template").await?;
    // Saving adds the fields of the placeholders.
    page.submit(&[("#sample-a", "value")], "Save").await?.shows("Template saved.").await?;
    ensure!(page.value("#sample-a").await? == "value");
    page.press("Sign out").await?.shows("You are signed out.").await
}
