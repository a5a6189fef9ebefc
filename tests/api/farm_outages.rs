//! Farms that cannot be reached, hang, are killed or restart.

use futures::future::join_all;
use nix::sys::signal::Signal;
use platen_harness::{
    farm::{Ledger, Size},
    farm_process,
    haproxy::HaProxy,
    loopback::ClosedPort,
};
use tokio::task::JoinSet;

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("farms/an_unreachable_farm_is_passed_over", unreachable),
        Case::own_server("farms/a_hanging_farm_is_passed_over", hanging),
        Case::own_server("farms/a_hot_account_uses_all_farms", hot_account),
        Case::own_server("farms/a_killed_farm_loses_only_its_jobs", killed),
        Case::own_server("farms/stand_ins_restart_under_load", rolling_restart),
        Case::own_server("farms/real_farms_restart_under_load", real_restart),
    ]
}

/// The queue has space for all jobs of a case, at one farm too.
const SIZE: Size = Size { slots: 4, queue: 64, pages: 8, service_time: Duration::from_millis(50) };

/// A server with stand-in farms that have slots, behind a proxy.
struct Queueing {
    app: TestApp,
    proxy: HaProxy,
    farms: Vec<StandInFarm>,
    ledger: Arc<Ledger>,
}

impl Queueing {
    async fn start(stage: &Stage, count: usize) -> Result<Self> {
        Self::start_with(stage, count, SIZE).await
    }

    async fn start_with(stage: &Stage, count: usize, size: Size) -> Result<Self> {
        let ledger = Arc::<Ledger>::default();
        let mut farms = Vec::new();
        for _ in 0..count {
            farms.push(StandInFarm::start_with(FARM_TOKEN, None, size, &ledger).await?);
        }
        let addresses: Vec<_> = farms.iter().map(StandInFarm::address).collect();
        let proxy = HaProxy::start(&addresses).await?;
        let app = stage.start(&Options::with_farm(stage.deployment, proxy.url())).await?;
        Ok(Self { app, proxy, farms, ledger })
    }

    async fn target(&self) -> Result<Target> {
        Ok(self.app.account(Quota::Unlimited).await?.1)
    }
}

async fn status(target: &Target) -> u16 {
    let answer = target.minimal().send().await;
    answer.map_or(0, |answer| answer.status)
}

/// Callers that send one request after the other until `end` completes: the number of answers with other statuses
/// than 200, and of all answers.
async fn under_load(targets: &[Target], end: impl Future<Output = Result<()>>) -> Result<(Vec<u16>, usize)> {
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let mut callers = JoinSet::new();
    for target in targets {
        let (target, stopped) = (target.clone(), stopped.clone());
        callers.spawn(async move {
            let mut statuses = Vec::new();
            while !*stopped.borrow() {
                statuses.push(status(&target).await);
            }
            statuses
        });
    }
    end.await?;
    stop.send_replace(true);
    let statuses: Vec<u16> = callers.join_all().await.concat();
    let failed = statuses.iter().copied().filter(|status| *status != 200).collect();
    Ok((failed, statuses.len()))
}

/// Waits until farms have begun this many further jobs.
async fn more_jobs(ledger: &Ledger, count: usize) -> Result<()> {
    let before = ledger.jobs();
    wait::until("the farms have jobs", || ledger.jobs() >= before + count).await
}

async fn unreachable(stage: Stage) -> Result<()> {
    let (closed, farm) = (ClosedPort::hold()?, StandInFarm::start(FARM_TOKEN).await?);
    let closed = closed.url()?.trim_start_matches("http://").parse()?;
    let proxy = HaProxy::start(&[closed, farm.address()]).await?;
    let app = stage.start(&Options::with_farm(stage.deployment, proxy.url())).await?;
    for _ in 0..6 {
        let account = app.operator.account(Quota::Of(5)).await?;
        ensure!(status(&app.target(&account)).await == 200, "a job was not sent to the farm that is there");
    }
    ensure!(farm.received_in_all() == 6, "{} jobs", farm.received_in_all());
    Ok(())
}

/// Connections are accepted, and nothing is answered: further jobs go elsewhere, and come back afterwards.
async fn hanging(stage: Stage) -> Result<()> {
    let farms = Queueing::start(&stage, 3).await?;
    let target = farms.target().await?;
    ensure!(status(&target).await == 200, "a job was lost");
    let index = farms.farms.iter().position(|farm| farm.served() == 1).context("its farm")?;
    farms.farms[index].freeze(true);
    farms.proxy.until_down(index + 1).await?;
    for _ in 0..20 {
        ensure!(status(&target).await == 200, "a job was lost");
    }
    farms.farms[index].freeze(false);
    ensure!(farms.ledger.jobs() == 21 && farms.ledger.repeated() == 0, "{} jobs", farms.ledger.jobs());
    let is_used = async || {
        ensure!(status(&target).await == 200, "a job was lost afterwards");
        Ok((farms.farms[index].served() > 1).then_some(()))
    };
    wait::until_some("the farm is used again", is_used).await
}

async fn hot_account(stage: Stage) -> Result<()> {
    // All jobs are there before the first one ends, also on a busy machine.
    let size = Size { service_time: Duration::from_secs(2), ..SIZE };
    let farms = Queueing::start_with(&stage, 3, size).await?;
    let target = farms.target().await?;
    let statuses = join_all((0..48).map(|_| status(&target))).await;
    ensure!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    let served: Vec<_> = farms.farms.iter().map(StandInFarm::served).collect();
    // One and a half times a third of 48, and some more, because the proxy counts those that are there when each arrives.
    ensure!(served.iter().all(|jobs| *jobs <= 32), "{served:?}");
    ensure!(farms.ledger.repeated() == 0, "a job ran twice");
    Ok(())
}

/// The jobs that ran or waited there are 502 and counted, and no job runs twice.
async fn killed(stage: Stage) -> Result<()> {
    let mut farms = Queueing::start(&stage, 3).await?;
    let mut targets = Vec::new();
    for _ in 0..12 {
        targets.push(farms.target().await?);
    }
    // Four times as many callers as there are slots, so that three times as many jobs wait at each farm as run there.
    let targets = vec![targets; SIZE.slots].concat();
    let (address, ledger) = (farms.farms[0].address(), Arc::clone(&farms.ledger));
    let list = &mut farms.farms;
    let (failed, all) = under_load(&targets, async {
        wait::until("every caller waits", || ledger.jobs() >= 3 * targets.len()).await?;
        drop(list.remove(0));
        more_jobs(&ledger, targets.len()).await?;
        list.insert(0, StandInFarm::start_with(FARM_TOKEN, Some(address), SIZE, &ledger).await?);
        wait::until("the new farm has jobs", || list[0].served() > 0).await
    })
    .await?;
    ensure!(
        failed.len() <= targets.len() && failed.iter().all(|status| *status == 502),
        "{failed:?} of {all}"
    );
    ensure!(ledger.repeated() == 0, "a job ran twice");
    let sql = "SELECT coalesce(sum(attempts), 0) FROM usage";
    let attempts = farms.app.execute(sql).await?;
    ensure!(attempts == i64::try_from(all).ok(), "{attempts:?} attempts of {all}");
    Ok(())
}

async fn rolling_restart(stage: Stage) -> Result<()> {
    let mut farms = Queueing::start(&stage, 3).await?;
    let mut targets = Vec::new();
    for _ in 0..6 {
        targets.push(farms.target().await?);
    }
    let (ledger, list) = (Arc::clone(&farms.ledger), &mut farms.farms);
    let (failed, all) = under_load(&targets, async {
        for _ in 0..6 {
            let farm = list.remove(0);
            let address = farm.address();
            farm.drain().await;
            drop(farm);
            more_jobs(&ledger, targets.len()).await?;
            list.push(StandInFarm::start_with(FARM_TOKEN, Some(address), SIZE, &ledger).await?);
            more_jobs(&ledger, targets.len()).await?;
        }
        Ok(())
    })
    .await?;
    ensure!(failed.is_empty(), "{failed:?} of {all}");
    ensure!(ledger.repeated() == 0, "a job ran twice");
    Ok(())
}

/// SIGTERM and a new start of each `platen-farm` while two accounts render.
async fn real_restart(stage: Stage) -> Result<()> {
    let (settings, directory) = (stage.suite.settings(), stage.suite.directory());
    let arguments = ["--browsers".to_owned(), "1".to_owned()];
    let start = async |address| {
        farm_process::start(farm_process::command(settings, directory, &arguments), FARM_TOKEN, address).await
    };
    let mut farms = Vec::new();
    for _ in 0..3 {
        farms.push(start(None).await?);
    }
    let addresses: Vec<_> = farms.iter().map(|(_, address)| *address).collect();
    let proxy = HaProxy::start(&addresses).await?;
    let app = stage.start(&Options::with_farm(stage.deployment, proxy.url())).await?;
    let mut targets = Vec::new();
    for _ in 0..2 {
        targets.push(app.target(&app.operator.account(Quota::Unlimited).await?));
    }
    let html = "<html style='background:rgb(0,128,0)'></html>";
    let body = json!({ "html": html, "width": 40, "height": 30 });
    let answer = targets[0].render(&body).send().await?;
    Picture::decode(answer.file("image/png")?, "image/png")?.expect(39, 29, GREEN)?;
    let (failed, all) = under_load(&targets, async {
        for _ in 0..3 {
            let (mut farm, address) = farms.remove(0);
            farm.signal(Signal::SIGTERM)?;
            let status = farm.ended().await?;
            ensure!(status.success(), "the farm ended with {status}; its log:\n{}", farm.log());
            farms.push(start(Some(address)).await?);
        }
        Ok(())
    })
    .await?;
    let log = app.process.log();
    let lines: Vec<_> = log.lines().filter(|line| !line.contains("status=200")).collect();
    ensure!(failed.is_empty() && all > 10, "{failed:?} of {all}; the log:\n{}", lines.join("\n"));
    Ok(())
}
