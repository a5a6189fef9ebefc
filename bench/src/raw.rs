//! The limit: Chromium driven by nothing but the protocol's own commands, on pages that are used
//! again and again and are never cleaned.
//!
//! Invariant: not a product: job after job sees what the last one left. It shows what a render
//! costs when nothing is done but rendering.

mod browser;
mod cdp;
mod clock;
mod page;

use std::{path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use platen_tests::loopback::{Loopback, full};
use serde::Deserialize;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::{Mutex, Semaphore},
};

use self::{browser::Browser, page::Page};

/// Raw CDP behind HTTP, as one of the sides.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The Chromium to run.
    #[arg(long)]
    chromium: PathBuf,
    /// Pages, each of which renders one job at a time.
    #[arg(long)]
    pages: usize,
    /// Chromium's host resolver rules.
    #[arg(long)]
    resolve: String,
}

/// A job, with the names of the public API, complete.
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
    fast_png: bool,
}

/// Far beyond any job: a page that takes longer is given up.
const JOB_LIMIT: Duration = Duration::from_mins(1);

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
        idle.push(Page::open(browser.connection()).await?);
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

async fn answer(pages: Arc<Pages>, request: Request<Incoming>) -> Response<platen_tests::loopback::Body> {
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
    // As a task, so that a caller that gives up does not take the page with it.
    let rendered = tokio::spawn(async move {
        let _permit = pages.free.acquire().await?;
        let mut page = pages.idle.lock().await.pop().context("as many pages as permits")?;
        let file = tokio::time::timeout(JOB_LIMIT, page.render(&job)).await;
        let hangs = file.is_err();
        pages.idle.lock().await.push(if hangs { page.anew().await? } else { page });
        file.context("the page hangs")?
    });
    rendered.await?
}
