//! Farms that cannot be reached, hang, are killed or restart.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use futures::future::join_all;
use nix::sys::signal::Signal;
use platen_tests::{
    app::{FARM_TOKEN, Options, TestApp},
    case::Case,
    client::Target,
    farm::StandInFarm,
    farm_process,
    image_file::{GREEN, Picture},
    loopback::ClosedPort,
    operator::{Account, Quota},
    queueing_farm::{Ledger, QueueingFarm, Size},
    suite::Stage,
    wait,
};
use serde_json::json;
use tokio::{
    task::{JoinError, JoinSet},
    time::sleep,
};

use super::weight_of;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("farms/an_unreachable_farm_is_passed_over", unreachable).once_per_platform(),
        Case::own_server("farms/a_hanging_farm_is_passed_over", hanging).once_per_platform(),
        Case::own_server("farms/a_hot_account_uses_all_farms", hot_account).once_per_platform(),
        Case::own_server("farms/a_killed_farm_loses_only_its_jobs", killed).once_per_platform(),
        Case::own_server("farms/a_killed_farm_at_the_only_address", killed_alone).once_per_platform(),
        Case::own_server("farms/a_waiting_job_leaves_a_farm_that_hangs", leaves_hanging).once_per_platform(),
        Case::own_server("farms/stand_ins_restart_under_load", rolling_restart).once_per_platform(),
        Case::own_server("farms/real_farms_restart_under_load", real_restart).once_per_platform(),
    ]
}

const SIZE: Size = Size { slots: 4, queue: 16, pages: 8, service_time: Duration::from_millis(50) };

/// A server with stand-in farms that have slots.
struct Queueing {
    app: TestApp,
    farms: Vec<QueueingFarm>,
    ledger: Arc<Ledger>,
}

impl Queueing {
    async fn start(stage: &Stage, count: usize, size: Size) -> Result<Self> {
        let ledger = Arc::<Ledger>::default();
        let mut farms = Vec::new();
        for _ in 0..count {
            farms.push(QueueingFarm::start(FARM_TOKEN, None, size, &ledger).await?);
        }
        let urls: Vec<_> = farms.iter().map(QueueingFarm::url).collect();
        let app = stage.start(&Options::with_farm(stage.deployment, urls.join(","))).await?;
        Ok(Self { app, farms, ledger })
    }

    /// A new account, and the index of its farm.
    async fn account(&self) -> Result<(Account, usize)> {
        let account = self.app.operator.account(Quota::Unlimited).await?;
        let weights = self.farms.iter().map(|farm| weight_of(&account, &farm.url()));
        let (_, index) = weights.zip(0..).max().context("no farm")?;
        Ok((account, index))
    }
}

async fn status(target: &Target) -> u16 {
    let answer = target.render(&json!({ "html": "x" })).send().await;
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

async fn unreachable(stage: Stage) -> Result<()> {
    let (closed, farm) = (ClosedPort::hold()?, StandInFarm::start(FARM_TOKEN).await?);
    let urls = format!("{},{}", closed.url()?, farm.url());
    let app = stage.start(&Options::with_farm(stage.deployment, urls)).await?;
    for _ in 0..6 {
        let account = app.operator.account(Quota::Of(5)).await?;
        let began = Instant::now();
        ensure!(status(&app.target(&account)).await == 200, "a job was not sent to the farm that is there");
        ensure!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
    }
    ensure!(farm.received_in_all() == 6, "{} jobs", farm.received_in_all());
    Ok(())
}

/// Connections are accepted, and nothing is answered: the farm's jobs go elsewhere, and come back afterwards.
async fn hanging(stage: Stage) -> Result<()> {
    let farms = Queueing::start(&stage, 3, SIZE).await?;
    let (account, index) = farms.account().await?;
    let target = farms.app.target(&account);
    ensure!(status(&target).await == 200 && farms.farms[index].served() == 1, "not on its own farm");
    farms.farms[index].freeze(true);
    for _ in 0..20 {
        let began = Instant::now();
        ensure!(status(&target).await == 200, "a job was lost");
        ensure!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
    }
    farms.farms[index].freeze(false);
    ensure!(farms.ledger.jobs() == 21 && farms.ledger.repeated() == 0, "{:?}", farms.ledger);
    // It is avoided for at most 15 seconds.
    let began = Instant::now();
    while farms.farms[index].served() == 1 {
        ensure!(status(&target).await == 200, "a job was lost afterwards");
        ensure!(began.elapsed() < Duration::from_mins(1), "the farm is not used again");
    }
    Ok(())
}

async fn hot_account(stage: Stage) -> Result<()> {
    let farms = Queueing::start(&stage, 3, SIZE).await?;
    let (account, index) = farms.account().await?;
    let target = farms.app.target(&account);
    let statuses = join_all((0..48).map(|_| status(&target))).await;
    ensure!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
    let served: Vec<_> = farms.farms.iter().map(QueueingFarm::served).collect();
    // How evenly depends on how many of the jobs see the same loads.
    ensure!(served[index] <= 40, "{served:?}, its own farm is {index}");
    ensure!(farms.ledger.repeated() == 0, "{:?}", farms.ledger);
    Ok(())
}

async fn killed(stage: Stage) -> Result<()> {
    let size = Size { queue: 64, ..SIZE };
    let mut farms = Queueing::start(&stage, 3, size).await?;
    let mut targets = Vec::new();
    // Four times as many as there are slots, so that three times as many jobs wait at each farm as run there.
    for _ in 0..12 * SIZE.slots {
        targets.push(farms.app.target(&farms.account().await?.0));
    }
    let (address, ledger) = (farms.farms[0].address(), Arc::clone(&farms.ledger));
    let list = &mut farms.farms;
    let (failed, all) = under_load(&targets, async {
        // At first all see free slots, and many jobs are on their way.
        wait::until("every caller waits", || ledger.jobs() >= 3 * targets.len()).await?;
        drop(list.remove(0));
        sleep(Duration::from_secs(1)).await;
        list.insert(0, QueueingFarm::start(FARM_TOKEN, Some(address), size, &ledger).await?);
        sleep(Duration::from_millis(500)).await;
        Ok(())
    })
    .await?;
    // Those that ran, and as many that were on their way or whose response was.
    ensure!(
        failed.len() <= 2 * SIZE.slots && failed.iter().all(|status| *status == 502),
        "{failed:?} of {all}"
    );
    ensure!(ledger.repeated() == 0, "{ledger:?}");
    Ok(())
}

/// Jobs that wait at the only farm are not lost with it: they are refused and cost nothing.
async fn killed_alone(stage: Stage) -> Result<()> {
    const WAITING: usize = 5;
    let size = Size { slots: 2, service_time: Duration::from_secs(20), ..SIZE };
    let mut farms = Queueing::start(&stage, 1, size).await?;
    let (account, _) = farms.account().await?;
    let target = farms.app.target(&account);
    let send = |count| {
        join_all((0..count).map(|_| {
            tokio::spawn({
                let target = target.clone();
                async move { status(&target).await }
            })
        }))
    };
    let running = tokio::spawn(send(size.slots));
    let ledger = Arc::clone(&farms.ledger);
    wait::until("the slots are taken", || ledger.jobs() == size.slots).await?;
    let waiting = tokio::spawn(send(WAITING));
    wait::until("jobs wait", || farms.farms[0].waiting() == WAITING).await?;
    farms.farms.clear();
    let statuses =
        |answers: Vec<Result<u16, _>>| answers.into_iter().collect::<Result<Vec<u16>, JoinError>>();
    let (running, waiting) = (statuses(running.await?)?, statuses(waiting.await?)?);
    ensure!(running.iter().all(|status| *status == 502), "jobs that ran: {running:?}");
    ensure!(waiting.iter().all(|status| *status == 503), "jobs that waited: {waiting:?}");
    let attempts = farms.app.operator.attempts(&account.id).await?;
    ensure!(attempts == size.slots as u64, "{attempts} attempts");
    Ok(())
}

async fn leaves_hanging(stage: Stage) -> Result<()> {
    let size = Size { slots: 1, service_time: Duration::from_secs(3), ..SIZE };
    let farms = Queueing::start(&stage, 2, size).await?;
    let (account, index) = farms.account().await?;
    let (own, other) = (&farms.farms[index], &farms.farms[1 - index]);
    let target = farms.app.target(&account);
    // The slots of both farms are taken.
    let first = async {
        let statuses = join_all([status(&target), status(&target)]).await;
        ensure!(statuses == [200, 200], "{statuses:?}");
        Ok(())
    };
    let waits = async {
        wait::until("both farms have a job", || farms.ledger.jobs() == 2).await?;
        let waiting = async {
            ensure!(status(&target).await == 200, "the job that waited was lost");
            ensure!(own.served() == 0 && other.served() == 2, "{} and {}", own.served(), other.served());
            own.freeze(false);
            Ok(())
        };
        let freezes = async {
            wait::until("a job waits", || own.waiting() == 1).await?;
            own.freeze(true);
            Ok(())
        };
        futures::future::try_join(waiting, freezes).await
    };
    futures::future::try_join(first, waits).await?;
    ensure!(farms.ledger.jobs() == 3 && farms.ledger.repeated() == 0, "{:?}", farms.ledger);
    Ok(())
}

async fn rolling_restart(stage: Stage) -> Result<()> {
    let mut farms = Queueing::start(&stage, 3, SIZE).await?;
    let mut targets = Vec::new();
    for _ in 0..6 {
        targets.push(farms.app.target(&farms.account().await?.0));
    }
    let (ledger, list) = (Arc::clone(&farms.ledger), &mut farms.farms);
    let (failed, all) = under_load(&targets, async {
        for _ in 0..6 {
            let farm = list.remove(0);
            let address = farm.address();
            farm.drain().await;
            drop(farm);
            sleep(Duration::from_millis(200)).await;
            list.push(QueueingFarm::start(FARM_TOKEN, Some(address), SIZE, &ledger).await?);
            sleep(Duration::from_millis(200)).await;
        }
        Ok(())
    })
    .await?;
    ensure!(failed.is_empty(), "{failed:?} of {all}");
    ensure!(ledger.repeated() == 0, "{ledger:?}");
    Ok(())
}

/// SIGTERM and a new start of each `platen-farm`, and SIGSTOP of one, while two accounts render.
async fn real_restart(stage: Stage) -> Result<()> {
    let (settings, directory) = (stage.suite.settings(), stage.suite.directory());
    let arguments = ["--browsers".to_owned(), "1".to_owned()];
    let mut farms = Vec::new();
    for _ in 0..3 {
        farms.push(farm_process::start(settings, FARM_TOKEN, directory, None, &arguments).await?);
    }
    let urls: Vec<_> = farms.iter().map(|(_, address)| format!("http://{address}")).collect();
    let app = stage.start(&Options::with_farm(stage.deployment, urls.join(","))).await?;
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
            farms
                .push(farm_process::start(settings, FARM_TOKEN, directory, Some(address), &arguments).await?);
        }
        farms[0].0.signal(Signal::SIGSTOP)?;
        sleep(Duration::from_secs(3)).await;
        farms[0].0.signal(Signal::SIGCONT)?;
        Ok(())
    })
    .await?;
    let log = app.process.log();
    let lines: Vec<_> = log.lines().filter(|line| !line.contains("status=200")).collect();
    ensure!(failed.is_empty() && all > 10, "{failed:?} of {all}; the log:\n{}", lines.join("\n"));
    Ok(())
}
