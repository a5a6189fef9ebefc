//! What a render waits for, where its edge is far from the database.

use platen_harness::{
    delay_proxy::{DelayProxy, Link},
    deployment::Platform,
    service::DatabaseLocation,
};

use crate::database::{NO_SERVER, is_file};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("database/a_render_waits_for_one_round_trip", one_round_trip)
            .except(is_file, NO_SERVER),
    ]
}

/// Longer than most servers and clients keep a connection without a request.
const PAUSE: Duration = Duration::from_secs(12);
/// Text of the statement that writes rows.
const ROWS: &str = "INSERT INTO attempts";
/// Less than the time after which a statement no longer delays others.
const MAX_TIME: Duration = Duration::from_secs(4);

async fn one_round_trip(stage: Stage) -> Result<()> {
    let near = stage.start_stand_in(None).await?;
    let location = near.app.database.location().clone();
    let address = location.address.strip_prefix("http://").context("the database has no http URL")?;
    let proxy = DelayProxy::start(address.parse()?, Link::default()).await?;
    let location = DatabaseLocation { address: proxy.url(), ..location };
    let options =
        Options { database: Some(location), ..Options::with_farm(stage.deployment, near.farm.url()) };
    let far = stage.start(&options).await?;
    let account = near.app.operator.account(Quota::Unlimited).await?;
    let target = far.target(&account);
    let until_rows = async |rows| near.app.until_rows(&account, "status = 200", rows).await;
    target.renders().await?;
    until_rows(1).await?;

    let is_spin = stage.deployment.platform == Platform::Spin;
    if is_spin {
        // An instance ends after a second. A new one looks the key up and opens a connection.
        target.renders().await?;
        until_rows(2).await?;
    } else {
        tokio::time::sleep(PAUSE).await;
    }
    proxy.hold(Some(ROWS));
    let before = (proxy.connections(), proxy.round_trips());
    target.renders().await?;
    let after = (proxy.connections(), proxy.round_trips());
    ensure!(after.1 == before.1 + 1, "connections and round trips: {before:?}, then {after:?}");
    // Spin's client of libSQL opens one for each statement.
    ensure!(is_spin || after.0 == before.0, "connections and round trips: {before:?}, then {after:?}");

    if is_spin {
        return Ok(());
    }
    // The row is on its way.
    let began = Instant::now();
    target.renders().await?;
    let elapsed = began.elapsed();
    ensure!(elapsed < MAX_TIME, "a claim has waited for a row: {elapsed:?}");
    until_rows(1).await?;
    proxy.hold(None);
    until_rows(3).await
}
