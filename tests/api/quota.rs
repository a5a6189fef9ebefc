//! The monthly quota: it is never exceeded, and what counts.

use std::{
    sync::LazyLock,
    time::{SystemTime, UNIX_EPOCH},
};

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use http::header::CONTENT_TYPE;
use platen_harness::deployment::Platform;
use time::{Duration, OffsetDateTime, Time};

use crate::database::UNAVAILABLE;
use crate::prelude::*;

/// Seconds from the start of the suite to the next month.
static SECONDS_AT_START: LazyLock<i64> = LazyLock::new(seconds_to_next_month);

pub(crate) fn cases() -> Vec<Case> {
    LazyLock::force(&SECONDS_AT_START);
    vec![
        Case::own_server("quota/fifty_left_and_400_concurrent", fifty_left),
        Case::any_database("quota/raised_and_lowered", raised_and_lowered),
        Case::own_server("quota/what_ran_counts", what_ran_counts),
        Case::own_server("quota/what_never_ran_does_not_count", what_never_ran),
        Case::any_database("quota/what_was_refused_does_not_count", what_was_refused),
        Case::own_server("quota/refunded_attempts_can_be_used", refunded),
        Case::any_database("quota/accounts_do_not_share", accounts_do_not_share),
    ]
}

/// Seconds from now to the next month in UTC.
fn seconds_to_next_month() -> i64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_secs();
    let now = OffsetDateTime::from_unix_timestamp(since_1970.cast_signed()).expect("it is before 9999");
    let first = now.replace_day(1).expect("every month has a first day").replace_time(Time::MIDNIGHT);
    // 32 days after the first day is in the next month.
    let next = (first + Duration::days(32)).replace_day(1).expect("every month has a first day");
    (next - now).whole_seconds()
}

fn is_exhausted(answer: &Answer) -> Result<()> {
    answer.error(429, "Monthly quota exhausted")?;
    let wait: i64 = answer.header("retry-after")?.parse()?;
    // The answer was created between the start of the suite and now; a new month may have begun since.
    let (now, at_start) = (seconds_to_next_month(), *SECONDS_AT_START);
    let is_right = (now - 1..=at_start + 1).contains(&wait) || now > at_start;
    ensure!(is_right, "retry-after {wait}, the month ends in {now} seconds");
    let limit = answer.rate_limit()?;
    ensure!(limit.left == 0 && limit.reset.abs_diff(wait.unsigned_abs()) <= 1, "{limit:?}");
    Ok(())
}

/// The answer to a render, which is sent again if the database had no turn for it, as on a slow machine.
async fn answer_when_free(target: &Target, body: Value) -> Result<Answer> {
    const TRIES: usize = 10;
    for _ in 1..TRIES {
        let answer = target.render(&body).send().await?;
        if answer.status != 503 {
            return Ok(answer);
        }
        answer.error(503, UNAVAILABLE)?;
    }
    target.render(&body).send().await
}

async fn fifty_left(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let (account, target) = stand_in.app.account(Quota::Of(50)).await?;
    let calls = (0..400).map(|number| answer_when_free(&target, json!({ "html": format!("page {number}") })));
    // On Spin no queue is in front of sqld, which refuses what waits 5 s for one of its 128 connections.
    let concurrency = if stage.deployment.platform == Platform::Spin { 100 } else { 400 };
    let answers: Vec<_> = stream::iter(calls).buffer_unordered(concurrency).try_collect().await?;
    let mut files = 0;
    for answer in &answers {
        if answer.status == 200 {
            answer.file("image/png")?;
            files += 1;
        } else {
            is_exhausted(answer)?;
        }
    }
    ensure!(files == 50, "{files} of 400 were rendered");
    ensure!(stand_in.farm.received_from(&account.id).len() == 50, "the farm received another number");
    let recorded = stand_in.app.operator.attempts(&account.id).await?;
    ensure!(recorded == 50, "{recorded} attempts were recorded");
    // Every number of attempts left occurs once.
    let mut left =
        answers.iter().filter(|answer| answer.status == 200).map(|answer| Ok(answer.rate_limit()?.left));
    let mut left = left.by_ref().collect::<Result<Vec<_>>>()?;
    left.sort_unstable();
    ensure!(left == (0..50).collect::<Vec<_>>(), "left: {left:?}");
    Ok(())
}

async fn raised_and_lowered(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let operator = &service.operator;
    let (account, target) = service.account(Quota::Of(1)).await?;
    let render = async || target.minimal().send().await;
    render().await?.file("image/png")?;
    is_exhausted(&render().await?)?;
    operator.run(&["account", "quota", &account.id, "3"]).await?;
    render().await?.file("image/png")?;
    render().await?.file("image/png")?;
    is_exhausted(&render().await?)?;
    // Below the used attempts: none is left, without an overflow.
    operator.run(&["account", "quota", &account.id, "1"]).await?;
    is_exhausted(&render().await?)?;
    operator.run(&["account", "quota", &account.id, "unlimited"]).await?;
    render().await?.file("image/png")?;
    ensure!(operator.attempts(&account.id).await? == 4, "four were rendered");
    Ok(())
}

/// Renders once with this behaviour of the farm: the answer and the recorded attempts.
async fn attempt(stand_in: &StandIn, behaviour: Behaviour) -> Result<(Answer, u64)> {
    let (answer, attempts) = crate::faults::attempt(stand_in, behaviour).await?;
    let answer = answer?;
    let limit = answer.rate_limit()?;
    ensure!(limit.left == 5 - attempts, "{limit:?}, but {attempts} recorded");
    Ok((answer, attempts))
}

async fn what_ran_counts(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let host = || "example.com".to_owned();
    for refusal in [
        Refusal::NameNotFound { host: host() },
        Refusal::AddressNotPublic { host: host() },
        Refusal::ConnectionRefused { host: host() },
        Refusal::ConnectionFailed { host: host() },
        Refusal::Tls { host: host() },
        Refusal::TooManyRedirects { host: host() },
        Refusal::NotAPage { host: host() },
        Refusal::PageTooLarge,
        Refusal::PageCrashed,
        Refusal::Deadline,
        Refusal::Broken,
    ] {
        let (answer, attempts) = attempt(&stand_in, Behaviour::Refuse(refusal.clone())).await?;
        let (status, message) = (refusal.reason().status(), refusal.to_string());
        answer.error(status, &message)?;
        ensure!(matches!(status, 422 | 502 | 504) && attempts == 1, "{refusal:?}: {attempts} attempts");
    }
    Ok(())
}

async fn what_never_ran(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    for refusal in [
        Refusal::QueueFull,
        Refusal::NoSlotInTime,
        Refusal::Draining,
        Refusal::NoBrowser,
        Refusal::Unauthorized,
        Refusal::InvalidJob,
    ] {
        let (answer, attempts) = attempt(&stand_in, Behaviour::Refuse(refusal.clone())).await?;
        answer.error(503, &refusal.to_string())?;
        ensure!(answer.header("retry-after")? == "5", "{refusal:?}: {}", answer.summary());
        ensure!(attempts == 0, "{refusal:?}: {attempts} attempts");
    }
    Ok(())
}

async fn what_was_refused(stage: Stage) -> Result<()> {
    let (service, account, target) = stage.account_with_key(Quota::Of(5)).await?;
    let html = json!({ "html": "x" });
    for (call, status) in [
        (target.post(RENDER, "{}"), 400),
        (target.post(RENDER, "{"), 400),
        (target.render(&html).key("junk"), 401),
        (target.post("/v1/nothing", "{}"), 404),
        (target.render_template(&json!({ "templateId": "tpl_none" })), 404),
        (target.render(&html).method(http::Method::PUT), 405),
        (target.post(RENDER, vec![b' '; 32 * 1024 * 1024 + 1]), 413),
        (target.render(&html).header(CONTENT_TYPE, b"text/html"), 415),
    ] {
        let answer = call.send().await?;
        ensure!(answer.status == status, "expected {status}, got {}", answer.summary());
        let attempts = service.operator.attempts(&account.id).await?;
        ensure!(attempts == 0, "a {status} was counted");
    }
    stage.no_job_was_received(&account).await?;
    Ok(())
}

async fn refunded(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let (account, target) = stand_in.app.account(Quota::Of(1)).await?;
    let render = async || target.minimal().send().await;
    stand_in.farm.behave(&account.id, Behaviour::Refuse(Refusal::QueueFull));
    for _ in 0..5 {
        render().await?.error(503, "The renderer is busy, try again shortly").context("the farm is full")?;
    }
    stand_in.farm.behave(&account.id, Behaviour::File);
    render().await?.file("image/png")?;
    is_exhausted(&render().await?)
}

async fn accounts_do_not_share(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let operator = &service.operator;
    let (one, other) = (operator.account(Quota::Of(1)).await?, operator.account(Quota::Of(1)).await?);
    let html = json!({ "html": "x" });
    let (one, other) = (service.target(&one), service.target(&other));
    one.render(&html).send().await?.file("image/png")?;
    is_exhausted(&one.render(&html).send().await?)?;
    other.render(&html).send().await?.file("image/png")?;
    Ok(())
}
