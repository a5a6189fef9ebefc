//! The capacity of one database: requests per second and CPU time per request of a claim and its attempt log, and of
//! addresses of links, with a good signature and with wrong ones. Also the latency of an account beside many clients of another
//! one whose quota is spent, and that of a template with files.
//!
//! Invariant: a stand-in farm responds at once, so the edge and the database are all that is measured; only the farm of the
//! templates renders, because it keeps their files.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures::future::try_join_all;
use http::{Method, header};
use platen_harness::{
    app::{FARM_TOKEN, Options as AppOptions},
    client::{Call, Target},
    database::DatabaseKind,
    farm::StandInFarm,
    operator::{Quota, text},
    procfs,
};
use platen_shared::link::{LinkFile, LinkId, LinkSecret};
use serde_json::json;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    callers::{Callers, Responses},
    server::{Server, WARM_UP},
    statistics::{count, milliseconds, percentiles_ms},
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each measurement
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

/// Callers, each of which sends one request after the other.
const CALLERS: usize = 32;
/// Clients of the account whose quota is spent.
const SPENT_CLIENTS: usize = 300;
/// Requests of the account beside them.
const REQUESTS: usize = 100;
/// Jobs of each template that are not measured.
const WARM_UP_JOBS: usize = 10;
/// The sizes of the files of a template in bytes. Two templates only, so that each has its turn after the other: a page with files is
/// reset after its job, beside the next one.
const FILES: [&[usize]; 2] = [&[1], &[1024 * 1024, 1024 * 1024 - 1]];
const DATABASES: [(&str, DatabaseKind); 2] = [("file", DatabaseKind::File), ("sqld", DatabaseKind::Sqld)];

/// Measures on a file and on sqld, and prints tables.
pub(crate) async fn run(options: Options) -> Result<()> {
    println!(
        "| database | requests of | requests/s | p50 ms | p99 ms | `platen up` CPU ms per request | sqld CPU ms per request | responses |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |"
    );
    for (name, kind) in DATABASES {
        for (accounts, of) in [(1, "one account"), (100, "100 accounts")] {
            let server = Measured::start(kind).await?;
            let targets = try_join_all((0..accounts).map(|_| server.target(Quota::Unlimited))).await?;
            let calls = targets.iter().map(Target::minimal).collect();
            capacity(&options, &format!("{name} | {of}"), &server, calls).await?;
        }
        links(&options, name, kind).await?;
    }
    println!(
        "\n| database | latency of an account | p50 ms | p95 ms | max ms | responses to {SPENT_CLIENTS} clients of a spent account |\n\
         | --- | --- | --- | --- | --- | --- |"
    );
    for (name, kind) in DATABASES {
        turns(name, kind).await?;
    }
    println!(
        "\n| database | files of the template, which the page does not load | p50 ms | p95 ms |\n| --- | --- | --- | --- |"
    );
    for (name, kind) in DATABASES {
        kept_files(name, kind).await?;
    }
    Ok(())
}

/// Templates with the same markup, by turns.
async fn kept_files(name: &str, kind: DatabaseKind) -> Result<()> {
    let server = Server::start(&AppOptions::own_farm(kind)).await?;
    let (account, target) = server.app.account(Quota::Unlimited).await?;
    let mut templates = Vec::new();
    for sizes in FILES {
        let folder = TempDir::with_prefix("platen-bench-")?;
        let (markup, assets) = (folder.path().join("page.html"), folder.path().join("assets"));
        fs::write(&markup, "<!doctype html><h1>Hello")?;
        fs::create_dir(&assets)?;
        for (index, size) in sizes.iter().enumerate() {
            fs::write(assets.join(index.to_string()), vec![b'x'; *size])?;
        }
        let [markup, assets] = [&markup, &assets].map(|path| path.display().to_string());
        let put = ["template", "put", "--account", &account.id, "--name", "t", "--assets", &assets, &markup];
        let id = server.app.operator.run(&put).await?["id"].as_str().context("no id")?.to_owned();
        templates.push((format!("{sizes:?}"), json!({ "templateId": id, "variables": {} }), Vec::new()));
    }
    for number in 0..WARM_UP_JOBS + REQUESTS {
        for (_, body, latencies) in &mut templates {
            let began = Instant::now();
            target.render_template(body).send().await?.file("image/png")?;
            if number >= WARM_UP_JOBS {
                latencies.push(began.elapsed());
            }
        }
    }
    for (sizes, _, latencies) in templates {
        let [p50, p95] = percentiles_ms(&latencies, [50, 95]);
        println!("| {name} | {sizes} bytes | {p50:.1} | {p95:.1} |");
    }
    Ok(())
}

struct Measured {
    server: Server,
    _farm: StandInFarm,
}

impl Measured {
    async fn start(kind: DatabaseKind) -> Result<Self> {
        let farm = StandInFarm::start(FARM_TOKEN).await?;
        let server = Server::start(&AppOptions::with_farm(kind, farm.url())).await?;
        Ok(Self { server, _farm: farm })
    }

    async fn target(&self, quota: Quota) -> Result<Target> {
        Ok(self.server.app.account(quota).await?.1)
    }

    /// CPU times of the server and of sqld.
    fn cpu_times(&self) -> Result<[Duration; 2]> {
        let app = &self.server.app;
        let sqld = app.database.server_pid().map(procfs::cpu_time).transpose()?;
        Ok([app.process.cpu_time()?, sqld.unwrap_or_default()])
    }
}

/// Addresses of one link: of one file, and of as many files as there are callers with a signature that is not theirs.
async fn links(options: &Options, name: &str, kind: DatabaseKind) -> Result<()> {
    let server = Measured::start(kind).await?;
    let operator = &server.server.app.operator;
    let (account, target) = server.server.app.account(Quota::Unlimited).await?;
    let template = operator.template(&account.id, "card", "<h1>Hello").await?;
    let create = ["link", "create", "--account", &account.id, "--template", &template];
    let created = operator.run(&[&create[..], &["--daily-limit", "unlimited"]].concat()).await?;
    let id = LinkId::parse(&text(&created, "id")?).context("an id")?;
    let secret = LinkSecret::parse(&text(&created, "secret")?).context("a secret")?;
    let good = LinkFile::new(id, "card.png", [])?.signed(&secret).spelling();
    let get = |address: &str| target.post(address, "").method(Method::GET).without(&header::AUTHORIZATION);
    let wrong = (0..CALLERS).map(|number| get(&good.replace("card", &format!("card-{number}")))).collect();
    capacity(options, &format!("{name} | a link"), &server, vec![get(&good)]).await?;
    capacity(options, &format!("{name} | a link, wrong signature"), &server, wrong).await
}

async fn capacity(options: &Options, name: &str, server: &Measured, calls: Vec<Call>) -> Result<()> {
    let warm_up = Callers::start(calls.clone(), CALLERS);
    sleep(WARM_UP).await;
    warm_up.finish().await?;
    let (before, began) = (server.cpu_times()?, Instant::now());
    let callers = Callers::start(calls, CALLERS);
    sleep(Duration::from_secs(options.seconds)).await;
    let responses = callers.finish().await?;
    let (elapsed, after) = (began.elapsed(), server.cpu_times()?);
    let requests = count(responses.latencies.len());
    let [p50, p99] = percentiles_ms(&responses.latencies, [50, 99]);
    let [platen, sqld] =
        [0, 1].map(|index| milliseconds(after[index].saturating_sub(before[index])) / requests);
    println!(
        "| {name} | {:.0} | {p50:.1} | {p99:.1} | {platen:.2} | {sqld:.2} | {responses} |",
        requests / elapsed.as_secs_f64()
    );
    Ok(())
}

async fn turns(name: &str, kind: DatabaseKind) -> Result<()> {
    let server = Measured::start(kind).await?;
    let (target, spent) = (server.target(Quota::Unlimited).await?, server.target(Quota::Of(1)).await?);
    Responses::default().send(spent.minimal()).await;
    let alone = series(&target, REQUESTS).await;
    let clients = Callers::start([spent.minimal()], SPENT_CLIENTS);
    sleep(WARM_UP).await;
    let beside = series(&target, REQUESTS).await;
    let clients = clients.finish().await?;
    for (case, responses, clients) in
        [("alone", alone, String::new()), ("beside them", beside, clients.to_string())]
    {
        let [p50, p95, max] = percentiles_ms(&responses.latencies, [50, 95, 100]);
        println!("| {name} | {case}: {responses} | {p50:.1} | {p95:.1} | {max:.1} | {clients} |");
    }
    Ok(())
}

async fn series(target: &Target, requests: usize) -> Responses {
    let mut responses = Responses::default();
    for _ in 0..requests {
        responses.send(target.minimal()).await;
    }
    responses
}
