//! An operator, in a real browser.

use super::support::{Person, accept_invite, new_email, percent, set_password};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/operator", operator),
        Case::any_database("dashboard/audit_log/filters_pages_and_export", audit_filter),
    ]
}

async fn operator(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let browser = Browser::start().await?;
    let page = browser.page().await?;
    let email = new_email("op");
    accept_invite(&page, app, &email, &["--operator"]).await?;
    page.wait("document.querySelector('.user-menu')").await?;
    // The first operator of a server begins in an account.
    page.go(&format!("{}/dashboard/operator", app.base_url)).await?.shows("Accounts").await?;

    // An account, with errors beside their fields.
    let name = format!("Contoso {:x}", rand::random::<u64>());
    page.submit(&[("#name", &name), ("#quota", "many")], "Create account").await?;
    let error = page.text("document.querySelector('#quota-error').innerText").await?;
    ensure!(error.contains("whole number"), "{error}");
    let focus = "document.querySelector('#quota').getAttribute('aria-describedby').includes('quota-error')";
    ensure!(page.eval(focus).await? == true, "screen readers do not get the error");
    page.submit(&[("#quota", "2")], "Create account").await?.shows("Account created.").await?;
    let taken = app.operator.account(Quota::Of(1)).await?;
    page.submit(&[("#name", &taken.name)], "Rename").await?.shows("Another account has this name").await?;
    page.submit(&[("#name", &format!("{name} Ltd"))], "Rename").await?.shows("Account renamed.").await?;

    // A user accepts an invite for it.
    let guest_email = new_email("guest");
    page.submit(&[("#email", &guest_email)], "Create invite").await?;
    let link = page.text("document.querySelector('#link').textContent").await?;
    let guest = browser.page().await?;
    guest.go(&link).await?;
    set_password(&guest).await?;
    guest.press("API Keys").await?;
    guest.submit(&[("#name", "their key")], "Create key").await?;
    let key = guest.text("document.querySelector('#key').textContent").await?;
    let target = app.target(&taken).with_key(&key);
    for _ in 0..2 {
        target.renders().await?;
    }
    target.minimal().send().await?.error(429, "Monthly quota exhausted")?;

    // Use, quota, disabling. Other cases create accounts as well, more than one page has.
    let found = format!("{}/dashboard/operator?q={}", app.base_url, percent(&name));
    page.go(&found).await?;
    page.press(&format!("{name} Ltd")).await?.shows("2 of 2 attempts").await?;
    page.shows(&guest_email).await?;
    page.submit(&[("#quota", "")], "Change quota").await?.shows("Quota changed.").await?;
    page.shows("no limit").await?;
    target.renders().await?;
    page.press("Disable").await?;
    page.press("Disable account").await?.shows("Account disabled.").await?;
    target.minimal().send().await?.error(401, "Invalid API key")?;
    guest.go(&format!("{}/dashboard/keys", app.base_url)).await?.shows("This account is disabled").await?;
    page.press("Enable").await?;
    target.renders().await?;

    // Work in the account, then remove its user.
    page.press("Switch to this account").await?.shows("their key").await?;
    page.go(&found).await?;
    page.press(&format!("{name} Ltd")).await?;
    page.press(&format!("Remove {guest_email}")).await?.shows(&format!("Remove {guest_email}?")).await?;
    let link = app.operator.invite(&guest_email, &[]).await?;
    page.press("Remove").await?.shows("User removed").await?;
    guest.go(&format!("{}/dashboard/keys", app.base_url)).await?.shows("Sign in").await?;
    Person::signed_out(app)?.get(&link).await?.is(410)?;

    remove_another(app, &page, &guest, &email).await?;

    // The audit log.
    page.go(&format!("{}/dashboard/operator/audit", app.base_url)).await?;
    // It has entries of other cases too.
    let rows = "[...document.querySelectorAll('tbody tr')].map((row) => row.textContent.replace(/\\s+/g, ' ')).join('\\n')";
    let mut log = page.text(rows).await?;
    while page.eval("document.body.innerText.includes('Older')").await? == true {
        page.press("Older").await?;
        log = format!("{log}\n{}", page.text(rows).await?);
    }
    for (who, what, subject) in [
        (email.as_str(), "created account", name.as_str()),
        (&email, "renamed account", &name),
        (&email, "changed quota", "unlimited"),
        (&email, "invited", &guest_email),
        (&guest_email, "accepted invite", &guest_email),
        (&guest_email, "created key", "their key"),
        (&email, "disabled account", &name),
        (&email, "switched account", &email),
        (&email, "removed user", &guest_email),
        ("command line", "invited operator", &email),
        ("command line", "created account", &taken.name),
    ] {
        let entry =
            log.lines().find(|line| line.contains(who) && line.contains(what) && line.contains(subject));
        ensure!(entry.is_some(), "no line {who} {what} {subject} in\n{log}");
    }
    Ok(())
}

/// An operator can be removed by another one only.
async fn remove_another(app: &Service, page: &Page, other: &Page, email: &str) -> Result<()> {
    let second_email = new_email("second");
    accept_invite(other, app, &second_email, &["--operator"]).await?;
    page.go(&format!("{}/dashboard/operator", app.base_url)).await?;
    let own = page.eval(&format!("document.body.innerText.includes('Remove {email}')")).await?;
    ensure!(own == false, "operators may remove themselves");
    page.press(&format!("Remove {second_email}")).await?;
    page.press("Remove").await?.shows("User removed").await?;
    other.go(&format!("{}/dashboard/operator", app.base_url)).await?.shows("Sign in").await
}

/// The audit log by user, text and day, on pages and as CSV.
async fn audit_filter(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(1)).await?;
    let mut operator = Person::invited(&app, &new_email("op"), &["--operator"]).await?;
    let actor = format!("Who-{:x}@example.com", rand::random::<u64>());
    let sql = format!(
        "INSERT INTO audit (at, actor, account_id, action, subject) WITH RECURSIVE n(i) AS \
         (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) \
         SELECT 1709164800 + i % 2 * 86400, '{actor}', '{}', \
         CASE WHEN i % 10 = 0 THEN 'deleted thing' ELSE 'made thing' END, '=row-' || i FROM n",
        account.id
    );
    app.execute(&sql).await?;
    let who = format!("who={}", percent(&actor.to_lowercase()));
    for (query, expected) in [
        (String::new(), 250),
        ("&what=DELETED".to_owned(), 25),
        ("&what=row-25".to_owned(), 2),
        (format!("&what={}", percent(&account.name)), 250),
        ("&what=%25".to_owned(), 0),
        ("&from=2024-02-29&to=2024-02-29".to_owned(), 125),
        ("&from=2024-03-01".to_owned(), 125),
        ("&to=2024-02-28".to_owned(), 0),
    ] {
        let csv = operator.get(&format!("/dashboard/operator/audit.csv?{who}{query}")).await?.is(200)?;
        let lines: Vec<&str> = csv.body.lines().collect();
        ensure!(
            lines.len() == expected + 1 && lines[0] == "time,user,account,action,subject",
            "{query}: {lines:?}"
        );
        ensure!(lines[1..].iter().all(|line| line.contains(",'=row-")), "{query}: a formula in {lines:?}");
        // All pages together have as many rows.
        let (mut rows, mut path) = (0, format!("/dashboard/operator/audit?{who}{query}"));
        loop {
            let page = operator.get(&path).await?.is(200)?.body;
            rows += page.matches("data-label=\"Subject\"").count();
            ensure!(rows > 0 || page.contains("No entries match this filter."), "{query}: {page}");
            let Some((before, _)) = page.split_once("\" rel=\"next\"") else { break };
            path = before.rsplit("href=\"").next().context("a link")?.replace("&#38;", "&");
        }
        ensure!(rows == expected, "{query}: {rows} rows on pages");
    }
    let page = operator.get("/dashboard/operator/audit?from=29.02.2024").await?.is(200)?.body;
    ensure!(page.contains("Enter a date as YYYY-MM-DD."), "{page}");
    let mut person = Person::of(&app, &account).await?;
    person.get("/dashboard/operator/audit.csv").await?.is(404)?;
    Ok(())
}
