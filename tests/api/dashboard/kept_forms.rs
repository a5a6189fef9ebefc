//! A form that is submitted without a session, with an expired token or without a database is kept.

use super::support::{PASSWORD, Person, accept_invite, new_email, percent, person, sign_in_again};
use crate::database::Outage;
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/lost_work/a_session_ends_during_an_edit", session_ends),
        Case::any_database("dashboard/lost_work/large_and_short_forms_without_a_session", forms_are_kept),
        Case::own_server("dashboard/lost_work/the_database_is_away", database_away),
        Case::any_database("dashboard/sign_in_returns_to_the_page", returns_to_page),
        Case::any_database("dashboard/errors_have_the_frame_of_the_site", errors_in_frame),
    ]
}

/// Ends all sessions of a user but a new one.
async fn end_sessions(app: &Service, email: &str) -> Result<()> {
    let mut other = Person::signed_out(app)?;
    other.get("/dashboard/sign-in").await?.is(200)?;
    other.post("/dashboard/sign-in", &[("email", email), ("password", PASSWORD)]).await?.is(303)?;
    other.get("/dashboard/you").await?.is(200)?;
    other.post("/dashboard/you/sessions/end-others", &[]).await?.is(303)?;
    Ok(())
}

async fn session_ends(stage: Stage) -> Result<()> {
    const HTML: &str = "<p>  \"quoted\" &amp; {{ a }}\n\n</p></textarea><input>\n";
    let (app, account) = stage.account(Quota::Of(10)).await?;
    let browser = Browser::start().await?;
    for scripts in [true, false] {
        let page = browser.page().await?;
        page.enable_scripts(scripts).await?;
        let email = new_email("session");
        accept_invite(&page, &app, &email, &["--account", &account.id]).await?;
        page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
        page.fill("#name", "Kept & safe").await?;
        page.fill("#html", HTML).await?;
        end_sessions(&app, &email).await?;
        page.press("Create template").await?.shows("Your session has ended.").await?;
        sign_in_again(&page, &email, "a wrong password").await?;
        page.shows("Incorrect e-mail address or password.").await?;
        sign_in_again(&page, &email, PASSWORD).await?;
        page.shows("Nothing was saved yet").await?;
        ensure!(page.value("#html").await? == HTML, "the text has changed");
        page.press("Create template").await?.shows("Template created.").await?;
        ensure!(page.value("#html").await? == HTML, "the text was not saved");
        // A change of the saved template, in the same way.
        page.fill("#html", "<p>second</p>").await?;
        end_sessions(&app, &email).await?;
        page.press("Save").await?;
        sign_in_again(&page, &email, PASSWORD).await?;
        page.shows("Nothing was saved yet").await?;
        page.press("Save").await?.shows("Template saved.").await?;
        ensure!(page.value("#html").await? == "<p>second</p>");
        page.shows("Versions (1)").await?;
    }
    Ok(())
}

async fn forms_are_kept(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(1)).await?;
    let email = new_email("large");
    let owner = Person::invited(&app, &email, &["--account", &account.id]).await?;
    let large = format!("{}<i>end</i>", "x<y>&\"'\n".repeat(200_000));
    let shown = |text: &str| {
        text.replace('&', "&#38;")
            .replace('<', "&#60;")
            .replace('>', "&#62;")
            .replace('"', "&#34;")
            .replace('\'', "&#39;")
    };
    let mut person = owner.clone();
    let id = person.new_template("large", "<p>short</p>").await?;
    let path = format!("/dashboard/templates/{id}");
    person.cookies.clear();
    let fields = [("name", "large"), ("html", large.as_str()), ("revision", "1"), ("sample.a", "s")];
    let page = person.post(&path, &fields).await?.is(403)?;
    ensure!(
        page.body.contains("Your session has ended") && page.body.contains(&shown(&large)),
        "the form is lost"
    );
    let kept =
        [("next", path.as_str()), ("kept.name", "large"), ("kept.html", &large), ("kept.revision", "1")];
    let sign_in = |password| [&kept[..], &[("email", email.as_str()), ("password", password)]].concat();
    let page = person.post("/dashboard/sign-in", &sign_in("wrong password")).await?.is(422)?;
    ensure!(page.body.contains(&shown(&large)), "the form is lost after a wrong password");
    let page = person.post("/dashboard/sign-in", &sign_in(PASSWORD)).await?.is(200)?;
    ensure!(
        page.body.contains(&shown(&large)) && page.body.contains("Nothing was saved yet"),
        "not in the editor"
    );
    // A second tab was signed in first: the token of this sign-in form is stale, and the form is kept too.
    let page = person.clone().post_bare("/dashboard/sign-in", &sign_in(PASSWORD)).await?.is(200)?;
    ensure!(page.body.contains(&shown(&large)), "the form is lost in the second tab");
    person.post(&path, &fields).await?.is(303)?;
    ensure!(person.get(&path).await?.body.contains(&shown(&large)), "not saved");
    // An expired form of a user who is signed in.
    let page = person.post_bare(&path, &[("form_token", "old"), ("html", "<p>typed</p>")]).await?.is(403)?;
    ensure!(page.body.contains(&shown("<p>typed</p>")) && page.body.contains("had expired"), "{}", page.body);

    // Those of links, forms with one field, and those of operators.
    let operator_email = new_email("op");
    let operator = Person::invited(&app, &operator_email, &["--operator"]).await?;
    let a = format!("/dashboard/operator/accounts/{}", account.id);
    let mut person = owner.clone();
    let template = person.new_template("card", "<p>{{ a }}</p>").await?;
    let created =
        app.operator.run(&["link", "create", "--account", &account.id, "--template", &template]).await?;
    let link = format!("/dashboard/links/{}", created["id"].as_str().context("no id")?);
    for (person, email, path, field, value) in [
        (&owner, &email, "/dashboard/keys", "name", "typed key"),
        (&owner, &email, &format!("/dashboard/templates/{template}/links"), "name", "typed link"),
        (&owner, &email, &format!("{link}/settings"), "dailyLimit", "4712"),
        (&owner, &email, &link, "stem", "typed-file"),
        (&owner, &email, &link, "value.a", "typed value"),
        (&operator, &operator_email, "/dashboard/operator", "name", "typed account"),
        (&operator, &operator_email, &format!("{a}/name"), "name", "typed name"),
        (&operator, &operator_email, &format!("{a}/quota"), "quota", "4711"),
        (&operator, &operator_email, &format!("{a}/limits"), "concurrency", "4713"),
        (&operator, &operator_email, &format!("{a}/invite"), "email", "typed@example.com"),
    ] {
        let mut person = person.clone();
        person.cookies.clear();
        person.post(path, &[(field, value)]).await?.is(403)?;
        let kept = format!("kept.{field}");
        // The form of a file has a name besides.
        let stem = ("kept.stem", "card");
        let fields = [("next", path), (&kept, value), ("email", email), ("password", PASSWORD), stem];
        let page = person.post("/dashboard/sign-in", &fields).await?.is(200).context(path.to_owned())?;
        let controls = [format!("value=\"{value}\""), format!("\n{value}</textarea>")];
        ensure!(controls.iter().any(|it| page.body.contains(it)), "{path}: {}", page.body);
    }
    // An action without text is not repeated: the user sees the page again.
    let mut person = owner.clone();
    person.cookies.clear();
    let page = person.post(&format!("{path}/delete"), &[]).await?.is(403)?;
    ensure!(page.body.contains(&format!("name=\"next\" value=\"{path}\"")), "{}", page.body);

    // Another user signs in: the text is theirs to save as a new template, and nothing of the account is shown.
    let other_account = app.operator.account(Quota::Of(1)).await?;
    let other_email = new_email("other");
    let mut other = Person::invited(&app, &other_email, &["--account", &other_account.id]).await?;
    other.cookies.clear();
    other.get("/dashboard/sign-in").await?;
    let fields = [
        ("next", path.as_str()),
        ("kept.html", "<p>mine</p>"),
        ("kept.name", "n"),
        ("email", &other_email),
        ("password", PASSWORD),
    ];
    let page = other.post("/dashboard/sign-in", &fields).await?.is(200)?;
    ensure!(page.body.contains("Create template") && !page.body.contains("&#60;i&#62;end"), "{}", page.body);
    Ok(())
}

/// The time after the last failure for which statements may be refused without a try (`Outage::CHECK_TIME`).
const KNOWN_TIME: Duration = Duration::from_secs(1);

async fn database_away(stage: Stage) -> Result<()> {
    let mut stand_in = stage.start_stand_in(None).await?;
    let app = stand_in.app.service();
    let account = app.operator.account(Quota::Of(1)).await?;
    let page = Browser::start().await?.page().await?;
    accept_invite(&page, &app, &new_email("ann"), &["--account", &account.id]).await?;
    page.go(&format!("{}/dashboard/templates/new", app.base_url)).await?;
    page.fill("#name", "Outage").await?;
    page.fill("#html", "<p>during an outage\n</p>").await?;
    let outage = Outage::begin(&mut stand_in, stage.deployment.database, true).await?;
    page.press("Create template").await?.shows("What you entered is kept on this page.").await?;
    outage.end(&mut stand_in, true).await?;
    tokio::time::sleep(KNOWN_TIME).await;
    page.press("Try again").await?.shows("Template created.").await?;
    ensure!(page.value("#html").await? == "<p>during an outage\n</p>");
    Ok(())
}

async fn returns_to_page(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(1)).await?;
    let page = Browser::start().await?.page().await?;
    let email = new_email("next");
    accept_invite(&page, &app, &email, &["--account", &account.id]).await?;
    end_sessions(&app, &email).await?;
    page.go(&format!("{}/dashboard/requests?status=failed", app.base_url)).await?;
    sign_in_again(&page, &email, "a wrong password").await?;
    sign_in_again(&page, &email, PASSWORD).await?;
    let at = page.text("location.pathname + location.search").await?;
    ensure!(at == "/dashboard/requests?status=failed", "the page is {at}");
    // Nothing else is a target.
    for bad in [
        "//evil.example",
        "https://evil.example/dashboard",
        "/dashboard/../v1/render",
        "/\\evil.example",
        "/dashboard\r\nx: y",
    ] {
        let mut person = Person::signed_out(&app)?;
        person.get("/dashboard/sign-in").await?.is(200)?;
        let fields = [("email", email.as_str()), ("password", PASSWORD), ("next", bad)];
        let reply = person.post("/dashboard/sign-in", &fields).await?.is(303)?;
        ensure!(reply.location() == "/dashboard", "{bad}: {}", reply.location());
        let reply = person.get(&format!("/dashboard/sign-in?next={}", percent(bad))).await?.is(303)?;
        ensure!(reply.location() == "/dashboard", "{bad}: {}", reply.location());
    }
    Ok(())
}

async fn errors_in_frame(stage: Stage) -> Result<()> {
    let (app, _, mut person) = person(&stage, Quota::Of(1)).await?;
    for path in ["/dashboard/nothing", "/dashboard/templates/tpl_x", "/dashboard/operator"] {
        let page = person.get(path).await?.is(404)?;
        ensure!(
            page.body.contains("aria-label=\"Main\"") && page.body.contains("Sign out"),
            "{path}: {}",
            page.body
        );
    }
    let page = Person::signed_out(&app)?.get("/dashboard/nothing").await?.is(404)?;
    ensure!(
        page.body.contains("class=\"brand\"") && page.body.contains("/dashboard/sign-in"),
        "{}",
        page.body
    );
    Ok(())
}
