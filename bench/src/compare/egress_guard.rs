//! The CPU time of the egress guard, measured by fetching images through a page's proxy as its browser does.
//!
//! Invariant: while a page waits in real time, the benchmark fetches images through the page's proxy, over
//! new connections for each set of images, and reads every byte. The farm's process then spends CPU time on
//! the proxy and on the page's frames only; the latter is measured in the same job and subtracted. The cost
//! of images in Chromium and of Chromium's events in the farm is not included: both also occur without a
//! guard.

use std::{net::Ipv4Addr, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use futures::future::try_join_all;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use platen_harness::{
    procfs,
    site::{Reply, Site},
};
use tokio::{
    net::TcpStream,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    page::{Page, Source},
    pages::{self, Hosts},
    prepared_request::PreparedRequest,
    target::{Environment, Kind, Target},
    test_image,
};
use crate::{http_client, statistics::count};

/// Images of a page.
const IMAGES: usize = 20;
/// Connections of a page to one host, as in browsers.
const CONNECTIONS: usize = 6;
const JOBS: usize = 12;
/// How often a job fetches all images: half of what the guard allows one job by default.
const REPETITIONS: usize = 40;
/// How long the CPU time of the waiting page alone is measured.
const IDLE_DURATION: Duration = Duration::from_millis(500);
/// Wait of the page, long enough for all fetches on a busy machine.
const WAIT_MS: u32 = 5_000;
/// Maximum CPU milliseconds for all images of a page.
const AIM_MS: f64 = 3.0;

/// Runs the jobs and returns the section of `RESULTS.md`.
pub(super) async fn run(environment: &Environment, hosts: &Hosts) -> Result<String> {
    let target = Target::start(Kind::Farm, environment).await?;
    let cpu_time = || procfs::cpu_time(target.processes.root);
    let http = http_client::client()?;
    let images = images(&hosts.site)?;
    let page = waiting_page(hosts)?;
    let (mut guard_ms, mut frames_ms) = (Vec::new(), Vec::new());
    for number in 0..=JOBS {
        let request = PreparedRequest::new(&target, &page)?;
        let http = http.clone();
        let job = tokio::spawn(async move { request.send(&http).await });
        let proxy_port = proxy_port(&target, &images[0], &job).await?;
        let (started, before) = (Instant::now(), cpu_time()?);
        sleep(IDLE_DURATION).await;
        let idle = cpu_time()?.saturating_sub(before).div_duration_f64(started.elapsed());
        let (started, before) = (Instant::now(), cpu_time()?);
        for _ in 0..REPETITIONS {
            fetch_all(proxy_port, &images).await?;
        }
        let spent = cpu_time()?.saturating_sub(before).as_secs_f64();
        let spent_ms = (spent - idle * started.elapsed().as_secs_f64()) * 1_000.0 / count(REPETITIONS);
        ensure!(!job.is_finished(), "the page ended before the images were fetched; is the machine busy?");
        job.await??;
        eprintln!("job {number} of {JOBS}: {spent_ms:.2} ms per page");
        // The first job is the warm-up.
        if number > 0 {
            guard_ms.push(spent_ms);
            frames_ms.push(idle * 1_000.0);
        }
    }
    let bytes: usize = images.iter().map(|image| image.bytes).sum();
    Ok(report(mean(&guard_ms), mean(&frames_ms), count(bytes) / count(IMAGES) / 1_000.0))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values.len())
}

fn report(guard_ms: f64, frames_ms: f64, kilobytes: f64) -> String {
    let verdict = if guard_ms < AIM_MS { "met" } else { "missed" };
    format!(
        "`bench/run --guard`: {IMAGES} images of {kilobytes:.0} KB from one host, fetched through a page's proxy over \
         {CONNECTIONS} new connections, {REPETITIONS} times in each of {JOBS} jobs whose page waits. CPU time is that \
         of the farm's process, which checks, dials, relays and logs. That of the waiting page's frames \
         ({frames_ms:.1} ms per second) is subtracted.\n\n\
         The guard: {guard_ms:.1} ms for {IMAGES} subresources (aim: under {AIM_MS} ms, {verdict}).\n"
    )
}

/// An image on the site.
struct Image {
    url: String,
    bytes: usize,
}

fn images(site: &Site) -> Result<Vec<Image>> {
    let put = |number| {
        let file = test_image::jpeg(number)?;
        let bytes = file.len();
        let url = site.put(&format!("/bench/guarded-{number}.jpg"), Reply::of("image/jpeg", file));
        Ok(Image { url, bytes })
    };
    (1..=u32::try_from(IMAGES)?).map(put).collect()
}

/// A page with a worker: while it has one, a page waits in real time.
fn waiting_page(hosts: &Hosts) -> Result<Page> {
    let invoice = pages::named(&pages::all(hosts)?, "invoice-png")?.clone();
    let html = "<!doctype html><script>new Worker('data:text/javascript,')</script>";
    Ok(Page { name: "waiting", source: Source::Html(html.to_owned()), wait_ms: WAIT_MS, ..invoice })
}

/// The port of the waiting page's proxy: of the ports on which the farm listens, the one through which an
/// image can be fetched.
async fn proxy_port<T>(target: &Target, image: &Image, job: &JoinHandle<T>) -> Result<u16> {
    while !job.is_finished() {
        for port in procfs::listening(target.processes.root).into_iter().map(|address| address.port()) {
            let attempt = timeout(Duration::from_secs(1), fetch(port, [image].into_iter())).await;
            if port != target.address.port() && matches!(attempt, Ok(Ok(()))) {
                return Ok(port);
            }
        }
        sleep(Duration::from_millis(20)).await;
    }
    bail!("no port of the farm is the proxy of the page")
}

async fn fetch_all(proxy_port: u16, images: &[Image]) -> Result<()> {
    let shares = (0..CONNECTIONS).map(|first| {
        let share = images.iter().skip(first).step_by(CONNECTIONS);
        fetch(proxy_port, share)
    });
    try_join_all(shares).await.map(drop)
}

/// Fetches images over a new connection, one after the other.
async fn fetch(proxy_port: u16, images: impl Iterator<Item = &Image>) -> Result<()> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy_port)).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    for image in images {
        let host = image.url.split('/').nth(2).context("no host")?;
        // A request to a proxy has the complete URL (RFC 9112, section 3.2.2).
        let request = Request::get(&image.url).header("host", host).header("proxy-connection", "keep-alive");
        sender.ready().await?;
        let response = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
        ensure!(response.status() == 200, "{} for an image", response.status());
        let bytes = response.into_body().collect().await?.to_bytes().len();
        ensure!(bytes == image.bytes, "{bytes} bytes of an image of {} bytes", image.bytes);
    }
    drop(sender);
    connection.await??;
    Ok(())
}
