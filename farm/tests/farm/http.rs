//! The farm over HTTP.

use std::{collections::BTreeMap, sync::Arc};

use axum::{body::Body, http::Request};
use platen_harness::{
    image_file::{GREEN, Picture},
    procfs, wait,
};
use platen_shared::{job::ContentHash, template_files::TemplateFiles, wire};
use reqwest::Client;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use crate::support::{
    MAX_WAIT_MS, Shared, TOKEN, farm,
    farm_process::{FarmProcess, HeldPage},
    html, pdf,
    site::Site,
    status_and_code, to, until_metric, url, with,
};

tests! {
    "a job is answered with its file" => file,
    "a request without the token, and then one without a job, is refused" => refusals,
    "a farm asks for the files of a template that it does not have, and keeps them" => kept_files,
    "a cancelled job of the same process says whether its page had run" => cancelled_jobs,
    "a farm that shuts down accepts jobs until proxies have noticed, and finishes them" => shutdown,
}

async fn file(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let response = farm.post(&to(pdf(), html("<h1>Hello"))).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/pdf");
    let time = |name: &str| response.headers()[name].to_str().unwrap().parse::<u64>().unwrap();
    assert!(time(wire::QUEUED_MS) <= MAX_WAIT_MS && (1..=MAX_WAIT_MS).contains(&time(wire::RENDER_MS)));
    let length = response.content_length().unwrap();
    let bytes = response.bytes().await.unwrap();
    assert!(bytes.starts_with(b"%PDF-") && bytes.len() as u64 == length);
    let mut text = String::new();
    for path in ["/healthz", "/readyz", "/metrics"] {
        let request = Client::new().get(format!("{}{path}", farm.base_url)).bearer_auth(TOKEN);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        text = response.text().await.unwrap();
    }
    for line in ["slots 1", "queue_length 0", "queue_age_seconds 0.0", "pages_warm 0"] {
        assert!(text.contains(&format!("\nplaten_farm_{line}\n")), "{line} in\n{text}");
    }
    assert!(farm.metric("platen_farm_browser_memory_bytes").await > 0);
    farm.until_metric("platen_farm_pages_spare", 1).await;
    farm.end().await;
}

async fn refusals(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let job = || Client::new().post(format!("{}{}", farm.base_url, wire::JOBS_PATH)).body("not a job");
    let metrics = || Client::new().get(format!("{}/metrics", farm.base_url));
    for request in [job(), metrics()] {
        for token in [None, Some("wrong"), Some("")] {
            let request = request.try_clone().unwrap();
            let request = token.into_iter().fold(request, reqwest::RequestBuilder::bearer_auth);
            let response = request.send().await.unwrap();
            assert_eq!(status_and_code(response).await, (401, "unauthorized".to_owned()), "{token:?}");
        }
    }
    // What proxies and orchestrators ask.
    for path in ["/healthz", "/readyz"] {
        assert_eq!(reqwest::get(format!("{}{path}", farm.base_url)).await.unwrap().status(), 200, "{path}");
    }
    let job = serde_json::to_value(html("x")).unwrap();
    let mut zero_width = job.clone();
    zero_width["options"]["viewport"]["width"] = 0.into();
    let unknown = with(job, &json!({ "colour": "red" }));
    for body in ["", "{}", "[", &zero_width.to_string(), &unknown.to_string()] {
        let response = farm.post(&html("x")).body(body.to_owned()).send().await.unwrap();
        assert_eq!(status_and_code(response).await, (400, "invalid_job".to_owned()), "{body}");
    }
    farm.end().await;
}

async fn kept_files(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let style = b"body { background: green }";
    let file = json!({ "hash": ContentHash::of(style), "size": style.len() });
    let files: TemplateFiles = serde_json::from_value(json!({ "css/a.css": file })).unwrap();
    let mut job = html("<link rel=stylesheet href=css/a.css>");
    job.add_template_files(files.assets());
    let (mut complete, mut wrong) = (job.clone(), job.clone());
    complete.set_contents(&BTreeMap::from([(ContentHash::of(style), style.to_vec())])).unwrap();
    wrong
        .set_contents(&BTreeMap::from([(ContentHash::of(style), b"body { background: red }".to_vec())]))
        .unwrap();
    for (job, status) in
        [(&job, 428), (&wrong, 400), (&job, 428), (&complete, 200), (&job, 200), (&wrong, 400), (&job, 200)]
    {
        let response = farm.post(job).send().await.unwrap();
        assert_eq!(response.status(), status);
        if status == 200 {
            let picture = Picture::decode(&response.bytes().await.unwrap(), "image/png").unwrap();
            picture.expect(100, 100, GREEN).unwrap();
        }
    }
    assert_eq!(farm.metric("platen_farm_jobs_total{outcome=\"rendered\"}").await, 3);
    farm.end().await;
}

async fn cancelled_jobs(_: Arc<Shared>) {
    let (farm, site) = (farm(|config| config.browsers = 1.try_into().ok()).await, Site::start().await);
    let job = serde_json::to_vec(&url(&site.at("/never"))).unwrap();
    let send = |cancelled: &CancellationToken| {
        let request = Request::post(wire::JOBS_PATH).extension(cancelled.clone());
        tokio::spawn(farm.router().call(request.body(Body::from(job.clone())).unwrap()))
    };
    let queue_is = async |length| until_metric(&farm, &format!("platen_farm_queue_length {length}")).await;
    let (first, second) = (CancellationToken::new(), CancellationToken::new());
    let running = send(&first);
    // Its page runs: it has sent a request.
    site.until_hits("/never", 1).await;
    let queued = send(&second);
    queue_is(1).await;
    for (cancelled, job, page_ran) in [(second, queued, false), (first, running, true)] {
        cancelled.cancel();
        let Ok(response) = job.await.unwrap();
        assert_eq!(response.status(), 499);
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(body, format!(r#"{{"code":"cancelled","page_ran":{page_ran}}}"#));
    }
    assert_eq!(site.hits("/never"), 1);
    farm.shutdown().await;
}

async fn shutdown(_: Arc<Shared>) {
    let held = HeldPage::start(&["--queue", "1"]).await;
    let farm = &held.farm;
    let running = held.post();
    held.until_loading(1).await;
    assert!(farm.is_ready().await);
    let processes = procfs::descendants(farm.pid());
    farm.terminate();
    wait::until_true("the farm is not ready", async || Ok(!farm.is_ready().await)).await.unwrap();
    // As long as a proxy may still send it jobs.
    let accepted = farm.post(&html("x")).header(wire::DEADLINE_MS, MAX_WAIT_MS);
    let accepted = tokio::spawn(accepted.send());
    farm.until_metric("platen_farm_queue_length", 1).await;
    let is_refused = async || {
        let response = farm.post(&html("x")).send().await?;
        assert_eq!(response.headers()["connection"], "close");
        Ok((status_and_code(response).await == (503, "draining".to_owned())).then_some(()))
    };
    wait::until_some("jobs are refused", is_refused).await.unwrap();
    held.latch.open();
    for job in [running, accepted] {
        assert_eq!(job.await.unwrap().unwrap().status(), 200);
    }
    held.farm.ended(&processes).await;
}
