//! The log of attempts: its content, and that no answer waits for it.

use super::support::Person;
use crate::prelude::*;
use crate::{
    crash::NO_DISCONNECTS,
    database::{NO_FILE, corrupt_files, is_server},
};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("dashboard/log/has_every_attempt", every_attempt),
        Case::own_server("dashboard/log/no_answer_waits_for_it", no_answer_waits).except(is_server, NO_FILE),
        Case::own_server("dashboard/log/a_client_that_disconnects", disconnected).not_on_spin(NO_DISCONNECTS),
    ]
}

/// Waits until the export has this many lines besides its head.
async fn exported(person: &mut Person, path: &str, lines: usize) -> Result<Vec<String>> {
    wait::until_some(&format!("{lines} exported attempts"), async || {
        let text = person.get(path).await?.is(200)?.body;
        let found: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        ensure!(found.len() <= lines, "{text}");
        Ok((found.len() == lines).then_some(found))
    })
    .await
}

async fn every_attempt(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let app = &stand_in.app;
    let account = app.operator.account(Quota::Of(3)).await?;
    let mut person = Person::of(app, &account).await?;
    let template = person.new_template("t", "<p>{{ a }}</p>").await?;
    let (_, key) = person.new_key("=cmd,\"x\"").await?;
    let target = app.target(&account).with_key(&key);
    let filled = json!({ "templateId": template, "variables": { "a": 1 } });
    target.render_template(&filled).send().await?.file("image/png")?;
    exported(&mut person, "/dashboard/requests.csv", 1).await?;
    let host = || "example.com".to_owned();
    for (behaviour, status) in [
        (Behaviour::Refuse(Refusal::NameNotFound { host: host() }), 422),
        (Behaviour::Refuse(Refusal::NoBrowser), 503),
        (Behaviour::HangUp, 502),
    ] {
        stand_in.farm.behave(&account.id, behaviour);
        let answer = target.minimal().send().await?;
        ensure!(answer.status == status, "{}", answer.summary());
    }
    let lines = exported(&mut person, "/dashboard/requests.csv", 4).await?;
    let name = "\"'=cmd,\"\"x\"\"\"";
    for part in [
        format!("{name},/v1/render/template,png,200,yes,"),
        format!("{name},/v1/render,png,422,yes,"),
        format!("{name},/v1/render,png,503,no,"),
        format!("{name},/v1/render,png,502,yes,"),
    ] {
        ensure!(lines.iter().any(|line| line.contains(&part)), "no {part} in {lines:#?}");
    }
    let successful = lines.iter().find(|line| line.contains(",200,")).context("the successful attempt")?;
    let cells: Vec<&str> = successful.rsplit(',').collect();
    ensure!(cells[..4] == ["1", "", "0", "0"], "version, what its page did: {successful}");
    ensure!(cells[4..6] == ["2021", "1007"], "its times in the farm: {successful}");
    ensure!(cells[13] == "OK", "its result: {successful}");
    ensure!(cells[14].parse::<u64>().is_ok_and(|bytes| bytes > 0), "its size: {successful}");
    ensure!(cells[15].parse::<u64>().is_ok(), "its duration: {successful}");
    ensure!(exported(&mut person, "/dashboard/requests.csv?status=failed", 3).await?.len() == 3);
    let page = person.get("/dashboard/requests?status=failed").await?.body;
    ensure!(
        !page.contains("200 OK") && page.contains("422 Page failed") && page.contains("not counted"),
        "{page}"
    );
    let page = person.get("/dashboard/usage").await?.body;
    ensure!(page.contains(">3</strong> of 3 attempts"), "{page}");
    // The last use of the key.
    let keys = person.get("/dashboard/keys").await?.body;
    let unused = "Last used\"><span class=\"dim\">Never<";
    ensure!(keys.matches(unused).count() == 1, "one key was used and one was not: {keys}");
    Ok(())
}

/// While the farm renders a claimed attempt, the file of the database is damaged. `database.rs` has databases that are away.
async fn no_answer_waits(stage: Stage) -> Result<()> {
    let (stand_in, account, target) = stage.start_stand_in_for(Quota::Of(5)).await?;
    let latch = stand_in.farm.hold(&account.id);
    let rendering = tokio::spawn(target.minimal().send());
    stand_in.farm.until_received_from(&account.id).await?;
    corrupt_files(&stand_in)?;
    latch.open();
    rendering.await??.file("image/png")?;
    stand_in.app.process.wait_for(|log| log.contains("rows of attempts were lost").then_some(())).await
}

/// A farm in another process may have run the page, so the attempt counts.
async fn disconnected(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let app = &stand_in.app;
    let account = app.operator.account(Quota::Of(1)).await?;
    let mut person = Person::of(app, &account).await?;
    stand_in.farm.behave(&account.id, Behaviour::Stall);
    let rendering = tokio::spawn(app.target(&account).minimal().send());
    stand_in.farm.until_received_from(&account.id).await?;
    rendering.abort();
    let lines = exported(&mut person, "/dashboard/requests.csv", 1).await?;
    ensure!(
        lines[0].contains(",/v1/render,png,499,yes,") && lines[0].contains(",,Cancelled,"),
        "{}",
        lines[0]
    );
    let page = person.get("/dashboard/requests").await?.is(200)?.body;
    ensure!(page.contains("499 Cancelled") && !page.contains("not counted"), "{page}");
    let attempts = app.operator.attempts(&account.id).await?;
    ensure!(attempts == 1, "{attempts} attempts were counted");
    Ok(())
}
