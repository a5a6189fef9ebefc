//! The farm over HTTP.

use std::{io, sync::Arc};

use platen_farm::{Farm, FarmToken};
use platen_shared::{job::RenderJob, wire};
use platen_tests::{latch::Latch, site::Reply, wait};
use reqwest::{Client, Response};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{
    Test,
    support::{MAX_WAIT_MS, Shared, TOKEN, farm, html, pdf, server::Server, site::Site, url},
};

pub(crate) const TESTS: &[Test] = &[
    ("a job is answered with its file", |s| Box::pin(file(s))),
    ("a request without the token is refused before its body is read", |s| Box::pin(unauthorized(s))),
    ("a body that is not a job is refused", |s| Box::pin(invalid_jobs(s))),
    ("a client that disconnects frees its slot", |s| Box::pin(disconnected_client(s))),
    ("a cancelled job says whether its page had run", |s| Box::pin(cancelled_jobs(s))),
    ("a full farm refuses a job at once", |s| Box::pin(full(s))),
    ("a farm states its load, and refuses jobs that must not wait", |s| Box::pin(load(s))),
    ("a farm within a server queues jobs that must not wait elsewhere", |s| Box::pin(queues_always(s))),
    ("a job ends at its deadline", |s| Box::pin(deadline(s))),
    ("a farm that shuts down finishes its jobs and accepts no more", |s| Box::pin(shutdown(s))),
];

/// One slot and this queue.
async fn small(queue: usize) -> Server {
    let farm = farm(|config| (config.browsers, config.queue) = (1.try_into().ok(), queue));
    Server::start(farm.await).await
}

/// A farm within a server, and its address.
async fn embedded(farm: &Farm) -> (JoinHandle<io::Result<()>>, String) {
    let router = farm.router(FarmToken::new(TOKEN).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    (tokio::spawn(async { axum::serve(listener, router).await }), base)
}

async fn file(shared: Arc<Shared>) {
    let (serving, base) = embedded(&shared.farm).await;
    let mut job = html("<h1>Hello");
    job.options.output = pdf();
    let request = Client::new().post(format!("{base}{}", wire::JOBS_PATH)).bearer_auth(TOKEN).json(&job);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/pdf");
    let time = |name: &str| response.headers()[name].to_str().unwrap().parse::<u64>().unwrap();
    assert!(time(wire::QUEUED_MS) <= MAX_WAIT_MS && (1..=MAX_WAIT_MS).contains(&time(wire::RENDER_MS)));
    let length = response.content_length().unwrap();
    let bytes = response.bytes().await.unwrap();
    assert!(bytes.starts_with(b"%PDF-") && bytes.len() as u64 == length);
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(reqwest::get(format!("{base}{path}")).await.unwrap().status(), 200, "{path}");
    }
    serving.abort();
}

/// Its edge sends no job a second time.
async fn queues_always(_: Arc<Shared>) {
    let farm = farm(|config| (config.browsers, config.queue) = (1.try_into().ok(), 1)).await;
    let ((serving, base), site, latch) = (embedded(&farm).await, Site::start().await, Latch::closed());
    let held = url(&site.put("/held", Reply::page("x").behind(&latch)));
    let send = |job: &RenderJob| {
        let request = Client::new().post(format!("{base}{}", wire::JOBS_PATH)).bearer_auth(TOKEN);
        tokio::spawn(request.header(wire::NO_QUEUE, "1").json(job).send())
    };
    let running = send(&held);
    site.until_hits("/held", 1).await;
    let waiting = send(&html("x"));
    let waits = async || {
        let load = Client::new().get(format!("{base}{}", wire::LOAD_PATH)).bearer_auth(TOKEN).send().await?;
        Ok((load.headers()[wire::LOAD_PERCENT] == "200").then_some(()))
    };
    wait::until_some("the job waits", waits).await.unwrap();
    latch.open();
    for job in [running, waiting] {
        let response = job.await.unwrap().unwrap();
        assert!(!response.headers().contains_key(wire::FARM_ID));
        assert_eq!(response.status(), 200);
    }
    farm.shutdown().await;
    serving.abort();
}

async fn unauthorized(_: Arc<Shared>) {
    let server = small(0).await;
    let url = format!("{}{}", server.base_url, wire::JOBS_PATH);
    for token in [None, Some("wrong"), Some("")] {
        let mut request = Client::new().post(&url).body("not a job");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let unauthorized = (401, r#"{"code":"unauthorized"}"#.to_owned());
        assert_eq!(answer(request.send().await).await, unauthorized, "{token:?}");
    }
    server.end().await;
}

async fn invalid_jobs(_: Arc<Shared>) {
    let server = small(0).await;
    let mut zero_width = serde_json::to_value(html("x")).unwrap();
    zero_width["viewport"]["width"] = 0.into();
    let mut unknown = serde_json::to_value(html("x")).unwrap();
    unknown["colour"] = "red".into();
    for body in ["", "{}", "[", &zero_width.to_string(), &unknown.to_string()] {
        let response = server.post(&html("x")).body(body.to_owned()).send().await;
        assert_eq!(answer(response).await, (400, r#"{"code":"invalid_job"}"#.to_owned()), "{body}");
    }
    server.end().await;
}

async fn disconnected_client(_: Arc<Shared>) {
    let server = small(0).await;
    let endless = server.post(&html("<script>while (true);</script>"));
    let endless = tokio::spawn(endless.send());
    server.until_metric("platen_farm_slots_busy", 1).await;
    endless.abort();
    server.until_metric("platen_farm_slots_busy", 0).await;
    assert_eq!(server.metric("platen_farm_jobs_total{outcome=\"client_disconnected\"}").await, 1);
    assert_eq!(server.post(&html("x")).send().await.unwrap().status(), 200);
    server.end().await;
}

async fn cancelled_jobs(_: Arc<Shared>) {
    let (server, site) = (small(1).await, Site::start().await);
    let cancel = async |id: &str, token: &str| {
        let url = format!("{}{}/{id}", server.base_url, wire::JOBS_PATH);
        Client::new().delete(url).bearer_auth(token).send().await.unwrap().status().as_u16()
    };
    let post = |id: &str| server.post(&url(&site.at("/never"))).header(wire::JOB_ID, id).send();
    let running = tokio::spawn(post("running"));
    // Its page runs: it has sent a request.
    site.until_hits("/never", 1).await;
    let queued = tokio::spawn(post("queued"));
    server.until_metric("platen_farm_queue_length", 1).await;
    assert_eq!(cancel("queued", "wrong").await, 401);
    assert_eq!(cancel("queued", TOKEN).await, 204);
    let cancelled = |page_ran: bool| (499, format!(r#"{{"code":"cancelled","page_ran":{page_ran}}}"#));
    assert_eq!(answer(queued.await.unwrap()).await, cancelled(false));
    assert_eq!(server.metric("platen_farm_slots_busy").await, 1, "the other job continues");
    assert_eq!(cancel("running", TOKEN).await, 204);
    assert_eq!(answer(running.await.unwrap()).await, cancelled(true));
    server.until_metric("platen_farm_slots_busy", 0).await;
    assert_eq!(server.metric("platen_farm_jobs_total{outcome=\"client_disconnected\"}").await, 2);
    // A job that is cancelled before it arrives does not begin.
    assert_eq!(cancel("early", TOKEN).await, 204);
    assert_eq!(answer(post("early").await).await, cancelled(false));
    let again = server.post(&html("x")).header(wire::JOB_ID, "early").send().await.unwrap();
    assert_eq!(again.status(), 200);
    server.end().await;
}

async fn answer(response: reqwest::Result<Response>) -> (u16, String) {
    let response = response.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn full(_: Arc<Shared>) {
    let (server, site) = (small(0).await, Site::start().await);
    let never = server.post(&url(&site.at("/never"))).header(wire::DEADLINE_MS, MAX_WAIT_MS);
    let never = tokio::spawn(never.send());
    server.until_metric("platen_farm_slots_busy", 1).await;
    let response = server.post(&html("x")).send().await.unwrap();
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(answer(Ok(response)).await, (503, r#"{"code":"queue_full","retry_after":1}"#.to_owned()));
    never.abort();
    server.end().await;
}

async fn load(_: Arc<Shared>) {
    let (server, site) = (small(1).await, Site::start().await);
    let url_of_load = format!("{}{}", server.base_url, wire::LOAD_PATH);
    let load = async || Client::new().get(&url_of_load).bearer_auth(TOKEN).send().await.unwrap();
    let without_token = Client::new().get(&url_of_load).send().await;
    assert_eq!(answer(without_token).await, (401, r#"{"code":"unauthorized"}"#.to_owned()));
    let response = load().await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()[wire::LOAD_PERCENT]),
        (204, &"0".parse().unwrap())
    );
    let no_queue = || server.post(&html("x")).header(wire::NO_QUEUE, "1").send();
    assert_eq!(no_queue().await.unwrap().status(), 200);
    // The page of that job is reset after its response.
    server.until_metric("platen_farm_slots_busy", 0).await;
    let never = server.post(&url(&site.at("/never"))).header(wire::DEADLINE_MS, MAX_WAIT_MS);
    let never = tokio::spawn(never.send());
    server.until_metric("platen_farm_slots_busy", 1).await;
    assert_eq!(load().await.headers()[wire::LOAD_PERCENT], "100");
    assert_eq!(answer(no_queue().await).await, (503, r#"{"code":"queue_full","retry_after":5}"#.to_owned()));
    never.abort();
    server.end().await;
}

async fn deadline(_: Arc<Shared>) {
    let server = small(0).await;
    let endless = server.post(&html("<script>while (true);</script>")).header(wire::DEADLINE_MS, 2_000);
    assert_eq!(answer(endless.send().await).await, (504, r#"{"code":"deadline"}"#.to_owned()));
    server.end().await;
}

async fn shutdown(_: Arc<Shared>) {
    let (mut server, site, latch) = (small(0).await, Site::start().await, Latch::closed());
    let held = url(&site.put("/held", Reply::page("x").behind(&latch)));
    let running = tokio::spawn(server.post(&held).send());
    site.until_hits("/held", 1).await;
    assert_eq!(server.get("/readyz").await.status(), 200);
    server.stop();
    let is_draining = async || Ok((server.get("/readyz").await.status() != 200).then_some(()));
    wait::until_some("the farm shuts down", is_draining).await.unwrap();
    let refused = server.post(&html("x")).send().await.unwrap();
    assert_eq!(refused.headers()["connection"], "close");
    assert_eq!(answer(Ok(refused)).await, (503, r#"{"code":"draining"}"#.to_owned()));
    latch.open();
    assert_eq!(running.await.unwrap().unwrap().status(), 200);
    server.end().await;
}
