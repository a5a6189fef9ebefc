//! Cross-site forms, response headers, oversized forms, SQL injection.

use super::support::{PASSWORD, Person, new_email, percent, person};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/attacks/cross_site_forms", forgery),
        Case::any_database("dashboard/attacks/headers_on_every_answer", headers),
        Case::own_server("dashboard/attacks/the_cookie_requires_tls", secure_cookie),
        Case::any_database("dashboard/attacks/oversized_forms", oversized),
        Case::any_database("dashboard/attacks/sql_in_names", injection),
    ]
}

async fn forgery(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Of(1)).await?;
    let mut other = Person::of(&app, &account).await?;
    other.get("/dashboard/keys").await?;
    person.get("/dashboard/keys").await?;
    let good = person.form_token.clone();
    let name = ("name", "forged");
    for (token, what) in [
        (None, "no token"),
        (Some(""), "an empty token"),
        (Some("x"), "a token of another shape"),
        (Some(other.form_token.as_str()), "another session's token"),
    ] {
        let token: Vec<_> = token.map(|token| ("form_token", token)).into_iter().collect();
        for path in [
            "/dashboard/keys",
            "/dashboard/templates/new",
            "/dashboard/sign-out",
            "/dashboard/you/sessions/end-others",
        ] {
            person
                .post_bare(path, &[&token[..], &[name, ("html", "x")]].concat())
                .await?
                .is(403)
                .context(what)?;
        }
    }
    // With the right token, from a browser that sends the origin of the form.
    let own = person.clone();
    for (header, value) in [
        ("origin", "https://evil.example"),
        ("origin", "http://127.0.0.1:1"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
    ] {
        let mut person = own.clone();
        person.headers.insert(header, value.parse()?);
        person.post_bare("/dashboard/keys", &[("form_token", &good), name]).await?.is(403).context(value)?;
    }
    ensure!(!person.get("/dashboard/keys").await?.body.contains("forged"), "a forged key");
    // Navigations change nothing.
    for path in ["/dashboard/sign-out", "/dashboard/keys/x/disable", "/dashboard/templates/x/duplicate"] {
        person.get(path).await?.is(404)?;
    }
    // A sign-in form is bound to its browser, so that an attacker cannot sign a victim in as another user.
    let mut visitor = Person::signed_out(&app)?;
    visitor.get("/dashboard/sign-in").await?;
    visitor.cookies.clear();
    let fields = [("email", "a@b"), ("password", PASSWORD)];
    let page = visitor.post("/dashboard/sign-in", &fields).await?.is(403)?;
    ensure!(page.body.contains("did not send the cookie"), "{}", page.body);
    // A form of the same origin is accepted.
    let base = app.base_url.clone();
    person.headers.insert("origin", base.parse()?);
    person.headers.insert("sec-fetch-site", "same-origin".parse()?);
    person.post("/dashboard/keys", &[("name", "honest")]).await?.is(303)?;
    Ok(())
}

async fn headers(stage: Stage) -> Result<()> {
    let (_, _, mut person) = person(&stage, Quota::Of(1)).await?;
    let page = person.get("/dashboard/keys").await?;
    let style = format!(
        "/dashboard/assets/{}",
        super::support::between(&page.body, "/dashboard/assets/style", "\"")?
    );
    let style = style.replace("assets/", "assets/style");
    for path in [
        "/dashboard/keys",
        "/dashboard/playground",
        "/dashboard/nowhere",
        "/dashboard/requests.csv",
        "/dashboard",
        "/dashboard/invite/x",
        &style,
    ] {
        let answer = person.get(path).await?;
        let header =
            |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let policy = header("content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            ensure!(policy.contains(part), "{path}: no {part} in {policy}");
        }
        ensure!(!policy.contains("unsafe"), "{path}: {policy}");
        ensure!(header("x-content-type-options") == "nosniff", "{path}");
        ensure!(header("referrer-policy") == "same-origin", "{path}");
        let kept = if path == style { "public, max-age=31536000, immutable" } else { "no-store" };
        ensure!(header("cache-control") == kept, "{path}: {}", header("cache-control"));
        ensure!(
            !answer.body.contains("<script>") && !answer.body.contains(" style="),
            "{path} has inline parts"
        );
    }
    // A cached file is validated by its etag.
    let mut asking = person.clone();
    let tag = person.get(&style).await?.headers.get("etag").context("an etag")?.clone();
    asking.headers.insert("if-none-match", tag);
    asking.get(&style).await?.is(304)?;
    Ok(())
}

/// The cookie requires TLS on every host but this machine.
async fn secure_cookie(stage: Stage) -> Result<()> {
    let mut far = Person::signed_out(&*stage.service().await?)?;
    far.headers.insert("host", "platen.example".parse()?);
    let cookie = far.get("/dashboard/sign-in").await?.is(200)?;
    let cookie = cookie.headers.get("set-cookie").and_then(|value| value.to_str().ok()).unwrap_or_default();
    ensure!(
        cookie.starts_with("__Host-platen-form=") && cookie.ends_with("; HttpOnly; SameSite=Lax; Secure"),
        "{cookie}"
    );
    Ok(())
}

async fn oversized(stage: Stage) -> Result<()> {
    let (app, _, mut person) = person(&stage, Quota::Of(1)).await?;
    let mut signed_out = Person::signed_out(&app)?;
    signed_out.get("/dashboard/sign-in").await?;
    let large = "x".repeat(70_000);
    // Without a session, large forms are accepted where a template is kept for the user's sign-in.
    signed_out.post("/dashboard/sign-in", &[("email", &large), ("password", &large)]).await?.is(422)?;
    signed_out.post("/dashboard/templates/new", &[("html", &large)]).await?.is(403)?;
    signed_out.post("/dashboard/keys", &[("name", &large)]).await?.is(413)?;
    person.post("/dashboard/keys", &[("name", &large)]).await?.is(413)?;
    person.post("/dashboard/keys", &[("name", &"x".repeat(201))]).await?.is(422)?;
    let over = "x".repeat(5 * 1024 * 1024 + 1);
    let page = person.post("/dashboard/templates/new", &[("name", "n"), ("html", &over)]).await?.is(422)?;
    ensure!(page.body.contains("at most 5242880 bytes"), "no reason");
    let page =
        person.post("/dashboard/templates/new", &[("name", "n"), ("html", &over[1..])]).await?.is(303)?;
    let path = page.location().split('?').next().unwrap_or_default().to_owned();
    person.get(&path).await?.is(200)?;
    person.post("/dashboard/templates/new", &[("name", "n"), ("html", &over.repeat(5))]).await?.is(413)?;
    // The length of hashed passwords is limited; a longer one is wrong.
    let long = "x".repeat(60_000);
    signed_out.get("/dashboard/sign-in").await?;
    signed_out
        .post("/dashboard/sign-in", &[("email", &new_email("x")), ("password", &long)])
        .await?
        .is(422)?;
    // The error is beside the samples, and the page keeps the input.
    let sample = "y".repeat(256 * 1024 + 1);
    let fields = [("name", "n"), ("html", "{{ a }}"), ("sample.a", &sample)];
    let page = person.post("/dashboard/templates/new", &fields).await?.is(422)?;
    ensure!(page.body.contains("id=\"samples-error\"") && page.body.contains(&sample), "no reason, or lost");
    // A form with many small fields is valid.
    let names: Vec<String> = (0..5_000).map(|n| format!("sample.{n}")).collect();
    let fields: Vec<(&str, &str)> =
        names.iter().map(|name| (name.as_str(), "1")).chain([("name", "n"), ("html", "h")]).collect();
    person.post("/dashboard/templates/new", &fields).await?.is(303)?;
    Ok(())
}

async fn injection(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Of(1)).await?;
    for text in [
        "'; DROP TABLE api_keys; --",
        "') UNION SELECT hash FROM api_keys --",
        "%\" OR '1'='1",
        "?1 :a @b $c",
    ] {
        let created = person.post("/dashboard/keys", &[("name", text)]).await?.is(303)?;
        let page = person.get(created.location()).await?.is(200)?;
        ensure!(page.body.contains("New API key"), "{text}");
        let id = person.new_template(text, &format!("<p>{text}</p>")).await?;
        let encoded = percent(text);
        let found = person.get(&format!("/dashboard/templates?q={encoded}")).await?.is(200)?;
        ensure!(found.body.contains(&id), "{text} is not found by its name");
        for path in [
            format!("/dashboard/templates/{encoded}"),
            format!("/dashboard/keys/{encoded}/delete"),
            format!("/dashboard/requests/{encoded}"),
            format!("/dashboard/templates/{id}/versions/{encoded}"),
        ] {
            person.get(&path).await?.is(404).with_context(|| path.clone())?;
        }
        for name in ["status", "key", "template", "from", "to", "id", "before"] {
            person.get(&format!("/dashboard/requests?{name}={encoded}")).await?.is(200)?;
            person.get(&format!("/dashboard/requests.csv?{name}={encoded}")).await?.is(200)?;
        }
        let mut signed_out = Person::signed_out(&app)?;
        signed_out.get("/dashboard/sign-in").await?;
        signed_out.post("/dashboard/sign-in", &[("email", text), ("password", text)]).await?.is(422)?;
        signed_out.cookies.insert(signed_out.session_cookie(), text.replace([';', ' '], ""));
        signed_out.get("/dashboard/keys").await?.is(303)?;
    }
    let keys = app.operator.run(&["key", "list", "--account", &account.id]).await?;
    ensure!(keys.as_array().is_some_and(|keys| keys.len() == 5), "{keys}");
    Ok(())
}
