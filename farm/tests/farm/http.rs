//! The farm over HTTP.

use std::{sync::Arc, time::Duration};

use platen_farm::{Farm, FarmToken};
use platen_shared::{job::RenderJob, wire};
use reqwest::{Client, Response};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use crate::{
    Test,
    support::{Shared, farm, html, pdf, site::Site, slow, url},
};

pub(crate) const TESTS: &[Test] = &[
    ("a job is answered with its file", |s| Box::pin(file(s))),
    ("without the token nothing is read or rendered", |s| Box::pin(unauthorized(s))),
    ("what is no job is refused", |s| Box::pin(no_job(s))),
    ("whoever hangs up frees the slot", |s| Box::pin(hang_up(s))),
    ("a job is cancelled by its id, and says whether its page ran", |s| Box::pin(cancel(s))),
    ("a busy farm says so at once", |s| Box::pin(busy(s))),
    ("a farm that ends finishes its jobs and takes no more", |s| Box::pin(drain(s))),
];

pub(crate) struct Server {
    pub(crate) farm: Farm,
    base: String,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<std::io::Result<()>>,
}

impl Server {
    pub(crate) async fn start(farm: Farm) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn({
            let farm = farm.clone();
            async move {
                let token = FarmToken::new("s3cret").unwrap();
                farm.serve(listener, token, async { drop(stopped.await) }).await
            }
        });
        Self { farm, base, stop: Some(stop), serving }
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        Client::new().get(format!("{}{path}", self.base)).send().await.unwrap()
    }

    fn post(&self, job: &RenderJob) -> reqwest::RequestBuilder {
        let url = format!("{}{}", self.base, wire::JOBS_PATH);
        Client::new().post(url).bearer_auth("s3cret").header(wire::REQUEST_ID, "req-1").json(job)
    }

    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").await.text().await.unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.rsplit(' ').next().and_then(|value| value.parse().ok()).unwrap_or_default()
    }

    async fn until(&self, name: &str, value: u64) {
        while self.metric(name).await != value {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn end(mut self) {
        drop(self.stop.take());
        self.serving.await.unwrap().unwrap();
    }
}

/// One slot and no queue, so that every state can be told.
async fn small() -> Server {
    let farm = farm(|config| {
        (config.browsers, config.queue) = (1.try_into().ok(), 0);
    });
    Server::start(farm.await).await
}

async fn file(shared: Arc<Shared>) {
    let router = shared.farm.router(FarmToken::new("s3cret").unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async { axum::serve(listener, router).await });
    let mut job = html("<h1>Hello");
    job.output = pdf();
    let response = Client::new()
        .post(format!("{base}{}", wire::JOBS_PATH))
        .bearer_auth("s3cret")
        .json(&job)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/pdf");
    let length = response.content_length().unwrap();
    let bytes = response.bytes().await.unwrap();
    assert!(bytes.starts_with(b"%PDF-") && bytes.len() as u64 == length);
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(reqwest::get(format!("{base}{path}")).await.unwrap().status(), 200, "{path}");
    }
    serving.abort();
}

async fn unauthorized(_: Arc<Shared>) {
    let server = small().await;
    let url = format!("{}{}", server.base, wire::JOBS_PATH);
    for token in [None, Some("wrong"), Some("")] {
        let mut request = Client::new().post(&url).body("not even a job");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401);
        assert_eq!(response.text().await.unwrap(), r#"{"code":"unauthorized"}"#);
    }
    server.end().await;
}

async fn no_job(_: Arc<Shared>) {
    let server = small().await;
    let mut zero_width = serde_json::to_value(html("x")).unwrap();
    zero_width["viewport"]["width"] = 0.into();
    let mut unknown = serde_json::to_value(html("x")).unwrap();
    unknown["colour"] = "red".into();
    for body in ["", "{}", "[", &zero_width.to_string(), &unknown.to_string()] {
        let response = server.post(&html("x")).body(body.to_owned()).send().await.unwrap();
        assert_eq!(response.status(), 400, "{body}");
        assert_eq!(response.text().await.unwrap(), r#"{"code":"invalid_job"}"#);
    }
    server.end().await;
}

async fn hang_up(_: Arc<Shared>) {
    let server = small().await;
    let endless = server.post(&html("<script>while (true);</script>"));
    let endless = tokio::spawn(endless.send());
    server.until("platen_farm_slots_busy", 1).await;
    endless.abort();
    server.until("platen_farm_slots_busy", 0).await;
    assert_eq!(server.metric("platen_farm_jobs_total{outcome=\"client_disconnected\"}").await, 1);
    assert_eq!(server.post(&html("x")).send().await.unwrap().status(), 200);
    server.end().await;
}

async fn cancel(_: Arc<Shared>) {
    let farm = farm(|config| {
        (config.browsers, config.queue) = (1.try_into().ok(), 1);
    });
    let server = Server::start(farm.await).await;
    let site = Site::start().await;
    let cancel = async |id: &str, token: &str| {
        let url = format!("{}{}/{id}", server.base, wire::JOBS_PATH);
        Client::new().delete(url).bearer_auth(token).send().await.unwrap().status().as_u16()
    };
    let post = |id: &str| server.post(&url(&site.at("/never"))).header(wire::JOB_ID, id).send();
    let running = tokio::spawn(post("running"));
    // Its page runs: it has asked for something.
    server.until("platen_farm_egress_total", 1).await;
    let queued = tokio::spawn(post("queued"));
    server.until("platen_farm_queue_length", 1).await;
    assert_eq!(cancel("queued", "wrong").await, 401);
    assert_eq!(cancel("queued", "s3cret").await, 204);
    let cancelled = |page_ran: bool| (499, format!(r#"{{"code":"cancelled","page_ran":{page_ran}}}"#));
    assert_eq!(answer(queued.await.unwrap()).await, cancelled(false));
    assert_eq!(server.metric("platen_farm_slots_busy").await, 1, "the other job runs on");
    assert_eq!(cancel("running", "s3cret").await, 204);
    assert_eq!(answer(running.await.unwrap()).await, cancelled(true));
    server.until("platen_farm_slots_busy", 0).await;
    assert_eq!(server.metric("platen_farm_jobs_total{outcome=\"client_disconnected\"}").await, 2);
    // One that is cancelled before it arrives does not begin.
    assert_eq!(cancel("early", "s3cret").await, 204);
    assert_eq!(answer(post("early").await).await, cancelled(false));
    let again = server.post(&html("x")).header(wire::JOB_ID, "early").send().await.unwrap();
    assert_eq!(again.status(), 200);
    server.end().await;
}

async fn answer(response: reqwest::Result<Response>) -> (u16, String) {
    let response = response.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

async fn busy(_: Arc<Shared>) {
    let server = small().await;
    let endless = server.post(&html("<script>while (true);</script>")).header(wire::DEADLINE_MS, "5000");
    let endless = tokio::spawn(endless.send());
    server.until("platen_farm_slots_busy", 1).await;
    let response = server.post(&html("x")).send().await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers()["retry-after"].to_str().unwrap()), (503, "1"));
    assert_eq!(response.text().await.unwrap(), r#"{"code":"queue_full","retry_after":1}"#);
    let response = endless.await.unwrap().unwrap();
    assert_eq!(response.status(), 504);
    assert_eq!(response.text().await.unwrap(), r#"{"code":"deadline"}"#);
    server.end().await;
}

async fn drain(_: Arc<Shared>) {
    let mut server = small().await;
    let slow = slow(3_000.0);
    let running = tokio::spawn(server.post(&slow).send());
    server.until("platen_farm_slots_busy", 1).await;
    assert_eq!(server.get("/readyz").await.status(), 200);
    drop(server.stop.take());
    while server.get("/readyz").await.status() == 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let refused = server.post(&html("x")).send().await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), refused.text().await.unwrap().as_str()),
        (503, r#"{"code":"draining"}"#)
    );
    assert_eq!(running.await.unwrap().unwrap().status(), 200);
    server.serving.await.unwrap().unwrap();
    drop(server.farm);
}
