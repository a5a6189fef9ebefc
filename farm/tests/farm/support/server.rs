//! A farm of this process behind its HTTP server.

use std::io;

use platen_farm::{Farm, FarmToken};
use platen_harness::metrics;
use platen_shared::{job::RenderJob, wire};
use reqwest::{Client, RequestBuilder, Response};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

use super::TOKEN;

pub(crate) struct Server {
    pub(crate) farm: Farm,
    pub(crate) base_url: String,
    http: Client,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<io::Result<()>>,
}

impl Server {
    pub(crate) async fn start(farm: Farm) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn({
            let farm = farm.clone();
            async move {
                let token = FarmToken::new(TOKEN).unwrap();
                farm.serve(listener, token, async { drop(stopped.await) }).await
            }
        });
        Self { farm, base_url, http: Client::new(), stop: Some(stop), serving }
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        self.http.get(format!("{}{path}", self.base_url)).send().await.unwrap()
    }

    pub(crate) fn post(&self, job: &RenderJob) -> RequestBuilder {
        let url = format!("{}{}", self.base_url, wire::JOBS_PATH);
        self.http.post(url).bearer_auth(TOKEN).header(wire::REQUEST_ID, "req-1").json(job)
    }

    pub(crate) async fn metric(&self, name: &str) -> u64 {
        metrics::read(&self.http, &self.metrics_url(), name).await.unwrap().unwrap_or(0)
    }

    pub(crate) async fn until_metric(&self, name: &str, value: u64) {
        metrics::until(&self.http, &self.metrics_url(), name, value).await.unwrap();
    }

    fn metrics_url(&self) -> String {
        format!("{}/metrics", self.base_url)
    }

    /// Begins the graceful shutdown.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
    }

    pub(crate) async fn end(mut self) {
        self.stop();
        self.serving.await.unwrap().unwrap();
    }
}
