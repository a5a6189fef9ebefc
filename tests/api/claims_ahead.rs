//! Attempts that are claimed ahead: exact in number, given back, and of no use after their time.

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use platen_harness::deployment::Platform;

use crate::account_limits::limited;
use crate::database::{NO_SERVER, UNAVAILABLE, is_file};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("claims_ahead/are_exact_for_racing_callers", exact),
        Case::own_server("claims_ahead/what_is_left_is_given_back", given_back),
        Case::own_server("claims_ahead/are_of_no_use_after_their_time", after_the_time),
        Case::own_server("claims_ahead/a_template_needs_its_variables", templates),
        Case::own_server("claims_ahead/limited_accounts_have_none", limited_accounts),
        Case::own_server("claims_ahead/a_killed_server_leaves_them_counted", killed),
        Case::own_server("claims_ahead/a_stopped_server_gives_them_back", stopped)
            .not_on_spin("a signal ends it at once"),
        Case::own_server("claims_ahead/are_used_while_the_database_is_frozen", frozen)
            .except(is_file, NO_SERVER),
        Case::own_server("claims_ahead/held_attempts_are_not_exhausted", held_elsewhere)
            .not_on_spin("a signal ends it at once")
            .except(is_file, NO_SERVER),
    ]
}

const LARGE: Quota = Quota::Of(1_000_000);
/// Renders of a key after which it has attempts that were claimed ahead.
const STEADY: u64 = 20;

async fn start(stage: &Stage, seconds: u32) -> Result<StandIn> {
    stage.start_stand_in_with(|options| options.claim_ahead(seconds)).await
}

async fn render_steadily(target: &Target) -> Result<()> {
    for _ in 0..STEADY {
        target.minimal().send().await?.file("image/png")?;
    }
    Ok(())
}

/// The sum of a column of the account's claims that meet a condition.
async fn sum(app: &TestApp, account: &Account, column: &str, condition: &str) -> Result<i64> {
    let sql = format!(
        "SELECT coalesce(sum({column}), 0) FROM claims_ahead WHERE account_id = '{}' AND {condition}",
        account.id
    );
    app.execute(&sql).await?.context("a sum")
}

async fn until_attempts(app: &TestApp, account: &Account, expected: u64) -> Result<()> {
    let found = async || Ok((app.operator.attempts(&account.id).await? == expected).then_some(()));
    wait::until_some(&format!("{expected} attempts are counted"), found).await
}

/// Renders until there is a file, or the quota is exhausted for good; whether there is one.
async fn renders_at_last(target: &Target, seconds: u64) -> Result<bool> {
    loop {
        let answer = target.minimal().send().await?;
        match answer.status {
            200 => return answer.file("image/png").map(|_| true),
            429 => return answer.error(429, "Monthly quota exhausted").map(|()| false),
            _ => {
                answer.error(503, UNAVAILABLE)?;
                let wait: u64 = answer.header("retry-after")?.parse()?;
                ensure!((1..=seconds.max(5)).contains(&wait), "retry-after {wait}");
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

async fn exact(stage: Stage) -> Result<()> {
    const SECONDS: u32 = 2;
    let stand_in = start(&stage, SECONDS).await?;
    for quota in [50, 300] {
        let (account, target) = stand_in.app.account(Quota::Of(quota)).await?;
        let calls = (0..quota + 50).map(|_| renders_at_last(&target, SECONDS.into()));
        let files: Vec<bool> = stream::iter(calls).buffer_unordered(16).try_collect().await?;
        let files = files.into_iter().filter(|is_file| *is_file).count() as u64;
        ensure!(files == quota, "{files} files with a quota of {quota}");
        let received = stand_in.farm.received_from(&account.id).len() as u64;
        ensure!(received == quota, "the farm received {received} jobs");
        until_attempts(&stand_in.app, &account, quota).await?;
        stand_in.app.until_rows(&account, "counted AND status = 200", quota.cast_signed()).await?;
        // A hundredth of the quota.
        let largest = sum(&stand_in.app, &account, "granted", &format!("granted > {}", quota / 100)).await?;
        ensure!(quota < 200 || largest <= 0, "too many attempts in one claim");
        let granted = sum(&stand_in.app, &account, "granted", "granted > 1").await?;
        ensure!((granted > 0) == (quota >= 200), "{granted} attempts were claimed ahead of {quota}");
    }
    Ok(())
}

async fn given_back(stage: Stage) -> Result<()> {
    let stand_in = start(&stage, 2).await?;
    let app = &stand_in.app;
    let (account, target) = app.account(LARGE).await?;
    render_steadily(&target).await?;
    ensure!(sum(app, &account, "granted", "true").await? > 0, "nothing was claimed ahead");
    // Attempts whose job did not run are given back as well.
    stand_in.farm.behave(&account.id, Behaviour::Refuse(Refusal::QueueFull));
    for _ in 0..5 {
        target.minimal().send().await?.error(503, "The renderer is busy, try again shortly")?;
    }
    stand_in.farm.behave(&account.id, Behaviour::File);
    until_attempts(app, &account, STEADY).await?;
    let calls = (0..200).map(|_| renders_at_last(&target, 2));
    let files: Vec<bool> = stream::iter(calls).buffer_unordered(8).try_collect().await?;
    ensure!(files.into_iter().all(|is_file| is_file), "a request got no file");
    ensure!(sum(app, &account, "granted", "granted >= 4").await? > 0, "no claim was for more attempts");
    until_attempts(app, &account, STEADY + 200).await?;
    app.until_rows(&account, "counted AND status = 200", (STEADY + 200).cast_signed()).await
}

async fn after_the_time(stage: Stage) -> Result<()> {
    // Longer than the command that disables the key takes on a busy machine.
    const SECONDS: u32 = 8;
    const TIME: Duration = Duration::from_secs(SECONDS as u64);
    let stand_in = start(&stage, SECONDS).await?;
    let app = &stand_in.app;
    let (account, target) = app.account(LARGE).await?;
    render_steadily(&target).await?;
    let before = stand_in.farm.received_from(&account.id).len();
    app.operator.run(&["key", "disable", &account.key_id]).await?;
    let disabled = Instant::now();
    let (mut files, mut refused) = (0, 0);
    while disabled.elapsed() < TIME + Duration::from_secs(1) {
        let begun = disabled.elapsed();
        let answer = target.minimal().send().await?;
        if answer.status == 200 {
            ensure!(begun <= TIME, "a file {begun:?} after the key was disabled");
            files += 1;
        } else {
            answer.error(401, "Invalid API key")?;
            refused += 1;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    ensure!(files > 0 && refused > 0, "{files} files and {refused} refusals");
    ensure!(stand_in.farm.received_from(&account.id).len() == before + files, "another number of jobs");
    until_attempts(app, &account, STEADY + files as u64).await
}

async fn templates(stage: Stage) -> Result<()> {
    let stand_in = start(&stage, 30).await?;
    let (app, target) = (&stand_in.app, &stand_in.common);
    let body = |variables: Value| json!({ "templateId": target.template_id, "variables": variables });
    let filled = body(json!({ "customer": "c", "total": 1, "markup": "" }));
    for _ in 0..STEADY {
        target.render_template(&filled).send().await?.file("image/png")?;
    }
    ensure!(sum(app, &stand_in.account, "granted", "true").await? > 0, "nothing was claimed ahead");
    let received = stand_in.farm.received_from(&stand_in.account.id).len();
    let answer = target.render_template(&body(json!({ "customer": "c" }))).send().await?;
    ensure!(answer.status == 400, "{}", answer.summary());
    ensure!(stand_in.farm.received_from(&stand_in.account.id).len() == received, "it was rendered");
    Ok(())
}

async fn limited_accounts(stage: Stage) -> Result<()> {
    let stand_in = start(&stage, 30).await?;
    for flag in ["--requests-per-minute", "--concurrency"] {
        let (account, target) = limited(&stand_in.app, LARGE, &[flag, "1000"]).await?;
        render_steadily(&target).await?;
        ensure!(stand_in.app.operator.attempts(&account.id).await? == STEADY, "{flag}: another number");
        ensure!(sum(&stand_in.app, &account, "granted", "true").await? == 0, "{flag}: claimed ahead");
    }
    Ok(())
}

async fn killed(stage: Stage) -> Result<()> {
    let mut stand_in = start(&stage, 30).await?;
    let (account, target) = stand_in.app.account(LARGE).await?;
    render_steadily(&target).await?;
    kill(Pid::from_raw(stand_in.app.server_pid().try_into()?), Signal::SIGKILL)?;
    if stage.deployment.platform == Platform::PlatenUp {
        stand_in.app.process.ended().await?;
    }
    let attempts = stand_in.app.operator.attempts(&account.id).await?;
    ensure!(attempts > STEADY && attempts <= STEADY + 128, "{attempts} attempts are counted");
    Ok(())
}

async fn stopped(stage: Stage) -> Result<()> {
    let mut stand_in = start(&stage, 30).await?;
    let (account, target) = stand_in.app.account(LARGE).await?;
    render_steadily(&target).await?;
    ensure!(stand_in.app.operator.attempts(&account.id).await? > STEADY, "nothing was claimed ahead");
    stand_in.app.process.signal(Signal::SIGTERM)?;
    stand_in.app.process.ended().await?;
    let attempts = stand_in.app.operator.attempts(&account.id).await?;
    ensure!(attempts == STEADY, "{attempts} attempts are counted");
    Ok(())
}

/// The responses to claims are late, and those of requests that were refused meanwhile are given back.
async fn frozen(stage: Stage) -> Result<()> {
    let change = |options: Options| options.claim_ahead(5).deadline_ms(2_000);
    let stand_in = stage.start_stand_in_with(change).await?;
    let (account, target) = stand_in.app.account(LARGE).await?;
    render_steadily(&target).await?;
    stand_in.app.database.pause(true)?;
    let mut files = 0;
    loop {
        let answer = target.minimal().send().await?;
        if answer.status != 200 {
            answer.error(503, UNAVAILABLE)?;
            break;
        }
        files += 1;
    }
    ensure!(files > 0, "no attempt that was claimed ahead was used");
    stand_in.app.database.pause(false)?;
    let is_available = async || Ok((target.minimal().send().await?.status == 200).then_some(()));
    wait::until_some("a render succeeds", is_available).await?;
    let received = stand_in.farm.received_from(&account.id).len() as u64;
    ensure!(received == STEADY + files + 1, "{received} jobs");
    until_attempts(&stand_in.app, &account, received).await
}

async fn held_elsewhere(stage: Stage) -> Result<()> {
    let mut one = start(&stage, 30).await?;
    let (account, target) = one.app.account(LARGE).await?;
    let other = stage.start_beside(&one, None).await?;
    render_steadily(&target).await?;
    let quota = one.app.operator.attempts(&account.id).await?;
    ensure!(quota > STEADY, "nothing was claimed ahead");
    one.app.operator.run(&["account", "quota", &account.id, &quota.to_string()]).await?;
    let target = other.target(&account);
    let answer = target.minimal().send().await?;
    answer.error(503, UNAVAILABLE)?;
    let wait: u64 = answer.header("retry-after")?.parse()?;
    ensure!((1..=31).contains(&wait), "retry-after {wait}");
    one.app.process.signal(Signal::SIGTERM)?;
    one.app.process.ended().await?;
    for _ in STEADY..quota {
        target.minimal().send().await?.file("image/png")?;
    }
    target.minimal().send().await?.error(429, "Monthly quota exhausted")?;
    ensure!(other.operator.attempts(&account.id).await? == quota, "another number is counted");
    Ok(())
}
