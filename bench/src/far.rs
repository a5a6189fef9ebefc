//! An edge far from its database: latency and throughput over links with a delay, without and with losses.
//!
//! Invariant: a stand-in farm responds at once and only the link to the database has a delay, so what is measured are the
//! round trips that an edge waits for.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use platen_harness::{
    app::{FARM_TOKEN, Options as AppOptions},
    client::Target,
    database::Database,
    delay_proxy::{DelayProxy, Link},
    deployment::{DatabaseKind, Deployment, Platform},
    farm::StandInFarm,
    operator::Quota,
    service::DatabaseLocation,
    settings::Settings,
};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    callers::{Callers, Responses},
    server::{Server, WARM_UP},
    statistics::{count, number, percentile_ms},
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Round trips of 0 and 100 ms only, without quiet times
    #[arg(long)]
    short: bool,
    /// Seconds of the second measurement of each link, for which attempts are claimed ahead; 0 leaves it out
    #[arg(long, default_value_t = 5)]
    claim_ahead: u32,
    /// Leave out Spin, which is measured if `PLATEN_SPIN` is its path
    #[arg(long)]
    without_spin: bool,
}

/// Milliseconds of a round trip, and how many packets of 100 are lost.
const LINKS: [(u64, u8); 5] = [(0, 0), (25, 0), (100, 0), (200, 0), (100, 1)];
const SHORT_LINKS: [(u64, u8); 2] = [(0, 0), (100, 0)];
/// The pause between requests that are not back to back.
const PAUSE: Duration = Duration::from_millis(300);
/// The time between the requests of a key that is used rarely.
const QUIET: Duration = Duration::from_mins(1);
/// Requests of a key that is used rarely.
const QUIET_REQUESTS: usize = 3;
/// Callers at once. Spin has fewer.
const CALLERS: usize = 32;
const SPIN_CALLERS: usize = 8;

/// Measures every link and prints a table.
pub(crate) async fn run(options: Options) -> Result<()> {
    println!(
        "| platform | round trip ms | lost | claimed ahead | back to back p50 ms | with pauses p50 ms | once a minute p50 ms | wrong key p50 ms \
         | renders/s of 1 caller | of {CALLERS}, Spin {SPIN_CALLERS} | p95 ms alone | p95 ms beside {CALLERS} callers with wrong keys \
         | other than 200 |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    let has_spin = Settings::from_env()?.spin.is_some() && !options.without_spin;
    let links = if options.short { &SHORT_LINKS[..] } else { &LINKS[..] };
    for platform in [Some(Platform::PlatenUp), has_spin.then_some(Platform::Spin)].into_iter().flatten() {
        for (milliseconds, loss_percent) in links {
            let link = Link { round_trip: Duration::from_millis(*milliseconds), loss_percent: *loss_percent };
            let ahead = Some(options.claim_ahead).filter(|seconds| *seconds > 0);
            for seconds in [0].into_iter().chain(ahead) {
                Measured::start(platform, link, seconds).await?.measure(&options).await?;
            }
        }
    }
    Ok(())
}

/// An edge, and its database behind a link.
struct Measured {
    platform: Platform,
    link: Link,
    claim_ahead: u32,
    target: Target,
    // Dropped before what it uses.
    _server: Server,
    _farm: StandInFarm,
    _proxy: DelayProxy,
    _database: Database,
    _directory: TempDir,
}

impl Measured {
    async fn start(platform: Platform, link: Link, claim_ahead: u32) -> Result<Self> {
        let (settings, directory) = (Settings::from_env()?, TempDir::with_prefix("platen-bench-")?);
        let file = directory.path().join("unused");
        let database = Database::start(DatabaseKind::Sqld, &settings, directory.path(), &file).await?;
        let address = &database.location().address;
        let address = address.strip_prefix("http://").context("the database has no http URL")?.parse()?;
        let (proxy, farm) = (DelayProxy::start(address, link).await?, StandInFarm::start(FARM_TOKEN).await?);
        let deployment = Deployment { platform, database: DatabaseKind::Sqld };
        let location = DatabaseLocation { address: proxy.url(), token: None };
        let options =
            AppOptions { database: Some(location), ..AppOptions::with_farm(deployment, farm.url()) };
        let server = Server::start(&options.claim_ahead(claim_ahead)).await?;
        let target = server.app.account(Quota::Unlimited).await?.1;
        Ok(Self {
            platform,
            link,
            claim_ahead,
            target,
            _server: server,
            _farm: farm,
            _proxy: proxy,
            _database: database,
            _directory: directory,
        })
    }

    async fn measure(&self, options: &Options) -> Result<()> {
        let time = Duration::from_secs(options.seconds);
        Responses::default().send(self.target.minimal()).await;
        let alone = self.series(Duration::ZERO, time).await;
        let paused = self.series(PAUSE, time.max(10 * PAUSE)).await;
        let is_quiet = !options.short && self.link.round_trip == Duration::from_millis(100);
        let mut seldom = Responses::default();
        if is_quiet && self.link.loss_percent == 0 {
            for _ in 0..QUIET_REQUESTS {
                sleep(QUIET).await;
                seldom.send(self.target.minimal()).await;
            }
        }
        let mut wrong = Responses::default();
        let began = Instant::now();
        while began.elapsed() < time {
            wrong.send(self.target.with_unknown_key().minimal()).await;
        }
        let callers = if self.platform == Platform::Spin { SPIN_CALLERS } else { CALLERS };
        // Opens connections and instances.
        let warm_up = Callers::start([self.target.minimal()], callers);
        sleep(WARM_UP).await;
        warm_up.finish().await?;
        let began = Instant::now();
        let many = Callers::start([self.target.minimal()], callers);
        sleep(time).await;
        let many = many.finish().await?;
        let rate = count(many.latencies.len() - many.failed()) / began.elapsed().as_secs_f64();

        let strangers = (0..CALLERS).map(|_| self.target.with_unknown_key().minimal());
        let strangers = Callers::start(strangers, CALLERS);
        sleep(WARM_UP).await;
        let beside = self.series(Duration::ZERO, time).await;
        strangers.finish().await?;

        let failed: usize = [&alone, &paused, &seldom, &many, &beside].map(Responses::failed).iter().sum();
        let percentile =
            |responses: &Responses, percent| number(percentile_ms(&responses.latencies, percent), 0);
        println!(
            "| {} | {} | {} % | {} s | {} | {} | {} | {} | {:.1} | {rate:.0} | {} | {} | {failed} |",
            if self.platform == Platform::Spin { "Spin" } else { "`platen up`" },
            self.link.round_trip.as_millis(),
            self.link.loss_percent,
            self.claim_ahead,
            percentile(&alone, 50),
            percentile(&paused, 50),
            percentile(&seldom, 50),
            percentile(&wrong, 50),
            count(alone.latencies.len()) / alone.latencies.iter().sum::<Duration>().as_secs_f64(),
            percentile(&alone, 95),
            percentile(&beside, 95),
        );
        Ok(())
    }

    /// Requests one after the other for this time.
    async fn series(&self, pause: Duration, time: Duration) -> Responses {
        let (mut responses, began) = (Responses::default(), Instant::now());
        while began.elapsed() < time {
            responses.send(self.target.minimal()).await;
            sleep(pause).await;
        }
        responses
    }
}
