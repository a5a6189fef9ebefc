//! What a server holds over many jobs: first a steady load, then waves with failures and clients that disconnect.
//!
//! Invariant: resources are read while no job is in progress.

use std::time::Duration;

use anyhow::Result;
use futures::future::join_all;
use platen_harness::{
    client::{RENDER, TEMPLATE},
    operator::{Account, Quota},
    site::{Reply, Site},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    checks::Checks,
    client::{Client, Request},
    resources::{self, Resources},
    server::{BROWSERS, Server, own_farm},
    statistics::Tally,
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Jobs of the steady load
    #[arg(long, default_value_t = 10_000)]
    jobs: usize,
}

const WAVES: usize = 10;
/// Requests of a wave, all at once.
const WAVE_REQUESTS: usize = 300;
/// Readings of the steady load.
const READINGS: usize = 10;
const ACCOUNTS: usize = 4;
/// Deadline of a render in milliseconds.
const DEADLINE_MS: u64 = 10_000;
/// The time until browsers that are replaced have ended and clients' connections are closed.
const SETTLE: Duration = Duration::from_secs(6);
/// The reading from which on figures may grow by no more than this.
const FLAT_FROM: usize = 3;
const GROWTH: [(f64, f64); 5] = [(1.1, 16.0), (1.2, 32.0), (1.0, 8.0), (1.0, 16.0), (1.2, 16.0)];

/// What a request asks for, and whether its client disconnects.
struct Job {
    request: Request,
    hang_up_after: Option<Duration>,
}

/// Runs both parts and checks that nothing grows.
pub(crate) async fn run(options: Options) -> Result<()> {
    let site = Site::start().await?;
    site.put("/page", Reply::page("<h1>A page</h1><img src=/missing>"));
    site.put(
        "/download",
        Reply::of("application/zip", "PK").with_header("content-disposition", "attachment"),
    );
    site.put("/never", Reply::never());
    let server = Server::start(&own_farm().deadline_ms(DEADLINE_MS)).await?;
    let mut bodies = Vec::new();
    for _ in 0..ACCOUNTS {
        let account = server.app.operator.account(Quota::Unlimited).await?;
        let template = server.app.operator.template(&account.id, "Letter", "<h1>{{name}}</h1>").await?;
        bodies.push((account, template));
    }
    let mut random = StdRng::seed_from_u64(1);

    println!(
        "| after | answers | {} |\n| --- | --- | --- | --- | --- | --- | --- |",
        resources::NAMES.join(" | ")
    );
    println!("| start | | {} |", Resources::of(server.pid())?.cells());
    let mut steady = Vec::new();
    for reading in 1..=READINGS {
        let jobs: Vec<Job> = (0..options.jobs / READINGS)
            .map(|number| steady_job(&bodies[number % ACCOUNTS], &site, number))
            .collect();
        let answers = send(&server, jobs, 2 * BROWSERS).await;
        let name = format!("{} jobs", reading * options.jobs / READINGS);
        steady.push(read(&server, &name, &answers).await?);
    }
    let mut waves = Vec::new();
    for wave in 1..=WAVES {
        let jobs: Vec<Job> = (0..WAVE_REQUESTS)
            .map(|number| wave_job(&bodies[number % ACCOUNTS], &site, number, &mut random))
            .collect();
        let answers = send(&server, jobs, WAVE_REQUESTS).await;
        waves.push(read(&server, &format!("wave {wave}"), &answers).await?);
    }
    let mut checks = Checks::new("soak");
    flat(&mut checks, "steady load", &steady);
    flat(&mut checks, "waves", &waves);
    checks.nothing_left("SIGTERM", &server.stop().await?);
    checks.finish()
}

async fn read(server: &Server, name: &str, answers: &Tally<String>) -> Result<Resources> {
    sleep(SETTLE).await;
    let resources = Resources::with_browsers(server.pid()).await?;
    println!("| {name} | {answers} | {} |", resources.cells());
    Ok(resources)
}

/// Checks that no figure grows from the third reading on.
fn flat(checks: &mut Checks, name: &str, readings: &[Resources]) {
    let Some((before, after)) = readings.split_at_checked(FLAT_FROM).filter(|(_, after)| !after.is_empty())
    else {
        return;
    };
    let largest = |part: &[Resources]| {
        let figures = part.iter().map(Resources::figures);
        figures.fold([0.0; 5], |one, other| std::array::from_fn(|index| other[index].max(one[index])))
    };
    resources::check_growth(checks, name, (largest(before), largest(after)), GROWTH);
}

/// A body of the API as a request of an account.
fn job(path: &'static str, account: &Account, body: &Value) -> Job {
    Job { request: Request::post(path, &account.key, body.to_string()), hang_up_after: None }
}

fn steady_job((account, template): &(Account, String), site: &Site, number: usize) -> Job {
    let html = format!("<h1>Invoice {number}</h1>{}", "<p>Item 12.00".repeat(20));
    match number % 8 {
        0 | 1 => job(RENDER, account, &json!({ "html": html, "format": "pdf" })),
        2 => job(RENDER, account, &json!({ "html": html, "format": "webp", "width": 600, "height": 400 })),
        3 => job(RENDER, account, &json!({ "url": site.url("/page"), "width": 600, "height": 400 })),
        4 => job(
            TEMPLATE,
            account,
            &json!({ "templateId": template, "variables": { "name": "A" }, "width": 300, "height": 200 }),
        ),
        _ => job(RENDER, account, &json!({ "html": html, "width": 600, "height": 400 })),
    }
}

/// A job of a wave: one of four fails, and the clients of one of eight disconnect.
fn wave_job(account: &(Account, String), site: &Site, number: usize, random: &mut StdRng) -> Job {
    let fails = |body: &Value| job(RENDER, &account.0, body);
    let mut job = match number % 12 {
        0 => fails(&json!({ "url": site.url("/download") })),
        1 => fails(&json!({ "html": "<script>close(); onload = () => close()</script>" })),
        2 => fails(&json!({ "url": site.url("/never") })),
        _ => steady_job(account, site, number),
    };
    if random.random_ratio(1, 8) {
        job.hang_up_after = Some(Duration::from_millis(random.random_range(0..3_000)));
    }
    job
}

/// Sends all jobs, `concurrency` at a time, and returns the number of answers by status.
async fn send(server: &Server, mut jobs: Vec<Job>, concurrency: usize) -> Tally<String> {
    let size = jobs.len().div_ceil(concurrency).max(1);
    let mut parts = Vec::new();
    while !jobs.is_empty() {
        parts.push(jobs.split_off(jobs.len().saturating_sub(size)));
    }
    let statuses = join_all(parts.into_iter().map(async |part| {
        let mut client = Client::new(server.address);
        let mut statuses = Vec::new();
        for job in part {
            let answer = match job.hang_up_after {
                None => client.send(&job.request).await,
                Some(time) => {
                    let Ok(answer) = timeout(time, client.send(&job.request)).await else {
                        statuses.push("hung up".to_owned());
                        continue;
                    };
                    answer
                }
            };
            statuses.push(answer.map_or_else(|_| "no answer".to_owned(), |it| it.status.to_string()));
        }
        statuses
    }))
    .await;
    statuses.into_iter().flatten().collect()
}
