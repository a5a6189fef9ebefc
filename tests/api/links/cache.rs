//! nginx with the shipped file in front of the server.

use futures::future::try_join_all;
use platen_harness::{nginx::Nginx, settings::Settings};
use reqwest::Client;

use super::{Fixture, VALUES};
use crate::prelude::*;

const CARDS: usize = 300;
const CLIENTS: usize = 8;

pub(super) async fn keeps_files(stage: Stage) -> Result<()> {
    let fixture = Fixture::new(&stage, Quota::Of(1_000), &["--daily-limit", "unlimited"]).await?;
    let server = fixture.stand_in.app.base_url.trim_start_matches("http://");
    let nginx = Nginx::start(&Settings::from_env()?, server).await?;
    let client = Client::builder().no_proxy().build()?;
    let url = |file: &str| Ok::<_, anyhow::Error>(nginx.url() + &fixture.link.address(file, &VALUES)?);
    let get = async |url: &str| {
        let response = client.get(url).send().await?;
        let cache = response
            .headers()
            .get("x-cache-status")
            .and_then(|value| value.to_str().ok())
            .unwrap_or("-")
            .to_owned();
        Ok::<_, anyhow::Error>((response.status(), cache))
    };

    // Simultaneous requests for one file.
    let card = url("all-at-once.png")?;
    for (status, _) in try_join_all((0..CLIENTS).map(|_| get(&card))).await? {
        ensure!(status == 200, "{status} for one of {CLIENTS} at once");
    }
    fixture.is_counted(1).await?;

    // Each client fetches all cards twice, and begins with another one.
    let cards = (0..CARDS).map(|card| url(&format!("card-{card}.png"))).collect::<Result<Vec<_>>>()?;
    let fetch = async |first: usize| {
        for at in 0..2 * CARDS {
            let card = &cards[(first + at) % CARDS];
            let (status, cache) = get(card).await?;
            ensure!(status == 200 && (at < CARDS || cache == "HIT"), "{status}, {cache} for {card}");
        }
        Ok(())
    };
    try_join_all((0..CLIENTS).map(|client| fetch(client * CARDS / CLIENTS))).await?;
    fixture.is_counted(1 + CARDS).await?;

    // What is refused is not kept.
    let wrong = card.replace("all-at-once", "another");
    for _ in 0..2 {
        let (status, cache) = get(&wrong).await?;
        ensure!(status == 403 && cache == "MISS", "{status}, {cache} for a wrong signature");
    }
    Ok(())
}
