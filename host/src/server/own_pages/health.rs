//! Whether the server works.

use std::time::Duration;

use http::StatusCode;
use platen_farm::Readiness;
use platen_shared::{farm_address::FarmAddress, wire};
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::db::Connection;

/// How long the database and the farm may take to respond to a check.
const TIMEOUT: Duration = Duration::from_secs(2);
/// How long the result of a check is used for further ones.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// What a render needs.
pub(crate) struct Health {
    database: Connection,
    /// The farm of this process.
    own_farm: Option<Readiness>,
    /// Another one.
    farm: Option<FarmAddress>,
    http: reqwest::Client,
    /// When database and farm were asked, and whether they are ready.
    checked: Mutex<Option<(Instant, bool)>>,
}

impl Health {
    pub(crate) fn new(database: Connection, farm: Option<FarmAddress>, own_farm: Option<Readiness>) -> Self {
        let http = platen_program::http_client().build().expect("a client without options");
        Self { database, own_farm, farm, http, checked: Mutex::default() }
    }

    /// Whether the database can be written and the farm accepts jobs.
    pub(super) async fn is_ready(&self) -> bool {
        if !self.own_farm.as_ref().is_none_or(Readiness::is_ready) {
            return false;
        }
        let mut checked = self.checked.lock().await;
        if let Some((at, is_ready)) = *checked
            && at.elapsed() < CHECK_INTERVAL
        {
            return is_ready;
        }
        let asked =
            timeout(TIMEOUT, async { tokio::join!(self.database_is_writable(), self.farm_is_ready()) });
        let is_ready = asked.await.is_ok_and(|(database, farm)| database && farm);
        *checked = Some((Instant::now(), is_ready));
        is_ready
    }

    /// A response without the header of a farm is that of another server.
    async fn farm_is_ready(&self) -> bool {
        let Some(farm) = &self.farm else { return true };
        let response = self.http.get(format!("{farm}/readyz")).send().await;
        response.is_ok_and(|response| {
            response.status() == StatusCode::OK && response.headers().contains_key(wire::FARM_ID)
        })
    }

    async fn database_is_writable(&self) -> bool {
        // Changes nothing, but needs the lock of a writer and a page of the table: SQLite may hold the page with the schema
        // in memory when the file is damaged.
        self.database.query("UPDATE accounts SET quota = quota WHERE rowid = -1", Vec::new()).await.is_ok()
    }
}
