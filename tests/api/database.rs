//! Databases that are down, absent for a moment or frozen: every answer is one of the contract, nothing is rendered
//! without a recorded attempt, and what counts agrees with the answers.

use futures::future::join_all;
use http::Method;
use platen_harness::{
    database::DatabaseKind,
    deployment::{Deployment, Platform},
};

use crate::overload::{BUSY, held_refusal};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("database/is_down", is_down),
        Case::own_server("database/restarts", restarts).except(is_file, NO_SERVER),
        Case::own_server("database/does_not_answer", does_not_answer).except(is_file, NO_SERVER),
        Case::own_server("database/rows_survive_an_outage", rows_survive_outage),
        Case::own_server("database/refunds_survive_an_outage", refunds_survive_outage),
        Case::own_server("database/a_wait_for_the_claim_shortens_the_deadline", deadline_includes_claim),
        Case::own_server("database/file_is_locked", file_is_locked).except(is_server, NO_FILE),
        Case::own_server("database/two_servers_share_a_quota", two_servers).except(is_file, NO_SERVER),
    ]
}

pub(crate) fn is_file(deployment: Deployment) -> bool {
    deployment.database == DatabaseKind::File
}

pub(crate) fn is_server(deployment: Deployment) -> bool {
    !is_file(deployment)
}

pub(crate) const NO_FILE: &str = "a server has no file";

pub(crate) const NO_SERVER: &str = "a file has no server";

pub(crate) const UNAVAILABLE: &str = "The service is busy, try again shortly";

async fn is_down(stage: Stage) -> Result<()> {
    let mut stand_in = stage.start_stand_in(None).await?;
    let target = stand_in.common.clone();
    target.renders().await?;
    // Otherwise its row is written while the files are overwritten, and repairs them.
    rows(&stand_in, 1).await?;
    let before = stand_in.farm.received_in_all();
    if stage.deployment.database == DatabaseKind::File {
        corrupt_files(&stand_in)?;
    } else {
        stand_in.app.database.kill().await?;
    }
    // A server may be back soon; a file that is damaged stays so.
    let (status, message) = match stage.deployment.database {
        DatabaseKind::File => (500, "Internal error"),
        _ => (503, UNAVAILABLE),
    };
    let (render, template, invalid) = tokio::join!(
        target.minimal().send(),
        target.render_template(&json!({ "templateId": target.template_id })).send(),
        // Errors of the body are for valid keys only, and the key cannot be checked.
        target.post(RENDER, "{}").send(),
    );
    render?.error(status, message).context("a render")?;
    template?.error(status, message).context("a template")?;
    invalid?.error(status, message).context("an invalid body")?;
    // Answers that need no database.
    target.minimal().key("junk").send().await?.error(401, "Invalid API key")?;
    target.post("/v1/nothing", "").send().await?.error(404, "Not found")?;
    ensure!(stand_in.farm.received_in_all() == before, "something was rendered without a recorded attempt");
    if stage.deployment.platform == Platform::PlatenUp {
        let ready = target.post("/readyz", "").method(Method::GET).send().await?;
        ensure!(ready.status == 503, "{}", ready.summary());
        let alive = target.post("/healthz", "").method(Method::GET).send().await?;
        ensure!(alive.status == 200, "{}", alive.summary());
    }
    Ok(())
}

/// Overwrites every file of the database in place, because the server may hold it open.
pub(crate) fn corrupt_files(stand_in: &StandIn) -> Result<()> {
    let directory = stand_in.app.data_directory();
    let entries = std::fs::read_dir(&directory)?.collect::<std::io::Result<Vec<_>>>()?;
    let names = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name.contains(".db") || name.contains(".sqlite")).collect();
    ensure!(!names.is_empty(), "no database file in {}", directory.display());
    // The index of the log is last: a reader that restores it from a valid log keeps the pages in its memory.
    names.sort_by_key(|name| name.ends_with("-shm"));
    for name in names {
        std::fs::write(directory.join(name), vec![0x5a; 64 * 1024])?;
    }
    Ok(())
}

/// The server starts again while a render waits for it.
async fn restarts(stage: Stage) -> Result<()> {
    let (mut stand_in, account, target) = stage.start_stand_in_for(Quota::Of(5)).await?;
    let render = async || target.minimal().send().await;
    render().await?.file("image/png")?;
    rows(&stand_in, 1).await?;
    stand_in.app.database.kill().await?;
    let (answer, restarted) = tokio::join!(render(), async {
        // Long enough that the render finds no server; the result does not depend on it.
        tokio::time::sleep(Duration::from_millis(500)).await;
        stand_in.app.database.start_again().await
    });
    restarted?;
    answer?.file("image/png").context("the render that waited")?;
    rows(&stand_in, 2).await?;
    ensure!(stand_in.app.operator.attempts(&account.id).await? == 2, "two were rendered");
    Ok(())
}

/// The server accepts statements, and answers them only after the requests have been refused.
async fn does_not_answer(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(Some(4_000)).await?;
    let (account, target) = stand_in.app.account(Quota::Of(5)).await?;
    let render = || target.minimal().send();
    render().await?.file("image/png")?;
    rows(&stand_in, 1).await?;
    stand_in.app.database.pause(true)?;
    for answer in join_all((0..4).map(|_| render())).await {
        answer?.error(503, UNAVAILABLE)?;
    }
    stand_in.app.database.pause(false)?;
    let is_available = async || Ok(render().await?.file("image/png").ok().map(|_| ()));
    wait::until_some("a render succeeds", is_available).await?;
    // An attempt that is recorded late, for a request that was refused, is given back.
    let agree = async || {
        let rendered = stand_in.farm.received_from(&account.id).len() as u64;
        Ok((stand_in.app.operator.attempts(&account.id).await? == rendered).then_some(()))
    };
    wait::until_some("the attempts are those that were rendered", agree).await
}

/// The time for which the database is away: longer than a statement waits for it.
const OUTAGE: Duration = Duration::from_secs(10);

/// Makes the database unavailable for writes: a server is killed or paused, a file is locked by another process.
pub(crate) struct Outage(Option<libsql::Connection>);

impl Outage {
    pub(crate) async fn begin(stand_in: &mut StandIn, kind: DatabaseKind, kills: bool) -> Result<Self> {
        if kind != DatabaseKind::File {
            if kills {
                stand_in.app.database.kill().await?;
            } else {
                stand_in.app.database.pause(true)?;
            }
            return Ok(Self(None));
        }
        let path = &stand_in.app.database.location().address;
        let connection = libsql::Builder::new_local(path).build().await?.connect()?;
        connection.busy_timeout(wait::MAX_WAIT)?;
        connection.execute("BEGIN IMMEDIATE", ()).await?;
        Ok(Self(Some(connection)))
    }

    pub(crate) async fn end(self, stand_in: &mut StandIn, kills: bool) -> Result<()> {
        match self.0 {
            Some(connection) => connection.execute("ROLLBACK", ()).await.map(drop)?,
            None if kills => stand_in.app.database.start_again().await?,
            None => stand_in.app.database.pause(false)?,
        }
        Ok(())
    }
}

/// Renders are answered while the database is away, and have a row each when it is back.
async fn rows_survive_outage(stage: Stage) -> Result<()> {
    const RENDERS: usize = 40;
    let (mut stand_in, account, target) = stage.start_stand_in_for(Quota::Unlimited).await?;
    for kills in [true, false] {
        let latch = stand_in.farm.hold(&account.id);
        let before = stand_in.farm.received_from(&account.id).len();
        let renders: Vec<_> = (0..RENDERS).map(|_| tokio::spawn(target.minimal().send())).collect();
        let are_claimed = || stand_in.farm.received_from(&account.id).len() == before + RENDERS;
        wait::until("the farm has all jobs", are_claimed).await?;
        let outage = Outage::begin(&mut stand_in, stage.deployment.database, kills).await?;
        latch.open();
        for render in renders {
            render.await??.file("image/png").context("a render while the database is away")?;
        }
        tokio::time::sleep(OUTAGE).await;
        outage.end(&mut stand_in, kills).await?;
        let expected = i64::try_from(before + RENDERS)?;
        stand_in.app.until_rows(&account, "status = 200 AND counted = 1", expected).await?;
        ensure!(stand_in.app.operator.attempts(&account.id).await? == expected.unsigned_abs());
    }
    Ok(())
}

/// Refusals while the database is away are answered in time; each is refunded once.
async fn refunds_survive_outage(stage: Stage) -> Result<()> {
    const JOBS: usize = 10;
    const DEADLINE_MS: u64 = 5_000;
    let mut stand_in = stage.start_stand_in(Some(DEADLINE_MS)).await?;
    let (account, target) = stand_in.app.account(Quota::Of(100)).await?;
    target.renders().await?;
    for (round, kills) in [(1, true), (2, false)] {
        let latch = held_refusal(&stand_in, &account);
        let before = stand_in.farm.received_from(&account.id).len();
        let began = Instant::now();
        let refused: Vec<_> = (0..JOBS).map(|_| tokio::spawn(target.minimal().send())).collect();
        let are_claimed = || stand_in.farm.received_from(&account.id).len() == before + JOBS;
        wait::until("the farm has all jobs", are_claimed).await?;
        let outage = Outage::begin(&mut stand_in, stage.deployment.database, kills).await?;
        latch.open();
        for answer in join_all(refused).await {
            let answer = answer??;
            answer.error(503, BUSY)?;
        }
        let elapsed = began.elapsed();
        ensure!(elapsed < Duration::from_millis(DEADLINE_MS) + MARGIN, "answered after {elapsed:?}");
        tokio::time::sleep(OUTAGE).await;
        outage.end(&mut stand_in, kills).await?;
        let expected = i64::try_from(round * JOBS)?;
        stand_in
            .app
            .until_rows(&account, "status = 503 AND counted = 0 AND refunded_month IS NOT NULL", expected)
            .await?;
        let attempts = stand_in.app.operator.attempts(&account.id).await?;
        ensure!(attempts == 1, "{attempts} are counted after outage {round}");
    }
    Ok(())
}

/// A second after the deadline, and some for a machine that runs other cases as well. Less than the time for which a statement is
/// repeated.
const MARGIN: Duration = Duration::from_secs(5);

async fn deadline_includes_claim(stage: Stage) -> Result<()> {
    let mut stand_in = stage.start_stand_in(Some(4_000)).await?;
    let (_, target) = stand_in.app.account(Quota::Of(5)).await?;
    target.renders().await?;
    let outage = Outage::begin(&mut stand_in, stage.deployment.database, false).await?;
    let render = tokio::spawn(target.minimal().request_id("late").send());
    // The time that is tested.
    tokio::time::sleep(Duration::from_secs(2)).await;
    outage.end(&mut stand_in, false).await?;
    let answer = render.await??;
    // On a slow machine the claim may take until the deadline.
    if answer.status == 200 {
        let job = stand_in.farm.received_as("late")?;
        let left: u64 = job.headers[wire::DEADLINE_MS].to_str()?.parse()?;
        ensure!(left <= 2_500, "{left} ms are left after two of four seconds");
    } else {
        answer.error(503, UNAVAILABLE)?;
    }
    Ok(())
}

/// Another process keeps the lock. A render is refused before its deadline of 30 s.
async fn file_is_locked(stage: Stage) -> Result<()> {
    const RETRY_TIME: Duration = Duration::from_secs(15);
    let (mut stand_in, account, target) = stage.start_stand_in_for(Quota::Of(5)).await?;
    let render = async || target.minimal().send().await;
    let ready = async || target.post("/readyz", "").method(Method::GET).send().await;
    render().await?.file("image/png")?;
    rows(&stand_in, 1).await?;
    let outage = Outage::begin(&mut stand_in, DatabaseKind::File, false).await?;
    let began = Instant::now();
    let (refused, meanwhile) = tokio::join!(render(), ready());
    refused?.error(503, UNAVAILABLE)?;
    let elapsed = began.elapsed();
    ensure!(elapsed < RETRY_TIME + MARGIN, "refused after {elapsed:?}");
    if stage.deployment.platform == Platform::PlatenUp {
        let meanwhile = meanwhile?;
        ensure!(meanwhile.status == 503, "{}", meanwhile.summary());
    }
    outage.end(&mut stand_in, false).await?;
    render().await?.file("image/png")?;
    ensure!(stand_in.app.operator.attempts(&account.id).await? == 2, "two were rendered");
    Ok(())
}

const QUOTA: u64 = 20;

/// Requests to two servers on one libSQL server race for the last attempts.
async fn two_servers(stage: Stage) -> Result<()> {
    let one = stage.start_stand_in(None).await?;
    let account = one.app.operator.account(Quota::Of(QUOTA)).await?;
    let other = stage.start_beside(&one, None).await?;
    let targets = [one.app.target(&account), other.target(&account)];
    let race = (0..100).map(|number| targets[number % 2].minimal().send());
    let answers = join_all(race).await.into_iter().collect::<Result<Vec<_>>>()?;
    let files = answers.iter().filter(|answer| answer.status == 200).count() as u64;
    ensure!(files == QUOTA, "{files} files with a quota of {QUOTA}");
    let refused = answers.iter().filter(|answer| answer.status == 429).count() as u64;
    ensure!(files + refused == 100, "{refused} were refused because of the quota");
    ensure!(one.farm.received_from(&account.id).len() as u64 == QUOTA, "the farm received others");
    ensure!(one.app.operator.attempts(&account.id).await? == QUOTA, "the count is another");
    Ok(())
}

pub(crate) async fn rows(stand_in: &StandIn, expected: i64) -> Result<()> {
    let are_written = async || {
        Ok((stand_in.app.execute("SELECT count(*) FROM attempts").await? == Some(expected)).then_some(()))
    };
    wait::until_some("the rows of the attempts are written", are_written).await
}
