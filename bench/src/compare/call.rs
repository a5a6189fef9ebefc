//! A page as each side wants to be asked for it.
//!
//! Invariant: bodies are made before the clock runs, save the account's name in the mode where
//! every job has another.

use std::{
    net::SocketAddr,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use platen_shared::{
    format::{ImageFormat, PaperSize, WaitUntil},
    id::AccountId,
    job::{PdfScale, RenderJob, Source as JobSource, Viewport, WaitMs},
    wire,
};
use reqwest::{RequestBuilder, Url, header};
use serde_json::{Value, json};

use super::{
    check,
    page::{Output, Page, Source, VIEWPORT},
};

/// How a side is spoken to.
#[derive(Debug, Clone)]
pub(crate) enum Speech {
    /// A farm's own interface.
    Farm {
        token: String,
        /// Each job comes from an account that no job came from before.
        new_accounts: bool,
    },
    /// The public API.
    Public { key: String },
    /// The public API's fields, without a key: our servers in front of the peers.
    Plain,
    /// browserless's interface, with launch options for Chromium as JSON.
    Browserless { launch: String },
}

#[derive(Debug)]
enum Body {
    Same(Bytes),
    /// What stands before and behind the account's name.
    PerAccount(String, String),
}

/// A page, ready to be asked for.
#[derive(Debug)]
pub(crate) struct Call {
    url: Url,
    bearer: Option<String>,
    body: Body,
    output: Output,
    sent: AtomicU64,
    /// Bytes of a file that was looked at closely.
    expected: OnceLock<usize>,
}

impl Call {
    /// The page as this side at this address wants it.
    pub(crate) fn new(speech: &Speech, address: SocketAddr, page: &Page) -> Result<Self> {
        let mut bearer = None;
        let at = |path: &str| Url::parse(&format!("http://{address}{path}"));
        let (url, body) = match speech {
            Speech::Farm { token, new_accounts } => {
                bearer = Some(token.clone());
                let job = serde_json::to_string(&job(page)?)?;
                let (before, behind) = job.split_once(ACCOUNT).context("the account's name")?;
                let body = Body::PerAccount(before.to_owned(), behind.to_owned());
                let body = if *new_accounts { body } else { Body::Same(job.into()) };
                (at(wire::JOBS_PATH)?, body)
            }
            Speech::Public { key } => {
                bearer = Some(key.clone());
                (at("/v1/render")?, Body::Same(page.request().to_string().into()))
            }
            Speech::Plain => {
                let mut request = page.request();
                request["fastPng"] = page.fast_png.into();
                (at("/")?, Body::Same(request.to_string().into()))
            }
            Speech::Browserless { launch } => {
                let kind = if page.output == Output::Pdf { "pdf" } else { "screenshot" };
                let mut url = at(&format!("/chromium/{kind}"))?;
                url.query_pairs_mut().append_pair("token", BROWSERLESS_TOKEN).append_pair("launch", launch);
                (url, Body::Same(browserless(page).to_string().into()))
            }
        };
        Ok(Self {
            url,
            bearer,
            body,
            output: page.output,
            sent: AtomicU64::new(0),
            expected: OnceLock::new(),
        })
    }

    /// The next request.
    pub(crate) fn request(&self, http: &reqwest::Client) -> RequestBuilder {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        let body = match &self.body {
            Body::Same(body) => body.clone(),
            Body::PerAccount(before, behind) => {
                [before, ACCOUNT, &number.to_string(), behind].concat().into()
            }
        };
        let request = http.post(self.url.clone()).header(header::CONTENT_TYPE, "application/json").body(body);
        match &self.bearer {
            Some(bearer) => request.bearer_auth(bearer),
            None => request,
        }
    }

    /// What the next files are compared with: one that was looked at closely.
    pub(crate) fn expect_size(&self, bytes: usize) {
        let _ = self.expected.set(bytes);
    }

    /// Whether a file is of the right kind and about as long as the one that was looked at.
    pub(crate) fn plausible(&self, file: &[u8]) -> Result<()> {
        check::kind(file, self.output)?;
        if let Some(&expected) = self.expected.get() {
            let apart = file.len().abs_diff(expected);
            ensure!(apart * 50 <= expected, "a file of {} bytes instead of {expected}", file.len());
        }
        Ok(())
    }
}

/// The account of all jobs, or the beginning of the accounts' names.
const ACCOUNT: &str = "acc_bench";

fn job(page: &Page) -> Result<RenderJob> {
    let source = match &page.source {
        Source::Html(html) => JobSource::Html(html.clone().try_into()?),
        Source::Url(url) => JobSource::Url(url.clone().try_into()?),
    };
    let image = |full_page| platen_shared::job::Output::Image { format: ImageFormat::Png, full_page };
    let output = match page.output {
        Output::Pdf => platen_shared::job::Output::Pdf {
            paper: PaperSize::A4,
            print_background: true,
            scale: PdfScale::default(),
        },
        Output::Png => image(false),
        Output::FullPng => image(true),
    };
    let viewport = Viewport::default();
    ensure!((viewport.width.get(), viewport.height.get()) == VIEWPORT, "the default viewport is another");
    Ok(RenderJob {
        account: AccountId::from_text(ACCOUNT),
        source,
        viewport,
        wait_until: if page.network_idle { WaitUntil::NetworkIdle } else { WaitUntil::Load },
        wait_for_timeout: WaitMs::try_from(f64::from(page.wait_ms))?,
        output,
    }
    .check()?)
}

/// The token of browserless, which it takes in the query.
pub(crate) const BROWSERLESS_TOKEN: &str = "bench";

fn browserless(page: &Page) -> Value {
    let (width, height) = VIEWPORT;
    let mut request = json!({
        "gotoOptions": { "waitUntil": if page.network_idle { "networkidle0" } else { "load" } },
        "viewport": { "width": width, "height": height, "deviceScaleFactor": 1 },
    });
    match &page.source {
        Source::Html(html) => request["html"] = html.as_str().into(),
        Source::Url(url) => request["url"] = url.as_str().into(),
    }
    if page.wait_ms > 0 {
        request["waitForTimeout"] = page.wait_ms.into();
    }
    request["options"] = if page.output == Output::Pdf {
        json!({ "format": "A4", "printBackground": true, "tagged": false, "outline": false })
    } else {
        let full_page = page.output == Output::FullPng;
        json!({ "type": "png", "fullPage": full_page, "optimizeForSpeed": page.fast_png })
    };
    request
}
