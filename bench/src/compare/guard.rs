//! What the egress guard costs: pictures are asked of it as a page's browser asks for them.
//!
//! Invariant: while a page waits in real time, its port of the guard is used by this driver, over new
//! connections for each page's worth of pictures, and every byte is read. Then the farm's process does
//! nothing but to guard, save for the page's frames, whose cost is measured in the same job and taken
//! off. What Chromium does for a picture, and the farm with Chromium's reports of it, is not in it: that
//! is spent without a guard as well.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures::future::try_join_all;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use platen_tests::{
    procfs,
    site::{Reply, Site},
};
use tokio::{
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use super::{
    call::Call,
    drive,
    figures::count,
    page::{self, Page, Source},
    photo, say,
    target::{Kind, Surroundings, Target},
};

/// Pictures of a page.
const PICTURES: usize = 20;
/// Connections of a page to one host, as browsers have them.
const CONNECTIONS: usize = 6;
const JOBS: usize = 12;
/// Pages' worth of pictures in a job: what the guard lets one job have by default is twice as much.
const PAGES: usize = 40;
/// How long a job is watched doing nothing.
const WATCH: Duration = Duration::from_millis(500);
/// Long enough for all that on a machine that is not quiet.
const WAIT_MS: u32 = 5_000;
/// Most that it may cost, in milliseconds.
const AIM: f64 = 3.0;

/// Runs the jobs and gives the section of the report.
pub(super) async fn run(around: &Surroundings, site: &Site) -> Result<String> {
    let target = Target::start(Kind::Farm, around).await?;
    let http = reqwest::Client::builder().no_proxy().build()?;
    let pictures = pictures(site)?;
    let page = waiting_page(site)?;
    let (mut guard, mut elsewhere) = (Vec::new(), Vec::new());
    for number in 0..=JOBS {
        let call = Arc::new(Call::new(&target.speech, target.address, &page)?);
        let job = tokio::spawn({
            let (http, call) = (http.clone(), Arc::clone(&call));
            async move { drive::once(&http, &call).await }
        });
        let gate = gate(&target, &pictures[0]).await?;
        let (began, before) = (Instant::now(), target.meter.root_cpu()?);
        sleep(WATCH).await;
        let idle = (target.meter.root_cpu()?.saturating_sub(before)).div_duration_f64(began.elapsed());
        let (began, before) = (Instant::now(), target.meter.root_cpu()?);
        for _ in 0..PAGES {
            fetch_all(gate, &pictures).await?;
        }
        let spent = target.meter.root_cpu()?.saturating_sub(before).as_secs_f64();
        let spent = spent - idle * began.elapsed().as_secs_f64();
        ensure!(!job.is_finished(), "the page did not wait for the pictures; is the machine busy?");
        job.await??;
        say(&format!("job {number} of {JOBS}: {:.2} ms a page", spent * 1_000.0 / count(PAGES)));
        // The first one warms up.
        if number > 0 {
            guard.push(spent * 1_000.0 / count(PAGES));
            elsewhere.push(idle * 1_000.0);
        }
    }
    let bytes: usize = pictures.iter().map(|picture| picture.bytes).sum();
    Ok(report(mean(&guard), mean(&elsewhere), count(bytes) / count(PICTURES) / 1_000.0))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values.len())
}

fn report(guard: f64, frames: f64, kilobytes: f64) -> String {
    let verdict = if guard < AIM { "met" } else { "missed" };
    format!(
        "`bench/run --guard`: {PICTURES} pictures of {kilobytes:.0} KB from one host, asked of a page's port of the \
         guard over {CONNECTIONS} new connections, {PAGES} times in each of {JOBS} jobs whose page waits. CPU time \
         is that of the farm's process, which decides, dials, relays and writes its log lines; that of the \
         waiting page's frames ({frames:.1} ms a second) is taken off.\n\n\
         The guard: {guard:.1} ms for {PICTURES} subresources (aim: under {AIM} ms, {verdict}).\n"
    )
}

/// A picture on the site.
struct Picture {
    url: String,
    bytes: usize,
}

fn pictures(site: &Site) -> Result<Vec<Picture>> {
    let put = |number| {
        let file = photo::jpeg(number)?;
        let bytes = file.len();
        let url = site.put(&format!("/bench/guarded-{number}.jpg"), Reply::of("image/jpeg", file));
        Ok(Picture { url, bytes })
    };
    (1..=u32::try_from(PICTURES)?).map(put).collect()
}

/// A page with a worker, which is waited for in real time.
fn waiting_page(site: &Site) -> Result<Page> {
    let invoice = page::all(site)?.into_iter().find(|page| page.name == "invoice-png").context("a page")?;
    let html = "<!doctype html><script>new Worker('data:text/javascript,')</script>";
    Ok(Page { name: "waiting", source: Source::Html(html.to_owned()), wait_ms: WAIT_MS, ..invoice })
}

/// The port that lets the waiting job through: of all on which the farm listens, the one that brings a
/// picture.
async fn gate(target: &Target, picture: &Picture) -> Result<u16> {
    let began = Instant::now();
    loop {
        for port in procfs::listening(target.meter.root()).into_iter().map(|address| address.port()) {
            let attempt = timeout(Duration::from_secs(1), fetch_some(port, [picture].into_iter())).await;
            if port != target.address.port() && matches!(attempt, Ok(Ok(()))) {
                return Ok(port);
            }
        }
        ensure!(began.elapsed() < Duration::from_secs(2), "no port of the farm lets a job through");
        sleep(Duration::from_millis(20)).await;
    }
}

async fn fetch_all(gate: u16, pictures: &[Picture]) -> Result<()> {
    let shares = (0..CONNECTIONS).map(|first| {
        let share = pictures.iter().skip(first).step_by(CONNECTIONS);
        fetch_some(gate, share)
    });
    try_join_all(shares).await.map(drop)
}

/// Fetches pictures over a new connection, one after the other.
async fn fetch_some(gate: u16, pictures: impl Iterator<Item = &Picture>) -> Result<()> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, gate)).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    for picture in pictures {
        let host = picture.url.split('/').nth(2).context("a host")?;
        // As Chromium asks a proxy: by the whole address.
        let request =
            Request::get(&picture.url).header("host", host).header("proxy-connection", "keep-alive");
        sender.ready().await?;
        let answer = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
        ensure!(answer.status() == 200, "{} for a picture", answer.status());
        let bytes = answer.into_body().collect().await?.to_bytes().len();
        ensure!(bytes == picture.bytes, "{bytes} bytes of a picture of {}", picture.bytes);
    }
    drop(sender);
    connection.await??;
    Ok(())
}
