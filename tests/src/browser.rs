//! A real browser for the tests of pages: a small driver of Chromium over its debugging pipe.
//!
//! Invariant: runs as an unprivileged user with its sandbox on, with a profile of its own that is
//! gone when the browser is dropped. Nothing waits a fixed time: what a page shall become is asked
//! again and again, with patience that only a broken page uses up.

mod page;

use std::{
    collections::HashMap,
    io::{self, BufRead as _, BufReader, Write as _},
    os::unix::{
        fs::{PermissionsExt as _, chown},
        process::CommandExt as _,
    },
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use command_fds::{CommandFdExt as _, FdMapping};
use nix::{
    sys::signal::{Signal, killpg},
    unistd::{Pid, Uid},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

pub use page::{Page, Theme};

/// Only so that a browser that hangs does not hang the run.
const PATIENCE: Duration = Duration::from_mins(3);
/// A user and group that own nothing.
const NOBODY: u32 = 65_534;
const BINARIES: [&str; 3] =
    ["/usr/lib/chromium/chromium-headless-shell", "/usr/lib/chromium/chromium", "/opt/google/chrome/chrome"];

type Calls = Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>;

/// A running browser.
pub struct Browser {
    child: Child,
    input: Mutex<io::PipeWriter>,
    calls: Calls,
    last: AtomicU64,
    _home: TempDir,
}

impl Browser {
    /// Starts one.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start() -> Result<Arc<Self>> {
        let home = tempfile::Builder::new()
            .prefix("platen-tests-browser-")
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir()?;
        let mut command = Command::new("setpriv");
        command.args(["--no-new-privs", "--pdeathsig", "KILL"]);
        if Uid::effective().is_root() {
            chown(home.path(), Some(NOBODY), Some(NOBODY))?;
            command.args([format!("--reuid={NOBODY}"), format!("--regid={NOBODY}")]).arg("--clear-groups");
        }
        let binary = std::env::var("PLATEN_CHROMIUM").ok();
        let binary = binary.as_deref().into_iter().chain(BINARIES).find(|path| Path::new(path).is_file());
        command.arg("--").arg(binary.context("there is no Chromium")?).args(switches(home.path()));
        command.env_clear().env("HOME", home.path()).env("TMPDIR", home.path()).env("PATH", "/usr/bin:/bin");
        command.current_dir(home.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.process_group(0);
        let (their_input, input) = io::pipe()?;
        let (output, their_output) = io::pipe()?;
        command.fd_mappings(vec![
            FdMapping { parent_fd: their_input.into(), child_fd: 3 },
            FdMapping { parent_fd: their_output.into(), child_fd: 4 },
        ])?;
        let child = command.spawn().context("the browser does not start")?;
        // It holds the browser's ends of the pipes, which must be open in the browser alone.
        drop(command);
        let calls = Calls::default();
        read_answers(output, Arc::clone(&calls));
        let browser = Self { child, input: Mutex::new(input), calls, last: AtomicU64::new(0), _home: home };
        browser.call(None, "Browser.getVersion", json!({})).await.context("the browser does not answer")?;
        Ok(Arc::new(browser))
    }

    /// A page in a new context: without the cookies of any other.
    ///
    /// # Errors
    /// When the browser is gone.
    pub async fn page(self: &Arc<Self>) -> Result<Page> {
        let context = self.call(None, "Target.createBrowserContext", json!({})).await?;
        let target = json!({ "url": "about:blank", "browserContextId": context["browserContextId"] });
        let target = self.call(None, "Target.createTarget", target).await?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call(None, "Target.attachToTarget", attach).await?;
        let text = |value: &Value| value.as_str().map(str::to_owned).context("a text");
        Ok(Page::new(Arc::clone(self), text(&session["sessionId"])?, text(&context["browserContextId"])?))
    }

    /// One command of the protocol.
    async fn call(&self, session: Option<&str>, method: &str, parameters: Value) -> Result<Value> {
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let (sender, answer) = oneshot::channel();
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.lock().unwrap_or_else(PoisonError::into_inner).write_all(&bytes)?;
        let mut answer = tokio::time::timeout(PATIENCE, answer)
            .await
            .with_context(|| format!("no answer to {method}"))?
            .context("the browser is gone")?;
        match answer.get("error") {
            Some(error) => bail!("{method}: {error}"),
            None => Ok(answer["result"].take()),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// What tests of pages need: no calls home, nothing that depends on the machine.
fn switches(home: &Path) -> Vec<String> {
    let profile = format!("--user-data-dir={}", home.join("profile").display());
    [
        "--remote-debugging-pipe",
        "--headless",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-crash-reporter",
        "--disable-breakpad",
        "--disable-dev-shm-usage",
        "--no-proxy-server",
        "--hide-scrollbars",
        "--font-render-hinting=none",
        "--force-color-profile=srgb",
        "--lang=en-US",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain([profile])
    .collect()
}

/// A thread that reads until the browser's end of the pipe closes.
fn read_answers(output: io::PipeReader, calls: Calls) {
    thread::spawn(move || {
        let mut messages = BufReader::new(output);
        let mut message = Vec::new();
        while matches!(messages.read_until(0, &mut message), Ok(1..)) {
            message.pop();
            if let Ok(value) = serde_json::from_slice::<Value>(&message)
                && let Some(id) = value["id"].as_u64()
                && let Some(call) = calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
            {
                // Whoever has stopped waiting does not need it.
                let _ = call.send(value);
            }
            message.clear();
        }
        calls.lock().unwrap_or_else(PoisonError::into_inner).clear();
    });
}
