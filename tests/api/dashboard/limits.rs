//! Limits of an account in the dashboard: an operator sets them, and the account's users see them.

use super::support::{Person, between, new_email};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::any_database("dashboard/limits", limits)]
}

async fn limits(stage: Stage) -> Result<()> {
    let (app, account) = stage.account(Quota::Of(100)).await?;
    let email = new_email("op");
    let mut operator = Person::invited(&app, &email, &["--operator"]).await?;
    let path = format!("/dashboard/operator/accounts/{}", account.id);
    let form = format!("{path}/limits");
    operator.get(&path).await?.is(200)?;

    // Errors beside their fields; the other field keeps what was entered, and nothing is saved.
    for bad in ["0", "4294967296", "\"><script>alert(1)</script>"] {
        for (wrong, right) in [("requests_per_minute", "concurrency"), ("concurrency", "requests_per_minute")]
        {
            let page = operator.post(&form, &[(wrong, bad), (right, "17")]).await?.is(422)?;
            let error = between(&page.body, &format!("id=\"{wrong}-error\">"), "<")?;
            ensure!(error.contains("whole number from 1"), "{error}");
            ensure!(!page.body.contains(&format!("id=\"{right}-error\"")), "an error of the other field");
            ensure!(
                page.body.contains("value=\"17\"") && !page.body.contains("<script>alert"),
                "{}",
                page.body
            );
        }
    }
    let page = operator.get(&path).await?.is(200)?;
    ensure!(!page.body.contains("value=\"17\""), "an invalid form was saved");

    let changed =
        operator.post(&form, &[("requests_per_minute", " 60 "), ("concurrency", "5")]).await?.is(303)?;
    let page = operator.get(changed.location()).await?.is(200)?;
    ensure!(page.body.contains("Limits changed."), "{}", page.body);
    let stored = async || -> Result<(Option<i64>, Option<i64>)> {
        let of = |column: &str| format!("SELECT {column} FROM accounts WHERE id = '{}'", account.id);
        Ok((app.execute(&of("requests_per_minute")).await?, app.execute(&of("concurrency")).await?))
    };
    ensure!(stored().await? == (Some(60), Some(5)));
    let answer = app.target(&account).minimal().send().await?;
    answer.file("image/png")?;
    ensure!(answer.minute()?.is_some_and(|limit| (limit.allowed, limit.left) == (60, 59)));

    // The account's users see them.
    let mut user = Person::of(&app, &account).await?;
    let page = user.get("/dashboard/usage").await?.is(200)?;
    let text = "Limits of requests: 60 per minute; 5 at once, of which 0 are in progress.";
    ensure!(page.body.contains(text), "{}", page.body);
    user.post(&form, &[("requests_per_minute", ""), ("concurrency", "")]).await?.is(404)?;

    // A form without a field keeps its limit.
    operator.post(&form, &[("concurrency", "none")]).await?.is(303)?;
    ensure!(stored().await? == (Some(60), None));
    operator.post(&form, &[("requests_per_minute", "")]).await?.is(303)?;
    ensure!(stored().await? == (None, None));
    ensure!(!user.get("/dashboard/usage").await?.is(200)?.body.contains("Limits of requests"));
    operator.post("/dashboard/operator/accounts/acc_none/limits", &[("concurrency", "1")]).await?.is(404)?;

    for subject in ["60 requests a minute, 5 requests at once", "any number of requests at once"] {
        let entries = format!(
            "SELECT count(*) FROM audit WHERE account_id = '{}' AND actor = '{email}' \
             AND action = 'changed limits' AND subject = '{subject}'",
            account.id
        );
        ensure!(app.execute(&entries).await? == Some(1), "no entry of {subject}");
    }
    Ok(())
}
