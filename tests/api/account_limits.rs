//! An account's limits of requests in a minute and at once: they are never exceeded, and cost no quota.

mod commands;
mod servers;

use futures::{StreamExt as _, future::join_all, stream::FuturesUnordered};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("account_limits/concurrent_requests_race", concurrency_race),
        Case::own_server("account_limits/requests_of_a_minute_race", minute_race),
        Case::own_server("account_limits/whatever_ends_gives_its_place_back", places_return),
        Case::any_database("account_limits/one_after_the_other", one_after_the_other),
        Case::any_database("account_limits/retry_after_is_true", retry_after),
        Case::any_database("account_limits/what_counts", what_counts),
    ]
    .into_iter()
    .chain(commands::cases())
    .chain(servers::cases())
    .collect()
}

const MINUTE: &str = "Limit of requests per minute exceeded";
const CONCURRENCY: &str = "Limit of concurrent requests exceeded";
const PER_MINUTE_FLAG: &str = "--requests-per-minute";
const CONCURRENCY_FLAG: &str = "--concurrency";

/// A new account with these limits, and the service with its key.
pub(crate) async fn limited(app: &Service, quota: Quota, limits: &[&str]) -> Result<(Account, Target)> {
    let (account, target) = app.account(quota).await?;
    app.operator.run(&[&["account", "limits", &account.id], limits].concat()).await?;
    Ok((account, target))
}

async fn render(target: &Target) -> Result<Answer> {
    target.minimal().send().await
}

/// The answer of a limit of requests at once.
fn is_over_concurrency(answer: &Answer) -> Result<()> {
    answer.error(429, CONCURRENCY)?;
    ensure!(answer.header("retry-after")? == "1", "{}", answer.summary());
    let limit = answer.concurrency()?.context("no limit in the fields")?;
    ensure!(limit.left == 0, "{limit:?}");
    Ok(())
}

/// The answer of a limit of requests in a minute: its `retry-after`.
fn is_over_minute(answer: &Answer) -> Result<u64> {
    answer.error(429, MINUTE)?;
    let limit = answer.minute()?.context("no limit in the fields")?;
    let wait = answer.header("retry-after")?.parse()?;
    ensure!(limit.left == 0 && limit.reset == Some(wait), "{limit:?}, retry-after {wait}");
    Ok(wait)
}

/// An account without limits is served as always.
async fn is_unaffected(target: &Target) -> Result<()> {
    for _ in 0..5 {
        let answer = render(target).await?;
        answer.file("image/png").context("a neighbour")?;
        ensure!(answer.minute()?.is_none() && answer.concurrency()?.is_none(), "{}", answer.summary());
    }
    Ok(())
}

/// Sends requests to several servers at once, of which the farm keeps `allowed` until the others have been refused.
async fn race_for_places(
    farm: &StandIn,
    account: &Account,
    targets: &[Target],
    allowed: usize,
) -> Result<()> {
    const REQUESTS: usize = 60;
    let latch = farm.farm.hold(&account.id);
    let before = farm.farm.received_from(&account.id).len();
    let call = |number: usize| tokio::spawn(targets[number % targets.len()].minimal().send());
    let mut answers: FuturesUnordered<_> = (0..REQUESTS).map(call).collect();
    for _ in allowed..REQUESTS {
        let answer = answers.next().await.context("an answer")???;
        is_over_concurrency(&answer).context("a request while the places are taken")?;
    }
    let jobs = || farm.farm.received_from(&account.id).len() - before;
    wait::until("the farm has the jobs", || jobs() == allowed).await?;
    is_unaffected(&farm.common).await?;
    latch.open();
    for answer in answers.collect::<Vec<_>>().await {
        answer??.file("image/png").context("an admitted request")?;
    }
    ensure!(jobs() == allowed, "the farm received {} jobs", jobs());
    Ok(())
}

async fn concurrency_race(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let operator = &stand_in.app.operator;
    let (account, target) = limited(&stand_in.app, Quota::Of(100), &[CONCURRENCY_FLAG, "3"]).await?;
    for _ in 0..3 {
        race_for_places(&stand_in, &account, std::slice::from_ref(&target), 3).await?;
    }
    ensure!(operator.attempts(&account.id).await? == 9, "a refused request was counted");
    // Another number holds for the next request.
    operator.run(&["account", "limits", &account.id, CONCURRENCY_FLAG, "7"]).await?;
    race_for_places(&stand_in, &account, &[target], 7).await?;
    ensure!(operator.attempts(&account.id).await? == 16, "a refused request was counted");
    Ok(())
}

/// Sends requests at once and checks that exactly `allowed` of them are admitted in a minute.
async fn race_for_minute(farm: &StandIn, account: &Account, targets: &[Target], allowed: u64) -> Result<()> {
    const REQUESTS: usize = 80;
    let began = Instant::now();
    let race = (0..REQUESTS).map(|number| targets[number % targets.len()].minimal().send());
    let answers = join_all(race).await.into_iter().collect::<Result<Vec<_>>>()?;
    // The minute begins with the first request, so all are in one unless they take longer.
    let minutes = began.elapsed().as_secs() / 60 + 1;
    let mut left = Vec::new();
    for answer in &answers {
        if answer.status == 200 {
            answer.file("image/png")?;
            let limit = answer.minute()?.context("no limit in the fields")?;
            ensure!(limit.allowed == allowed, "{limit:?}");
            left.push(limit.left);
        } else {
            is_over_minute(answer)?;
        }
    }
    let files = left.len() as u64;
    ensure!(
        (allowed..=minutes * allowed).contains(&files),
        "{files} in {minutes} minutes with a limit of {allowed}"
    );
    left.sort_unstable();
    left.dedup();
    ensure!(left == (0..allowed).collect::<Vec<_>>(), "left: {left:?}");
    is_unaffected(&farm.common).await?;
    ensure!(farm.farm.received_from(&account.id).len() as u64 == files, "the farm received another number");
    let attempts = farm.app.operator.attempts(&account.id).await?;
    ensure!(attempts == files, "{attempts} attempts were recorded");
    Ok(())
}

async fn minute_race(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let (account, target) = limited(&stand_in.app, Quota::Of(1_000), &[PER_MINUTE_FLAG, "20"]).await?;
    race_for_minute(&stand_in, &account, &[target], 20).await
}

/// A place is free again when its request is answered, however it ended.
async fn places_return(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(Some(3_000)).await?;
    let (account, target) = limited(&stand_in.app, Quota::Of(100), &[CONCURRENCY_FLAG, "1"]).await?;
    for (behaviour, status) in [
        (Behaviour::Refuse(Refusal::NoBrowser), 503),
        (Behaviour::File, 200),
        (Behaviour::LongFile(3_000_000), 200),
        (Behaviour::Refuse(Refusal::PageTooLarge), 422),
        (Behaviour::Refuse(Refusal::Deadline), 504),
        (Behaviour::Refuse(Refusal::Broken), 502),
        (Behaviour::Stall, 504),
    ] {
        if status == 200 {
            // From here on the row of an attempt, which is written after the response, no longer ends it.
            stand_in.app.execute("DROP TRIGGER IF EXISTS attempts_ended").await?;
        }
        stand_in.farm.behave(&account.id, behaviour.clone());
        for _ in 0..3 {
            let answer = render(&target).await?;
            ensure!(answer.status == status, "{behaviour:?}: {}", answer.summary());
            let limit = answer.concurrency()?.context("no limit in the fields")?;
            ensure!((limit.allowed, limit.left) == (1, 1), "{behaviour:?}: {limit:?}");
            if matches!(behaviour, Behaviour::Stall) {
                break;
            }
        }
    }
    Ok(())
}

/// A client that sends the next request when it has an answer is never refused.
async fn one_after_the_other(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let (_, target) = limited(&service, Quota::Of(100), &[CONCURRENCY_FLAG, "1"]).await?;
    for number in 0..40 {
        render(&target).await?.file("image/png").with_context(|| format!("request {number}"))?;
    }
    Ok(())
}

async fn retry_after(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let (account, target) = limited(&service, Quota::Of(100), &[PER_MINUTE_FLAG, "2"]).await?;
    // As if the minute had begun earlier by this many seconds.
    let pass = async |seconds: i64| {
        let sql = format!(
            "UPDATE usage_minutes SET began_at = began_at - {seconds} WHERE account_id = '{}'",
            account.id
        );
        service.execute(&sql).await
    };
    for round in 0..2 {
        for _ in 0..2 {
            render(&target).await?.file("image/png").with_context(|| format!("round {round}"))?;
        }
        let wait = is_over_minute(&render(&target).await?)?;
        ensure!(wait > 30, "the minute has just begun, and ends in {wait} s");
        pass(20).await?;
        let later = is_over_minute(&render(&target).await?)?;
        ensure!(later <= wait - 20, "{wait} s, and {later} s after 20 s");
        pass(later.cast_signed()).await?;
        render(&target).await?.file("image/png").context("after exactly retry-after")?;
        // The next round begins with a new minute.
        pass(60).await?;
    }
    for _ in 0..2 {
        render(&target).await?.file("image/png")?;
    }
    // The clock was set back: by a little it is the same minute, by more a new one begins.
    pass(-50).await?;
    render(&target).await?.error(429, MINUTE)?;
    pass(-1_000).await?;
    render(&target).await?.file("image/png").context("after the clock was set back")?;
    Ok(())
}

/// Only admitted requests count in the minute, whatever becomes of them; a spent quota has precedence.
async fn what_counts(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let operator = &service.operator;
    let limits = [PER_MINUTE_FLAG, "3", CONCURRENCY_FLAG, "2"];
    let (account, target) = limited(&service, Quota::Of(4), &limits).await?;
    for (call, status) in [
        (target.post(RENDER, "{}"), 400),
        (target.render_template(&json!({ "templateId": "tpl_none" })), 404),
        (target.post(RENDER, "x").without(&http::header::CONTENT_TYPE), 415),
    ] {
        let answer = call.send().await?;
        ensure!(answer.status == status, "{}", answer.summary());
        let (minute, at_once) = (answer.minute()?, answer.concurrency()?);
        let left = (minute.context("no minute")?.left, at_once.context("no concurrency")?.left);
        ensure!(left == (3, 2), "a {status} has left {left:?}");
    }
    for left in [2, 1, 0] {
        let answer = render(&target).await?;
        answer.file("image/png")?;
        ensure!(answer.minute()?.context("no minute")?.left == left, "{}", answer.summary());
    }
    for _ in 0..10 {
        is_over_minute(&render(&target).await?)?;
    }
    // The refused ones cost nothing.
    ensure!(operator.attempts(&account.id).await? == 3, "a refused request was counted");
    operator.run(&["account", "limits", &account.id, PER_MINUTE_FLAG, "none"]).await?;
    let answer = render(&target).await?;
    answer.file("image/png")?;
    ensure!(answer.minute()?.is_none(), "{}", answer.summary());
    operator.run(&["account", "limits", &account.id, PER_MINUTE_FLAG, "1"]).await?;
    render(&target).await?.error(429, "Monthly quota exhausted")
}
