//! Whether the server works.

use std::time::Duration;

use platen_farm::Readiness;
use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use crate::db::Connection;

/// How long the database may take to respond to a check.
const DATABASE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the result of a check is used for further ones.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// What a render needs.
pub(crate) struct Health {
    database: Connection,
    /// The farm of this process.
    farm: Option<Readiness>,
    /// When the database was asked, and whether it responded.
    checked: Mutex<Option<(Instant, bool)>>,
}

impl Health {
    pub(crate) fn new(database: Connection, farm: Option<Readiness>) -> Self {
        Self { database, farm, checked: Mutex::default() }
    }

    /// Whether the database responds and the farm of this process accepts jobs.
    pub(super) async fn is_ready(&self) -> bool {
        self.farm.as_ref().is_none_or(Readiness::is_ready) && self.database_responds().await
    }

    async fn database_responds(&self) -> bool {
        let mut checked = self.checked.lock().await;
        if let Some((at, responds)) = *checked
            && at.elapsed() < CHECK_INTERVAL
        {
            return responds;
        }
        // A statement without a table does not read the database.
        let query = self.database.query("SELECT 1 FROM sqlite_schema LIMIT 1", Vec::new());
        let query = timeout(DATABASE_TIMEOUT, query).await;
        let responds = matches!(query, Ok(Ok(_)));
        *checked = Some((Instant::now(), responds));
        responds
    }
}
