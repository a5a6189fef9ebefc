//! A `platen-farm` process and the jobs that are sent to it.
//!
//! Invariant: dropping a [`Farm`] stops its process and its browsers.

use std::{net::SocketAddr, path::Path, process::Command};

use anyhow::Result;
use platen_harness::{farm_process, process::Process};
use platen_shared::{
    format::{ImageFormat, PaperSize, WaitUntil},
    id::AccountId,
    job::{ImageOptions, Output, PdfOptions, Region, RenderJob, RenderOptions, Source, WaitMs},
    wire,
};
use reqwest::{Client, RequestBuilder};

use crate::http_client;

pub(crate) const TOKEN: &str = "the token of the bench";

/// A running farm.
#[derive(Debug)]
pub(crate) struct Farm {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    http: Client,
}

impl Farm {
    /// Starts `command`, which names the farm's program and further arguments.
    pub(crate) async fn start(mut command: Command, chromium: &Path) -> Result<Self> {
        command.env("PLATEN_CHROMIUM", chromium);
        let (process, address) = farm_process::start(command, TOKEN, None).await?;
        Ok(Self { process, address, http: http_client::client()? })
    }

    pub(crate) fn request(&self, job: &RenderJob) -> RequestBuilder {
        let url = format!("http://{}{}", self.address, wire::JOBS_PATH);
        self.http.post(url).bearer_auth(TOKEN).json(job)
    }
}

/// A job with the default viewport.
pub(crate) fn job(
    account: &str,
    source: Source,
    wait_until: WaitUntil,
    wait_ms: u32,
    output: Output,
) -> Result<RenderJob> {
    let wait_for_timeout = WaitMs::try_from(f64::from(wait_ms))?;
    let options = RenderOptions { wait_until, wait_for_timeout, ..RenderOptions::new(output) };
    Ok(RenderJob { account: AccountId::from_text(account), source, options })
}

pub(crate) fn png(full_page: bool) -> Output {
    let region = if full_page { Region::FullPage } else { Region::Viewport };
    Output::Image(ImageOptions { region, ..ImageOptions::new(ImageFormat::Png) })
}

/// A PDF on A4 with backgrounds.
pub(crate) fn pdf() -> Output {
    Output::Pdf(Box::new(PdfOptions { print_background: true, ..PdfOptions::new(PaperSize::A4.into()) }))
}
