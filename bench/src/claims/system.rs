//! Edges that are far from their database, and a stand-in farm.

use std::{
    path::Path,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result};
use platen_harness::{
    app::{FARM_TOKEN, Options as AppOptions, TestApp},
    database::Database,
    delay_proxy::{DelayProxy, Link},
    deployment::DatabaseKind,
    farm::StandInFarm,
    service::{DatabaseLocation, Service},
    settings::Settings,
};

use crate::http_client::client;

const EDGES: usize = 4;
/// The deadline of a render in milliseconds.
const DEADLINE_MS: u64 = 10_000;
/// The beginning of the year 2100 (UTC), since 1970.
const NEW_MONTH: Duration = Duration::from_hours(1_139_568);
/// The time for the edges to start before it.
const START: Duration = Duration::from_mins(1);

/// The time of the edges. The database and the operator have the system's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    System,
    /// A new month begins a while after the start.
    BeforeNewMonth,
}

pub(super) struct Edge {
    // Dropped before its proxy.
    pub(super) app: TestApp,
    _proxy: DelayProxy,
}

pub(super) struct System {
    // Dropped in this order: edges before what they use.
    pub(super) edges: Vec<Edge>,
    pub(super) farm: StandInFarm,
    pub(super) database: Database,
    /// The database without a delay.
    pub(super) ledger: Service,
    /// When the edges' month ends.
    pub(super) new_month: Option<Instant>,
}

impl System {
    /// Starts a database and its edges, with files below `directory`.
    pub(super) async fn start(
        directory: &Path,
        round_trip: Duration,
        claim_ahead: Duration,
        clock: Clock,
    ) -> Result<Self> {
        let (settings, http) = (Settings::from_env()?, client()?);
        let database =
            Database::start(DatabaseKind::Sqld, &settings, directory, &directory.join("unused")).await?;
        let farm = StandInFarm::start(FARM_TOKEN).await?;
        let ledger = Service::new(String::new(), &settings.platen, database.location().clone(), http.clone());
        let mut system = Self { edges: Vec::new(), farm, database, ledger, new_month: None };
        let mut clock_offset = None;
        if clock == Clock::BeforeNewMonth {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
            clock_offset = NEW_MONTH.checked_sub(now + START);
            system.new_month = Some(Instant::now() + START);
        }
        for _ in 0..EDGES {
            let address = &system.database.location().address;
            let address = address.strip_prefix("http://").context("the database has no http URL")?;
            let proxy = DelayProxy::start(address.parse()?, Link { round_trip, loss_percent: 0 }).await?;
            let options = AppOptions {
                database: Some(DatabaseLocation { address: proxy.url(), token: None }),
                clock_offset,
                ..AppOptions::with_farm(DatabaseKind::Sqld, system.farm.url())
            };
            let seconds = u32::try_from(claim_ahead.as_secs())?;
            let options = options.deadline_ms(DEADLINE_MS).claim_ahead(seconds);
            let app = TestApp::start(&options, &settings, &http, directory).await?;
            system.edges.push(Edge { app, _proxy: proxy });
        }
        Ok(system)
    }
}
