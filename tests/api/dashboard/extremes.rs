//! Pages with the longest names, with many rows, with the largest template, and in forced colours.

use platen_harness::browser::Theme;
use platen_shared::name::MAX_NAME_CHARS;

use super::support::{Person, accept_invite, insert, new_email};
use crate::{album::Album, prelude::*};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("dashboard/long_names_keep_the_layout", long_names),
        Case::any_database("dashboard/a_template_of_a_megabyte_is_edited", large_template),
    ]
}

/// Names of the greatest length: without a place to break, of wide characters, and from right to left.
fn long(start: &str, filler: &str) -> String {
    start.chars().chain(filler.chars().cycle()).take(MAX_NAME_CHARS).collect()
}

async fn long_names(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let app = &stand_in.app;
    let browser = Browser::start().await?;
    let page = browser.page().await?;
    let mut album = Album::new(&page, stage.suite.settings())?;

    let account = app.operator.account(Quota::Of(1)).await?;
    let email = format!("{}@{}.example.com", "a".repeat(64), "b".repeat(60));
    accept_invite(&page, app, &email, &["--account", &account.id]).await?;
    let mut person = Person::of(app, &account).await?;
    let names = [long("W", "W"), long("Ω-", "請求書"), long("א", "חשבונית ")];
    let mut keys = Vec::new();
    let mut templates = Vec::new();
    for name in &names {
        let (id, key) = person.new_key(name).await?;
        keys.push(id);
        let html = format!("<p>{{{{ {} }}}}</p>", "placeholder_".repeat(5));
        let template = person.new_template(name, &html).await?;
        let values = json!({ "templateId": template, "variables": { "placeholder_".repeat(5): "x" } });
        app.target(&account).with_key(&key).render_template(&values).send().await?;
        templates.push(template);
    }
    let request = fill(app, &account, &mut person, (&keys[0], &templates[2]), &names).await?;
    let sides = ["keys", "templates", "templates?page=2", "requests", "usage", "you", "people", "playground"]
        .map(str::to_owned);
    let of_one = [
        format!("keys/{}", keys[0]),
        format!("keys/{}/delete", keys[1]),
        format!("requests/{request}"),
        format!("templates/{}", templates[0]),
        format!("templates/{}/versions", templates[2]),
        format!("templates/{}/versions/1", templates[2]),
        format!("templates/{}/delete", templates[2]),
    ];
    for path in sides.iter().chain(&of_one) {
        look(&page, app, path, &mut album).await?;
    }

    let mut operator = Person::invited(app, &new_email("op"), &["--operator"]).await?;
    let path = format!("/dashboard/operator/accounts/{}", account.id);
    operator.get(&path).await?.is(200)?;
    operator.post(&format!("{path}/name"), &[("name", &names[0])]).await?.is(303)?;
    let page = browser.page().await?;
    album.page = &page;
    accept_invite(&page, app, &new_email("op"), &["--operator"]).await?;
    for path in ["operator", "operator/audit", "operator/invites", path.trim_start_matches("/dashboard/")] {
        look(&page, app, path, &mut album).await?;
    }
    album.check()
}

/// Adds versions, more templates and requests than one page has, and an invite, with the longest texts and numbers. The
/// result is the id of a request.
async fn fill(
    app: &TestApp,
    account: &Account,
    person: &mut Person,
    (key, template): (&str, &str),
    names: &[String; 3],
) -> Result<i64> {
    let path = format!("/dashboard/templates/{template}");
    for html in ["<p>two</p>", "<p>three</p>"] {
        person.post(&path, &[("name", &names[2]), ("html", html)]).await?.is(303)?;
    }
    for _ in 0..50 {
        person.post(&format!("{path}/duplicate"), &[]).await?.is(303)?;
    }
    let text = |text: &str| format!("'{}'", text.repeat(20));
    let texts = [
        ("host", text("host.example.")),
        ("page_host", text("page.example.")),
        ("request_id", text("request-")),
        ("field", text("margin.top.")),
        ("key_name", format!("'{}'", names[0])),
        ("key_id", format!("'{key}'")),
        ("code", "'selector_not_found'".to_owned()),
    ];
    let numbers = ["ms", "bytes", "queued_ms", "render_ms", "page_errors", "failed_requests"]
        .map(|name| (name, "9999999"));
    let texts = texts.iter().map(|(name, value)| (*name, value.as_str()));
    let columns: Vec<_> = texts.chain(numbers).chain([("status", "422")]).collect();
    insert(&app.service(), account, 60, &columns).await?;
    let invited = format!("{}@{}.example.com", "c".repeat(64), "d".repeat(60));
    app.operator.invite(&invited, &["--account", &account.id]).await?;
    let newest = format!("SELECT max(id) FROM attempts WHERE account_id = '{}'", account.id);
    app.execute(&newest).await?.context("a request")
}

/// Takes a page in all sizes and with forced colours, and compares what colour alone says.
async fn look(page: &Page, app: &TestApp, path: &str, album: &mut Album<'_>) -> Result<()> {
    page.go(&format!("{}/dashboard/{path}", app.base_url)).await?;
    let name = path
        .split(['/', '?'])
        .map(|part| part.split('_').next().unwrap_or(part))
        .collect::<Vec<_>>()
        .join("-");
    // In dark colours the layout is the same; `accessibility.rs` looks at these pages.
    for theme in [Theme::Light, Theme::Forced] {
        album.take_in(&format!("long-{name}"), theme).await?;
    }
    // The current section of the navigation, and bars of a chart or a quota, are visible without the page's colours.
    let invisible = page
        .text(
            "(() => {
                const probe = document.createElement('div');
                document.body.append(probe);
                probe.style.backgroundColor = 'Canvas';
                const canvas = getComputedStyle(probe).backgroundColor;
                probe.remove();
                const bad = [];
                for (const e of document.querySelectorAll('nav [aria-current=page], .switch [aria-current=true]'))
                    if (getComputedStyle(e).outlineStyle === 'none') bad.push(e.outerHTML);
                for (const e of document.querySelectorAll('rect.bar'))
                    if (getComputedStyle(e).fill === canvas) bad.push(e.outerHTML);
                for (const e of document.querySelectorAll('progress'))
                    if (getComputedStyle(e).borderTopStyle === 'none') bad.push(e.outerHTML);
                return bad.join('\\n');
            })()",
        )
        .await?;
    // Chromium keeps the forced colour behind the page for what it shows next.
    page.set_viewport(390, 844, Theme::Light).await?;
    page.go("about:blank").await?;
    ensure!(invisible.is_empty(), "{path}: invisible in forced colours: {invisible}");
    Ok(())
}

async fn large_template(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let account: Account = app.operator.account(Quota::Of(5)).await?;
    let page = Browser::start().await?.page().await?;
    accept_invite(&page, app, &new_email("mb"), &["--account", &account.id]).await?;
    let row = "<tr><td>{{ customer }}</td><td>Straße “ß” 😀</td><td>1.00</td></tr>\n";
    let markup = format!("<table>\n{}</table>\n<p>{{{{ total }}}}</p>", row.repeat(1_000_000 / row.len()));
    let mut person = Person::of(app, &account).await?;
    let id = person.new_template("Large", &markup).await?;
    page.go(&format!("{}/dashboard/templates/{id}", app.base_url)).await?;
    page.wait("document.querySelector('#html-editor .cm-content')").await?;
    page.fill("#name", "Large and saved").await?;
    // Text at the very start, typed into the code editor.
    page.eval("document.querySelector('#html-editor .cm-content').focus()").await?;
    page.type_text("<!--t-->").await?;
    page.press("Save").await?.shows("Template saved. The previous version is kept.").await?;
    let saved = person.get(&format!("/dashboard/templates/{id}")).await?.is(200)?.body;
    ensure!(saved.matches("&#60;tr&#62;").count() == markup.matches("<tr>").count(), "rows were lost");
    ensure!(saved.contains("&#60;!--t--&#62;&#60;table&#62;"), "what was typed is not at the start");
    let names =
        page.eval("[...document.querySelectorAll('[data-sample]')].map((f) => f.dataset.sample)").await?;
    ensure!(names == json!(["customer", "total"]), "{names}");
    page.go(&format!("{}/dashboard/templates/{id}/versions", app.base_url)).await?;
    page.follow("main tbody a").await?;
    page.wait("document.querySelector('.diff')").await
}
