//! Farms without a slot and spent quotas under load: an account has its renders beside the flood of another one, the quota
//! stays exact, and rows say what failed.

use futures::future::{join_all, try_join_all};
use platen_harness::{
    deployment::Platform,
    raw_connection::{RawConnection, render_head},
};
use platen_shared::key::ApiKey;

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("overload/refused_jobs_are_not_counted", refused_jobs),
        Case::own_server("overload/a_flood_of_one_account_leaves_renders_to_others", flood)
            .not_on_spin("a metric of platen up"),
        Case::own_server("overload/a_raised_quota_is_used_exactly", raised_quota),
        Case::own_server("overload/rows_say_what_failed", rows_say_what_failed),
        Case::own_server("overload/too_little_time", too_little_time)
            .except(|it| it.platform == Platform::PlatenUp, "platen up replaces the header"),
        Case::own_server("overload/a_large_body_of_an_invalid_key_is_not_read", large_body_of_invalid_key),
    ]
}

pub(crate) const BUSY: &str = "The renderer is busy, try again shortly";

/// The farm receives every request, however often it has refused the key before, and none is counted.
async fn refused_jobs(stage: Stage) -> Result<()> {
    const CALLERS: usize = 16;
    const ROUNDS: usize = 5;
    let (stand_in, account, target) = stage.start_stand_in_for(Quota::Of(CALLERS as u64)).await?;
    stand_in.farm.behave(&account.id, Behaviour::Refuse(Refusal::QueueFull));
    for _ in 0..ROUNDS {
        for answer in try_join_all((0..CALLERS).map(|_| target.minimal().send())).await? {
            answer.error(503, BUSY)?;
            ensure!(answer.header("retry-after")? == "5", "{}", answer.summary());
        }
    }
    ensure!(stand_in.farm.received_from(&account.id).len() == CALLERS * ROUNDS, "jobs");
    let condition = "status = 503 AND counted = 0 AND code = 'queue_full' AND refunded_month IS NOT NULL";
    stand_in.app.until_rows(&account, condition, i64::try_from(CALLERS * ROUNDS)?).await?;
    ensure!(stand_in.app.operator.attempts(&account.id).await? == 0, "something was counted");
    stand_in.farm.behave(&account.id, Behaviour::File);
    target.minimal().send().await?.file("image/png").map(drop)
}

/// The other account's files are those of its requests. Of the flood, what is refused is not counted.
async fn flood(stage: Stage) -> Result<()> {
    const FLOOD: usize = 250;
    const GOOD: u8 = 10;
    let app = stage.start(&Options::own_farm(stage.deployment)).await?;
    let (account, flood) = app.account(Quota::Unlimited).await?;
    let (_, good) = app.account(Quota::Of(GOOD.into())).await?;
    let render = async |target: &Target, number: u8| {
        let html = format!("<body style='background:rgb({number},9,90)'>");
        let answer = target.render(&json!({ "html": html, "width": 1600, "height": 1200 })).send().await?;
        if answer.status == 200 {
            Picture::decode(answer.file("image/png")?, "image/png")?.expect(0, 0, [number, 9, 90])?;
        } else {
            answer.error(503, BUSY)?;
        }
        Ok::<_, anyhow::Error>(answer.status)
    };
    let flooding = join_all((0..FLOOD).map(async |_| render(&flood, 200).await));
    let beside = async {
        app.until_metric_is_at_least("platen_farm_queue_length", 32).await?;
        for number in 0..GOOD {
            ensure!(render(&good, number).await? == 200, "request {number} was refused");
        }
        Ok(())
    };
    let (statuses, beside) = tokio::join!(flooding, beside);
    beside?;
    let statuses = statuses.into_iter().collect::<Result<Vec<_>>>()?;
    let files = statuses.iter().filter(|status| **status == 200).count();
    ensure!(files < FLOOD, "the queue was not full");
    let attempts = app.operator.attempts(&account.id).await?;
    ensure!(attempts == files as u64, "{attempts} attempts of {files} files count");
    Ok(())
}

async fn raised_quota(stage: Stage) -> Result<()> {
    const EXHAUSTED: &str = "Monthly quota exhausted";
    let stand_in = stage.start_stand_in(None).await?;
    let operator = &stand_in.app.operator;
    let (account, target) = stand_in.app.account(Quota::Of(0)).await?;
    let round = async || -> Result<usize> {
        let mut files = 0;
        for answer in try_join_all((0..50).map(|_| target.minimal().send())).await? {
            if answer.status == 200 {
                files += 1;
            } else {
                answer.error(429, EXHAUSTED)?;
                ensure!(answer.rate_limit()?.left == 0, "{}", answer.summary());
            }
        }
        Ok(files)
    };
    ensure!(round().await? == 0, "rendered without a quota");
    for (quota, total) in [("1", 1), ("30", 30), ("31", 31), ("30", 31)] {
        let raise = ["account", "quota", &account.id, quota];
        let (before, raised) = tokio::join!(round(), operator.run(&raise));
        raised?;
        // After the command has ended, the quota is used up to its end and no further.
        let (before, after) = (before?, round().await?);
        let recorded = operator.attempts(&account.id).await?;
        ensure!(recorded == total, "{recorded} of {quota}: {before} before, {after} after");
        ensure!(stand_in.farm.received_from(&account.id).len() as u64 == total, "renders");
    }
    // A raised quota is seen by the next request.
    operator.run(&["account", "quota", &account.id, "32"]).await?;
    target.minimal().send().await?.file("image/png")?;
    target.minimal().send().await?.error(429, EXHAUSTED)
}

async fn rows_say_what_failed(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let operator = &stand_in.app.operator;
    let account = operator.account(Quota::Of(9)).await?;
    let template = operator.template(&account.id, "t", "<p>x</p>").await?;
    let target = stand_in.app.target(&account);
    let url = json!({ "url": "https://user.example.com:8443/secret/path?token=1#part" });
    let host = || "user.example.com".to_owned();
    for (id, behaviour, status) in [
        ("row-1", Behaviour::File, 200),
        ("row-2", Behaviour::Refuse(Refusal::NameNotFound { host: host() }), 422),
        ("row-3", Behaviour::Refuse(Refusal::NoBrowser), 503),
        ("row-4", Behaviour::HangUp, 502),
        ("row-5", Behaviour::Answer(503, "text/plain", "no farm"), 503),
    ] {
        stand_in.farm.behave(&account.id, behaviour);
        let answer = target.render(&url).request_id(id).send().await?;
        ensure!(answer.status == status, "{}", answer.summary());
    }
    stand_in.farm.behave(&account.id, Behaviour::Refuse(Refusal::QueueFull));
    let filled = json!({ "templateId": template });
    for id in ["row-6", "row-7"] {
        target.render_template(&filled).request_id(id).send().await?.error(503, BUSY)?;
    }
    target.minimal().request_id("row-8").send().await?.error(503, BUSY)?;
    for (id, condition) in [
        ("row-1", "status = 200 AND counted = 1 AND code IS NULL AND refunded_month IS NULL"),
        ("row-2", "status = 422 AND counted = 1 AND code = 'name_not_found' AND refunded_month IS NULL"),
        ("row-3", "status = 503 AND counted = 0 AND code = 'no_browser' AND refunded_month IS NOT NULL"),
        ("row-4", "status = 502 AND counted = 1 AND code = 'broken'"),
        ("row-5", "status = 503 AND counted = 0 AND code = 'farm_unreachable'"),
    ] {
        let place = "host = 'user.example.com' AND template_id IS NULL AND endpoint = 'render'";
        stand_in
            .app
            .until_rows(&account, &format!("request_id = '{id}' AND {condition} AND {place}"), 1)
            .await?;
    }
    let template = format!("template_id = '{template}' AND host IS NULL AND endpoint = 'template'");
    stand_in
        .app
        .until_rows(&account, &format!("code = 'queue_full' AND counted = 0 AND {template}"), 2)
        .await?;
    stand_in
        .app
        .until_rows(&account, "request_id = 'row-8' AND template_id IS NULL AND host IS NULL", 1)
        .await?;
    stand_in.app.until_rows(&account, "key_id IS NOT NULL AND key_name = 'test'", 8).await?;
    ensure!(operator.attempts(&account.id).await? == 3, "three counted");
    Ok(())
}

/// A request that has waited for nearly its whole deadline is not sent to a farm, and not counted.
async fn too_little_time(stage: Stage) -> Result<()> {
    let (stand_in, account, target) = stage.start_stand_in_for(Quota::Of(5)).await?;
    let aged = |age: &str| {
        let name = http::HeaderName::from_static(wire::AGE_MS);
        target.minimal().header(name, age.as_bytes())
    };
    let answer = aged("29950").send().await?;
    answer.error(503, BUSY)?;
    ensure!(answer.rate_limit()?.left == 5, "{}", answer.summary());
    stand_in.app.until_rows(&account, "status = 503 AND counted = 0 AND code = 'no_slot_in_time'", 1).await?;
    aged("29950").key("junk").send().await?.error(401, "Invalid API key")?;
    let unknown = ApiKey::from_random([9; platen_shared::key::RANDOM_BYTES]);
    aged("29950").key(unknown.expose()).send().await?.error(401, "Invalid API key")?;
    let answer = aged("18446744073709551615").send().await?;
    ensure!(answer.status == 503 && answer.header("retry-after").is_ok(), "{}", answer.summary());
    ensure!(stand_in.farm.received_in_all() == 0, "a job without time was sent");
    ensure!(stand_in.app.operator.attempts(&account.id).await? == 0, "it was counted");
    for (age, max) in [("20000", 10_000), ("x", 30_000), ("-1", 30_000), ("", 30_000)] {
        aged(age).request_id(&format!("age-{max}")).send().await?.file("image/png")?;
        let job = stand_in.farm.received_as(&format!("age-{max}"))?;
        let left: u64 = job.headers[wire::DEADLINE_MS].to_str()?.parse()?;
        ensure!((max - 9_000..=max).contains(&left), "age {age}: {left} ms are left");
    }
    Ok(())
}

/// The key is looked up before the edge reads beyond the first MiB.
async fn large_body_of_invalid_key(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let unknown = target.with_unknown_key();
    let chunk = vec![b' '; 0x14_0000];
    for (framing, body) in [
        ("content-length: 9000000\r\n", &b"{"[..]),
        ("content-length: 33554432\r\n", b""),
        ("transfer-encoding: chunked\r\n", &[b"140000\r\n", &chunk[..], b"\r\n"].concat()),
    ] {
        let mut connection = RawConnection::open(&unknown).await?;
        connection.send(render_head(&unknown, framing)).await?;
        connection.send(body).await?;
        let answer = connection.answer().await;
        let answer = answer.with_context(|| format!("{framing}: no answer before the end of the body"))?;
        answer.error(401, "Invalid API key").context(framing)?;
    }
    Ok(())
}

/// Holds a refusal back until the latch is open.
pub(crate) fn held_refusal(stand_in: &StandIn, account: &Account) -> Latch {
    let latch = Latch::closed();
    let refusal = Refusal::NoSlotInTime;
    stand_in.farm.behave(&account.id, Behaviour::RefuseHeld(latch.waiter(), refusal));
    latch
}
