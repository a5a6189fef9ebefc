//! Invites, sign-in and sessions.

use futures::future::try_join_all;
use platen_harness::loopback::ClosedPort;

use super::support::{PASSWORD, Person, between, new_email};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/sign_in/an_invite_works_once", invites),
        Case::own_server("dashboard/sign_in/fifty_wrong_passwords", fifty_wrong_passwords),
        Case::own_server("dashboard/sign_in/two_passwords_are_hashed_at_once", two_at_once)
            .not_on_spin("an instance hashes one at a time, and Spin starts as many as it likes"),
        Case::own_server("dashboard/sign_in/known_and_unknown_addresses_get_the_same_answer", no_enumeration),
        Case::any_database("dashboard/sign_in/a_session_is_new_at_every_sign_in", fixation),
        Case::any_database("dashboard/sign_in/sessions_are_listed_and_ended", sessions),
        Case::own_server("dashboard/sign_in/sessions_expire", expiry),
        Case::any_database("dashboard/sign_in/a_new_password_ends_other_sessions", new_password),
    ]
}

async fn sign_in(person: &mut Person, email: &str, password: &str) -> Result<u16> {
    person.get("/dashboard/sign-in").await?.is(200)?;
    Ok(person.post("/dashboard/sign-in", &[("email", email), ("password", password)]).await?.status)
}

async fn invites(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(1)).await?;
    let target = ["--account", account.id.as_str()];
    let fields = [("password", PASSWORD), ("again", PASSWORD)];

    // An invalid password does not use the invite up; a valid one does.
    let email = new_email("once");
    let link = app.operator.invite(&email, &target).await?;
    let mut person = Person::signed_out(&app)?;
    person.get(&link).await?.is(200)?;
    for (password, again, error) in [
        ("short", "short", "10 to 200 characters"),
        (email.as_str(), email.as_str(), "must not be the e-mail address"),
        (PASSWORD, "another sentence", "do not match"),
    ] {
        let page = person.post(&link, &[("password", password), ("again", again)]).await?.is(422)?;
        ensure!(page.body.contains(error), "no {error:?} in {}", page.body);
        ensure!(
            !page.body.contains(&format!("value=\"{password}\"")) || password == email,
            "the page shows the password"
        );
    }
    let mut late = person.clone();
    person.post(&link, &fields).await?.is(303)?;
    person.get("/dashboard/keys").await?.is(200)?;
    late.post(&link, &fields).await?.is(410)?;
    late.get(&link).await?.is(410)?;

    // An expired one.
    let past = new_email("past");
    let link = app.operator.invite(&past, &target).await?;
    app.execute(&format!("UPDATE invites SET expires_at = unixepoch() WHERE email = '{past}'")).await?;
    let mut person = Person::signed_out(&app)?;
    person.get("/dashboard/sign-in").await?;
    person.get(&link).await?.is(410)?;
    person.post(&link, &fields).await?.is(410)?;

    // A new one replaces the one before.
    let email = new_email("two");
    let first = app.operator.invite(&email, &target).await?;
    let second = app.operator.invite(&email, &target).await?;
    person.get(&first).await?.is(410)?;
    person.get(&second).await?.is(200)?;
    for none in ["/dashboard/invite/x", "/dashboard/invite/0000000000000000000000000000000000000000"] {
        person.get(none).await?.is(410)?;
    }
    // A user of another account cannot be invited.
    let other = app.operator.account(Quota::Of(1)).await?;
    person.get(&second).await?.is(200)?;
    person.post(&second, &fields).await?.is(303)?;
    ensure!(
        app.operator.invite(&email, &["--account", &other.id]).await.is_err(),
        "the invite moves the user"
    );
    Ok(())
}

async fn fifty_wrong_passwords(stage: Stage) -> Result<()> {
    // A server for this case only: tries are counted by network address too, which all cases share.
    let StandIn { app, .. } = &stage.start_stand_in(None).await?;
    let account = app.operator.account(Quota::Of(1)).await?;
    let target = ["--account", account.id.as_str()];
    let (email, other) = (new_email("target"), new_email("other"));
    let mut user = Person::invited(app, &email, &target).await?;
    Person::invited(app, &other, &target).await?;
    let mut attacker = Person::signed_out(app)?;
    let mut statuses = Vec::new();
    for number in 0..50 {
        statuses.push(sign_in(&mut attacker, &email, &format!("wrong password {number}")).await?);
    }
    ensure!(statuses[..10].iter().all(|status| *status == 422), "{statuses:?}");
    ensure!(statuses[10..].iter().all(|status| *status == 429), "{statuses:?}");
    ensure!(sign_in(&mut attacker, &email, PASSWORD).await? == 429, "the right password passes the throttle");
    // The user has signed in with this browser before, and has attempts of its own.
    user.get("/dashboard/keys").await?.is(200)?;
    user.post("/dashboard/sign-out", &[]).await?.is(303)?;
    for _ in 0..9 {
        ensure!(sign_in(&mut user, &email, "wrong").await? == 422, "a stranger shuts the user out");
    }
    ensure!(sign_in(&mut user, &email, PASSWORD).await? == 303, "a stranger shuts the user out");
    user.get("/dashboard/keys").await?.is(200)?;
    user.post("/dashboard/sign-out", &[]).await?.is(303)?;
    for _ in 0..10 {
        ensure!(sign_in(&mut user, &email, "wrong").await? == 422);
    }
    ensure!(sign_in(&mut user, &email, PASSWORD).await? == 429, "the attempts of a browser are not limited");
    // Upper case is the same address; other users can sign in.
    ensure!(sign_in(&mut attacker, &email.to_uppercase(), PASSWORD).await? == 429);
    ensure!(sign_in(&mut attacker, &other, PASSWORD).await? == 303);
    // Sixty tries from one network address, for any e-mail addresses.
    let mut attacker = Person::signed_out(app)?;
    let mut seen = 0;
    for number in 0..70 {
        if sign_in(&mut attacker, &format!("{number}@example.com"), "x").await? == 429 {
            seen += 1;
        }
    }
    ensure!(seen > 0, "tries from one network address are not limited");
    // A new invite lets the user in again.
    let link = app.operator.invite(&email, &[]).await?;
    let mut person = Person::signed_out(app)?;
    person.get(&link).await?.is(200)?;
    person.post(&link, &[("password", "another sentence"), ("again", "another sentence")]).await?.is(303)?;
    person.get("/dashboard/keys").await?.is(200)?;
    Ok(())
}

/// The component gets two of the forms at once: at any time, the statements are those of two sign-ins and of the answered ones.
async fn two_at_once(stage: Stage) -> Result<()> {
    const SIGN_INS: usize = 30;
    let StandIn { app, .. } = &stage.start_stand_in(None).await?;
    let mut people = Vec::new();
    for _ in 0..=SIGN_INS {
        let mut person = Person::signed_out(app)?;
        person.get("/dashboard/sign-in").await?.is(200)?;
        people.push(person);
    }
    let attempt = async |number: usize, mut person: Person| -> Result<()> {
        let email = format!("{number}@example.com");
        let path = ["/dashboard/sign-in", "/dashboard//sign-in/"][number % 2];
        let status = person.post(path, &[("email", &email), ("password", "wrong")]).await?.status;
        // A slow machine hashes fewer in the time for which a request waits.
        ensure!([422, 503].contains(&status), "{status}");
        Ok(())
    };
    let statements = async || app.metric("platen_db_statements_total").await;
    let answers = async || app.metric("platen_http_requests_total{status=\"422\"}").await;
    let before = statements().await?;
    attempt(SIGN_INS, people.remove(0)).await?;
    let began = (statements().await?, answers().await?);
    let of_one = began.0 - before;
    // Some clients leave while their password is hashed, which goes on.
    for (number, person) in people.iter().take(5).enumerate() {
        let _ = tokio::time::timeout(Duration::from_millis(20), attempt(number, person.clone())).await;
    }
    let attempts = people.into_iter().enumerate().map(|(number, person)| attempt(number, person));
    let mut attempts = std::pin::pin!(try_join_all(attempts));
    let mut most = 0;
    loop {
        tokio::select! {
            result = &mut attempts => { result?; break }
            looked = async {
                let run = statements().await? - began.0;
                // The answers to clients that have left are not counted.
                anyhow::Ok(run.div_ceil(of_one).saturating_sub(answers().await? - began.1))
            } => most = most.max(looked?),
        }
    }
    // Those that have left, the two, and one whose answer is not counted yet.
    ensure!(most <= 5 + 2 + 1, "{most} sign-ins at once; one runs {of_one} statements");
    Ok(())
}

async fn no_enumeration(stage: Stage) -> Result<()> {
    let StandIn { app, .. } = &stage.start_stand_in(None).await?;
    let account = app.operator.account(Quota::Of(1)).await?;
    let known = new_email("known");
    Person::invited(app, &known, &["--account", &account.id]).await?;
    let mut person = Person::signed_out(app)?;
    let emails = [known.as_str(), "unknown@example.com"];
    let mut cpu_times = Vec::new();
    let mut bodies = Vec::new();
    for email in emails {
        person.get("/dashboard/sign-in").await?;
        let before = procfs::cpu_time(app.server_pid())?;
        // As many tries as the throttle accepts.
        for _ in 0..9 {
            let fields = [("email", email), ("password", "wrong")];
            let page = person.post("/dashboard/sign-in", &fields).await?.is(422)?;
            bodies.push(page.body.replace(email, ""));
        }
        cpu_times.push(procfs::cpu_time(app.server_pid())?.saturating_sub(before));
    }
    ensure!(bodies.iter().all(|body| *body == bodies[0]), "the pages differ");
    // The password is hashed for unknown addresses too: the hash takes most of the CPU time of a try.
    let (known, unknown) = (cpu_times[0], cpu_times[1]);
    ensure!(unknown * 2 > known && known * 2 > unknown, "the CPU times are {known:?} and {unknown:?}");
    Ok(())
}

async fn fixation(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(1)).await?;
    let email = new_email("fixed");
    let mut victim = Person::invited(&app, &email, &["--account", &account.id]).await?;
    victim.post("/dashboard/sign-out", &[]).await?.is(303)?;

    // A session token chosen by an attacker is not accepted (session fixation).
    let (chosen, cookie) = ("A".repeat(40), victim.session_cookie());
    victim.cookies.insert(cookie.clone(), chosen.clone());
    victim.get("/dashboard/keys").await?.is(303)?;
    ensure!(sign_in(&mut victim, &email, PASSWORD).await? == 303);
    let session = victim.cookies[&cookie].clone();
    ensure!(session != chosen, "the chosen session token was accepted");
    let mut attacker = Person::signed_out(&app)?;
    attacker.cookies.insert(cookie.clone(), chosen);
    attacker.get("/dashboard/keys").await?.is(303)?;

    // Signing in again ends the session before; so does signing out.
    let mut again = Person::signed_out(&app)?;
    again.get("/dashboard/sign-in").await?;
    again.cookies.insert(cookie.clone(), session.clone());
    again.get("/dashboard/you").await?.is(200)?;
    again.post("/dashboard/sign-in", &[("email", &email), ("password", PASSWORD)]).await?.is(303)?;
    ensure!(again.cookies[&cookie] != session, "the session is the same after a sign-in");
    victim.get("/dashboard/keys").await?.is(303)?;
    let ended = again.cookies[&cookie].clone();
    again.get("/dashboard/you").await?.is(200)?;
    let out = again.post("/dashboard/sign-out", &[]).await?.is(303)?;
    let cookies: Vec<_> = out.headers.get_all("set-cookie").iter().collect();
    ensure!(
        cookies.iter().any(|cookie| cookie.to_str().is_ok_and(|text| text.contains("Max-Age=0"))),
        "{cookies:?}"
    );
    attacker.cookies.insert(cookie, ended);
    attacker.get("/dashboard/keys").await?.is(303)?;
    Ok(())
}

async fn sessions(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(1)).await?;
    let email = new_email("many");
    let mut first = Person::invited(&app, &email, &["--account", &account.id]).await?;
    let (mut second, mut third) = (Person::signed_out(&app)?, Person::signed_out(&app)?);
    second.headers.insert("user-agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0".parse()?);
    third.headers.insert("user-agent", "<script>alert(1)</script>".parse()?);
    for person in [&mut second, &mut third] {
        ensure!(sign_in(person, &email, PASSWORD).await? == 303);
    }
    let page = first.get("/dashboard/you").await?.is(200)?;
    // A proxy may be in front of an external server.
    let has_address = stage.is_external() || page.body.contains("127.0.0.1");
    ensure!(page.body.contains("Firefox on Linux") && has_address, "{}", page.body);
    ensure!(!page.body.contains("<script>alert"), "a browser's name is markup");
    let row = between(&page.body, "Firefox on Linux", "</tr>")?;
    let id = between(&row, "/dashboard/you/sessions/", "/")?;
    first.post(&format!("/dashboard/you/sessions/{id}/end"), &[]).await?.is(303)?;
    second.get("/dashboard/keys").await?.is(303)?;
    third.get("/dashboard/keys").await?.is(200)?;
    first.post("/dashboard/you/sessions/end-others", &[]).await?.is(303)?;
    third.get("/dashboard/keys").await?.is(303)?;
    first.get("/dashboard/keys").await?.is(200)?;
    Ok(())
}

async fn expiry(stage: Stage) -> Result<()> {
    // Nothing is rendered here.
    let farm = ClosedPort::hold()?;
    let options = Options::with_farm(stage.deployment, farm.url()?);
    let lifetimes = options.variable("session_idle_seconds", 10_000).variable("session_seconds", 30_000);
    let app = stage.start(&lifetimes).await?;
    let account = app.operator.account(Quota::Of(1)).await?;
    let age = async |column: &str, seconds: u32| {
        app.execute(&format!("UPDATE sessions SET {column} = {column} - {seconds}")).await
    };

    // Each request extends an idle session, so it outlives its idle time.
    let mut idle = Person::of(&app, &account).await?;
    for _ in 0..3 {
        age("seen_at", 9_000).await?;
        idle.get("/dashboard/you").await?.is(200)?;
    }
    age("seen_at", 10_001).await?;
    idle.get("/dashboard/you").await?.is(303)?;

    // Requests do not extend the whole lifetime.
    let mut active = Person::of(&app, &account).await?;
    age("created_at", 25_000).await?;
    active.get("/dashboard/you").await?.is(200)?;
    age("created_at", 5_001).await?;
    active.get("/dashboard/you").await?.is(303)?;
    Ok(())
}

async fn new_password(stage: Stage) -> Result<()> {
    const NEW: &str = "quite another sentence";
    let (app, account) = stage.account(Quota::Of(1)).await?;
    let email = new_email("changes");
    let mut person = Person::invited(&app, &email, &["--account", &account.id]).await?;
    let mut other = Person::signed_out(&app)?;
    ensure!(sign_in(&mut other, &email, PASSWORD).await? == 303);
    let change = |current, password, again| [("current", current), ("password", password), ("again", again)];
    let page = person.post("/dashboard/you/password", &change("wrong", NEW, NEW)).await?.is(422)?;
    ensure!(page.body.contains("The current password is incorrect"), "{}", page.body);
    let page = person.post("/dashboard/you/password", &change(PASSWORD, NEW, "x")).await?.is(422)?;
    ensure!(page.body.contains("do not match"), "{}", page.body);
    person.post("/dashboard/you/password", &change(PASSWORD, NEW, NEW)).await?.is(303)?;
    person.get("/dashboard/you").await?.is(200)?;
    other.get("/dashboard/you").await?.is(303)?;
    ensure!(sign_in(&mut other, &email, PASSWORD).await? == 422);
    ensure!(sign_in(&mut other, &email, NEW).await? == 303);
    Ok(())
}
