//! The header: the account, the user's menu with the theme, and the bar of an operator in another account.

use platen_harness::browser::Theme;

use super::support::{Person, accept_invite, new_email, owner_page};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/header/a_theme_is_kept", theme),
        Case::any_database("dashboard/header/menus_open_and_close_by_keyboard", menus),
        Case::any_database("dashboard/header/an_operator_sees_the_other_account", visit),
    ]
}

/// The colour scheme that the page has, and the one that it was asked for.
const SCHEME: &str =
    "getComputedStyle(document.documentElement).colorScheme + ' ' + document.documentElement.dataset.theme";

async fn theme(stage: Stage) -> Result<()> {
    let (app, _, page) = owner_page(&stage, Quota::Of(1)).await?;
    let address = format!("{}/dashboard/templates?q=none", app.base_url);
    page.set_viewport(1440, 900, Theme::Light).await?;
    page.go(&address).await?;
    ensure!(page.text(SCHEME).await? == "light dark system");
    // With scripts the page stays.
    page.fill("#q", "not sent").await?;
    page.click("button[value=dark]").await?;
    page.wait("document.querySelector('button[value=dark]').ariaPressed === 'true'").await?;
    ensure!(page.text(SCHEME).await? == "dark dark" && page.value("#q").await? == "not sent");
    page.wait("fetch(location).then((r) => r.text()).then((t) => t.includes('data-theme=\"dark\"'))").await?;
    // Without them the user returns to the same page.
    page.enable_scripts(false).await?;
    page.go(&address).await?;
    ensure!(page.text(SCHEME).await? == "dark dark");
    page.press("light").await?;
    ensure!(page.text("location.href").await? == address, "another page");
    ensure!(page.text(SCHEME).await? == "light light");
    page.press("Sign out").await?.shows("You are signed out.").await?;
    ensure!(page.text(SCHEME).await? == "light light", "the sign-in page has other colours");
    let mut person = Person::of(&app, &app.operator.account(Quota::Of(1)).await?).await?;
    person.post("/dashboard/theme", &[("theme", "pink")]).await?.is(404)?;
    let elsewhere = [("theme", "dark"), ("next", "//evil.example")];
    let reply = person.post("/dashboard/theme", &elsewhere).await?.is(303)?;
    ensure!(reply.location() == "/dashboard", "{}", reply.location());
    Ok(())
}

async fn menus(stage: Stage) -> Result<()> {
    let (app, _, page) = owner_page(&stage, Quota::Of(1)).await?;
    page.go(&format!("{}/dashboard/keys", app.base_url)).await?;
    page.submit(&[("#name", "web")], "Create key").await?;
    page.go(&format!("{}/dashboard/keys", app.base_url)).await?;
    let is_open = "document.querySelector('tbody .menu').open";
    for is_scripted in [true, false] {
        page.enable_scripts(is_scripted).await?;
        page.go(&format!("{}/dashboard/keys", app.base_url)).await?;
        page.eval("document.querySelector('tbody .menu summary').focus()").await?;
        page.type_text(" ").await?;
        page.wait(is_open).await?;
        page.wait("document.querySelector('tbody .menu a').getClientRects().length === 1").await?;
    }
    page.enable_scripts(true).await?;
    page.go(&format!("{}/dashboard/keys", app.base_url)).await?;
    page.eval("document.querySelector('tbody .menu summary').focus()").await?;
    page.type_text(" ").await?;
    page.wait(is_open).await?;
    page.eval("document.querySelector('tbody .menu a').focus()").await?;
    let escape = "document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))";
    page.eval(escape).await?;
    ensure!(page.eval(is_open).await? == false, "Escape does not close the menu");
    let focus = "document.activeElement.matches('tbody .menu summary')";
    ensure!(page.eval(focus).await? == true, "the focus is lost");
    page.type_text(" ").await?;
    page.wait(is_open).await?;
    page.eval("document.querySelector('#name').focus()").await?;
    ensure!(page.eval(is_open).await? == false, "the menu stays open");
    Ok(())
}

async fn visit(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let (own, other) = (app.operator.account(Quota::Of(1)).await?, app.operator.account(Quota::Of(1)).await?);
    Person::of(app, &own).await?;
    let page = Browser::start().await?.page().await?;
    let target = ["--operator", "--account", own.id.as_str(), "--role", "member"];
    accept_invite(&page, app, &new_email("op"), &target).await?;
    let account = "document.querySelector('summary.account').innerText.replace(/\\s+/g, ' ')";
    ensure!(page.text(account).await?.contains(&format!("{} Member", own.name)));
    ensure!(page.eval("document.querySelector('.visit')").await?.is_null(), "a bar in the own account");
    page.go(&format!("{}/dashboard/operator/accounts/{}", app.base_url, other.id)).await?;
    page.press("Switch to this account").await?;
    for width in [390, 1440] {
        page.set_viewport(width, 844, Theme::Light).await?;
        ensure!(page.text(account).await?.contains(&format!("{} Operator", other.name)));
        page.shows(&format!("You work in {} as an operator.", other.name)).await?;
        let left = "document.querySelector('.visit').getBoundingClientRect().width - document.querySelector('.page').clientWidth";
        ensure!(page.eval(left).await? == 0, "the bar is not as wide as the page at {width}");
    }
    page.press("Leave account").await?.shows("You left the account.").await?;
    ensure!(page.text(account).await?.contains(&own.name), "not back in the own account");
    ensure!(page.eval("document.querySelector('.visit')").await?.is_null(), "the bar stays");
    Ok(())
}
