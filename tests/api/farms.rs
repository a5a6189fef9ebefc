//! Several farms behind HAProxy with the file that is shipped, and what stands behind `--farm-url`.

use std::collections::HashSet;

use futures::future::try_join_all;
use http::Response;
use platen_harness::{
    haproxy::HaProxy,
    loopback::{BreakOff, ClosedPort, Loopback, full},
    tls::{self, TlsProxy},
};
use platen_shared::{farm_address::account_hash, id::AccountId};

use crate::prelude::*;

const OWN_ISSUERS: &str = "Spin trusts public certificate authorities only";
const NO_READINESS: &str = "Spin has no check of readiness";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("farms/an_account_stays_with_its_farm", affinity),
        Case::own_server("farms/a_response_without_the_header_of_a_farm", not_a_farm),
        Case::own_server("farms/a_server_that_is_no_farm", no_farm_alone).not_on_spin(NO_READINESS),
        Case::own_server("farms/a_wrong_address_among_farms", wrong_address),
        Case::own_server("farms/a_proxy_that_reaches_no_farm", no_farm_reached),
        Case::own_server("farms/a_proxy_with_tls_keeps_its_connections", with_tls).not_on_spin(OWN_ISSUERS),
    ]
}

async fn affinity(stage: Stage) -> Result<()> {
    let farms = [(); 3].map(|()| StandInFarm::start(FARM_TOKEN));
    let farms = try_join_all(farms).await?;
    let addresses: Vec<_> = farms.iter().map(StandInFarm::address).collect();
    let proxy = HaProxy::start(&addresses).await?;
    let app = stage.start(&Options::with_farm(stage.deployment, proxy.url())).await?;
    let mut used = HashSet::new();
    for _ in 0..12 {
        let (account, target) = app.account(Quota::Of(100)).await?;
        for _ in 0..4 {
            target.renders().await?;
        }
        let jobs: Vec<_> = farms.iter().map(|farm| farm.received_from(&account.id)).collect();
        let (index, own) =
            (0..).zip(&jobs).find(|(_, jobs)| jobs.len() == 4).context("its jobs are at several farms")?;
        used.insert(index);
        let hash = account_hash(&AccountId::from_text(account.id.clone()));
        for job in own {
            let header = job.headers.get(wire::ACCOUNT).context("no hash of the account")?;
            ensure!(header == hash.as_str(), "the hash of the account is {header:?}");
        }
    }
    // Twelve accounts have the same farm with a probability of 1 in 177,147.
    ensure!(used.len() > 1, "all accounts are at the same farm");
    Ok(())
}

/// A 502 or 504 is that of a proxy that has sent the job, so a page may have run.
async fn not_a_farm(stage: Stage) -> Result<()> {
    let stand_in = stage.start_stand_in(None).await?;
    for (behaviour, counted) in [
        (Behaviour::Answer(404, "text/html", "<h1>404</h1>"), false),
        (Behaviour::Answer(200, "text/html", "<h1>Welcome</h1>"), false),
        (Behaviour::Answer(200, "image/png", "no farm's file"), false),
        (Behaviour::Answer(401, "application/json", "{}"), false),
        (Behaviour::Answer(500, "text/plain", "panic"), false),
        (Behaviour::Answer(503, "text/html", "<h1>503</h1>"), false),
        (Behaviour::Answer(503, "application/json", r#"{"code":"queue_full"}"#), false),
        (Behaviour::Answer(502, "text/html", "<h1>502</h1>"), true),
        (Behaviour::Answer(504, "text/html", "<h1>504</h1>"), true),
        (Behaviour::HangUp, true),
    ] {
        let account = stand_in.app.operator.account(Quota::Of(5)).await?;
        stand_in.farm.behave(&account.id, behaviour.clone());
        let answer = stand_in.app.target(&account).minimal().send().await?;
        let attempts = stand_in.app.operator.attempts(&account.id).await?;
        let what = || format!("{behaviour:?}: {}", answer.summary());
        ensure!(attempts == u64::from(counted), "{attempts} attempts: {}", what());
        if counted {
            ensure!(answer.status == 502, "{}", what());
        } else {
            answer.error(503, "The renderer is not available").with_context(what)?;
            ensure!(answer.header("retry-after")? == "5", "{}", what());
        }
        ensure!(stand_in.farm.received_from(&account.id).len() == 1, "sent again: {}", what());
    }
    Ok(())
}

/// A server that answers everything with this status.
async fn other_server(status: u16) -> Result<Loopback> {
    Loopback::start(move |_| async move {
        Response::builder().status(status).body(full("no farm")).map_err(|_| BreakOff)
    })
    .await
}

async fn no_farm_alone(stage: Stage) -> Result<()> {
    for status in [200, 404] {
        let server = other_server(status).await?;
        let app = stage.start(&Options::with_farm(stage.deployment, server.url())).await?;
        has_no_farm(&app).await?;
        let ready = reqwest::get(format!("{}/readyz", app.base_url)).await?.status();
        ensure!(ready == 503, "/readyz says {ready}");
    }
    let farm = StandInFarm::start(FARM_TOKEN).await?;
    let app = stage.start(&Options::with_farm(stage.deployment, farm.url())).await?;
    let ready = reqwest::get(format!("{}/readyz", app.base_url)).await?.status();
    ensure!(ready == 200, "with a farm /readyz says {ready}");
    Ok(())
}

/// Two farms and a server that answers 404: it gets no job after its first check.
async fn wrong_address(stage: Stage) -> Result<()> {
    let farms = [StandInFarm::start(FARM_TOKEN).await?, StandInFarm::start(FARM_TOKEN).await?];
    let other = other_server(404).await?;
    let addresses = [farms[0].address(), farms[1].address(), other.address()];
    let proxy = HaProxy::start(&addresses).await?;
    let app = stage.start(&Options::with_farm(stage.deployment, proxy.url())).await?;
    proxy.until_down(3).await?;
    let mut targets = Vec::new();
    for _ in 0..10 {
        targets.push(app.account(Quota::Of(10)).await?.1);
    }
    // Idle, and in a burst.
    for target in &targets {
        target.renders().await?;
    }
    let burst = targets.iter().cycle().take(60).map(|target| target.minimal().send());
    for answer in try_join_all(burst).await? {
        answer.file("image/png")?;
    }
    Ok(())
}

async fn no_farm_reached(stage: Stage) -> Result<()> {
    let closed = ClosedPort::hold()?;
    let proxy = HaProxy::start(&[closed.url()?.trim_start_matches("http://").parse()?]).await?;
    let app = stage.start(&Options::with_farm(stage.deployment, proxy.url())).await?;
    has_no_farm(&app).await
}

/// A render is refused because no farm has got the job.
pub(crate) async fn has_no_farm(app: &TestApp) -> Result<()> {
    let (account, target) = app.account(Quota::Of(5)).await?;
    let answer = target.minimal().send().await?;
    answer.error(503, "The renderer is not available")?;
    ensure!(answer.rate_limit()?.left == 5, "{}", answer.summary());
    ensure!(app.operator.attempts(&account.id).await? == 0, "it was counted");
    Ok(())
}

/// A farm that is reached by `https`: a connection serves many requests, and a certificate that is not trusted none.
async fn with_tls(stage: Stage) -> Result<()> {
    let farm = StandInFarm::start(FARM_TOKEN).await?;
    let proxy = TlsProxy::start(farm.address(), &["http/1.1"]).await?;
    let options = Options::with_farm(stage.deployment, proxy.url());
    let app = stage.start(&Options { trusted: Some(tls::issuer()), ..options.clone() }).await?;
    let (account, target) = app.account(Quota::Of(20)).await?;
    for _ in 0..10 {
        target.renders().await?;
    }
    ensure!(farm.received_from(&account.id).len() == 10, "the farm has not received each job once");
    // A connection is idle again only a moment after its response.
    ensure!(proxy.connections() <= 3, "{} connections for ten jobs", proxy.connections());

    has_no_farm(&stage.start(&options).await?).await?;
    ensure!(farm.received_in_all() == 10, "the farm received a job");
    Ok(())
}
