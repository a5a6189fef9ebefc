//! Faults of the host and of the database under load.
//!
//! Invariant: a case in which an attempt that counts is not recorded, or one is recorded past the quota, is an error.
//! A stand-in farm responds at once.

mod cut_proxy;
mod small_disk;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use futures::future::join_all;
use platen_tests::{
    app::FARM_TOKEN,
    database::{Database, DatabaseKind},
    farm::StandInFarm,
    operator::{Account, Quota},
    service::DatabaseLocation,
    settings::Settings,
};
use tempfile::TempDir;
use tokio::time::sleep;

use self::{cut_proxy::CutProxy, small_disk::SmallDisk};
use crate::platen_up::{Callers, PlatenUp, Responses};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the cases whose names contain this text
    #[arg(default_value = "")]
    filter: String,
    /// Callers, each of which sends one request after the other
    #[arg(long, default_value_t = 20)]
    callers: usize,
    /// How often the host is killed; sqld a quarter as often
    #[arg(long, default_value_t = 20)]
    kills: u32,
    /// Racing requests to two hosts on one sqld
    #[arg(long, default_value_t = 5_000)]
    races: u64,
}

const CASES: [&str; 10] = [
    "host killed, file",
    "host killed, sqld",
    "sqld killed",
    "sqld stopped 20 s",
    "slow sqld",
    "connections to sqld cut",
    "disk full, file",
    "disk full, sqld",
    "read-only file",
    "two hosts race",
];
/// Before a fault, between faults, and after the last one.
const LOAD_DURATION: Duration = Duration::from_secs(2);
/// Longer than the edge waits for a database to record an attempt.
const MAX_RECORD_TIME: Duration = Duration::from_secs(75);
/// Records that have not changed for this long are final.
const SETTLE_TIME: Duration = Duration::from_secs(12);

/// Runs every case and prints a table.
pub(crate) async fn run(options: Options) -> Result<()> {
    println!(
        "| fault | requests | responses | recorded attempts / responses that count / jobs of the farm | rows missing | longest response | longest time without a file |\n\
         | --- | --- | --- | --- | --- | --- | --- |"
    );
    for case in CASES.iter().copied().filter(|case| case.contains(&options.filter)) {
        measure(case, &options).await.with_context(|| format!("case {case:?}"))?;
    }
    Ok(())
}

/// A host, its database and its farm. Fields are dropped in this order: the host before what it uses.
struct Setup {
    host: PlatenUp,
    account: Account,
    farm: StandInFarm,
    proxy: Option<CutProxy>,
    database: Database,
    disk: Option<SmallDisk>,
    directory: TempDir,
}

impl Setup {
    async fn start(case: &str, quota: Quota) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let disk = if case.starts_with("disk full") {
            Some(SmallDisk::mount(&directory.path().join("disk"))?)
        } else {
            None
        };
        let data = disk.as_ref().map_or(directory.path(), SmallDisk::path).join("data");
        let kind = if case.contains("file") { DatabaseKind::File } else { DatabaseKind::Sqld };
        let parent = disk.as_ref().map_or(directory.path(), SmallDisk::path);
        std::fs::create_dir_all(&data)?;
        let database = Database::start(kind, &Settings::from_env()?, parent, &data.join("platen.db")).await?;
        let mut location: DatabaseLocation = database.location().clone();
        let proxy = if let Some(upstream) =
            location.url().filter(|_| case.contains("slow") || case.contains("cut"))
        {
            let proxy = CutProxy::start(upstream.trim_start_matches("http://").parse()?).await?;
            location.address = format!("http://{}", proxy.address);
            Some(proxy)
        } else {
            None
        };
        let farm = StandInFarm::start(FARM_TOKEN).await?;
        let host = PlatenUp::start(&data, location, farm.url()).await?;
        let account = host.service.operator.account(quota).await?;
        Ok(Self { host, account, farm, proxy, database, disk, directory })
    }

    fn callers(&self, callers: usize) -> Callers {
        Callers::start(&[self.host.service.target(&self.account)], callers)
    }

    fn proxy(&self) -> Result<&CutProxy> {
        self.proxy.as_ref().context("the case has no proxy")
    }
}

async fn measure(case: &str, options: &Options) -> Result<()> {
    if case == "two hosts race" {
        return two_hosts(options).await;
    }
    let mut setup = Setup::start(case, Quota::Unlimited).await?;
    let (callers, began) = (setup.callers(options.callers), Instant::now());
    sleep(LOAD_DURATION).await;
    match case {
        "host killed, file" | "host killed, sqld" => {
            for _ in 0..options.kills {
                setup.host.kill().await?;
                setup.host.start_again().await?;
                sleep(LOAD_DURATION / 2).await;
            }
        }
        "sqld killed" => {
            for _ in 0..options.kills.div_ceil(4) {
                setup.database.kill().await?;
                sleep(LOAD_DURATION / 2).await;
                setup.database.start_again().await?;
                sleep(LOAD_DURATION).await;
            }
        }
        "sqld stopped 20 s" => {
            setup.database.pause(true)?;
            sleep(Duration::from_secs(20)).await;
            setup.database.pause(false)?;
        }
        "slow sqld" => {
            setup.proxy()?.delay(Duration::from_millis(250));
            sleep(LOAD_DURATION * 10).await;
            setup.proxy()?.delay(Duration::ZERO);
        }
        "connections to sqld cut" => {
            for _ in 0..options.kills {
                setup.proxy()?.cut();
                sleep(LOAD_DURATION / 4).await;
            }
        }
        "read-only file" => {
            for read_only in [true, false] {
                let sql = if read_only { READ_ONLY } else { "DROP TRIGGER read_only" };
                setup.host.service.execute(sql).await?;
                sleep(LOAD_DURATION).await;
            }
        }
        _ => {
            let disk = setup.disk.as_ref().context("the case has no disk")?;
            disk.fill()?;
            sleep(LOAD_DURATION * 5).await;
            disk.free()?;
        }
    }
    sleep(LOAD_DURATION).await;
    let responses = callers.finish().await?;
    let pause = longest_pause(&responses, began);
    report(case, &setup.host, &setup.account, setup.farm.received_in_all() as u64, &responses, pause).await
}

/// What SQLite reports for every write to a file that it may not change.
const READ_ONLY: &str = "CREATE TRIGGER read_only BEFORE INSERT ON usage \
    BEGIN SELECT RAISE(FAIL, 'attempt to write a readonly database'); END";

/// Two hosts on one sqld, and more requests than the quota allows.
async fn two_hosts(options: &Options) -> Result<()> {
    let quota = options.races / 10;
    let setup = Setup::start("two hosts", Quota::Of(quota)).await?;
    let data = setup.directory.path().join("other");
    std::fs::create_dir(&data)?;
    let other = PlatenUp::start(&data, setup.database.location().clone(), setup.farm.url()).await?;
    let targets = [&setup.host, &other].map(|host| host.service.target(&setup.account));
    let callers = u64::try_from(options.callers * 10)?;
    let send = |caller: u64| {
        let target = &targets[usize::from(caller % 2 == 1)];
        async move {
            let mut responses = Responses::default();
            for _ in (caller..options.races).step_by(usize::try_from(callers).unwrap_or(1)) {
                responses.send(target).await;
            }
            responses
        }
    };
    let began = Instant::now();
    let mut responses = Responses::default();
    join_all((0..callers).map(send)).await.into_iter().for_each(|it| responses.add(it));
    let received = setup.farm.received_in_all() as u64;
    let pause = longest_pause(&responses, began);
    report("two hosts race", &setup.host, &setup.account, received, &responses, pause).await?;
    let files = responses.of(&[200]);
    ensure!(files == quota, "{files} files with a quota of {quota}");
    Ok(())
}

fn longest_pause(responses: &Responses, began: Instant) -> Duration {
    let mut files = responses.files.clone();
    files.push(began);
    files.sort_unstable();
    files.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or_default()
}

/// Compares the records with the responses once they no longer change, and prints a row.
async fn report(
    case: &str,
    host: &PlatenUp,
    account: &Account,
    received: u64,
    responses: &Responses,
    pause: Duration,
) -> Result<()> {
    let counted = responses.of(&[200, 422, 502, 504]);
    let (began, mut changed, mut last) = (Instant::now(), Instant::now(), (0, 0));
    let (attempts, rows) = loop {
        let attempts = host.service.operator.attempts(&account.id).await?;
        let rows = host.service.execute("SELECT count(*) FROM attempts WHERE status = 200").await?;
        let records = (attempts, u64::try_from(rows.unwrap_or_default())?);
        if records != last {
            (last, changed) = (records, Instant::now());
        }
        let is_exact = records == (counted, responses.of(&[200]));
        if is_exact || changed.elapsed() > SETTLE_TIME || began.elapsed() > MAX_RECORD_TIME {
            break records;
        }
        sleep(Duration::from_millis(500)).await;
    };
    let longest = responses.latencies.iter().max().copied().unwrap_or_default();
    println!(
        "| {case} | {} | {responses} | {attempts} / {counted} / {received} | {} | {:.1} s | {:.1} s |",
        responses.requests(),
        responses.of(&[200]).saturating_sub(rows),
        longest.as_secs_f64(),
        pause.as_secs_f64()
    );
    if attempts < counted || attempts < received {
        bail!("{attempts} attempts are recorded of {counted} that count and {received} jobs");
    }
    Ok(())
}
