//! The layout and accessibility of all pages, on narrow and wide screens, in light and dark. With `PLATEN_SCREENSHOTS`,
//! screenshots are saved.

use super::{
    support::{Person, accept_invite, choose, new_email, render},
    template_files,
};
use crate::{album::Album, prelude::*};

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::own_server("dashboard/layout_and_accessibility", layout_and_accessibility)]
}

/// The limit for the first page with its resources.
const MAX_FIRST_PAGE_BYTES: u64 = 50_000;

const MARKUP: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<style>\n  body { font: 16px/1.5 sans-serif; margin: 2rem }\n  h1 { color: #2743d2 }\n  td { padding: .25rem 1rem .25rem 0 }\n</style>\n<!-- The head -->\n<img alt=\"Logo\" src=\"https://logo.example/a.png\">\n<h1>Invoice {{ number }}</h1>\n<p>For <b>{{ customer }}</b></p>\n<table>\n  <tr><td>Total</td><td>{{ total }}</td></tr>\n</table>\n{{{ footer }}}\n";

async fn layout_and_accessibility(stage: Stage) -> Result<()> {
    // A server for this case only, so that its lists have only the records of this case.
    let stand_in = stage.start_stand_in(None).await?;
    let app = &stand_in.app;
    let browser = Browser::start().await?;
    let page = browser.page().await?;
    let mut album = Album::new(&page, stage.suite.settings())?;
    let url = |path: &str| format!("{}/dashboard/{path}", app.base_url);

    // Before sign-in.
    page.go(&url("sign-in")).await?;
    let bytes = "performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))\
        .reduce((sum, e) => sum + e.decodedBodySize, 0)";
    let bytes = page.eval(bytes).await?.as_u64().context("a size")?;
    ensure!(bytes > 0 && bytes < MAX_FIRST_PAGE_BYTES, "the first page is {bytes} bytes");
    album.take("sign-in").await?;
    album.check()?;
    // The rules find an error if there is one.
    page.eval("document.querySelectorAll('label').forEach((label) => label.remove())").await?;
    album.look("sign-in-without-labels").await?;
    ensure!(album.check().is_err(), "the rules do not find a field without a label");
    page.go(&url("sign-in")).await?;
    page.submit(&[("#email", "ann@example.com")], "Sign in").await?;
    album.take("sign-in-wrong").await?;
    let link = app.operator.invite(&new_email("new"), &["--operator"]).await?;
    page.go(&format!("{}{link}", app.base_url)).await?;
    page.submit(&[("#password", "short")], "Set password and sign in").await?;
    album.take("invite").await?;
    album.visit(app, "invite/used", "invite-bad").await?;

    // Empty lists.
    let account = app.operator.account(Quota::Of(100)).await?;
    let name = format!("Northwind {}", &account.name[account.name.len() - 4..]);
    accept_invite(&page, app, &new_email("ann"), &["--account", &account.id]).await?;
    page.shows("First steps").await?;
    for empty in ["keys", "templates", "usage", "requests", "templates?q=nothing"] {
        album.visit(app, empty, &format!("{}-empty", empty.replace("?q=", "-"))).await?;
    }

    ensure!(
        page.eval("document.querySelector('header a[href=\"/docs\"]') !== null").await? == true,
        "no documents"
    );

    // Keys, a template, attempts of every kind.
    keys(&stand_in, &account, &mut album).await?;
    album.visit(app, "templates/new", "template-new").await?;
    page.fill("#name", "Invoice").await?;
    page.fill("#html", MARKUP).await?;
    page.wait("document.querySelector('[data-sample=total]')").await?;
    for (name, value) in [("customer", "Ada Lovelace"), ("number", "2026-42"), ("total", "€ 10.50")] {
        page.fill(&format!("[data-sample={name}]"), value).await?;
    }
    page.click("#files-part-tab").await?;
    let names = ["logo.png", "style.css", &"long-name-".repeat(10)];
    let files = names.map(|name| (name, "image/png", template_files::png()));
    let files = files.each_ref().map(|(name, mime_type, content)| (*name, *mime_type, content.as_str()));
    template_files::add(&page, &files, false).await?;
    page.wait("document.querySelectorAll('#file-list img').length === 3").await?;
    album.take("template-files").await?;
    page.press("Create template").await?;
    page.frames_show("Ada Lovelace").await?;
    album.take("template").await?;
    page.click("#preview-pane-tab").await?;
    page.wait("document.querySelector('#preview-load').checkVisibility()").await?;
    album.take("template-preview").await?;
    let id = page.text("location.pathname.split('/')[3]").await?;
    page.submit(&[("#name", "Invoice 2026")], "Save").await?;
    unsaved_work(app, &account, &mut album).await?;
    links(app, &id, &mut album).await?;
    playground(app, &mut album).await?;
    for (path, name) in [
        (failed_request(app, &account, &id).await?, "request"),
        ("templates".to_owned(), "templates"),
        (format!("templates/{id}/versions"), "versions"),
        (format!("templates/{id}/versions/1"), "version"),
        (format!("templates/{id}/delete"), "template-delete"),
        (format!("playground?template={id}"), "playground-template"),
        ("templates/new?starter=report".to_owned(), "template-starter"),
        ("usage".to_owned(), "usage"),
        ("keys".to_owned(), "keys-after-the-first-steps"),
        ("requests".to_owned(), "requests"),
        ("requests?status=504&from=x".to_owned(), "requests-filtered"),
        ("requests?id=nothing".to_owned(), "requests-none"),
        ("you".to_owned(), "you"),
        ("nowhere".to_owned(), "not-found"),
    ] {
        album.visit(app, &path, name).await?;
    }

    let member_page = browser.page().await?;
    people(app, &account, &member_page, &mut album).await?;

    let page = browser.page().await?;
    album.page = &page;
    operators_pages(app, &account, &name, &mut album).await?;

    album.check()
}

async fn keys(stand_in: &StandIn, account: &Account, album: &mut Album<'_>) -> Result<()> {
    let (app, page) = (&stand_in.app, album.page);
    let keys = format!("{}/dashboard/keys", app.base_url);
    page.go(&keys).await?;
    page.submit(&[("#name", "web server")], "Create key").await?;
    album.take("keys-new").await?;
    page.submit(&[("#name", " ")], "Create key").await?;
    album.take("keys-wrong").await?;
    attempts(stand_in, account).await?;
    page.go(&keys).await?;
    page.press("Disable web server").await?;
    album.take("keys-disable").await?;
    page.press("Disable key").await?;
    album.take("keys").await?;
    let other = page
        .text("[...document.querySelectorAll('tbody a')].find((a) => a.textContent === 'test').href")
        .await?;
    page.go(&other).await?;
    album.take("key").await?;
    page.choose("#expires", "2001-02-03").await?;
    page.press("Change expiry").await?;
    album.take("key-wrong").await?;
    page.go(&keys).await?;
    page.eval("document.querySelectorAll('header .menu:last-child, tbody tr:last-child .menu').forEach((menu) => { menu.name = ''; menu.open = true })").await?;
    album.take("keys-menus").await?;
    page.press("Delete web server").await?;
    album.take("keys-delete").await?;
    Ok(())
}

async fn links(app: &TestApp, template: &str, album: &mut Album<'_>) -> Result<()> {
    let page = album.page;
    album.visit(app, &format!("templates/{template}/links"), "links-empty").await?;
    page.submit(&[("#maxAge", "x")], "Create link").await?;
    album.take("links-wrong").await?;
    page.submit(&[("#name", "Cards of the blog"), ("#maxAge", "7")], "Create link").await?;
    album.take("link-new").await?;
    page.press("Sign and show").await?;
    album.take("link-signed").await?;
    album.visit(app, &format!("templates/{template}/links"), "links").await
}

async fn playground(app: &TestApp, album: &mut Album<'_>) -> Result<()> {
    let page = album.page;
    page.go(&format!("{}/dashboard/playground", app.base_url)).await?;
    album.take("playground").await?;
    page.eval("document.querySelectorAll('details').forEach((group) => { group.open = true })").await?;
    choose(page, "format", "pdf").await?;
    choose(page, "scale", "9").await?;
    render(page).await?;
    page.shows("\"scale\" must be").await?;
    album.take("playground-wrong").await?;
    choose(page, "scale", "").await?;
    render(page).await?;
    page.wait("document.querySelector('#rendered').checkVisibility()").await?;
    album.take("playground-result").await?;
    page.click("#request-pane-tab").await?;
    album.take("playground-request").await
}

/// The people of the account, as an owner and as a member see them.
async fn people<'p>(app: &TestApp, account: &Account, member: &'p Page, album: &mut Album<'p>) -> Result<()> {
    let page = album.page;
    let url = |path: &str| format!("{}/dashboard/{path}", app.base_url);
    album.visit(app, "people", "people-alone").await?;
    page.submit(&[("#email", "grace@example.com")], "Create invite").await?;
    album.take("people-invited").await?;
    page.submit(&[("#email", "no-address")], "Create invite").await?;
    album.take("people-wrong").await?;
    accept_invite(member, app, "carl@example.com", &["--account", &account.id]).await?;
    album.visit(app, "people", "people").await?;
    page.press("Remove carl@example.com").await?;
    album.take("people-remove").await?;
    album.page = member;
    for path in ["people", "keys", "templates"] {
        album.visit(app, path, &format!("{path}-of-a-member")).await?;
    }
    member.go(&url("keys")).await?;
    member.press("test").await?;
    album.take("key-of-a-member").await?;
    member.go(&format!("{}/delete", member.text("location.href").await?)).await?;
    member.shows("Only an owner of this account may do this.").await?;
    album.take("not-allowed").await
}

async fn operators_pages(app: &TestApp, account: &Account, name: &str, album: &mut Album<'_>) -> Result<()> {
    let page = album.page;
    let url = |path: &str| format!("{}/dashboard/{path}", app.base_url);
    accept_invite(page, app, &new_email("op"), &["--operator"]).await?;
    album.visit(app, "operator", "operator").await?;
    album.visit(app, "operator?q=nothing&state=disabled", "operator-nothing").await?;
    album.visit(app, "operator/invites", "invites").await?;
    album.visit(app, "operator/retention", "retention").await?;
    page.submit(&[("#versions", "0"), ("#audit", "1")], "Change retention").await?;
    album.take("retention-wrong").await?;
    app.execute("INSERT INTO audit (id, at, actor, action, subject) VALUES (-1, 1, 'a', 'b', 'c')").await?;
    page.go(&url("operator/retention")).await?;
    page.submit(&[("#audit", "30")], "Change retention").await?.shows("1 entry of the audit log").await?;
    album.take("retention-confirm").await?;
    page.press("Cancel").await?;
    page.go(&url(&format!("operator/accounts/{}", account.id))).await?;
    page.submit(&[("#name", name)], "Rename").await?;
    page.submit(&[("#requests_per_minute", "many"), ("#concurrency", "0")], "Change limits").await?;
    album.take("account-limits-wrong").await?;
    page.submit(&[("#requests_per_minute", "600"), ("#concurrency", "5")], "Change limits").await?;
    page.shows("Limits changed.").await?;
    page.submit(&[("#email", "bob@example.com")], "Create invite").await?;
    album.take("account-invite").await?;
    page.press("Disable").await?;
    album.take("account-disable").await?;
    page.press("Disable account").await?;
    album.take("account").await?;
    page.press("Switch to this account").await?;
    album.take("keys-account-disabled").await?;
    page.go(&url("usage")).await?.shows("600 per minute").await?;
    album.take("usage-limits").await?;
    album.visit(app, &format!("operator/accounts/{}/delete", account.id), "account-delete").await?;
    album.visit(app, "operator/audit", "audit").await?;
    album.visit(app, "operator/audit?who=none&from=x", "audit-filtered").await?;
    Ok(())
}

/// The editor with a newer version and with a draft, and the end of a session during an edit.
async fn unsaved_work(app: &TestApp, account: &Account, album: &mut Album<'_>) -> Result<()> {
    let page = album.page;
    let id = page.text("location.pathname.split('/')[3]").await?;
    let mut other = Person::of(&app.service(), account).await?;
    let newer = MARKUP.replace("Total", "Sum").replace("<!-- The head -->\n", "");
    other
        .post(&format!("/dashboard/templates/{id}"), &[("name", "Invoice"), ("html", &newer)])
        .await?
        .is(303)?;
    page.submit(&[("#html", &MARKUP.replace("Total", "Total due"))], "Save").await?;
    album.take("template-conflict").await?;
    page.press("Open the newer version").await?;
    page.wait("!document.querySelector('#draft').hidden").await?;
    album.take("template-draft").await?;
    page.click("#draft-discard").await?;
    let session = page.cookies(&app.base_url).await?.into_iter().find(|(name, _)| name == "platen");
    let (cookie, token) = session.context("a session")?;
    page.set_cookie(&app.base_url, &cookie, &"0".repeat(token.len())).await?;
    page.press("Save").await?;
    album.take("sign-in-again").await?;
    page.set_cookie(&app.base_url, &cookie, &token).await?;
    Ok(())
}

/// Attempts with every kind of result.
async fn attempts(stand_in: &StandIn, account: &Account) -> Result<()> {
    let target = stand_in.app.target(account);
    let host = || "example.com".to_owned();
    for behaviour in [
        Behaviour::File,
        Behaviour::Refuse(Refusal::NameNotFound { host: host() }),
        Behaviour::Refuse(Refusal::Deadline),
        Behaviour::Refuse(Refusal::QueueFull),
        Behaviour::File,
        Behaviour::File,
    ] {
        stand_in.farm.behave(&account.id, behaviour);
        target.minimal().send().await?;
    }
    Ok(())
}

/// Requests of a template that were refused; the address of one with a field.
async fn failed_request(app: &TestApp, account: &Account, template: &str) -> Result<String> {
    let target = app.target(account);
    let filled = json!({ "templateId": template, "variables": { "number": 1, "customer": 2, "total": 3, "footer": 4 } });
    target.render_template(&filled).send().await?.file("image/png")?;
    target.render(&json!({ "html": "x", "width": 0 })).request_id("order-2026-42").send().await?;
    let sql = format!("SELECT id FROM attempts WHERE account_id = '{}' AND field = 'width'", account.id);
    let id = wait::until_some("the row of a refused request", async || app.execute(&sql).await).await?;
    Ok(format!("requests/{id}"))
}
