//! Names that resolve to private addresses, at once or after a change (DNS rebinding).

use platen_harness::loopback::{Loopback, full};

use super::{
    HEAD, WAIT_MS,
    ssrf_harness::{ALLOWED, SsrfHarness},
};
use crate::prelude::*;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("egress/names_of_private_addresses", private_names),
        Case::own_server("egress/each_connection_is_attributed_to_its_job", attribution),
        Case::own_server("egress/rebinding_within_a_job", rebinding),
        Case::own_server("egress/rebinding_between_jobs", rebinding_later),
    ]
}

async fn private_names(stage: Stage) -> Result<()> {
    let harness = SsrfHarness::start(&stage).await?;
    let port = harness.canary.port();
    for name in [
        "127-0-0-1.nip.test",
        "under_score.nip.test",
        "six.nip.test",
        "mapped.nip.test",
        "nat64.nip.test",
        "mixed.nip.test",
        "mixed6.nip.test",
        "unspecified.nip.test",
        "metadata.nip.test",
    ] {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{name}:{port}/");
            let message = format!("The address of \"{name}\" is not public");
            harness.target.render(&json!({ "url": url })).send().await?.error(422, &message)?;
        }
        ensure!(harness.names.queries(name) > 0, "{name} was not looked up");
    }
    let message = "The name \"nowhere.nip.test\" could not be resolved";
    harness.target.render(&json!({ "url": "http://nowhere.nip.test/" })).send().await?.error(422, message)?;
    harness.end().await
}

async fn attribution(stage: Stage) -> Result<()> {
    let harness = SsrfHarness::start(&stage).await?;
    let ids: Vec<String> = (0..6).map(|number| format!("job-number-{number}")).collect();
    let renders = ids.iter().map(|id| {
        let html = format!(
            "{HEAD}<img src='http://{id}.test/'><script>new WebSocket('wss://{id}.test:8443/')</script>"
        );
        let body = json!({ "html": html, "width": 40, "height": 30, "waitForTimeout": 500 });
        let call = harness.target.render(&body).request_id(id);
        async move { call.send().await?.file("image/png").map(drop) }
    });
    futures::future::try_join_all(renders).await?;
    let decisions = harness.decisions();
    for id in &ids {
        let host = format!("{id}.test");
        let own: Vec<_> = decisions.iter().filter(|line| line.host == host).collect();
        for port in [80, 8443] {
            let found =
                own.iter().any(|line| line.port == port && line.job == *id && line.verdict == "not_found");
            ensure!(found, "{id}: {own:?}");
        }
        // Requests of a page after its job belong to no job.
        let stray = own.iter().find(|line| line.job != *id && line.verdict != "no_job");
        ensure!(stray.is_none(), "{id}: {stray:?}");
    }
    ensure!(harness.counted("not_found").await? >= 12, "too few were counted");
    drop(harness);
    Ok(())
}

/// A site of the attacker on the allowed address, at the port of the canaries.
async fn attacker(harness: &SsrfHarness, page: String) -> Result<Loopback> {
    let address = format!("{ALLOWED}:{}", harness.canary.port()).parse()?;
    Loopback::start_at(address, move |request| {
        let page = if request.uri().path() == "/" { page.clone() } else { "secret".to_owned() };
        async move {
            // Each request needs a new connection, so a browser that resolved names would look this one up again.
            let reply = http::Response::builder()
                .header("content-type", "text/html")
                .header("cache-control", "no-store")
                .header("connection", "close");
            reply.body(full(page)).map_err(|_| platen_harness::loopback::BreakOff)
        }
    })
    .await
}

async fn rebinding(stage: Stage) -> Result<()> {
    let harness = SsrfHarness::start(&stage).await?;
    let page = "<!doctype html><html style='background:rgb(0,128,0)'><body><script>
        (async () => { for (let i = 0; i < 20; i++) { await fetch('/secret?' + i).catch(() => {});
          new WebSocket('ws://' + location.host + '/' + i); new Image().src = '/image?' + i;
          await new Promise(done => setTimeout(done, 50)) } })()</script>";
    let attacker = attacker(&harness, page.to_owned()).await?;
    let port = attacker.address().port();
    for (number, later) in ["127.0.0.1", "::1", "0.0.0.0"].into_iter().enumerate() {
        let name = format!("rebind{number}.test");
        harness.names.put_in_turn(&name, &[&[ALLOWED], &[later]]);
        let url = format!("http://{name}:{port}/");
        let body = json!({ "url": url, "width": 40, "height": 30, "waitForTimeout": WAIT_MS });
        harness.picture(&body).await?.expect(1, 1, GREEN)?;
        harness.untouched().await?;
        ensure!(
            harness.names.queries(&name) == 1,
            "{name} was looked up {} times",
            harness.names.queries(&name)
        );
    }
    // Also within a page that sends requests for longer than a DNS answer is valid.
    harness.names.put_in_turn("rebind-later.test", &[&[ALLOWED], &["127.0.0.1"]]);
    let frame = format!(
        "<!doctype html><html style='background:rgb(0,128,0)'><body><div style='position:absolute;left:50px'>\
         <iframe src='http://rebind-later.test:{port}/'></iframe><script>setInterval(() => new Image().src = \
         'http://rebind-later.test:{port}/' + Math.random(), 20)</script>"
    );
    let body = json!({ "html": frame, "width": 40, "height": 30, "waitForTimeout": WAIT_MS });
    harness.picture(&body).await?.expect(1, 1, GREEN)?;
    drop(attacker);
    harness.end().await
}

async fn rebinding_later(stage: Stage) -> Result<()> {
    let harness = SsrfHarness::start(&stage).await?;
    let attacker = attacker(&harness, "<html style='background:rgb(0,128,0)'>".to_owned()).await?;
    let name = "rebind-jobs.test";
    harness.names.put_in_turn(name, &[&[ALLOWED], &["127.0.0.1"]]);
    let body =
        json!({ "url": format!("http://{name}:{}/", attacker.address().port()), "width": 40, "height": 30 });
    harness.picture(&body).await?.expect(1, 1, GREEN)?;
    let message = format!("The address of \"{name}\" is not public");
    harness.target.render(&body).send().await?.error(422, &message).context("the second job")?;
    harness.end().await
}
