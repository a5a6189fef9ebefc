//! Stored names are shown as text, and the script of a template is isolated in its preview.

use super::support::{accept_invite, new_email, owner_page, percent, render};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/hostile/stored_text_is_not_markup", stored_text),
        Case::any_database("dashboard/hostile/a_previewed_script_is_isolated", preview),
    ]
}

const TEXTS: [&str; 3] = [
    "<script>pwned=1</script>\"><img src=x onerror=pwned=1>",
    "'-pwned-'</title></textarea></pre><svg onload=pwned=1>{{ x }}</script><iframe srcdoc='<script>top.pwned=1</script>'>",
    "javascript:pwned=1",
];

/// Checks that no stored text is an element or has run.
async fn harmless(page: &Page, what: &str) -> Result<()> {
    let pwned = page.eval("typeof pwned !== 'undefined' || document.querySelector('main img:not([src^=\"/dashboard/assets/\"], #rendered img), main svg:not([role=img]), main script, iframe:not(#preview, .pdf)') !== null").await?;
    ensure!(pwned == false, "{what}: stored text is markup");
    Ok(())
}

async fn stored_text(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Unlimited).await?;
    let browser = Browser::start().await?;
    let page = browser.page().await?;
    accept_invite(&page, &app, &new_email("xss"), &["--account", &account.id]).await?;
    let url = |path: &str| format!("{}/dashboard/{path}", app.base_url);
    let harmless = async |what: &str| harmless(&page, what).await;
    for text in TEXTS {
        page.go(&url("keys")).await?;
        page.submit(&[("#name", text)], "Create key").await?;
        harmless(text).await?;
        let key = page.text("document.querySelector('#key').textContent").await?;
        let target = app.target(&account).with_key(&key);
        target.render(&json!({ "html": "x", "fileName": text })).send().await?.file("image/png")?;
        page.go(&url("templates/new")).await?;
        page.fill("#name", text).await?;
        page.fill("#html", &format!("{text}<p>{{{{ a }}}}{{{{{{ b }}}}}}</p>")).await?;
        page.wait("document.querySelector('[data-sample=b]')").await?;
        page.submit(&[("[data-sample=a]", text), ("[data-sample=b]", text)], "Create template").await?;
        page.frames_show("").await?;
        harmless(text).await?;
        let shown = page.value("#html").await?;
        ensure!(shown == format!("{text}<p>{{{{ a }}}}{{{{{{ b }}}}}}</p>"), "{text} became {shown}");
        let id = page.text("location.pathname.split('/')[3]").await?;
        page.submit(&[("#name", &format!("{text}2"))], "Save").await?;
        for path in ["versions", "versions/1", "delete"] {
            page.go(&url(&format!("templates/{id}/{path}"))).await?;
            harmless(&format!("{text} in {path}")).await?;
        }
        // As HTML, as the value of options, and as the values of a template.
        page.go(&url("playground")).await?;
        page.wait("document.querySelector('#render').textContent === 'Render'").await?;
        page.fill("#option-html", text).await?;
        for option in ["fileName", "margin.top", "waitForSelector", "timezone"] {
            page.fill(&format!("[name=\"{option}\"]"), text).await?;
        }
        render(&page).await?;
        page.wait("/([.]|Show the request)$/.test(document.querySelector('#render-status').textContent)")
            .await?;
        harmless(&format!("{text} in the playground")).await?;
        page.enable_scripts(false).await?;
        page.press("Render").await?;
        page.enable_scripts(true).await?;
        harmless(&format!("{text} in a playground without scripts")).await?;
        page.go(&url(&format!("playground?template={id}"))).await?;
        page.wait("document.querySelector('#snippet-curl').textContent.includes('templateId')").await?;
        harmless(&format!("{text} in the playground of a template")).await?;
        let query = percent(text);
        for path in [
            "templates".to_owned(),
            format!("templates?q={query}"),
            "usage".to_owned(),
            format!("usage?done={query}"),
            "requests".to_owned(),
            format!("requests?id={query}&key={query}&template={query}&from={query}&to={query}"),
            format!("requests?template={id}"),
        ] {
            page.go(&url(&path)).await?;
            harmless(&format!("{text} in {path}")).await?;
        }
    }
    let names = app.operator.run(&["key", "list", "--account", &account.id]).await?;
    ensure!(names.to_string().contains("<script>pwned=1</script>"), "names are stored unchanged: {names}");
    operators_pages(&app, &browser.page().await?).await
}

/// The operator's pages, which show names of other accounts, and the pages of people.
async fn operators_pages(app: &Service, page: &Page) -> Result<()> {
    let url = |path: &str| format!("{}/dashboard/{path}", app.base_url);
    accept_invite(page, app, &new_email("op"), &["--operator"]).await?;
    let harmless = async |what: &str| harmless(page, what).await;
    for text in TEXTS {
        page.go(&url("operator")).await?;
        page.submit(&[("#name", &format!("{text} {:x}", rand::random::<u64>()))], "Create account").await?;
        harmless(text).await?;
        let account = page.text("location.pathname").await?;
        page.submit(&[("#email", &new_email("new"))], "Create invite").await?;
        harmless(&format!("{text} with an invite")).await?;
        page.submit(&[("#email", text)], "Create invite").await?;
        harmless(&format!("{text} as an address")).await?;
        page.go(&format!("{}{account}", app.base_url)).await?;
        page.press("Switch to this account").await?;
        page.go(&url("people")).await?;
        page.submit(&[("#email", text)], "Create invite").await?;
        harmless(&format!("{text} in the page of people")).await?;
        page.go(&url("operator/retention")).await?;
        for field in ["versions", "audit", "attempts"] {
            page.fill(&format!("#{field}"), text).await?;
        }
        page.press("Change retention").await?;
        harmless(&format!("{text} as settings")).await?;
        let query = percent(text);
        for path in [
            format!("operator?q={query}&state={query}&page={query}"),
            format!("operator?q={}", percent(&text[..8])),
            format!("operator/invites?page={query}"),
            format!("people?done={query}&created={query}"),
        ] {
            page.go(&url(&path)).await?;
            harmless(&format!("{text} in {path}")).await?;
        }
    }
    page.go(&url("operator/audit")).await?;
    harmless("the audit log").await
}

async fn preview(stage: Stage) -> Result<()> {
    // Whatever of this runs or is sent changes the page, the preview or the session.
    const HOSTILE: &str = "<p id=out>shown</p>
        <script>document.getElementById('out').textContent = 'ran'; top.pwned = 1;
        parent.postMessage('<p>from inside</p>', '*'); top.postMessage('shown', '*');
        top.location = '/dashboard/sign-in?left'</script>
        <img src=x onerror='out.textContent = \"ran\"; top.pwned = 1'>
        <svg onload='out.textContent = \"ran\"'></svg>
        <a href='javascript:top.pwned=1' id=link target=_top>link</a>
        <form action=/dashboard/sign-out method=post id=f target=_top><button autofocus>send</button></form>
        <iframe srcdoc='<script>top.pwned = 1; parent.document.body.textContent = \"ran\"</script>'></iframe>
        <script autofocus>document.getElementById('out').textContent = 'ran'</script>
        <meta http-equiv=refresh content='0; url=/dashboard/sign-in?left'>
        <meta autofocus http-equiv=refresh content='0; url=data:text/html,left'>
        <base href=/dashboard/ target=_top>";
    let (app, _, page) = owner_page(&stage, Quota::Of(9)).await?;
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.fill("#name", "hostile").await?;
    page.fill("#html", HOSTILE).await?;
    page.frames_show("shown").await?;
    // A script, a refresh or an event handler would have run before the markup that follows is shown.
    page.fill("#html", &format!("{HOSTILE}<p>second</p>")).await?;
    page.frames_show("second").await?;
    page.in_frames("document.getElementById('out')?.textContent === 'shown'").await?;
    let at = page.text("location.pathname + location.search").await?;
    ensure!(at == "/dashboard/templates/new", "the page is at {at}");
    ensure!(page.eval("typeof pwned").await? == "undefined", "the page was written to");
    page.press("Create template").await?.shows("Template created.").await?;
    // The frame is isolated when it is opened as a page too.
    let frame = page.text("document.querySelector('#preview').src").await?;
    page.go(&frame).await?;
    ensure!(page.eval("origin").await? == "null", "the frame has the origin of the dashboard");
    Ok(())
}
