//! Names: characters that are not shown, and names that users can take for each other.

use super::support::{Person, Reply, between, new_email, person};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_database("dashboard/names/hidden_characters_are_refused", hidden),
        Case::any_database("dashboard/names/stored_names_stay_valid", stored),
        Case::any_database("dashboard/names/of_accounts_do_not_look_the_same", accounts),
        Case::any_database("dashboard/names/of_keys_do_not_look_the_same", keys),
        Case::any_database("dashboard/names/racing_look_alikes_are_refused", race),
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

async fn stored(stage: Stage) -> Result<()> {
    let (app, account, mut person) = person(&stage, Quota::Of(5)).await?;
    let template = person.new_template("plain", "<p>one</p>").await?;
    let (key, secret) = person.new_key("plain").await?;
    let old = "old\u{202e}dlo";
    for (table, id) in [("templates", &template), ("api_keys", &key)] {
        app.execute(&format!("UPDATE {table} SET name = '{old}' WHERE id = '{id}'")).await?;
    }
    let path = format!("/dashboard/templates/{template}");
    person.get(&path).await?.is(200)?;
    // Its markup can be saved, restored and duplicated under the name that it has.
    person.post(&path, &[("name", old), ("html", "<p>two</p>")]).await?.is(303)?;
    person.post(&format!("{path}/versions/1/restore"), &[]).await?.is(303)?;
    person.post(&format!("{path}/duplicate"), &[]).await?.is(303)?;
    is_refused(person.post(&path, &[("name", "new\u{202e}"), ("html", "x")]).await?, "Remove U+202E.")?;
    let body = serde_json::json!({ "templateId": template });
    let target = app.target(&account).with_key(&secret);
    target.render_template(&body).send().await?.file("image/png")?;
    person.post(&format!("/dashboard/keys/{key}/name"), &[("name", "new")]).await?.is(303)?;
    Ok(())
}

async fn accounts(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let mut operator = operator(app).await?;
    let name = new_name("Paper & Pulp");
    let created = operator.post("/dashboard/operator", &[("name", &name)]).await?.is(303)?;
    let own = created.location().split('?').next().unwrap_or_default().to_owned();
    let other = app.operator.account(Quota::Of(1)).await?;
    let other = format!("/dashboard/operator/accounts/{}", other.id);
    let looks = format!("This name looks like “{}”", name.replace('&', "&#38;"));
    for alike in [name.to_uppercase(), name.replacen("Paper", "Рареr", 1), name.replace(' ', "\u{a0}")] {
        is_refused(operator.post("/dashboard/operator", &[("name", &alike)]).await?, &looks)
            .with_context(|| alike.clone())?;
        is_refused(operator.post(&format!("{other}/name"), &[("name", &alike)]).await?, &looks)
            .with_context(|| alike.clone())?;
        let refused = app.operator.run(&["account", "create", &alike]).await.err().context("a command")?;
        ensure!(format!("{refused:#}").contains("this name looks like"), "{refused:#}");
        // An account may be renamed to a name that looks like its own.
        operator
            .post(&format!("{own}/name"), &[("name", &alike)])
            .await?
            .is(303)
            .with_context(|| alike.clone())?;
        operator.post(&format!("{own}/name"), &[("name", &name)]).await?.is(303)?;
    }
    is_refused(
        operator.post("/dashboard/operator", &[("name", &name)]).await?,
        "Another account has this name",
    )?;
    is_refused(
        operator.post(&format!("{other}/name"), &[("name", &name)]).await?,
        "Another account has this name",
    )?;
    operator.post("/dashboard/operator", &[("name", &format!("{name} 2"))]).await?.is(303)?;
    operator.post("/dashboard/operator/accounts/acc_x/name", &[("name", &new_name("x"))]).await?.is(404)?;
    Ok(())
}

async fn keys(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let (a, b) = (app.operator.account(Quota::Of(1)).await?, app.operator.account(Quota::Of(1)).await?);
    let (mut person, mut other) = (Person::of(app, &a).await?, Person::of(app, &b).await?);
    let (key, _) = person.new_key("Web server").await?;
    let (second, _) = person.new_key("batch").await?;
    for alike in ["web server", "Web \u{455}erver", "Ｗｅｂ server"] {
        let looks = "This name looks like “Web server”";
        is_refused(person.post("/dashboard/keys", &[("name", alike)]).await?, looks).context(alike)?;
        let path = format!("/dashboard/keys/{second}/name");
        is_refused(person.post(&path, &[("name", alike)]).await?, looks).context(alike)?;
        let create = ["key", "create", "--account", &a.id, "--name", alike];
        ensure!(app.operator.run(&create).await.is_err(), "a command accepts {alike}");
    }
    // Another account's keys do not matter.
    other.new_key("web server").await?;
    // Equal names are accepted, as when a key is rolled.
    person.new_key("Web server").await?;
    person.post(&format!("/dashboard/keys/{key}/roll"), &[("grace", "24h")]).await?.is(303)?;
    person.post(&format!("/dashboard/keys/{key}/name"), &[("name", "Web server")]).await?.is(303)?;
    person.post("/dashboard/keys/key_x/name", &[("name", "new")]).await?.is(404)?;
    Ok(())
}

/// Of several programs that create look-alikes at the same time, one succeeds.
async fn race(stage: Stage) -> Result<()> {
    let app = &*stage.service().await?;
    let person = operator(app).await?;
    for _ in 0..5 {
        let name = new_name("Race");
        let alikes =
            [name.clone(), name.to_uppercase(), name.replace('a', "\u{430}"), name.replace('R', "Ｒ")];
        let create = async |alike: &str| -> Result<u16> {
            Ok(person.clone().post("/dashboard/operator", &[("name", alike)]).await?.status)
        };
        let statuses = futures::future::try_join_all(alikes.iter().map(|alike| create(alike))).await?;
        let created = statuses.iter().filter(|status| **status == 303).count();
        ensure!(created == 1 && statuses.iter().all(|it| matches!(it, 303 | 422)), "{statuses:?}");
    }
    Ok(())
}
