//! Names: characters that are not shown, and names that are equal.

use super::support::{Person, Reply, between, new_email, person};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/names/hidden_characters_are_refused", hidden),
        Case::any_database("dashboard/names/of_accounts_differ_in_more_than_case", accounts),
        Case::any_database("dashboard/names/of_keys_and_templates_can_be_equal", keys_and_templates),
        Case::any_database("dashboard/names/racing_equal_names_are_refused", race),
    ]
}

/// One of each kind: all are tests of `platen_shared::name`.
const HIDDEN: [(&str, &str); 3] = [
    ("free\u{202e}eerf", "change the direction of text. Remove U+202E."),
    ("fr\u{200b}ee", "invisible characters. Remove U+200B."),
    ("fr\nee", "control characters. Remove U+000A."),
];

/// Checks that a form was refused with this text at the field of the name.
fn is_refused(reply: Reply, text: &str) -> Result<()> {
    let reply = reply.is(422)?;
    let error = between(&reply.body, "id=\"name-error\">", "<")?;
    ensure!(error.contains(text), "{error}");
    Ok(())
}

async fn operator(app: &Service) -> Result<Person> {
    Person::invited(app, &new_email("op"), &["--operator"]).await
}

/// A name that no other case uses.
fn new_name(prefix: &str) -> String {
    format!("{prefix} {:08x}", rand::random::<u32>())
}

async fn hidden(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(1)).await?;
    let (mut person, mut operator) = (Person::of(&app, &account).await?, operator(&app).await?);
    let (key, _) = person.new_key("plain").await?;
    let template = person.new_template("plain", "x").await?;
    let rename = format!("/dashboard/operator/accounts/{}/name", account.id);
    let (rename_key, save) =
        (format!("/dashboard/keys/{key}/name"), format!("/dashboard/templates/{template}"));
    for (name, error) in HIDDEN {
        for path in ["/dashboard/keys", "/dashboard/templates/new", rename_key.as_str(), &save] {
            let refused = person.post(path, &[("name", name), ("html", "<p>x</p>")]).await?;
            is_refused(refused, error).with_context(|| format!("{name:?} at {path}"))?;
        }
        for path in ["/dashboard/operator", rename.as_str()] {
            is_refused(operator.post(path, &[("name", name)]).await?, error)
                .with_context(|| format!("{name:?} at {path}"))?;
        }
        for command in
            [&["account", "create", name][..], &["key", "create", "--account", &account.id, "--name", name]]
        {
            let refused = app.operator.run(command).await.err().context("a command accepts the name")?;
            let expected = error.trim_end_matches('.');
            ensure!(format!("{refused:#}").contains(expected), "{refused:#}");
        }
    }
    // Words and emoji of several characters are names.
    for name in ["می\u{200c}خواهم", "👩\u{200d}💻 web", "❤\u{fe0f}", "שלום"] {
        person.new_key(name).await?;
        person.new_template(name, "x").await?;
    }
    Ok(())
}

async fn accounts(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let mut operator = operator(app).await?;
    let name = new_name("Paper & Café");
    let created = operator.post("/dashboard/operator", &[("name", &name)]).await?.is(303)?;
    let own = created.location().split('?').next().unwrap_or_default().to_owned();
    let other = app.operator.account(Quota::Of(1)).await?;
    let other = format!("/dashboard/operator/accounts/{}", other.id);
    let taken = "Another account has this name";
    for equal in [name.clone(), name.to_ascii_uppercase(), name.replace('é', "e\u{301}")] {
        is_refused(operator.post("/dashboard/operator", &[("name", &equal)]).await?, taken)
            .with_context(|| equal.clone())?;
        is_refused(operator.post(&format!("{other}/name"), &[("name", &equal)]).await?, taken)
            .with_context(|| equal.clone())?;
        let refused = app.operator.run(&["account", "create", &equal]).await.err().context("a command")?;
        ensure!(format!("{refused:#}").contains("there is an account"), "{refused:#}");
        // An account may be renamed to another case of its own name.
        operator
            .post(&format!("{own}/name"), &[("name", &equal)])
            .await?
            .is(303)
            .with_context(|| equal.clone())?;
    }
    for different in [name.replace('é', "É"), name.replacen("Paper", "Рареr", 1), format!("{name} 2")] {
        operator
            .post("/dashboard/operator", &[("name", &different)])
            .await?
            .is(303)
            .with_context(|| different)?;
    }
    operator.post("/dashboard/operator/accounts/acc_x/name", &[("name", &new_name("x"))]).await?.is(404)?;
    Ok(())
}

async fn keys_and_templates(stage: Stage) -> Result<()> {
    let (_app, _account, mut person) = person(&stage, Quota::Of(1)).await?;
    let (key, _) = person.new_key("Web server").await?;
    for name in ["Web server", "web server"] {
        person.new_key(name).await?;
        person.post(&format!("/dashboard/keys/{key}/name"), &[("name", name)]).await?.is(303)?;
        person.new_template(name, "x").await?;
    }
    person.post(&format!("/dashboard/keys/{key}/roll"), &[("grace", "24h")]).await?.is(303)?;
    person.post("/dashboard/keys/key_x/name", &[("name", "new")]).await?.is(404)?;
    Ok(())
}

/// One of several programs that create equal names at the same time succeeds.
async fn race(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let person = operator(app).await?;
    for _ in 0..5 {
        let name = new_name("Race");
        let names = [name.clone(), name.to_uppercase(), name.to_lowercase(), name];
        let create = async |name: &str| -> Result<u16> {
            Ok(person.clone().post("/dashboard/operator", &[("name", name)]).await?.status)
        };
        let statuses = futures::future::try_join_all(names.iter().map(|name| create(name))).await?;
        let created = statuses.iter().filter(|status| **status == 303).count();
        ensure!(created == 1 && statuses.iter().all(|it| matches!(it, 303 | 422)), "{statuses:?}");
    }
    Ok(())
}
