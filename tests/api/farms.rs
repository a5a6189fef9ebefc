//! Several farms: each account has its farm, a job that one refuses goes to the next, and no job is rendered twice.

mod outages;
mod proxies;

use anyhow::{Context as _, Result, ensure};
use platen_shared::{
    farm_address::{account_hash, weight},
    id::AccountId,
    refusal::Refusal,
    wire,
};
use platen_tests::{
    app::{FARM_TOKEN, Options, TestApp},
    case::Case,
    client::Answer,
    farm::{Behaviour, StandInFarm},
    loopback::ClosedPort,
    operator::{Account, Quota},
    suite::Stage,
};
use serde_json::json;

pub(crate) fn cases() -> Vec<Case> {
    let own = vec![
        Case::own_server("farms/an_account_stays_with_its_farm", affinity).once_per_platform(),
        Case::own_server("farms/a_refused_job_goes_to_the_next_farm", refused).once_per_platform(),
        Case::own_server("farms/a_job_that_may_have_run_is_not_sent_again", not_twice).once_per_platform(),
        Case::own_server("farms/a_full_farm_is_passed_over", full_farm).once_per_platform(),
        Case::own_server("farms/all_farms_refuse", all_refuse).once_per_platform(),
        Case::own_server("farms/one_farm_gets_one_request", one_request).once_per_platform(),
    ];
    [own, outages::cases(), proxies::cases()].concat()
}

/// A server with several stand-in farms.
struct Farms {
    app: TestApp,
    farms: Vec<StandInFarm>,
}

impl Farms {
    async fn start(stage: &Stage, count: usize) -> Result<Self> {
        let mut farms = Vec::new();
        for _ in 0..count {
            farms.push(StandInFarm::start(FARM_TOKEN).await?);
        }
        let urls: Vec<_> = farms.iter().map(StandInFarm::url).collect();
        let app = stage.start(&Options::with_farm(stage.deployment, urls.join(","))).await?;
        Ok(Self { app, farms })
    }

    /// A new account, and the farms in its order.
    async fn account(&self) -> Result<(Account, Vec<&StandInFarm>)> {
        let account = self.app.operator.account(Quota::Of(100)).await?;
        let mut farms: Vec<_> = self.farms.iter().collect();
        farms.sort_by_key(|farm| std::cmp::Reverse(weight_of(&account, &farm.url())));
        Ok((account, farms))
    }

    async fn render(&self, account: &Account) -> Result<Answer> {
        self.app.target(account).render(&json!({ "html": "x" })).send().await
    }

    async fn attempts(&self, account: &Account) -> Result<u64> {
        self.app.operator.attempts(&account.id).await
    }
}

fn weight_of(account: &Account, url: &str) -> u64 {
    let hash = account_hash(&AccountId::from_text(account.id.clone()));
    url.parse().map_or(0, |address| weight(&hash, &address))
}

/// The jobs of an account that each farm received.
fn received(farms: &[&StandInFarm], account: &Account) -> Vec<usize> {
    farms.iter().map(|farm| farm.received_from(&account.id).len()).collect()
}

async fn affinity(stage: Stage) -> Result<()> {
    let farms = Farms::start(&stage, 3).await?;
    let mut used = std::collections::HashSet::new();
    for _ in 0..6 {
        let (account, order) = farms.account().await?;
        for _ in 0..4 {
            farms.render(&account).await?.file("image/png")?;
        }
        ensure!(received(&order, &account) == [4, 0, 0], "{:?}", received(&order, &account));
        used.insert(order[0].url());
        let hash = account_hash(&AccountId::from_text(account.id.clone()));
        for job in order[0].received_from(&account.id) {
            let header = job.headers.get(wire::ACCOUNT).context("no hash of the account")?;
            ensure!(header == hash.as_str(), "the hash of the account is {header:?}");
        }
    }
    // With three farms, six accounts have the same one with a probability of 1 in 243.
    ensure!(farms.farms.len() == 3 && !used.is_empty(), "no farm was used");
    Ok(())
}

async fn refused(stage: Stage) -> Result<()> {
    let farms = Farms::start(&stage, 2).await?;
    for refusal in [
        Refusal::QueueFull { retry_after: 3 },
        Refusal::NoSlotInTime { retry_after: 3 },
        Refusal::Draining,
        Refusal::NoBrowser,
        Refusal::Unauthorized,
        Refusal::InvalidJob,
    ] {
        let (account, order) = farms.account().await?;
        order[0].behave(&account.id, Behaviour::Refuse(refusal.clone()));
        farms.render(&account).await?.file("image/png").with_context(|| format!("{refusal:?}"))?;
        ensure!(order[1].received_from(&account.id).len() == 1, "{refusal:?}");
        ensure!(farms.attempts(&account).await? == 1, "{refusal:?}: the attempt was not counted once");
    }
    let (account, order) = farms.account().await?;
    order[0].behave(&account.id, Behaviour::Answer(503, "text/html", "<h1>503</h1>"));
    farms.render(&account).await?.file("image/png").context("a proxy without a farm")?;
    ensure!(order[1].received_from(&account.id).len() == 1, "a proxy without a farm");
    Ok(())
}

async fn not_twice(stage: Stage) -> Result<()> {
    let farms = Farms::start(&stage, 3).await?;
    for (behaviour, status) in [
        (Behaviour::HangUp, 502),
        (Behaviour::Answer(502, "text/html", "<h1>502</h1>"), 502),
        (Behaviour::Answer(504, "text/html", "<h1>504</h1>"), 502),
        (Behaviour::Answer(500, "text/plain", "panic"), 502),
        (Behaviour::Refuse(Refusal::Broken), 502),
        (Behaviour::Refuse(Refusal::Deadline), 504),
        (Behaviour::Refuse(Refusal::PageCrashed), 422),
        (Behaviour::Refuse(Refusal::Cancelled { page_ran: true }), 499),
    ] {
        let (account, order) = farms.account().await?;
        order[0].behave(&account.id, behaviour.clone());
        let answer = farms.render(&account).await;
        if status != 499 {
            ensure!(answer?.status == status, "{behaviour:?}");
        }
        let jobs = received(&order, &account);
        ensure!(jobs == [1, 0, 0], "{behaviour:?}: {jobs:?}");
        ensure!(farms.attempts(&account).await? == 1, "{behaviour:?}");
    }
    // A name server that does not answer is usually that of all farms.
    let (account, order) = farms.account().await?;
    order[0].behave(&account.id, Behaviour::Refuse(Refusal::NameServerFailed));
    farms.render(&account).await?.error(503, "The name server did not answer, try again shortly")?;
    ensure!(received(&order, &account) == [1, 0, 0], "another farm got the job");
    ensure!(farms.attempts(&account).await? == 0, "it was counted");
    Ok(())
}

async fn full_farm(stage: Stage) -> Result<()> {
    let farms = Farms::start(&stage, 3).await?;
    let (account, order) = farms.account().await?;
    let mut expected = vec![0, 0, 0];
    for (loads, chosen, queues) in [
        ([75, 0, 0], 0, false),
        ([100, 0, 0], 1, false),
        ([125, 100, 99], 2, false),
        ([100, 100, 100], 0, true),
        ([199, 150, 100], 0, true),
        ([300, 250, 150], 2, true),
    ] {
        for (farm, load) in order.iter().zip(loads) {
            farm.set_load(load);
        }
        farms.render(&account).await?.file("image/png")?;
        expected[chosen] += 1;
        ensure!(received(&order, &account) == expected, "{loads:?}: {:?}", received(&order, &account));
        let job = order[chosen].received_from(&account.id).pop().context("no job")?;
        ensure!(job.headers.contains_key(wire::NO_QUEUE) != queues, "{loads:?}: {:?}", job.headers);
    }
    // Farms of an earlier version have a queue for jobs only.
    for farm in &order {
        farm.keep_no_slots();
    }
    farms.render(&account).await?.file("image/png").context("without slots")?;
    Ok(())
}

async fn all_refuse(stage: Stage) -> Result<()> {
    let farms = Farms::start(&stage, 3).await?;
    let (account, order) = farms.account().await?;
    order[0].behave(&account.id, Behaviour::Refuse(Refusal::NoSlotInTime { retry_after: 9 }));
    order[1].behave(&account.id, Behaviour::Refuse(Refusal::QueueFull { retry_after: 7 }));
    order[2].behave(&account.id, Behaviour::Refuse(Refusal::Draining));
    let answer = farms.render(&account).await?;
    answer.error(503, "The renderer is busy, try again shortly")?;
    ensure!(answer.header("retry-after")? == "7", "{}", answer.summary());
    ensure!(farms.attempts(&account).await? == 0, "it was counted");
    // No farm is reachable.
    let (one, other) = (ClosedPort::hold()?, ClosedPort::hold()?);
    let urls = format!("{},{}", one.url()?, other.url()?);
    let app = stage.start(&Options::with_farm(stage.deployment, urls)).await?;
    let account = app.operator.account(Quota::Of(5)).await?;
    let answer = app.target(&account).render(&json!({ "html": "x" })).send().await?;
    answer.error(503, "The renderer is not available")?;
    ensure!(app.operator.attempts(&account.id).await? == 0, "it was counted");
    Ok(())
}

/// Without a choice, there is no question for the load.
async fn one_request(stage: Stage) -> Result<()> {
    let farms = Farms::start(&stage, 1).await?;
    let (account, order) = farms.account().await?;
    order[0].set_load(1_000);
    farms.render(&account).await?.file("image/png")?;
    ensure!(order[0].requests() == 1, "{} requests", order[0].requests());
    Ok(())
}
