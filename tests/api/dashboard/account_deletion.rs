//! Accounts that are deleted: what goes with them, and what does not.

use super::support::{Person, insert, new_email};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("database/account_is_deleted", deletion),
        Case::any_database("dashboard/accounts/are_deleted", by_operator),
    ]
}

/// The tables with a column `account_id`, without the audit log.
const TABLES: [&str; 14] = [
    "api_keys",
    "attempts",
    "claims_ahead",
    "invites",
    "running_attempts",
    "template_file_uses",
    "template_files",
    "template_versions",
    "templates",
    "usage",
    "usage_days",
    "usage_minutes",
    "usage_parts",
    "users",
];

/// While requests of this account and of another one are rendered.
async fn deletion(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let app = &stand_in.app;
    let ((account, target), (other, neighbour)) =
        (app.account(Quota::Of(100)).await?, app.account(Quota::Of(100)).await?);
    let id = account.id.as_str();
    let limits = ["account", "limits", id, "--requests-per-minute", "100", "--concurrency", "10"];
    app.operator.run(&limits).await?;
    let template = app.operator.template(id, "First", "{{ a }}").await?;
    app.operator.run(&["link", "create", "--account", id, "--template", &template]).await?;
    app.execute(&format!("UPDATE templates SET name = 'Second' WHERE id = '{template}'")).await?;
    app.execute(&format!("INSERT INTO template_files VALUES ('{id}', 'hash', unixepoch(), x'00')")).await?;
    let ahead = r#"{"id":1,"granted":2,"ends_at":99999999999}"#;
    app.execute(&format!("INSERT INTO usage (account_id, month, attempts, claim_ahead) VALUES ('{id}', '2000-01', 2, '{ahead}')"))
        .await?;
    let mut member = Person::invited(app, &new_email("member"), &["--account", id]).await?;
    let mut operator = Person::invited(app, &new_email("op"), &["--operator"]).await?;
    operator.post(&format!("/dashboard/operator/accounts/{id}/join"), &[]).await?.is(303)?;
    app.operator.invite(&new_email("invited"), &["--account", id]).await?;
    target.renders().await?;
    app.until_rows(&account, "true", 1).await?;
    // More than one statement deletes.
    insert(app, &account, 1_500, &[]).await?;
    let rows = async |table: &str| {
        app.execute(&format!("SELECT count(*) FROM {table} WHERE account_id = '{id}'")).await
    };
    let latches = [stand_in.farm.hold(id), stand_in.farm.hold(&other.id)];
    let running = [target.minimal(), neighbour.minimal()].map(|call| tokio::spawn(call.send()));
    wait::until("both jobs are running", || {
        stand_in.farm.received_from(id).len() == 2 && stand_in.farm.received_from(&other.id).len() == 1
    })
    .await?;
    for table in TABLES {
        ensure!(rows(table).await? > Some(0), "{table} has no row of the account");
    }
    let known = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%account_id %'";
    ensure!(
        app.execute(known).await? == Some(i64::try_from(TABLES.len())? + 1),
        "another table has accounts"
    );

    let refused = app.operator.output(&["account", "delete", id])?;
    let errors = String::from_utf8_lossy(&refused.stderr);
    let contents = "1 key, 1 template, 1 link, 1501 recorded requests, 1 member and 1 invite";
    ensure!(!refused.status.success() && errors.contains(contents), "{errors}");
    ensure!(rows("api_keys").await? == Some(2), "it is deleted without --yes");
    let deleted = app.operator.run(&["account", "delete", id, "--yes"]).await?;
    ensure!(deleted["name"] == account.name && deleted["deleted"]["templates"] == 1, "{deleted}");
    target.minimal().send().await?.error(401, "Invalid API key")?;
    for latch in latches {
        latch.open();
    }
    for answer in running {
        answer.await??.file("image/png")?;
    }
    neighbour.renders().await?;
    app.until_rows(&other, "counted", 2).await?;
    ensure!(app.operator.attempts(&other.id).await? == 2, "an attempt of the other account is lost");
    for table in TABLES {
        ensure!(rows(table).await? == Some(0), "{table} has rows of the account");
    }
    let entry =
        format!("account_id = '{id}' AND action = 'deleted account' AND subject = '{}'", account.name);
    let entries = app.execute(&format!("SELECT count(*) FROM audit WHERE {entry}")).await?;
    ensure!(entries == Some(1), "{entries:?} entries in the audit log");
    ensure!(
        member.get("/dashboard/keys").await?.is(303)?.location().contains("sign-in"),
        "a member is signed in"
    );
    operator.get("/dashboard/operator").await?.is(200)?;
    ensure!(app.operator.run(&["account", "delete", id, "--yes"]).await.is_err(), "it is deleted twice");
    app.operator.run(&["account", "create", &account.name]).await?;
    Ok(())
}

async fn by_operator(stage: Stage) -> Result<()> {
    let (app, account, target) = stage.account_with_key(Quota::Of(10)).await?;
    let mut owner = Person::of(&app, &account).await?;
    let mut operator = Person::invited(&app, &new_email("op"), &["--operator"]).await?;
    let path = format!("/dashboard/operator/accounts/{}", account.id);
    let delete = format!("{path}/delete");
    ensure!(operator.get(&path).await?.is(200)?.body.contains(&delete), "no link");
    let page = operator.get(&delete).await?.is(200)?.body;
    let contents = "with 1 key, 0 templates, 0 links, 0 recorded requests, 1 member and 0 invites?";
    ensure!(page.contains(&account.name) && page.contains(contents), "{page}");
    owner.get(&delete).await?.is(404)?;
    owner.post(&delete, &[]).await?.is(404)?;
    target.renders().await?;
    let answer = operator.post(&delete, &[]).await?.is(303)?;
    ensure!(operator.get(answer.location()).await?.is(200)?.body.contains("Account deleted."), "no notice");
    target.minimal().send().await?.error(401, "Invalid API key")?;
    operator.get(&path).await?.is(404)?;
    operator.get(&delete).await?.is(404)?;
    operator.post(&delete, &[]).await?.is(404)?;
    Ok(())
}
