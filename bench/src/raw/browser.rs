//! Chromium's process and the connection to it.
//!
//! Invariant: it runs as the user of this program, with its sandbox; [`Browser::stop`] returns after the
//! process has exited.

use std::{path::Path, process::Command, sync::Arc};

use anyhow::{Context as _, Result};
use chromiumoxide_cdp::cdp::browser_protocol::browser::CloseParams;
use nix::sys::signal::Signal;
use platen_cdp::{BrowserPipes, Connection};
use platen_harness::process::{self, Process};

/// Frames on command, and no feature that makes a page that is used again slower than a new one, or that forbids markup
/// to load from 127.0.0.1.
const SWITCHES: &[&str] = &[
    "--remote-debugging-pipe",
    "--headless",
    "--hide-scrollbars",
    "--mute-audio",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-crash-reporter",
    "--disable-extensions",
    "--disable-sync",
    "--enable-begin-frame-control",
    "--run-all-compositor-stages-before-draw",
    "--disable-new-content-rendering-timeout",
    "--disable-threaded-animation",
    "--disable-threaded-scrolling",
    "--disable-checker-imaging",
    "--disable-features=PaintHolding,BackForwardCache,ProactivelySwapBrowsingInstance,RenderDocument,\
     LocalNetworkAccessChecks",
];

/// A running Chromium.
pub(super) struct Browser {
    process: Process,
    pub(super) connection: Arc<Connection>,
}

impl Browser {
    /// Starts it with a profile in the home directory of the user.
    pub(super) fn start(chromium: &Path, resolve: &str) -> Result<Self> {
        let home = std::env::var("HOME").context("HOME is not set; the profile is written there")?;
        let mut command = Command::new(chromium);
        command.args(SWITCHES);
        command.arg(format!("--host-resolver-rules={resolve}"));
        command.arg(format!("--user-data-dir={home}/profile")).arg("about:blank");
        let mut command = process::in_session(&command, Signal::SIGKILL);
        let pipes = BrowserPipes::attach(&mut command)?;
        let process = Process::spawn("Chromium", command, Signal::SIGKILL)?;
        Ok(Self { process, connection: Arc::new(Connection::open(pipes)?) })
    }

    /// Closes it and waits until its process has exited.
    pub(super) async fn stop(mut self) -> Result<()> {
        // It may exit before it has replied.
        let _ = self.connection.call(&CloseParams {}).await;
        self.process.ended().await.map(drop)
    }
}
