//! One address with several farms behind it.

use anyhow::{Context as _, Result, ensure};
use platen_tests::{
    app::{FARM_TOKEN, Options},
    case::Case,
    client::RENDER,
    farm::{Behaviour, StandInFarm},
    hashing_proxy::HashingProxy,
    loopback::ClosedPort,
    operator::Quota,
    suite::Stage,
    tls::{self, TlsProxy},
    wait,
};
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::crash::NO_DISCONNECTS;

const OWN_ISSUERS: &str = "Spin trusts public certificate authorities only";

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("farms/a_cancellation_passes_a_proxy", cancellation).not_on_spin(NO_DISCONNECTS),
        Case::own_server("farms/a_proxy_that_reaches_no_farm", no_farm).once_per_platform(),
        Case::own_server("farms/a_proxy_with_tls_keeps_its_connections", with_tls).not_on_spin(OWN_ISSUERS),
    ]
}

/// The client disconnects while its job waits in the queue of a farm behind a proxy.
async fn cancellation(stage: Stage) -> Result<()> {
    let farms = [StandInFarm::start(FARM_TOKEN).await?, StandInFarm::start(FARM_TOKEN).await?];
    let proxy = HashingProxy::start(farms.iter().map(StandInFarm::address).collect()).await?;
    let app = stage.start(&Options::with_farm(stage.deployment, proxy.url())).await?;
    for page_ran in [false, true] {
        let account = app.operator.account(Quota::Of(5)).await?;
        for farm in &farms {
            farm.behave(&account.id, Behaviour::UntilCancelled { page_ran });
        }
        let mut caller = TcpStream::connect(app.base_url.trim_start_matches("http://")).await?;
        let head = format!(
            "POST {RENDER} HTTP/1.1\r\nhost: platen\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: 12\r\n\r\n{{\"html\":\"x\"}}",
            account.key
        );
        caller.write_all(head.as_bytes()).await?;
        let is_received = || farms.iter().any(|farm| !farm.received_from(&account.id).is_empty());
        wait::until("the job reaches a farm", is_received).await?;
        drop(caller);
        let sql = format!("SELECT status FROM attempts WHERE account_id = '{}'", account.id);
        let status = async || app.execute(&sql).await;
        let status = wait::until_some("the attempt is recorded", status).await?;
        ensure!(status == 499, "page ran {page_ran}: the status of the attempt is {status}");
        let attempts = app.operator.attempts(&account.id).await?;
        ensure!(attempts == u64::from(page_ran), "page ran {page_ran}: {attempts} attempts");
    }
    let methods = proxy.methods();
    let is_complete = (0..2).all(|farm| {
        let has = |method: &str| methods.contains(&(farm, method.to_owned()));
        has("POST") == has("DELETE")
    });
    ensure!(is_complete, "a cancellation went to another farm: {methods:?}");
    Ok(())
}

async fn no_farm(stage: Stage) -> Result<()> {
    let closed = ClosedPort::hold()?;
    let address = closed.url()?.trim_start_matches("http://").parse()?;
    let (proxy, farm) = (HashingProxy::start(vec![address]).await?, StandInFarm::start(FARM_TOKEN).await?);
    let app = stage.start(&Options::with_farm(stage.deployment, proxy.url())).await?;
    let account = app.operator.account(Quota::Of(5)).await?;
    let answer = app.target(&account).render(&json!({ "html": "x" })).send().await?;
    answer.error(503, "The renderer is not available")?;
    ensure!(app.operator.attempts(&account.id).await? == 0, "it was counted");
    // Beside a farm, the job goes there.
    let urls = format!("{},{}", proxy.url(), farm.url());
    let app = stage.start(&Options::with_farm(stage.deployment, urls)).await?;
    for _ in 0..4 {
        let account = app.operator.account(Quota::Of(5)).await?;
        let answer = app.target(&account).render(&json!({ "html": "x" })).send().await?;
        answer.file("image/png").context("beside a farm")?;
    }
    Ok(())
}

/// A farm that is reached by `https`: a connection serves many requests, and a certificate that is not trusted none.
async fn with_tls(stage: Stage) -> Result<()> {
    let farm = StandInFarm::start(FARM_TOKEN).await?;
    let proxy = TlsProxy::start(farm.address()).await?;
    let options = Options::with_farm(stage.deployment, proxy.url());
    let app = stage.start(&Options { trusted: Some(tls::issuer()), ..options.clone() }).await?;
    let account = app.operator.account(Quota::Of(20)).await?;
    for _ in 0..10 {
        app.target(&account).render(&json!({ "html": "x" })).send().await?.file("image/png")?;
    }
    ensure!(farm.received_from(&account.id).len() == 10, "the farm has not received each job once");
    // A connection is idle again only a moment after its response.
    ensure!(proxy.connections() <= 3, "{} connections for ten jobs", proxy.connections());

    let app = stage.start(&options).await?;
    let account = app.operator.account(Quota::Of(5)).await?;
    let answer = app.target(&account).render(&json!({ "html": "x" })).send().await?;
    answer.error(503, "The renderer is not available")?;
    ensure!(app.operator.attempts(&account.id).await? == 0, "it was counted");
    ensure!(farm.received_from(&account.id).is_empty(), "the farm received a job");
    Ok(())
}
