//! Retention: what is kept of versions, the audit log and attempts, and that it is deleted in steps.

use super::support::{Person, accept_invite, insert, new_email};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("dashboard/retention/is_changed_and_audited", changed),
        Case::own_server("dashboard/retention/prunes_in_steps", pruned),
        Case::own_server("dashboard/retention/on_the_command_line", command_line),
    ]
}

const PATH: &str = "/dashboard/operator/retention";

async fn count(app: &TestApp, table: &str) -> Result<i64> {
    app.execute(&format!("SELECT count(*) FROM {table}")).await?.context("a number")
}

/// Adds old records: attempts, audit entries, and versions of a template.
async fn old_records(
    stand_in: &StandIn,
    days: u32,
    attempts: u32,
    entries: u32,
    versions: u32,
) -> Result<()> {
    let app = &stand_in.app;
    let numbers = |count: u32| {
        format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})")
    };
    let at = format!("unixepoch() - 86400 * {days}");
    let account = &stand_in.account.id;
    // The triggers would prune them as they are inserted.
    if attempts > 0 {
        insert(app, &stand_in.account, attempts, &[("at", &at)]).await?;
    }
    if entries > 0 {
        app.execute(&format!(
        "INSERT INTO audit (id, at, actor, action, subject) {} SELECT -i, {at}, 'old', 'did', 'it' FROM n",
        numbers(entries)
    ))
    .await?;
    }
    if versions > 0 {
        app.execute(&format!(
        "INSERT INTO template_versions (template_id, number, account_id, name, packed_html, options, placeholders, saved_at, saved_by) {} \
         SELECT t.id, i, t.account_id, t.name, t.packed_html, t.options, t.placeholders, {at}, t.saved_by FROM n, \
         (SELECT * FROM templates WHERE account_id = '{account}' LIMIT 1) t",
        numbers(versions)
    ))
    .await?;
    }
    Ok(())
}

async fn changed(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let app = &stand_in.app;
    let service = app.service();
    let email = new_email("op");
    let page = Browser::start().await?.page().await?;
    accept_invite(&page, &service, &email, &["--operator"]).await?;
    old_records(&stand_in, 40, 0, 7, 9).await?;
    page.go(&format!("{}{PATH}", app.base_url)).await?;
    // Errors are at their fields.
    for (field, bad, error) in [
        ("versions", "0", "The number of versions must be a whole number from 1 to 10000, or unlimited."),
        ("versions", "1.5", "The number of versions must be"),
        ("audit", "29", "The days of the audit log must be a whole number from 30 to 3650, or unlimited."),
        ("audit", "-40", "The days of the audit log must be"),
        ("attempts", "", "The days of attempts must be a whole number from 1 to 3650."),
        ("attempts", "99999999999999999999", "The days of attempts must be"),
        ("attempts", "<script>pwned=1</script>", "The days of attempts must be"),
    ] {
        page.submit(&[(&format!("#{field}"), bad)], "Change retention").await?;
        let shown = page.text(&format!("document.querySelector('#{field}-error').innerText")).await?;
        ensure!(shown.contains(error), "{field} {bad}: {shown}");
        ensure!(
            page.eval("document.querySelectorAll('.error').length").await? == 1,
            "other fields have errors"
        );
        page.go(&format!("{}{PATH}", app.base_url)).await?;
    }
    // What would be deleted is shown first.
    page.submit(&[("#versions", "4"), ("#audit", "30"), ("#attempts", "60")], "Change retention").await?;
    page.shows("5 versions of templates, 7 entries of the audit log and 0 attempts").await?;
    page.press("Cancel").await?;
    ensure!(count(app, "template_versions").await? == 9, "versions were deleted without confirmation");
    ensure!(page.value("#attempts").await? == "30", "it was saved");
    page.submit(&[("#versions", "4"), ("#audit", "30"), ("#attempts", "60")], "Change retention").await?;
    page.press("Save and delete").await?.shows("Retention changed.").await?;
    ensure!(count(app, "template_versions").await? == 4, "versions");
    ensure!(count(app, "audit WHERE actor = 'old'").await? == 0, "entries");
    // Larger settings delete nothing and ask nothing.
    page.submit(&[("#versions", ""), ("#audit", "")], "Change retention").await?;
    page.shows("Retention changed.").await?;
    page.go(&format!("{}/dashboard/operator/audit", app.base_url)).await?;
    page.shows("versions 4, audit days 30, attempt days 60").await?;
    page.shows("versions unlimited, audit days unlimited, attempt days 60").await?;
    // Others do not see the page.
    let mut member = Person::of(&service, &stand_in.account).await?;
    member.get(PATH).await?.is(404)?;
    member.post(PATH, &[("versions", "1"), ("attempts", "1"), ("confirmed", "1")]).await?.is(404)?;
    Ok(())
}

async fn pruned(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let app = &stand_in.app;
    let service = app.service();
    let mut owner = Person::of(&service, &stand_in.account).await?;
    let mut operator = Person::invited(&service, &new_email("op"), &["--operator"]).await?;
    let save = [("versions", "3"), ("audit", "30"), ("attempts", "30"), ("confirmed", "1")];
    operator.post(PATH, &save).await?.is(303)?;
    // Versions: each save keeps three.
    let template = owner.new_template("pruned", "<p>0</p>").await?;
    let path = format!("/dashboard/templates/{template}");
    for number in 1..=6 {
        let html = format!("<p>{number}</p>");
        owner.post(&path, &[("name", "pruned"), ("html", &html)]).await?.is(303)?;
    }
    let page = owner.get(&format!("{path}/versions")).await?.is(200)?.body;
    ensure!(
        page.matches("/restore\"").count() == 3 && page.contains("Version 6") && !page.contains("Version 3"),
        "{page}"
    );
    owner.get(&format!("{path}/versions/3")).await?.is(404)?;
    // Old attempts and entries go in steps, with attempts and with changes. They were inserted as if nothing had run since.
    old_records(&stand_in, 40, 0, 450, 0).await?;
    app.execute("UPDATE retention SET attempt_days = 3650").await?;
    old_records(&stand_in, 40, 250, 0, 0).await?;
    app.execute("UPDATE retention SET attempt_days = 30").await?;
    let attempts = "attempts WHERE at < unixepoch() - 86400 * 30";
    let entries = "audit WHERE actor = 'old'";
    let (before, entries_before) = (count(app, attempts).await?, count(app, entries).await?);
    ensure!(before == 250 && entries_before > 0, "{before} attempts, {entries_before} entries");
    let target = app.target(&stand_in.account);
    target.renders().await?;
    let steps = async || -> Result<Option<()>> {
        let (left, entries_left) = (count(app, attempts).await?, count(app, entries).await?);
        ensure!(left >= 0, "a count");
        if left > 0 || entries_left > 0 {
            target.renders().await?;
            return Ok(None);
        }
        Ok(Some(()))
    };
    wait::until_some("old records are gone", steps).await?;
    ensure!(count(app, "attempts").await? > 0, "all attempts are gone");
    ensure!(count(app, "audit").await? > 5, "all entries are gone");
    // A lower number prunes the versions of templates that are not saved again.
    operator.post(PATH, &[("versions", "1"), ("attempts", "30"), ("confirmed", "1")]).await?.is(303)?;
    ensure!(count(app, "template_versions").await? == 1, "versions are left");
    let page = owner.get(&format!("{path}/versions")).await?.is(200)?.body;
    ensure!(page.contains("Version 6"), "the newest version is gone: {page}");
    Ok(())
}

async fn command_line(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let app = &stand_in.app;
    let run = async |arguments: &[&str]| app.operator.run(&[&["retention"], arguments].concat()).await;
    let settings = run(&[]).await?;
    let expected = json!({ "versions": null, "audit_days": null, "attempt_days": 30,
        "deleted": { "versions": 0, "audit_entries": 0, "attempts": 0 } });
    ensure!(settings == expected, "{settings}");
    old_records(&stand_in, 40, 0, 700, 300).await?;
    let dry = run(&["--versions", "10", "--audit-days", "30", "--dry-run"]).await?;
    ensure!(dry["deleted"] == json!({ "versions": 290, "audit_entries": 700, "attempts": 0 }), "{dry}");
    ensure!(run(&[]).await? == expected, "--dry-run has changed something");
    let done = run(&["--versions", "10", "--audit-days", "30"]).await?;
    ensure!(done["versions"] == 10 && done["audit_days"] == 30 && done["attempt_days"] == 30, "{done}");
    ensure!(count(app, "template_versions").await? == 10, "versions");
    ensure!(count(app, "audit WHERE actor = 'old'").await? == 0, "entries");
    ensure!(count(app, "audit WHERE action = 'changed retention'").await? == 1, "the change is not audited");
    ensure!(count(app, "version_excess").await? == 0, "templates are still to be pruned");
    run(&["--versions", "10"]).await?;
    ensure!(
        count(app, "audit WHERE action = 'changed retention'").await? == 1,
        "the same settings are audited"
    );
    let unlimited = run(&["--versions", "unlimited", "--attempt-days", "90"]).await?;
    ensure!(unlimited["versions"].is_null() && unlimited["attempt_days"] == 90, "{unlimited}");
    for (bad, error) in [
        (&["--versions", "0"][..], "--versions"),
        (&["--versions", ""], "the number of versions must be"),
        (&["--audit-days", "29"], "the days of the audit log must be a whole number from 30"),
        (&["--attempt-days", "unlimited"], "the days of attempts must be"),
        (&["--attempt-days", "0"], "--attempt-days"),
    ] {
        let refused = run(bad).await.err().context("accepted")?;
        ensure!(format!("{refused:#}").contains(error), "{bad:?}: {refused:#}");
    }
    // Attempts older than thirty days are listed while they are kept.
    old_records(&stand_in, 40, 3, 0, 0).await?;
    let mut owner = Person::of(&app.service(), &stand_in.account).await?;
    let page = owner.get("/dashboard/requests").await?.is(200)?.body;
    ensure!(
        page.contains("of the last 90 days") && page.matches("data-label=\"Time\"").count() == 3,
        "{page}"
    );
    ensure!(owner.get("/dashboard/requests.csv").await?.is(200)?.body.lines().count() == 4, "the export");
    Ok(())
}
