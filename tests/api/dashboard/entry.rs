//! Coming in: invites, sign-in, sessions.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use platen_tests::{
    app::Options, case::Case, farm::StandInFarm, loopback::ClosedPort, operator::Quota, suite::Stage,
};

use super::support::{PASSWORD, Person, between, new_email};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("dashboard/entry/an_invite_works_once", invites),
        Case::own_server("dashboard/entry/fifty_wrong_passwords", fifty_wrong_passwords),
        Case::own_server("dashboard/entry/an_unknown_address_cannot_be_told", no_enumeration),
        Case::own_server("dashboard/entry/a_session_is_new_at_every_sign_in", fixation),
        Case::own_server("dashboard/entry/sessions_are_listed_and_ended", sessions),
        Case::own_server("dashboard/entry/sessions_expire", expiry),
        Case::own_server("dashboard/entry/a_new_password_ends_other_sessions", new_password),
    ]
}

async fn sign_in(person: &mut Person, email: &str, password: &str) -> Result<u16> {
    person.get("/dashboard/sign-in").await?.is(200)?;
    Ok(person.post("/dashboard/sign-in", &[("email", email), ("password", password)]).await?.status)
}

async fn invites(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let app = &stand_in.app;
    let account = app.operator.account(Quota::Of(1)).await?;
    let place = ["--account", account.id.as_str()];
    let fields = [("password", PASSWORD), ("again", PASSWORD)];

    // A password that is none does not use it up; a good one does.
    let email = new_email("once");
    let link = app.operator.invite(&email, &place).await?;
    let mut person = Person::stranger(app)?;
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
            "it shows the password"
        );
    }
    let mut late = person.clone();
    person.post(&link, &fields).await?.is(303)?;
    person.get("/dashboard/keys").await?.is(200)?;
    late.post(&link, &fields).await?.is(410)?;
    late.get(&link).await?.is(410)?;

    // One that is past.
    let link = app.operator.invite(&new_email("past"), &[&place[..], &["--valid-for", "1"]].concat()).await?;
    let mut person = Person::stranger(app)?;
    person.get("/dashboard/sign-in").await?;
    let began = Instant::now();
    while person.get(&link).await?.status == 200 {
        ensure!(began.elapsed() < Duration::from_mins(1), "an invite for a second is still good");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    person.post(&link, &fields).await?.is(410)?;

    // A new one takes the place of the one before.
    let email = new_email("two");
    let first = app.operator.invite(&email, &place).await?;
    let second = app.operator.invite(&email, &place).await?;
    person.get(&first).await?.is(410)?;
    person.get(&second).await?.is(200)?;
    for none in ["/dashboard/invite/x", "/dashboard/invite/0000000000000000000000000000000000000000"] {
        person.get(none).await?.is(410)?;
    }
    // And one for somebody who is elsewhere is not made.
    let other = app.operator.account(Quota::Of(1)).await?;
    person.get(&second).await?.is(200)?;
    person.post(&second, &fields).await?.is(303)?;
    ensure!(app.operator.invite(&email, &["--account", &other.id]).await.is_err(), "moved by an invite");
    Ok(())
}

async fn fifty_wrong_passwords(stage: Stage) -> Result<()> {
    // Its own server: tries are counted by network address too, and all tests have the same.
    let farm = StandInFarm::start(platen_tests::app::FARM_TOKEN).await?;
    let app = stage.start(&Options::with_farm(stage.database, farm.url())).await?;
    let account = app.operator.account(Quota::Of(1)).await?;
    let place = ["--account", account.id.as_str()];
    let (email, other) = (new_email("target"), new_email("other"));
    Person::invited(&app, &email, &place).await?;
    Person::invited(&app, &other, &place).await?;
    let mut attacker = Person::stranger(&app)?;
    let mut statuses = Vec::new();
    for number in 0..50 {
        statuses.push(sign_in(&mut attacker, &email, &format!("wrong password {number}")).await?);
    }
    ensure!(statuses[..10].iter().all(|status| *status == 422), "{statuses:?}");
    ensure!(statuses[10..].iter().all(|status| *status == 429), "{statuses:?}");
    ensure!(sign_in(&mut attacker, &email, PASSWORD).await? == 429, "the right one passes the throttle");
    // Capital letters are the same address; another person is not kept out.
    ensure!(sign_in(&mut attacker, &email.to_uppercase(), PASSWORD).await? == 429);
    ensure!(sign_in(&mut attacker, &other, PASSWORD).await? == 303);
    // Sixty from one network address, whomever they are for.
    let mut attacker = Person::stranger(&app)?;
    let mut seen = 0;
    for number in 0..70 {
        if sign_in(&mut attacker, &format!("{number}@example.com"), "x").await? == 429 {
            seen += 1;
        }
    }
    ensure!(seen > 0, "one address tries without end");
    // The operator's new link lets the person in again.
    let link = app.operator.invite(&email, &[]).await?;
    let mut person = Person::stranger(&app)?;
    person.get(&link).await?.is(200)?;
    person.post(&link, &[("password", "another sentence"), ("again", "another sentence")]).await?.is(303)?;
    person.get("/dashboard/keys").await?.is(200)?;
    Ok(())
}

async fn no_enumeration(stage: Stage) -> Result<()> {
    let farm = StandInFarm::start(platen_tests::app::FARM_TOKEN).await?;
    let app = stage.start(&Options::with_farm(stage.database, farm.url())).await?;
    let account = app.operator.account(Quota::Of(1)).await?;
    let known = new_email("known");
    Person::invited(&app, &known, &["--account", &account.id]).await?;
    let mut person = Person::stranger(&app)?;
    let emails = [known.as_str(), "unknown@example.com"];
    let mut fastest = [Duration::MAX; 2];
    let mut bodies = Vec::new();
    // In turns, so that a noisy machine disturbs both, and as often as the throttle lets them.
    for _ in 0..9 {
        for (email, fastest) in emails.iter().zip(&mut fastest) {
            person.get("/dashboard/sign-in").await?;
            let began = Instant::now();
            let page = person
                .post("/dashboard/sign-in", &[("email", email), ("password", "wrong")])
                .await?
                .is(422)?;
            *fastest = began.elapsed().min(*fastest);
            bodies.push(page.body.replace(email, ""));
        }
    }
    ensure!(bodies.iter().all(|body| *body == bodies[0]), "the pages differ");
    // Without the same work for both they are a factor of ten or more apart.
    ensure!(fastest[1] * 4 > fastest[0] && fastest[0] * 4 > fastest[1], "known and unknown take {fastest:?}");
    Ok(())
}

async fn fixation(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let app = &stand_in.app;
    let account = app.operator.account(Quota::Of(1)).await?;
    let email = new_email("fixed");
    let mut victim = Person::invited(app, &email, &["--account", &account.id]).await?;
    victim.post("/dashboard/sign-out", &[]).await?.is(303)?;

    // A session somebody else chose is not taken over.
    let chosen = "A".repeat(40);
    victim.cookies.insert("platen".into(), chosen.clone());
    victim.get("/dashboard/keys").await?.is(303)?;
    ensure!(sign_in(&mut victim, &email, PASSWORD).await? == 303);
    let session = victim.cookies["platen"].clone();
    ensure!(session != chosen, "the chosen session was taken over");
    let mut attacker = Person::stranger(app)?;
    attacker.cookies.insert("platen".into(), chosen);
    attacker.get("/dashboard/keys").await?.is(303)?;

    // Signing in again ends the session before; so does signing out.
    let mut again = Person::stranger(app)?;
    again.get("/dashboard/sign-in").await?;
    again.cookies.insert("platen".into(), session.clone());
    again.get("/dashboard/you").await?.is(200)?;
    again.post("/dashboard/sign-in", &[("email", &email), ("password", PASSWORD)]).await?.is(303)?;
    ensure!(again.cookies["platen"] != session, "the session is the same after a sign-in");
    victim.get("/dashboard/keys").await?.is(303)?;
    let ended = again.cookies["platen"].clone();
    again.get("/dashboard/you").await?.is(200)?;
    let out = again.post("/dashboard/sign-out", &[]).await?.is(303)?;
    let cookies: Vec<_> = out.headers.get_all("set-cookie").iter().collect();
    ensure!(
        cookies.iter().any(|cookie| cookie.to_str().is_ok_and(|text| text.contains("Max-Age=0"))),
        "{cookies:?}"
    );
    attacker.cookies.insert("platen".into(), ended);
    attacker.get("/dashboard/keys").await?.is(303)?;
    Ok(())
}

async fn sessions(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let app = &stand_in.app;
    let account = app.operator.account(Quota::Of(1)).await?;
    let email = new_email("many");
    let mut first = Person::invited(app, &email, &["--account", &account.id]).await?;
    let (mut second, mut third) = (Person::stranger(app)?, Person::stranger(app)?);
    second.headers.insert("user-agent", "Mozilla/5.0 (X11; Linux x86_64) Firefox/150.0".parse()?);
    third.headers.insert("user-agent", "<script>alert(1)</script>".parse()?);
    for person in [&mut second, &mut third] {
        ensure!(sign_in(person, &email, PASSWORD).await? == 303);
    }
    let page = first.get("/dashboard/you").await?.is(200)?;
    ensure!(page.body.contains("Firefox on Linux") && page.body.contains("127.0.0.1"), "{}", page.body);
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
    for (name, other) in
        [("session_idle_seconds", "session_seconds"), ("session_seconds", "session_idle_seconds")]
    {
        let options = Options::with_farm(stage.database, farm.url()?);
        let app = stage.start(&options.variable(name, 3).variable(other, 1_000)).await?;
        let account = app.operator.account(Quota::Of(1)).await?;
        let mut person = Person::of(&app, &account).await?;
        let began = Instant::now();
        if name == "session_idle_seconds" {
            // Used all the time, it goes on for longer than it may be idle; unless the machine is held
            // up, and it is not used all the time.
            let mut used = began;
            while began.elapsed() < Duration::from_secs(6) {
                let asked = Instant::now();
                if person.get("/dashboard/you").await?.status != 200 {
                    break;
                }
                used = asked;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            ensure!(
                began.elapsed() >= Duration::from_secs(6) || used.elapsed() > Duration::from_millis(1_500),
                "a session in use ended"
            );
            tokio::time::sleep(Duration::from_secs(5)).await;
            person.get("/dashboard/you").await?.is(303)?;
        } else {
            while person.get("/dashboard/you").await?.status == 200 {
                ensure!(
                    began.elapsed() < Duration::from_mins(1),
                    "a session lasts for ever while it is used"
                );
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
    Ok(())
}

async fn new_password(stage: Stage) -> Result<()> {
    const NEW: &str = "quite another sentence";
    let stand_in = stage.stand_in().await?;
    let app = &stand_in.app;
    let account = app.operator.account(Quota::Of(1)).await?;
    let email = new_email("changes");
    let mut person = Person::invited(app, &email, &["--account", &account.id]).await?;
    let mut other = Person::stranger(app)?;
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
