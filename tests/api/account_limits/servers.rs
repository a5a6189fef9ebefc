//! Limits of several servers on one database, of a server that is killed, and while the database does not answer.

use futures::future::join_all;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use platen_harness::{
    deployment::{DatabaseKind, Deployment, Platform},
    farm::Size,
};

use super::{
    CONCURRENCY_FLAG, PER_MINUTE_FLAG, is_over_concurrency, limited, race_for_minute, race_for_places, render,
};
use crate::prelude::*;
use crate::{crash::NO_DISCONNECTS, database::Outage};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("account_limits/two_servers_share_them", two_servers)
            .except(has_one_server, ONE_SERVER),
        Case::own_server("account_limits/a_killed_server_holds_no_place", killed_server)
            .except(has_one_server, ONE_SERVER),
        Case::own_server("account_limits/a_late_claim_gives_its_place_back", late_claim),
        Case::own_server("account_limits/answers_do_not_wait_for_the_database", database_away),
        Case::own_server("account_limits/clients_that_repeat_at_once", repeating_clients),
        Case::own_server("account_limits/clients_that_hang_up", hang_up).not_on_spin(NO_DISCONNECTS),
    ]
}

fn has_one_server(deployment: Deployment) -> bool {
    (deployment.platform, deployment.database) == (Platform::Spin, DatabaseKind::File)
}

const ONE_SERVER: &str = "Spin's file is in its state directory";

async fn two_servers(stage: Stage) -> Result<()> {
    let one = stage.start_stand_in(None).await?;
    let other = stage.start_beside(&one, None).await?;
    let targets = |account| [one.app.target(account), other.target(account)];
    let (account, _) = limited(&one.app, Quota::Of(100), &[CONCURRENCY_FLAG, "4"]).await?;
    for _ in 0..3 {
        race_for_places(&one, &account, &targets(&account), 4).await?;
    }
    let (account, _) = limited(&one.app, Quota::Of(1_000), &[PER_MINUTE_FLAG, "15"]).await?;
    race_for_minute(&one, &account, &targets(&account), 15).await
}

async fn running(app: &TestApp, account: &Account) -> Result<Option<i64>> {
    app.execute(&format!("SELECT count(*) FROM running_attempts WHERE account_id = '{}'", account.id)).await
}

async fn killed_server(stage: Stage) -> Result<()> {
    let one = stage.start_stand_in(None).await?;
    let other = stage.start_beside(&one, Some(3_000)).await?;
    let (account, target) = limited(&one.app, Quota::Of(100), &[CONCURRENCY_FLAG, "2"]).await?;
    let _latch = one.farm.hold(&account.id);
    let held = || tokio::spawn(other.target(&account).minimal().send());
    let lost = [held(), held()];
    wait::until("the farm has the jobs", || one.farm.received_from(&account.id).len() == 2).await?;
    kill(Pid::from_raw(other.server_pid().cast_signed()), Signal::SIGKILL)?;
    for lost in lost {
        ensure!(lost.await?.is_err(), "the killed server answered");
    }
    one.farm.behave(&account.id, Behaviour::File);
    ensure!(running(&one.app, &account).await? == Some(2), "places of the killed server are gone already");
    // The deadline of three seconds, and some for what follows it.
    let longest = "SELECT max(ends_at) - unixepoch() FROM running_attempts";
    let longest = one.app.execute(longest).await?.context("no place")?;
    ensure!(longest <= 10, "a place is kept for {longest} s");
    let admitted = async || Ok(Some(render(&target).await?).filter(|answer| answer.status != 429));
    wait::until_some("a place is free", admitted).await?.file("image/png")?;
    wait::until_true("both places are free", async || {
        let free =
            one.app.execute("SELECT count(*) FROM running_attempts WHERE ends_at > unixepoch()").await?;
        Ok(free == Some(0))
    })
    .await?;
    race_for_places(&one, &account, &[target], 2).await?;
    ensure!(running(&one.app, &account).await? == Some(0), "places of attempts that have ended");
    Ok(())
}

/// The database answers claims only after their requests have been refused.
async fn late_claim(stage: Stage) -> Result<()> {
    let mut stand_in = stage.start_stand_in(Some(4_000)).await?;
    let (account, target) = limited(&stand_in.app, Quota::Of(100), &[CONCURRENCY_FLAG, "2"]).await?;
    render(&target).await?.file("image/png")?;
    let outage = Outage::begin(&mut stand_in, stage.deployment.database, false).await?;
    for answer in join_all((0..2).map(|_| render(&target))).await {
        answer?.error(503, "The service is busy, try again shortly")?;
    }
    outage.end(&mut stand_in, false).await?;
    let is_free = async || {
        let rendered = stand_in.farm.received_from(&account.id).len() as u64;
        let attempts = stand_in.app.operator.attempts(&account.id).await?;
        Ok((running(&stand_in.app, &account).await? == Some(0) && attempts == rendered).then_some(()))
    };
    wait::until_some("the places are given back", is_free).await?;
    // No job is held: a slow machine would miss the short deadline. A claim can also be later than the check above.
    let are_rendered = async || {
        let answers: Vec<Answer> =
            join_all((0..2).map(|_| render(&target))).await.into_iter().collect::<Result<_>>()?;
        if answers.iter().any(|answer| answer.status == 429) {
            return Ok(None);
        }
        answers.iter().try_for_each(|answer| answer.file("image/png").map(drop))?;
        Ok(Some(()))
    };
    wait::until_some("two requests at once are rendered", are_rendered).await
}

/// The database is away when a render ends: it is answered, and its place is given back when the database is there.
async fn database_away(stage: Stage) -> Result<()> {
    let mut stand_in = stage.start_stand_in(None).await?;
    let (account, target) = limited(&stand_in.app, Quota::Of(100), &[CONCURRENCY_FLAG, "1"]).await?;
    let latch = stand_in.farm.hold(&account.id);
    let held = tokio::spawn(target.minimal().send());
    stand_in.farm.until_received_from(&account.id).await?;
    let outage = Outage::begin(&mut stand_in, stage.deployment.database, false).await?;
    latch.open();
    held.await??.file("image/png")?;
    outage.end(&mut stand_in, false).await?;
    let is_free = async || Ok(running(&stand_in.app, &account).await? == Some(0));
    wait::until_true("the place is given back", is_free).await?;
    render(&target).await?.file("image/png")?;
    Ok(())
}

/// Clients that send the next request at once, whatever the answer: the farm never has more jobs than are allowed.
async fn repeating_clients(stage: Stage) -> Result<()> {
    const ALLOWED: usize = 3;
    const CLIENTS: usize = 24;
    const REQUESTS: usize = 30;
    let size = Size { slots: 100, queue: 100, pages: 10, service_time: std::time::Duration::from_millis(20) };
    let farm = StandInFarm::start_with(FARM_TOKEN, None, size, &Arc::default()).await?;
    let app = stage.start(&Options::with_farm(stage.deployment, farm.url())).await?;
    let (account, target) =
        limited(&app, Quota::Of(10_000), &[CONCURRENCY_FLAG, &ALLOWED.to_string()]).await?;
    let client = async || {
        let mut files = 0;
        for _ in 0..REQUESTS {
            let answer = render(&target).await?;
            match answer.status {
                200 => files += 1,
                429 => is_over_concurrency(&answer)?,
                _ => ensure!(false, "{}", answer.summary()),
            }
        }
        Ok(files)
    };
    let files = join_all((0..CLIENTS).map(|_| client())).await.into_iter().collect::<Result<Vec<_>>>()?;
    let files: usize = files.into_iter().sum();
    ensure!(files >= ALLOWED && farm.served() == files, "{files} files, {} jobs", farm.served());
    let most = farm.max_served_at_once();
    ensure!(most <= ALLOWED, "{most} jobs at once");
    let attempts = app.operator.attempts(&account.id).await?;
    ensure!(attempts == files as u64, "{attempts} attempts of {files} files");
    wait::until_true("no place is taken", async || Ok(running(&app, &account).await? == Some(0))).await
}

/// A client that hangs up gives its place back at once.
async fn hang_up(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    let (account, target) = limited(&stand_in.app, Quota::Of(100), &[CONCURRENCY_FLAG, "1"]).await?;
    stand_in.farm.behave(&account.id, Behaviour::Stall);
    let held = tokio::spawn(target.minimal().send());
    stand_in.farm.until_received_from(&account.id).await?;
    ensure!(running(&stand_in.app, &account).await? == Some(1), "an attempt that runs has no place");
    held.abort();
    // Rows of attempts that are over remain until the next claim, so this row was deleted.
    let is_free = async || Ok(running(&stand_in.app, &account).await? == Some(0));
    wait::until_true("the place is given back", is_free).await?;
    stand_in.farm.behave(&account.id, Behaviour::File);
    render(&target).await?.file("image/png")?;
    Ok(())
}
