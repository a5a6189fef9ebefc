//! What a user has entered is not lost when two users save, when the browser is closed, or when a preview does not end;
//! and a reload creates nothing.

use super::support::{PASSWORD, Person, accept_invite, between, new_email, owner_page, sign_in_again};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/lost_work/two_users_save_one_template", two_users),
        Case::any_database("dashboard/lost_work/a_deleted_template_is_saved_as_a_new_one", deleted_meanwhile),
        Case::any_database("dashboard/lost_work/a_reload_creates_nothing", reload),
        Case::any_database("dashboard/lost_work/the_browser_keeps_a_draft", drafts),
        Case::any_database("dashboard/lost_work/a_template_that_does_not_end_is_editable", endless_template),
    ]
}

async fn two_users(stage: Stage) -> Result<()> {
    let (app, account, page) = owner_page(&stage, Quota::Of(1)).await?;
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.submit(&[("#name", "Shared"), ("#html", "<p>one</p>\n<p>two</p>")], "Create template").await?;
    let path = page.text("location.pathname").await?;
    // Ben opens and saves it while Ann edits.
    let ben_email = new_email("ben");
    let mut ben = Person::invited(&app, &ben_email, &["--account", &account.id]).await?;
    let save = |html: &'static str, revision: &'static str| {
        [("name", "Shared"), ("html", html), ("revision", revision)]
    };
    ben.post(&path, &save("<p>one</p>\n<p>of ben</p>", "1")).await?.is(303)?;
    page.submit(&[("#html", "<p>one</p>\n<p>of ann</p>")], "Save").await?;
    page.shows("There is a newer version").await?;
    page.shows(&ben_email).await?;
    let diff = page.text("document.querySelector('.diff').textContent").await?;
    ensure!(diff.contains("− <p>of ben</p>") && diff.contains("+ <p>of ann</p>"), "the comparison is {diff}");
    ensure!(ben.get(&path).await?.body.contains("of ben"), "the newer version was replaced");
    // Ben saves once more: Ann gets the page again, and then replaces it.
    ben.post(&path, &save("<p>one</p>\n<p>third</p>", "2")).await?.is(303)?;
    page.press("Save over the newer version").await?.shows("There is a newer version").await?;
    page.press("Save over the newer version").await?.shows("Template saved.").await?;
    ensure!(page.value("#html").await? == "<p>one</p>\n<p>of ann</p>");
    page.press("Versions (3)").await?.shows(&ben_email).await?;
    page.press("Version 3").await?;
    ensure!(page.value("#markup").await?.contains("third"), "the version is lost");
    // Equal content is no conflict, nor is a save that was sent twice.
    ben.post(&path, &save("<p>one</p>\n<p>of ann</p>", "1")).await?.is(303)?;
    // Of ten concurrent saves of one revision, one succeeds and the others are conflicts.
    let revision = between(&ben.get(&path).await?.body, "name=\"revision\" value=\"", "\"")?;
    let statuses = futures::future::try_join_all((0..10).map(|number| {
        let (mut ben, path, revision) = (ben.clone(), path.clone(), revision.clone());
        async move {
            let html = format!("<p>race {number}</p>");
            let fields = [("name", "Shared"), ("html", html.as_str()), ("revision", revision.as_str())];
            anyhow::Ok(ben.post(&path, &fields).await?.status)
        }
    }))
    .await?;
    let of = |status| statuses.iter().filter(|found| **found == status).count();
    ensure!((of(303), of(409)) == (1, 9), "{statuses:?}");
    Ok(())
}

async fn deleted_meanwhile(stage: Stage) -> Result<()> {
    let (app, account, page) = owner_page(&stage, Quota::Of(1)).await?;
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.submit(&[("#name", "Deleted")], "Create template").await?;
    let path = page.text("location.pathname").await?;
    let mut ben =
        Person::invited(&app, &new_email("ben"), &["--account", &account.id, "--role", "owner"]).await?;
    ben.post(&format!("{path}/delete"), &[]).await?.is(303)?;
    page.submit(&[("#html", "<p>not lost</p>")], "Save").await?;
    page.shows("This template does not exist any more").await?;
    page.press("Create template").await?.shows("Template created.").await?;
    ensure!(page.value("#html").await? == "<p>not lost</p>");
    ensure!(page.text("location.pathname").await? != path, "the id of the deleted template");
    Ok(())
}

async fn reload(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(1)).await?;
    let browser = Browser::start().await?;
    let page = browser.page().await?;
    accept_invite(&page, &app, &new_email("ann"), &["--account", &account.id]).await?;
    page.press("API Keys").await?;
    page.submit(&[("#name", "once")], "Create key").await?.shows("New API key “once”").await?;
    ensure!(
        page.eval("document.activeElement.textContent.includes('New API key')").await? == true,
        "no focus"
    );
    page.go(&page.text("location.href").await?).await?;
    ensure!(!page.body().await?.contains("New API key"), "the key is shown twice");
    let keys = page.eval("document.querySelectorAll('tbody tr').length").await?;
    ensure!(keys == 2, "{keys} keys, of which the account had one");
    let cookies = page.cookies(&app.base_url).await?;
    ensure!(!cookies.iter().any(|(name, _)| name.contains("once")), "the key is kept: {cookies:?}");
    // The cookie of one key does not show it under another label, and no other user sees it.
    let mut person = Person::of(&app, &account).await?;
    let created = person.post("/dashboard/keys", &[("name", "x")]).await?.is(303)?;
    let location = created.location().to_owned();
    let mut other = Person::of(&app, &account).await?;
    ensure!(!other.get(&location).await?.body.contains("New API key"), "another user sees the key");
    ensure!(person.get(&location).await?.body.contains("New API key"), "the key is not shown");

    let operator = browser.page().await?;
    accept_invite(&operator, &app, &new_email("op"), &["--operator"]).await?;
    operator.go(&format!("{}/dashboard/operator/accounts/{}", app.base_url, account.id)).await?;
    let invited = new_email("reloaded");
    operator.submit(&[("#email", &invited)], "Create invite").await?;
    operator.shows(&format!("Invite link for {invited}")).await?;
    let link = operator.text("document.querySelector('#link').textContent").await?;
    operator.go(&operator.text("location.href").await?).await?;
    ensure!(!operator.body().await?.contains("Invite link for"), "the link is shown twice");
    // A repeated request would have replaced the invite.
    person.get(link.strip_prefix(&app.base_url).context("a link")?).await?.is(200)?;
    // Disabling asks first.
    operator.press("Disable").await?.shows("Disable the account").await?;
    operator.press("Cancel").await?;
    ensure!(!operator.body().await?.contains("Disabled"), "disabled without an answer");
    Ok(())
}

async fn drafts(stage: Stage) -> Result<()> {
    const SHOWN: &str = "!document.querySelector('#draft').hidden";
    let (app, account) = stage.account(Quota::Of(1)).await?;
    let page = Browser::start().await?.page().await?;
    let email = new_email("draft");
    accept_invite(&page, &app, &email, &["--account", &account.id]).await?;
    let new = format!("{}/dashboard/templates/new", app.base_url);
    page.go(&new).await?;
    page.fill("#name", "Draft").await?;
    page.fill("#html", "<p>typed {{ a }}</p>").await?;
    page.wait("document.querySelector('[data-sample=a]')").await?;
    page.fill("[data-sample=a]", "value").await?;
    drafts_are(&page, "drafts[0]?.samples.a === 'value'").await?;
    // The page is gone without a save.
    page.go(&format!("{}/dashboard/keys", app.base_url)).await?;
    page.go(&new).await?;
    page.wait(SHOWN).await?;
    page.click("#draft-restore").await?;
    page.wait("document.querySelector('[data-sample=a]')?.value === 'value'").await?;
    ensure!(page.value("#html").await? == "<p>typed {{ a }}</p>");
    page.press("Create template").await?.shows("Template created.").await?;
    let empty = "drafts.length === 0";
    drafts_are(&page, empty).await?;
    // A draft of a version that was replaced meanwhile: the save tells of it.
    let path = page.text("location.pathname").await?;
    page.fill("#html", "<p>older</p>").await?;
    drafts_are(&page, "drafts.length === 1").await?;
    let mut other = Person::of(&app, &account).await?;
    other.post(&path, &[("name", "Draft"), ("html", "<p>newer</p>")]).await?.is(303)?;
    page.go(&format!("{}{path}", app.base_url)).await?.shows("made from an older version").await?;
    page.click("#draft-restore").await?;
    page.press("Save").await?.shows("There is a newer version").await?;
    page.press("Open the newer version").await?;
    page.wait(SHOWN).await?;
    page.click("#draft-discard").await?;
    drafts_are(&page, empty).await?;
    // Signing out deletes the drafts of the user.
    page.fill("#html", "<p>private</p>").await?;
    drafts_are(&page, "drafts.length === 1").await?;
    page.press("Sign out").await?.shows("You are signed out.").await?;
    drafts_are(&page, empty).await?;
    // Markup over the limit of the server is an error before it is sent.
    sign_in_again(&page, &email, PASSWORD).await?;
    page.go(&new).await?;
    page.fill("#name", "Large").await?;
    page.fill("#html", &"x".repeat(5 * 1024 * 1024 + 1)).await?;
    page.click("#save").await?;
    page.shows("At most 5,242,880 are allowed.").await
}

/// Waits until a condition on the drafts of the browser is true.
async fn drafts_are(page: &Page, condition: &str) -> Result<()> {
    let script = format!("withDrafts('readonly', (drafts) => drafts.getAll()).then((drafts) => {condition})");
    wait::until_some(condition, async || Ok((page.eval(&script).await? == true).then_some(()))).await
}

async fn endless_template(stage: Stage) -> Result<()> {
    const ENDLESS: &str = "<p>before</p><script>for (;;) {}</script>\
        <img src=x onerror='for (;;) {}'><svg onload='for (;;) {}'></svg><meta http-equiv=refresh content='0;url=javascript:for(;;){}'>";
    let (app, _, page) = owner_page(&stage, Quota::Of(1)).await?;
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.fill("#name", "Endless").await?;
    page.fill("#html", ENDLESS).await?;
    page.frames_show("before").await?;
    page.press("Create template").await?.shows("Template created.").await?;
    page.frames_show("before").await?;
    let path = page.text("location.pathname").await?;
    let mark = format!("preview {}", path.rsplit('/').next().unwrap_or_default());
    page.wait(&format!("localStorage.getItem('{mark}') === null")).await?;
    // A preview that has held up the page before waits to be asked.
    page.eval(&format!("localStorage.setItem('{mark}', '1'), onpagehide = null")).await?;
    let other = format!("{}/dashboard/keys", app.base_url);
    page.go(&other).await?;
    page.eval(&format!("localStorage.setItem('{mark}', '1')")).await?;
    page.go(&format!("{}{path}", app.base_url)).await?;
    page.shows("The preview is off, because it did not finish the last time.").await?;
    page.click("#preview-on").await?;
    page.frames_show("before").await?;
    page.wait(&format!("localStorage.getItem('{mark}') === null")).await?;
    // The way in without a preview.
    page.go(&format!("{}{path}?preview=off", app.base_url)).await?;
    ensure!(page.eval("document.querySelector('iframe') === null").await? == true, "there is a preview");
    page.fill("#html", "<p>mended</p>").await?;
    page.wait("document.querySelector('#no-samples').hidden === false").await?;
    page.press("Save").await?.shows("Template saved.").await
}
