//! The documents of a server, in a real browser.

use platen_harness::browser::Theme;

use crate::{album::Album, own_pages::NOT_THERE, prelude::*};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("documents/layout_and_accessibility", layout_and_accessibility)
            .not_on_spin(NOT_THERE),
        Case::any_database("documents/are_searched", are_searched).not_on_spin(NOT_THERE),
        Case::any_database("documents/code_is_copied", code_is_copied).not_on_spin(NOT_THERE),
        Case::any_database("documents/menus_fold", menus_fold).not_on_spin(NOT_THERE),
    ]
}

async fn layout_and_accessibility(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let page = Browser::start().await?.page().await?;
    let mut album = Album::new(&page, stage.suite.settings())?;
    page.go(&format!("{}/llms.txt", app.base_url)).await?;
    let list = page.body().await?;
    let documents = list.split("](/docs/").skip(1).filter_map(|part| part.split_once(".md"));
    let documents: Vec<String> = documents.map(|(name, _)| format!("docs/{name}")).collect();
    ensure!(documents.len() > 20, "{list}");
    let others = ["", "docs", "docs/none", "docs/search?q=margin", "docs/search?q=%3Cnowhere%3E"];
    for path in documents.iter().map(String::as_str).chain(others) {
        page.go(&format!("{}/{path}", app.base_url)).await?;
        let name = format!("documents-{}", path.replace(['/', '?', '=', '%'], "-"));
        album.take_in(&name, Theme::Light).await?;
        // The style sheet of all is one.
        if others.contains(&path) || path == "docs/reference" {
            album.take_in(&name, Theme::Dark).await?;
        }
    }
    album.check()
}

async fn are_searched(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let page = Browser::start().await?.page().await?;
    let mut album = Album::new(&page, stage.suite.settings())?;
    for (has_scripts, width) in [(true, 1440), (false, 390)] {
        page.enable_scripts(has_scripts).await?;
        page.set_viewport(width, 844, Theme::Light).await?;
        page.go(&format!("{}/docs/dashboard", app.base_url)).await?;
        if has_scripts {
            page.eval(
                "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '/', bubbles: true }))",
            )
            .await?;
        } else {
            page.eval("document.querySelector('[type=search]').focus()").await?;
        }
        page.type_text("waitForSelector").await?;
        if has_scripts {
            answers_while_typing(&page, &mut album).await?;
        }
        page.eval("document.querySelector('header form').requestSubmit()").await?;
        page.wait("location.pathname === '/docs/search' && document.querySelector('.results a')").await?;
        page.follow(".results a").await?;
        let place = "(() => { const heading = document.querySelector(location.hash), bar = document.querySelector('header'); \
            const top = heading.getBoundingClientRect().top - bar.getBoundingClientRect().bottom; \
            return [location.pathname, heading.innerText, top >= 0 && top < 200] })()";
        let place = page.eval(place).await?;
        ensure!(place == json!(["/docs/options", "waitForSelector", true]), "{width}: {place}");
    }
    album.check()
}

/// The results of the search appear below a word in the field, by keyboard, within the policy of the page.
async fn answers_while_typing(page: &Page, album: &mut Album<'_>) -> Result<()> {
    page.eval(
        "addEventListener('securitypolicyviolation', (event) => { window.violation = event.violatedDirective })",
    )
    .await?;
    let first = "document.querySelector('#found:popover-open a[href=\"/docs/options#waitforselector\"]')";
    page.wait(first).await?;
    page.wait("/^[0-9]+ sections?$/.test(document.querySelector('#found [role=status]').innerText)").await?;
    album.look("documents-found").await?;
    let press = async |key: &str| {
        page.eval(&format!(
            "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}))"
        ))
        .await
    };
    press("ArrowDown").await?;
    ensure!(page.eval(&format!("document.activeElement === {first}")).await? == true, "not in the results");
    press("ArrowUp").await?;
    ensure!(page.eval("document.activeElement.name").await? == "q", "not in the field");
    // A word that no section has is left out, and without a word there is nothing to show.
    page.type_text(" nowherewritten").await?;
    page.wait("document.querySelector('#found [role=status]').innerText.endsWith(' with 1 of 2 words')")
        .await?;
    page.wait(first).await?;
    page.eval(
        "(() => { const field = document.querySelector('[type=search]'); field.value = ''; \
        field.dispatchEvent(new Event('input', { bubbles: true })) })()",
    )
    .await?;
    page.wait("!document.querySelector('#found:popover-open')").await?;
    page.fill("[type=search]", "waitForSelector").await?;
    page.wait(first).await?;
    ensure!(page.eval("window.violation ?? null").await? == Value::Null, "the policy is violated");
    Ok(())
}

async fn code_is_copied(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let page = Browser::start().await?.page().await?;
    page.go(&format!("{}/docs/quick-start", app.base_url)).await?;
    // The clipboard of the machine is one for all tests.
    page.eval("navigator.clipboard.writeText = async (text) => { window.copied = text }").await?;
    page.click("pre button").await?;
    page.wait("document.querySelector('pre button').innerText === 'Copied'").await?;
    let copied = page.text("window.copied").await?;
    let document =
        std::fs::read_to_string(platen_harness::settings::tests_dir().join("../docs/quick-start.md"))?;
    // The address is that of this server.
    ensure!(copied.contains(&app.base_url), "{copied}");
    let written = copied.replace(&app.base_url, "http://127.0.0.1:3000");
    ensure!(document.contains(&format!("```sh\n{written}```")), "{copied}");
    // Without a permission, the code is selected.
    page.eval("navigator.clipboard.writeText = async () => { throw new Error() }").await?;
    page.click("pre button").await?;
    page.wait("document.querySelector('pre button').innerText === 'Press Ctrl+C'").await?;
    let selected = page.text("getSelection().toString()").await?;
    ensure!(selected.trim() == copied.trim(), "{selected}");
    Ok(())
}

async fn menus_fold(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let page = Browser::start().await?.page().await?;
    page.set_viewport(390, 844, Theme::Light).await?;
    page.go(&format!("{}/docs/options", app.base_url)).await?;
    let shown = "['menu', 'contents'].map((id) => document.getElementById(id).checkVisibility())";
    ensure!(page.eval(shown).await? == json!([false, false]), "a menu is open");
    page.click("[popovertarget=menu]").await?;
    ensure!(page.eval(shown).await? == json!([true, false]), "the menu does not open");
    page.click("[popovertarget=contents]").await?;
    ensure!(page.eval(shown).await? == json!([false, true]), "the contents do not open alone");
    page.click("#contents [href='#margin']").await?;
    page.wait("location.hash === '#margin'").await?;
    ensure!(page.eval(shown).await? == json!([false, false]), "the contents stay open");
    page.set_viewport(1440, 900, Theme::Light).await?;
    ensure!(page.eval(shown).await? == json!([true, true]), "a menu is not beside the text");
    Ok(())
}
