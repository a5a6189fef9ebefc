//! A page as a request in the format of each renderer.
//!
//! Invariant: request bodies are built before the clock starts, except for the account's name where every
//! job has a new account.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use platen_shared::wire;
use reqwest::{Url, header};
use serde_json::{Value, json};

use super::{
    file_check,
    page::{Output, Page, VIEWPORT},
    target::{Api, BROWSERLESS_TOKEN, Kind, Target},
};
use crate::{farm, http_client};

#[derive(Debug)]
enum Body {
    Constant(Bytes),
    /// The text before and after the account's number.
    PerAccount(String, String),
}

/// A request for one page that can be sent many times.
#[derive(Debug)]
pub(crate) struct PreparedRequest {
    url: Url,
    bearer: Option<String>,
    body: Body,
    output: Output,
    /// Size of a file whose content was checked.
    expected_bytes: OnceLock<usize>,
}

impl PreparedRequest {
    pub(crate) fn new(target: &Target, page: &Page) -> Result<Self> {
        Self::of_account(target, page, ACCOUNT)
    }

    /// Only requests to the farm have the account.
    pub(crate) fn of_account(target: &Target, page: &Page, account: &str) -> Result<Self> {
        let mut bearer = None;
        let inlined = page.inlined();
        let page = if target.kind == Kind::Inlined { &inlined } else { page };
        let url = |path: &str| Url::parse(&format!("http://{}{path}", target.address));
        let (url, body) = match &target.api {
            Api::Farm { new_accounts } => {
                bearer = Some(farm::TOKEN.to_owned());
                let job = serde_json::to_string(&farm::job(account, &page.request())?)?;
                let body = if *new_accounts {
                    let (before, after) = job.split_once(ACCOUNT).context("no account name")?;
                    Body::PerAccount([before, ACCOUNT].concat(), after.to_owned())
                } else {
                    Body::Constant(job.into())
                };
                (url(wire::JOBS_PATH)?, body)
            }
            Api::Public { path, key } => {
                bearer.clone_from(key);
                (url(path)?, Body::Constant(page.request().to_string().into()))
            }
            Api::Browserless { launch } => {
                let route = if page.output == Output::Pdf { "pdf" } else { "screenshot" };
                let mut url = url(&format!("/chromium/{route}"))?;
                url.query_pairs_mut().append_pair("token", BROWSERLESS_TOKEN).append_pair("launch", launch);
                (url, Body::Constant(browserless(page).to_string().into()))
            }
        };
        Ok(Self { url, bearer, body, output: page.output, expected_bytes: OnceLock::new() })
    }

    /// Sends one job and returns its file.
    pub(crate) async fn send(&self, http: &reqwest::Client) -> Result<Bytes> {
        let body = match &self.body {
            Body::Constant(body) => body.clone(),
            Body::PerAccount(before, after) => {
                let number = NEW_ACCOUNTS.fetch_add(1, Ordering::Relaxed).to_string();
                [before, &number, after.as_str()].concat().into()
            }
        };
        let mut request =
            http.post(self.url.clone()).header(header::CONTENT_TYPE, "application/json").body(body);
        if let Some(bearer) = &self.bearer {
            request = request.bearer_auth(bearer);
        }
        http_client::fetch_file(request).await
    }

    /// Sets the file size that [`check`](Self::check) expects.
    pub(crate) fn expect_bytes(&self, bytes: usize) {
        let _ = self.expected_bytes.set(bytes);
    }

    /// Checks that a file has the right signature and the expected size within 2 %.
    pub(crate) fn check(&self, file: &[u8]) -> Result<()> {
        file_check::signature(file, self.output)?;
        if let Some(&expected) = self.expected_bytes.get() {
            let difference = file.len().abs_diff(expected);
            ensure!(difference * 50 <= expected, "a file of {} bytes instead of {expected}", file.len());
        }
        Ok(())
    }
}

/// The account of all jobs, or the prefix of the accounts' names.
const ACCOUNT: &str = "acc_bench";
/// The number of the next new account, of all requests, so that no account comes back with another page.
static NEW_ACCOUNTS: AtomicU64 = AtomicU64::new(0);

fn browserless(page: &Page) -> Value {
    let (width, height) = VIEWPORT;
    let mut request = json!({
        "gotoOptions": { "waitUntil": if page.network_idle { "networkidle0" } else { "load" } },
        "viewport": { "width": width, "height": height, "deviceScaleFactor": 1 },
    });
    page.source.write_to(&mut request);
    if page.wait_ms > 0 {
        request["waitForTimeout"] = page.wait_ms.into();
    }
    request["options"] = if page.output == Output::Pdf {
        json!({ "format": "A4", "printBackground": true, "tagged": false, "outline": false })
    } else {
        let full_page = page.output == Output::FullPng;
        json!({ "type": "png", "fullPage": full_page, "optimizeForSpeed": true })
    };
    request
}
