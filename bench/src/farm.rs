//! A `platen-farm` process and the jobs that are sent to it.
//!
//! Invariant: dropping a [`Farm`] stops its process and its browsers.

use std::{net::SocketAddr, path::Path, process::Command};

use anyhow::Result;
use platen_harness::{farm_process, process::Process};
use platen_shared::{endpoint::Endpoint, id::AccountId, job::RenderJob, request::RenderRequest, wire};
use reqwest::{Client, RequestBuilder};
use serde_json::Value;

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

/// The job of a request to the public API.
pub(crate) fn job(account: &str, request: &Value) -> Result<RenderJob> {
    let request = RenderRequest::parse(Endpoint::Render, request.to_string().as_bytes())?;
    Ok(request.into_job(AccountId::from_text(account), None)?)
}
