//! What is entered into the playground is not lost: by link, without scripts, and when a session ends.

use super::{
    playground::{open, playground},
    support::{PASSWORD, Person, accept_invite, between, choose, new_email, render, sign_in_again},
};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/playground/a_link_restores_the_request", links),
        Case::any_database("dashboard/playground/works_without_scripts", without_scripts),
        Case::any_database("dashboard/playground/what_is_entered_is_kept", kept),
        Case::any_database("dashboard/playground/a_template_is_named_by_its_name", template_by_name),
    ]
}

async fn links(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let browser = Browser::start().await?;
    let page = browser.page().await?;
    playground(app, &page, &new_email("pg")).await?;
    let html = "<h1>Ünïcode</h1><script>window.pwned = 1</script><img src=x onerror=\"window.pwned = 1\">";
    page.fill("#option-html", html).await?;
    choose(&page, "format", "pdf").await?;
    choose(&page, "margin.top", "\"><script>window.pwned=1</script>").await?;
    page.click("#copy-link").await?;
    page.wait("location.hash.startsWith('#request=')").await?;
    let address = page.text("location.href").await?;
    page.fill("#option-html", "<p>something else</p>").await?;
    page.wait("document.querySelector('#snippet-curl').textContent.includes('something else') || !document.querySelector('#no-request').hidden").await?;

    // Another user opens the link in another browser.
    let other = browser.page().await?;
    let email = new_email("pg2");
    playground(app, &other, &email).await?;
    other.fill("#option-html", "<p>own work</p>").await?;
    other.wait("document.querySelector('#snippet-curl').textContent.includes('own work')").await?;
    other.go("about:blank").await?;
    other.go(&address).await?.shows("This page was filled in from a link.").await?;
    let value = "document.querySelector('[name=\"margin.top\"]').value";
    ensure!(other.text(value).await?.contains("pwned=1"), "the option of the link");
    let shown = "document.querySelector('#option-html-editor .cm-content').innerText";
    ensure!(other.text(shown).await?.contains("Ünïcode"), "{}", other.text(shown).await?);
    ensure!(other.eval("window.pwned === undefined").await? == true, "the link ran a script");
    ensure!(
        other.eval("document.querySelector('#rendered').hidden").await? == true,
        "a link rendered by itself"
    );
    // What this user had entered is not replaced.
    other.go("about:blank").await?;
    open(app, &other, "").await?;
    other.wait(&format!("{shown}.includes('own work')")).await?;
    // A link is opened after the sign-in that it asks for.
    let signed_out = browser.page().await?;
    signed_out.go(&address).await?;
    sign_in_again(&signed_out, &email, "wrong").await?;
    sign_in_again(&signed_out, &email, PASSWORD).await?;
    signed_out.shows("This page was filled in from a link.").await?;
    ensure!(signed_out.text(value).await?.contains("pwned=1"), "the option of the link");
    // Fragments that are no link are ignored: no text, no compressed data, another type, too much.
    let bomb = "(async () => { const bytes = new Blob([new Uint8Array(64 * 1024 * 1024)]).stream().pipeThrough(new CompressionStream('deflate-raw'));\
        const packed = new Uint8Array(await new Response(bytes).arrayBuffer());\
        let text = ''; for (const byte of packed) text += String.fromCharCode(byte);\
        return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, ''); })()";
    let bomb = other.text(bomb).await?;
    for fragment in ["", "%%%", "AAAA", "q1YqVrJSUFKpBQA", bomb.as_str()] {
        other.go("about:blank").await?;
        open(app, &other, &format!("#request={fragment}")).await?;
        other
            .wait(&format!("{shown}.includes('own work')"))
            .await
            .with_context(|| fragment.len().to_string())?;
    }
    Ok(())
}

async fn without_scripts(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let page = Browser::start().await?.page().await?;
    let account = app.operator.account(Quota::Of(5)).await?;
    accept_invite(&page, app, &new_email("pg"), &["--account", &account.id]).await?;
    page.enable_scripts(false).await?;
    page.go(&format!("{}/dashboard/playground", app.base_url)).await?;
    page.fill("#option-html", "<p>No scripts</p>").await?;
    page.choose("[name=format]", "pdf").await?;
    page.choose("[name=landscape]", "true").await?;
    page.press("Show request").await?;
    let curl = page.text("document.querySelector('#snippet-curl').textContent").await?;
    ensure!(curl.contains("No scripts") && curl.contains("\"landscape\": true"), "{curl}");
    page.choose("[name=scale]", "9").await?;
    page.press("Show request").await?.shows("\"scale\" must be a number from 0.1 to 2").await?;
    ensure!(page.value("#option-html").await? == "<p>No scripts</p>", "the text");
    ensure!(page.value("[name=scale]").await? == "9", "the value");
    ensure!(app.operator.attempts(&account.id).await? == 0, "nothing was rendered");
    Ok(())
}

async fn kept(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let browser = Browser::start().await?;
    let page = browser.page().await?;
    let email = new_email("pg");
    playground(app, &page, &email).await?;
    page.fill("#option-html", "<p>kept text</p>").await?;
    choose(&page, "format", "webp").await?;
    page.wait("document.querySelector('#snippet-curl').textContent.includes('webp')").await?;
    let cookies = format!("{}/dashboard", app.base_url);
    for (name, _) in page.cookies(&cookies).await? {
        page.set_cookie(&cookies, &name, "gone").await?;
    }
    render(&page).await?;
    page.shows("Your session has ended.").await?;
    page.go(&format!("{}/dashboard/playground", app.base_url)).await?;
    sign_in_again(&page, &email, PASSWORD).await?;
    page.wait("document.querySelector('#option-html-editor .cm-content')?.innerText.includes('kept text')")
        .await?;
    page.wait("document.querySelector('[name=format]').value === 'webp'").await?;
    // A form that the browser submits itself is kept by the server.
    page.enable_scripts(false).await?;
    page.go(&format!("{}/dashboard/playground", app.base_url)).await?;
    page.fill("#option-html", "<p>submitted text</p>").await?;
    for (name, _) in page.cookies(&cookies).await? {
        page.set_cookie(&cookies, &name, "gone").await?;
    }
    page.press("Show request").await?;
    sign_in_again(&page, &email, PASSWORD).await?;
    let text = page.value("#option-html").await?;
    ensure!(text == "<p>submitted text</p>", "{text}");
    Ok(())
}

async fn template_by_name(stage: Stage) -> Result<()> {
    let app = &*stage.real_service().await?;
    let account = app.operator.account(Quota::Of(2)).await?;
    let mut person = Person::of(app, &account).await?;
    let id = person.new_template("An invoice", "<p>one {{ n }}").await?;
    let twice = [
        person.new_template("A letter", "<p>two").await?,
        person.new_template("A letter", "<p>three").await?,
    ];
    let text = format!("An invoice · {id}");
    for named in ["An invoice", " An invoice ", &id, &text] {
        let fields = [("source", "template"), ("templateId", named)];
        let request = person.post("/dashboard/playground/request", &fields).await?.is(200)?;
        ensure!(request.body.contains(&format!("\\\"templateId\\\": \\\"{id}\\\"")), "{}", request.body);
        person.post("/dashboard/playground", &fields).await?.is(200)?;
        let file = person.post("/dashboard/playground/request.json", &fields).await?.is(200)?;
        ensure!(file.body.contains(&id), "{}", file.body);
    }
    // Also without scripts the message is beside the field.
    for (named, parts) in [
        ("A letter", [&*twice[0], &*twice[1], "2 templates have this name."]),
        ("A lett", ["The account has no template with this name or ID.", "", ""]),
        ("", ["Choose a template.", "", ""]),
    ] {
        let fields = [("source", "template"), ("templateId", named)];
        let page = person.post("/dashboard/playground", &fields).await?.is(422)?.body;
        let error = between(&page, "id=\"option-templateId-error\">", "</p>")?;
        ensure!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
    let page = Browser::start().await?.page().await?;
    accept_invite(&page, app, &new_email("pg"), &["--account", &account.id]).await?;
    page.go(&format!("{}/dashboard/playground", app.base_url)).await?;
    page.eval("void document.querySelector('[name=source][value=template]').click()").await?;
    choose(&page, "templateId", "An invoice").await?;
    page.wait("document.querySelector('#option-variables-editor .cm-content')?.innerText.includes('\"n\"')")
        .await?;
    page.wait("document.querySelector('[data-field=data]').hidden").await?;
    page.in_frames("document.body?.innerText.startsWith('one')").await?;
    render(&page).await?;
    page.shows("Rendered in").await
}
