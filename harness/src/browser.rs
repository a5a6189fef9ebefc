//! A real browser for tests of the dashboard, and for comparisons with it, driven over its debugging pipe.
//!
//! Invariant: it runs as an unprivileged user with its sandbox and a temporary profile; process and profile
//! are removed when the browser is dropped. Commands and conditions end after [`MAX_WAIT`], which only a broken page
//! reaches.

mod page;
mod theme;

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use chromiumoxide_cdp::cdp::browser_protocol::{
    browser::GetVersionParams,
    target::{AttachToTargetParams, CreateBrowserContextParams, CreateTargetParams, TargetId},
};
use nix::sys::signal::Signal;
use platen_cdp::{BrowserPipes, CdpError, Connection, Session};
use tempfile::TempDir;

pub use page::Page;
pub use theme::Theme;

use crate::{
    process::{self, Process},
    wait::MAX_WAIT,
};

/// No requests by the browser itself, and rendering that does not depend on the machine.
const SWITCHES: &str = "--remote-debugging-pipe --headless --no-first-run \
    --disable-background-networking --disable-component-update --disable-crash-reporter --disable-breakpad --disable-dev-shm-usage \
    --no-proxy-server --hide-scrollbars --font-render-hinting=none --force-color-profile=srgb --lang=en-US";

const BINARIES: [&str; 3] =
    ["/usr/lib/chromium/chromium-headless-shell", "/usr/lib/chromium/chromium", "/opt/google/chrome/chrome"];

pub struct Browser {
    _process: Process,
    connection: Arc<Connection>,
    _home: TempDir,
}

impl Browser {
    /// Starts a browser and waits until it answers.
    pub async fn start() -> Result<Arc<Self>> {
        Self::start_with(&[]).await
    }

    /// Starts a browser with more switches.
    pub async fn start_with(switches: &[String]) -> Result<Arc<Self>> {
        let home = TempDir::with_prefix("platen-tests-browser-")?;
        let binary = std::env::var("PLATEN_CHROMIUM").ok();
        let binary = binary.as_deref().into_iter().chain(BINARIES).map(Path::new).find(|path| path.is_file());
        let chromium = binary.context("there is no Chromium")?;
        let mut command = process::unprivileged(chromium, home.path(), Signal::SIGKILL)?;
        command.args(SWITCHES.split_whitespace()).args(switches);
        command.arg(format!("--user-data-dir={}", home.path().join("profile").display()));
        let mut command = process::in_session(&command, Signal::SIGKILL);
        command.env_clear().env("HOME", home.path()).env("TMPDIR", home.path()).env("PATH", "/usr/bin:/bin");
        let pipes = BrowserPipes::attach(&mut command)?;
        let process = Process::spawn("the browser", command, Signal::SIGKILL)?;
        let connection = Arc::new(Connection::open(pipes)?);
        let browser = Self { _process: process, connection, _home: home };
        within_timeout(browser.connection.call(&GetVersionParams {})).await?;
        Ok(Arc::new(browser))
    }

    /// Opens a page in a new browser context, which has no cookies.
    pub async fn page(self: &Arc<Self>) -> Result<Page> {
        let context = within_timeout(self.connection.call(&CreateBrowserContextParams::default())).await?;
        let mut target = CreateTargetParams::new("about:blank");
        target.browser_context_id = Some(context.browser_context_id.clone());
        // Of a desktop: the columns of the editor are beside each other.
        (target.width, target.height) = (Some(1280), Some(900));
        let target = within_timeout(self.connection.call(&target)).await?;
        let session = self.attach(target.target_id).await?;
        Ok(Page::new(Arc::clone(self), session, context.browser_context_id))
    }

    /// A session with a target. Its events are not received.
    async fn attach(&self, target: TargetId) -> Result<Session> {
        let mut attach = AttachToTargetParams::new(target);
        attach.flatten = Some(true);
        let attached = within_timeout(self.connection.call(&attach)).await?;
        Ok(Session::new(Arc::clone(&self.connection), attached.session_id).0)
    }
}

async fn within_timeout<T>(call: impl Future<Output = Result<T, CdpError>>) -> Result<T> {
    Ok(tokio::time::timeout(MAX_WAIT, call).await.context("the browser does not reply")??)
}
