//! Farms without a slot and spent quotas under load: what a refused request costs, that the quota stays exact, and
//! that rows say what failed.

use futures::future::try_join_all;
use platen_harness::{
    deployment::Platform,
    raw_connection::{RawConnection, render_head},
};
use platen_shared::key::ApiKey;

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("overload/refusals_without_a_claim", without_claim),
        Case::own_server("overload/a_busy_key_is_claimed_again", claimed_again),
        Case::own_server("overload/other_checks_precede_a_busy_farm", other_checks),
        Case::own_server("overload/refusals_cost_at_most_a_statement", refusals_cost)
            .not_on_spin("a metric of platen up"),
        Case::own_server("overload/a_raised_quota_is_used_exactly", raised_quota),
        Case::own_server("overload/rows_say_what_failed", rows_say_what_failed),
        Case::own_server("overload/too_little_time", too_little_time)
            .except(|it| it.platform == Platform::PlatenUp, "platen up replaces the header"),
        Case::own_server("overload/a_large_body_of_an_invalid_key_is_not_read", large_body_of_invalid_key),
    ]
}

pub(crate) const BUSY: &str = "The renderer is busy, try again shortly";

/// Uses a new connection, because the next request of one that was refused waits.
async fn send(target: &Target) -> Result<Answer> {
    target.minimal().header(http::header::CONNECTION, b"close").send().await
}

/// An answer that is another one than 503.
fn not_busy(answer: Answer) -> Result<Option<Answer>> {
    if answer.status == 503 {
        return answer.error(503, BUSY).map(|()| None);
    }
    Ok(Some(answer))
}

/// Whether this many answers at once are 503.
async fn all_busy(target: &Target, count: usize) -> Result<()> {
    for answer in try_join_all((0..count).map(|_| send(target))).await? {
        answer.error(503, BUSY)?;
        ensure!(answer.header("retry-after")? == "1", "{}", answer.summary());
        let limit = answer.rate_limit()?;
        ensure!(limit.left <= limit.quota, "{limit:?}");
    }
    Ok(())
}

/// Every request gets the farm's refusal, is not counted, and has a row; the farm receives few of them.
async fn without_claim(stage: Stage) -> Result<()> {
    const ROUNDS: usize = 20;
    let (stand_in, account, target) = stage.start_stand_in_for(Quota::Of(5)).await?;
    stand_in.farm.behave(&account.id, Behaviour::Busy(60_000));
    let began = Instant::now();
    for _ in 0..ROUNDS {
        let answer = send(&target).await?;
        answer.error(503, BUSY)?;
        ensure!(answer.rate_limit()?.left == 5, "{}", answer.summary());
    }
    // What the farm says is believed for a second at most, per instance of the component.
    let jobs = stand_in.farm.received_from(&account.id).len();
    let max = 2 + usize::try_from(began.elapsed().as_secs())?;
    ensure!((1..=max).contains(&jobs), "the farm received {jobs} jobs in {:?}", began.elapsed());
    let rows = i64::try_from(ROUNDS)?;
    stand_in.app.until_rows(&account, "status = 503 AND counted = 0 AND code = 'queue_full'", rows).await?;
    stand_in.app.until_rows(&account, "refunded_month IS NOT NULL", i64::try_from(jobs)?).await?;
    ensure!(stand_in.app.operator.attempts(&account.id).await? == 0, "something was counted");
    Ok(())
}

async fn claimed_again(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    for busy in [Behaviour::Busy(60_000), Behaviour::Busy(150), Behaviour::Refuse(Refusal::NoBrowser)] {
        let (account, target) = stand_in.app.account(Quota::Of(3)).await?;
        stand_in.farm.behave(&account.id, busy.clone());
        let answer = send(&target).await?;
        ensure!(answer.status == 503, "{}", answer.summary());
        stand_in.farm.behave(&account.id, Behaviour::File);
        // For a second at most the edge remembers that the farm was busy.
        let is_rendered = async || not_busy(send(&target).await?);
        let answer = wait::until_some("the farm is asked again", is_rendered).await?;
        answer.file("image/png").with_context(|| format!("{busy:?}"))?;
        ensure!(stand_in.app.operator.attempts(&account.id).await? == 1, "one was rendered");
    }
    Ok(())
}

/// A busy key still gets the answers of the checks before the claim, and other keys are not affected.
async fn other_checks(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let operator = &stand_in.app.operator;
    let (account, other) = (operator.account(Quota::Of(3)).await?, operator.account(Quota::Of(3)).await?);
    let target = stand_in.app.target(&account);
    stand_in.farm.behave(&account.id, Behaviour::Busy(60_000));
    for _ in 0..3 {
        send(&target).await?.error(503, BUSY)?;
        target.post(RENDER, "{").key("junk").send().await?.error(401, "Invalid API key")?;
        let call = target.post(RENDER, "{").header(http::header::CONTENT_TYPE, b"text/plain");
        call.send().await?.error(415, "Content type must be application/json")?;
        target.post(RENDER, "{}").send().await?.error(400, "\"html\" or \"url\" is required")?;
        let template = json!({ "templateId": "tpl_unknown" });
        target.render_template(&template).send().await?.error(404, "Template not found")?;
        send(&stand_in.app.target(&other)).await?.file("image/png")?;
    }
    // A key that is disabled is refused after a second.
    operator.run(&["key", "disable", &account.key_id]).await?;
    let is_known = async || not_busy(send(&target).await?);
    wait::until_some("the key is looked up", is_known).await?.error(401, "Invalid API key")
}

/// 16 callers that are refused again and again: a statement of each request at most, and rows in batches.
async fn refusals_cost(stage: Stage) -> Result<()> {
    const CALLERS: usize = 16;
    const ROUNDS: usize = 25;
    let (stand_in, account, target) = stage.start_stand_in_for(Quota::Of(50)).await?;
    stand_in.farm.behave(&account.id, Behaviour::Busy(1_000));
    let before = stand_in.app.metric("platen_db_statements_total").await?;
    let began = Instant::now();
    for _ in 0..ROUNDS {
        all_busy(&target, CALLERS).await?;
    }
    let rows = i64::try_from(CALLERS * ROUNDS)?;
    stand_in.app.until_rows(&account, "status = 503 AND counted = 0", rows).await?;
    let counted = stand_in.app.metric("platen_db_statements_total").await? - before;
    // A claim takes a statement more, as does a batch of rows: some at first and once a second of each instance.
    let max = u64::try_from(rows)? * 5 / 4 + CALLERS as u64 * began.elapsed().as_secs();
    ensure!(counted <= max, "{counted} statements for {rows} requests, at most {max} are expected");
    ensure!(stand_in.app.operator.attempts(&account.id).await? == 0, "something was counted");
    // Without a farm that says for how long, the edge refuses a request that follows within a moment, which on a slow
    // machine not every one does.
    stand_in.farm.behave(&account.id, Behaviour::Refuse(Refusal::QueueFull { retry_after: 1 }));
    let received = || stand_in.farm.received_from(&account.id).len();
    let first = received();
    let is_asked = async || {
        all_busy(&target, 1).await?;
        Ok((received() > first).then_some(()))
    };
    wait::until_some("the farm is asked again", is_asked).await?;
    let is_refused_at_once = async || {
        let before = received();
        all_busy(&target, 1).await?;
        Ok((received() == before).then_some(()))
    };
    wait::until_some("a request is refused without a job", is_refused_at_once).await?;
    ensure!(stand_in.app.operator.attempts(&account.id).await? == 0, "something was counted");
    Ok(())
}

async fn raised_quota(stage: Stage) -> Result<()> {
    const EXHAUSTED: &str = "Monthly quota exhausted";
    let stand_in = stage.start_stand_in(None).await?;
    let operator = &stand_in.app.operator;
    let (account, target) = stand_in.app.account(Quota::Of(0)).await?;
    let round = async || -> Result<usize> {
        let mut files = 0;
        for answer in try_join_all((0..50).map(|_| send(&target))).await? {
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
    send(&target).await?.file("image/png")?;
    send(&target).await?.error(429, EXHAUSTED)
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
    stand_in.farm.behave(&account.id, Behaviour::Busy(1_000));
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
    // One found the farm full, and the other was refused without a claim.
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
    let refusal = Refusal::NoSlotInTime { retry_after: 1 };
    stand_in.farm.behave(&account.id, Behaviour::RefuseHeld(latch.waiter(), refusal));
    latch
}
