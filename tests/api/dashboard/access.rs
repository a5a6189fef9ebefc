//! Every path of the dashboard with the ids of another account answers 404.

use super::support::{Person, new_email, person};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/access/another_accounts_records_are_not_found", another_account),
        Case::any_database("dashboard/access/operator_pages_are_not_found", not_an_operator),
        Case::any_database("dashboard/access/every_path_needs_a_session", needs_a_session),
        Case::any_database("dashboard/access/a_render_key_is_valid_for_a_minute_and_a_template", render_key),
    ]
}

const REQUEST_ID: &str = "request-of-A";
const HTML: &str = "<p>the secret of A {{ x }}</p>";

async fn another_account(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let (a, b) = (app.operator.account(Quota::Of(9)).await?, app.operator.account(Quota::Of(9)).await?);
    let (mut owner, mut other_user) = (Person::of(app, &a).await?, Person::of(app, &b).await?);
    let (key, secret) = owner.new_key("key of A").await?;
    let template = owner.new_template("template of A", HTML).await?;
    owner
        .post(
            &format!("/dashboard/templates/{template}"),
            &[("name", "template of A"), ("html", "<p>now</p>")],
        )
        .await?
        .is(303)?;
    let rendered = app.target(&a).with_key(&secret).minimal().request_id(REQUEST_ID);
    rendered.send().await?.file("image/png")?;
    let request = wait::until_some("the row of the request", async || {
        app.execute(&format!("SELECT id FROM attempts WHERE account_id = '{}'", a.id)).await
    });
    let request = request.await?;

    let t = format!("/dashboard/templates/{template}");
    for path in [
        format!("/dashboard/keys/{key}"),
        format!("/dashboard/keys/{key}/delete"),
        t.clone(),
        format!("{t}/delete"),
        format!("{t}/versions"),
        format!("{t}/versions/1"),
        format!("/dashboard/playground?template={template}"),
        format!("/dashboard/playground/template?id={template}"),
        format!("/dashboard/requests/{request}"),
    ] {
        let page = other_user.get(&path).await?.is(404).with_context(|| path.clone())?;
        ensure!(!page.body.contains("of A"), "{path} has data of A: {}", page.body);
        // Its owner finds it.
        owner.get(&path).await?.is(200).with_context(|| path.clone())?;
    }
    other_user.get("/dashboard/you").await?;
    let session = owner.get("/dashboard/you").await?.body;
    ensure!(session.contains("Current session"), "{session}");
    for (path, fields) in [
        (format!("/dashboard/keys/{key}/name"), &[("name", "stolen")][..]),
        (format!("/dashboard/keys/{key}/expiry"), &[("expires", "2999-12-31")]),
        (format!("/dashboard/keys/{key}/roll"), &[("grace", "0")]),
        (format!("/dashboard/keys/{key}/disable"), &[]),
        (format!("/dashboard/keys/{key}/enable"), &[]),
        (format!("/dashboard/keys/{key}/delete"), &[]),
        (t.clone(), &[("name", "stolen"), ("html", "<p>stolen</p>")]),
        (format!("{t}/duplicate"), &[]),
        (format!("{t}/delete"), &[]),
        (format!("{t}/versions/1/restore"), &[]),
    ] {
        other_user.post(&path, fields).await?.is(404).with_context(|| path.clone())?;
    }
    for path in [
        "/dashboard/keys",
        "/dashboard/people",
        "/dashboard/templates",
        "/dashboard/usage",
        "/dashboard/requests",
        "/dashboard/requests.csv",
        &format!("/dashboard/requests?key={key}"),
        &format!("/dashboard/requests?template={template}"),
        &format!("/dashboard/requests.csv?id={REQUEST_ID}"),
        "/dashboard/templates?q=of+A",
        "/dashboard/playground",
    ] {
        let page = other_user.get(path).await?.is(200)?;
        ensure!(
            !page.body.contains("key of A")
                && !page.body.contains("template of A")
                && !page.body.contains(&format!("{REQUEST_ID}</code>"))
                && !page.body.contains(&format!(",{REQUEST_ID},")),
            "{path}: {}",
            page.body
        );
    }
    let of_a = [("source", "template"), ("templateId", template.as_str())];
    let refused = other_user.post("/dashboard/playground/render", &of_a).await?.is(422)?;
    ensure!(
        refused.body.contains("no template with this name or ID") && !refused.body.contains("key"),
        "{}",
        refused.body
    );
    // Nothing has changed.
    app.target(&a).with_key(&secret).renders().await?;
    let page = owner.get(&t).await?.is(200)?;
    ensure!(page.body.contains("&#60;p&#62;now") || page.body.contains("&lt;p&gt;now"), "{}", page.body);
    ensure!(owner.get(&format!("{t}/versions")).await?.body.matches("/restore").count() == 1, "versions");
    Ok(())
}

async fn not_an_operator(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Of(1)).await?;
    let a = format!("/dashboard/operator/accounts/{}", account.id);
    let (disable, remove) = (format!("{a}/disable"), format!("{a}/people/usr_x/remove"));
    let (invites, retention) = ("/dashboard/operator/invites", "/dashboard/operator/retention");
    for path in
        ["/dashboard/operator", "/dashboard/operator/audit", invites, retention, &a, &disable, &remove]
    {
        person.get(path).await?.is(404).with_context(|| path.to_owned())?;
    }
    ensure!(
        !person.get("/dashboard/keys").await?.body.contains("/dashboard/operator"),
        "the menu has the operator's pages"
    );
    for (path, fields) in [
        ("/dashboard/operator".to_owned(), &[("name", "mine")][..]),
        (format!("{a}/name"), &[("name", "mine")]),
        (format!("{a}/quota"), &[("quota", "")]),
        (format!("{a}/limits"), &[("requests_per_minute", "9"), ("concurrency", "9")]),
        (format!("{a}/disable"), &[]),
        (format!("{a}/enable"), &[]),
        (format!("{a}/join"), &[]),
        ("/dashboard/operator/leave".to_owned(), &[]),
        (format!("{a}/invite"), &[("email", "me@example.com"), ("operator", "1")]),
        (format!("{a}/people/usr_x/remove"), &[]),
        (format!("{a}/people/usr_x/role"), &[("role", "owner")]),
        (format!("{invites}/inv_x/revoke"), &[]),
        (retention.to_owned(), &[("attempts", "1"), ("confirmed", "1")]),
        ("/dashboard/operator/people/usr_x/remove".to_owned(), &[]),
    ] {
        person.post(&path, fields).await?.is(404).with_context(|| path.clone())?;
    }
    let list = app.operator.run(&["account", "list"]).await?;
    let own = list.as_array().and_then(|list| list.iter().find(|it| it["id"] == account.id.as_str()));
    let own = own.context("the account")?;
    ensure!(own["name"] == account.name.as_str() && own["quota"] == 1 && own["disabled"] == false, "{own}");
    ensure!(own["requests_per_minute"].is_null() && own["concurrency"].is_null(), "{own}");
    Ok(())
}

/// Pages of the dashboard below `/dashboard`.
const PAGES: &str = "/keys /keys/x /keys/x/disable /keys/x/delete /links/x /links/x/disable /links/x/delete /templates /templates/new /templates/x \
    /templates/x/links /templates/x/versions \
    /templates/x/versions/1 /templates/x/delete /playground /playground?template=x /playground/template?id=x \
    /usage /requests /requests.csv /requests/1 /you /people /people/x/remove /operator /operator/audit /operator/audit.csv \
    /operator/invites /operator/retention /operator/accounts/x /operator/accounts/x/disable \
    /operator/accounts/x/people/y/remove";

/// Forms of the dashboard below `/dashboard`.
const FORMS: &str = "/theme /keys /keys/x/name /keys/x/expiry /keys/x/roll /keys/x/disable /keys/x/enable /keys/x/delete \
    /links/x /links/x/settings /links/x/roll /links/x/disable /links/x/enable /links/x/delete /templates/x/links \
    /templates/new /templates/x /templates/x/duplicate /templates/x/delete /playground /playground/request \
    /playground/request.json /playground/render /templates/x/versions/1/restore /you/password \
    /you/sessions/x/end /you/sessions/end-others /people/invite /people/invites/x/revoke /people/x/role \
    /people/x/remove /operator /operator/retention /operator/invites/x/revoke \
    /operator/accounts/x/people/y/role /operator/accounts/x/name /operator/accounts/x/quota \
    /operator/accounts/x/limits /operator/accounts/x/disable /operator/accounts/x/enable \
    /operator/leave /operator/accounts/x/join /operator/accounts/x/invite /operator/accounts/x/people/y/remove";

async fn needs_a_session(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let mut signed_out = Person::signed_out(app)?;
    signed_out.get("/dashboard/sign-in").await?.is(200)?;
    for path in PAGES.split_whitespace().chain([""]) {
        let page =
            signed_out.get(&format!("/dashboard{path}")).await?.is(303).with_context(|| path.to_owned())?;
        ensure!(
            page.location().starts_with("/dashboard/sign-in") && page.body.is_empty(),
            "{path}: {}",
            page.location()
        );
    }
    for path in FORMS.split_whitespace() {
        let path = format!("/dashboard{path}");
        let page = signed_out.post(&path, &[]).await?.is(403).with_context(|| path.clone())?;
        ensure!(page.body.contains("Your session has ended"), "{path}: {}", page.body);
    }
    // A removed user has no session.
    let account = app.operator.account(Quota::Of(1)).await?;
    let email = new_email("gone");
    let mut person = Person::invited(app, &email, &["--account", &account.id]).await?;
    let mut operator = Person::invited(app, &new_email("op"), &["--operator"]).await?;
    let page = format!("/dashboard/operator/accounts/{}", account.id);
    let people = operator.get(&page).await?.is(200)?.body;
    let remove = super::support::between(&people, &format!("{page}/people/"), "/")?;
    operator.post(&format!("{page}/people/{remove}/remove"), &[]).await?.is(303)?;
    person.get("/dashboard/keys").await?.is(303)?;
    Ok(())
}

async fn render_key(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Of(9)).await?;
    let one = person.new_template("one", "<p>one</p>").await?;
    let two = person.new_template("two", "<p>two</p>").await?;
    let fields = [("source", "template"), ("templateId", one.as_str())];
    let made = person.post("/dashboard/playground/render", &fields).await?.is(200)?;
    let made: serde_json::Value = serde_json::from_str(&made.body)?;
    let target = app.target(&account).with_key(made["key"].as_str().context("a key")?);
    let this = json!({ "templateId": one });
    target.render_template(&this).send().await?.file("image/png")?;
    target.render_template(&json!({ "templateId": two })).send().await?.error(401, "Invalid API key")?;
    target.minimal().send().await?.error(401, "Invalid API key")?;
    // Without a template it renders HTML and URLs.
    let other =
        person.post("/dashboard/playground/render", &[("source", "html"), ("html", "x")]).await?.is(200)?;
    let other: serde_json::Value = serde_json::from_str(&other.body)?;
    let other = app.target(&account).with_key(other["key"].as_str().context("a key")?);
    other.renders().await?;
    ensure!(app.operator.attempts(&account.id).await? == 2, "a refused attempt was counted");
    // It is not listed.
    ensure!(!person.get("/dashboard/keys").await?.body.contains("Render button"));
    // It is valid for a minute, and then an unknown key.
    let render_key = format!("account_id = '{}' AND expires_at IS NOT NULL", account.id);
    let lifetime = format!("SELECT min(expires_at - created_at) FROM api_keys WHERE {render_key}");
    ensure!(app.execute(&lifetime).await? == Some(60), "the key is not valid for a minute");
    app.execute(&format!("UPDATE api_keys SET expires_at = expires_at - 60 WHERE {render_key}")).await?;
    target.render_template(&this).send().await?.error(401, "Invalid API key")
}
