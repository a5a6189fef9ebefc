//! The CPU time that the edge takes for a body of 1 MiB, by what is in it and by whose key it comes with.
//!
//! Invariant: no request is rendered: no key, a key that no account has, or one of an account without quota.

use anyhow::{Result, ensure};
use platen_harness::{
    app::{FARM_TOKEN, Options as AppOptions},
    deployment::DatabaseKind,
    farm::StandInFarm,
    operator::Quota,
};
use platen_shared::key::{ApiKey, RANDOM_BYTES};

use crate::{
    client::{Client, Request},
    costly::{self, CostlyBody},
    server::Server,
    statistics::milliseconds,
};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Requests of each case
    #[arg(long, default_value_t = 20)]
    requests: u32,
}

/// Measures every body with every key, and prints a table.
pub(crate) async fn run(options: Options) -> Result<()> {
    let farm = StandInFarm::start(FARM_TOKEN).await?;
    let server = Server::start(&AppOptions::with_farm(DatabaseKind::File, farm.url())).await?;
    let account = server.app.operator.account(Quota::Of(0)).await?;
    let template = server.app.operator.template(&account.id, "t", &costly::template()).await?;
    println!("| 1 MiB of | bytes | without a key, ms | unknown key, ms | key without quota, ms | status |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for body in costly::bodies(&template) {
        let mut columns = Vec::new();
        let mut last = 0;
        for key in ["", "unknown", &account.key] {
            let key = || match key {
                "unknown" => ApiKey::from_random(rand::random::<[u8; RANDOM_BYTES]>()).expose().to_owned(),
                key => key.to_owned(),
            };
            // Fills the caches of the server.
            send(&server, &body, &key()).await?;
            let before = server.app.process.cpu_time()?;
            for _ in 0..options.requests {
                last = send(&server, &body, &key()).await?;
            }
            let cpu = server.app.process.cpu_time()?.saturating_sub(before) / options.requests;
            columns.push(format!("{:.1}", milliseconds(cpu)));
        }
        println!("| {} | {} | {} | {last} |", body.name, body.body.len(), columns.join(" | "));
    }
    Ok(())
}

/// The status of the response.
async fn send(server: &Server, body: &CostlyBody, key: &str) -> Result<u16> {
    let mut client = Client::new(server.address);
    let answer = client.send(&Request::post(body.path, key, body.body.clone())).await?;
    ensure!((400..500).contains(&answer.status), "{}: {}", body.name, answer.summary());
    Ok(answer.status)
}
