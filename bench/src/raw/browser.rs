//! Chromium's process, spoken to through descriptors 3 and 4.
//!
//! Invariant: runs as the user this program runs as, with the sandbox on; [`Browser::stop`] returns
//! once it has ended.

use std::{
    io::pipe,
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use command_fds::{CommandFdExt as _, FdMapping};
use serde_json::json;

use super::cdp::Connection;

/// What the limit is measured with: frames on demand, and nothing that makes a page that is used
/// again slower than a new one.
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
    "--disable-features=PaintHolding,BackForwardCache,ProactivelySwapBrowsingInstance,RenderDocument",
];

/// A running Chromium.
pub(super) struct Browser {
    child: Child,
    connection: Arc<Connection>,
}

impl Browser {
    /// Starts it with a profile in the home of the user.
    pub(super) fn start(chromium: &Path, resolve: &str) -> Result<Self> {
        let home = std::env::var("HOME").context("HOME is where the profile goes")?;
        let (their_input, to_browser) = pipe()?;
        let (from_browser, their_output) = pipe()?;
        let mut command = Command::new("setpriv");
        // It ends with this program, however that ends.
        command.args(["--pdeathsig", "KILL", "--"]).arg(chromium).args(SWITCHES);
        command.arg(format!("--host-resolver-rules={resolve}"));
        command.arg(format!("--user-data-dir={home}/profile")).arg("about:blank");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.fd_mappings(vec![
            FdMapping { parent_fd: their_input.into(), child_fd: 3 },
            FdMapping { parent_fd: their_output.into(), child_fd: 4 },
        ])?;
        let child = command.spawn().context("Chromium does not start")?;
        // With the command go this process's ends of what the browser holds now.
        drop(command);
        let connection = Connection::open(OwnedFd::from(to_browser), OwnedFd::from(from_browser))?;
        Ok(Self { child, connection })
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Closes it and waits for its end.
    pub(super) async fn stop(mut self) -> Result<()> {
        // It may be gone before it has answered.
        let _ = self.connection.call(None, "Browser.close", &json!({})).await;
        tokio::task::spawn_blocking(move || self.child.wait()).await??;
        Ok(())
    }
}
