//! The baseline: Chromium driven by the fewest protocol commands, on pages that are used again and are
//! never reset. A job can see what the previous one left, so this only shows what rendering itself costs.

mod browser;
mod clock;
mod page;
mod tab;

use std::{path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use platen_harness::loopback::{Loopback, full};
use serde::Deserialize;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{Mutex, Semaphore},
};

use self::{browser::Browser, page::Page};
use crate::http_client::RESPONSE_TIMEOUT;

/// Chromium driven by CDP commands, behind HTTP.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Path of Chromium.
    #[arg(long)]
    chromium: PathBuf,
    /// Number of pages; each renders one job at a time.
    #[arg(long)]
    pages: usize,
    /// Chromium's host resolver rules.
    #[arg(long)]
    resolve: String,
}

/// A job with all its options, named as in the public API.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    html: Option<String>,
    url: Option<String>,
    format: String,
    print_background: bool,
    width: u32,
    height: u32,
    full_page: bool,
    wait_until: String,
    wait_for_timeout: u32,
}

struct Pages {
    free: Semaphore,
    idle: Mutex<Vec<Page>>,
}

/// Serves until SIGTERM.
pub(crate) async fn run(options: Options) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let browser = Browser::start(&options.chromium, &options.resolve)?;
    let mut idle = Vec::new();
    for _ in 0..options.pages {
        idle.push(Page::open(&browser.connection).await?);
    }
    let pages = Arc::new(Pages { free: Semaphore::new(idle.len()), idle: Mutex::new(idle) });
    let server = Loopback::start(move |request| {
        let pages = Arc::clone(&pages);
        async move { Ok(answer(pages, request).await) }
    })
    .await?;
    println!("listening on http://{}", server.address());
    terminate.recv().await;
    drop(server);
    browser.stop().await
}

async fn answer(pages: Arc<Pages>, request: Request<Incoming>) -> Response<platen_harness::loopback::Body> {
    let file = match render(pages, request).await {
        Ok(file) => return Response::new(full(file)),
        Err(error) => format!("{error:#}"),
    };
    let mut response = Response::new(full(file));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

async fn render(pages: Arc<Pages>, request: Request<Incoming>) -> Result<Bytes> {
    let job: Job = serde_json::from_slice(&request.into_body().collect().await?.to_bytes())?;
    // A task, so that the page is kept when the caller disconnects.
    let rendered = tokio::spawn(async move {
        let _permit = pages.free.acquire().await?;
        let mut page = pages.idle.lock().await.pop().context("a permit has no page")?;
        // A page that exceeds it is replaced, before the caller gives up.
        let file = tokio::time::timeout(RESPONSE_TIMEOUT / 2, page.render(&job)).await;
        let hangs = file.is_err();
        pages.idle.lock().await.push(if hangs { page.replace().await? } else { page });
        file.context("the page does not finish its job")?
    });
    rendered.await?
}
