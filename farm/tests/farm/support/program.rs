//! The farm as a program of its own, so that it and its browsers can be killed.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use platen_shared::{job::RenderJob, wire};
use reqwest::Client;
use tempfile::TempDir;

use super::leftovers::{self, Process};

/// A running `platen-farm`.
pub(crate) struct Program {
    child: Child,
    base: String,
    /// Where it keeps everything it writes.
    directory: Option<TempDir>,
    log: Arc<Mutex<String>>,
}

impl Program {
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        // Browsers of another user pass through it to their homes.
        use std::os::unix::fs::PermissionsExt as _;
        let open = std::fs::Permissions::from_mode(0o711);
        Self::start_in(tempfile::Builder::new().permissions(open).tempdir().unwrap(), arguments).await
    }

    pub(crate) async fn start_in(directory: TempDir, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_platen-farm"))
            .args(["--listen", "127.0.0.1:0"])
            .args(arguments)
            .env("PLATEN_FARM_TOKEN", "s3cret")
            .env("TMPDIR", directory.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::<Mutex<String>>::default();
        let written = Arc::clone(&log);
        let address = tokio::task::spawn_blocking(move || {
            let address = lines.find_map(|line| {
                line.unwrap().split_once("listening address=").map(|(_, rest)| rest.to_owned())
            });
            // What it says must go somewhere, or it would stop to say it.
            thread::spawn(move || {
                for line in lines.map_while(Result::ok) {
                    written.lock().unwrap().extend([line.as_str(), "\n"]);
                }
            });
            address
        });
        let base = format!("http://{}", address.await.unwrap().expect("it says where it listens"));
        Self { child, base, directory: Some(directory), log }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged since it listens.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub(crate) fn post(&self, job: &RenderJob) -> reqwest::RequestBuilder {
        Client::new().post(format!("{}{}", self.base, wire::JOBS_PATH)).bearer_auth("s3cret").json(job)
    }

    pub(crate) async fn metric(&self, name: &str) -> u64 {
        let text = reqwest::get(format!("{}/metrics", self.base)).await.unwrap().text().await.unwrap();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.rsplit(' ').next().and_then(|value| value.parse().ok()).unwrap_or_default()
    }

    pub(crate) async fn until(&self, name: &str, value: u64) {
        while self.metric(name).await != value {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// One of its browsers.
    pub(crate) async fn browser(&self) -> Process {
        loop {
            if let Some(browser) = leftovers::browsers(self.id()).pop() {
                return browser;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until it has a page.
    pub(crate) async fn page(&self) {
        while self.renderers().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Kills the processes of all its pages, those in waiting too.
    pub(crate) fn kill_renderers(&self) {
        for renderer in self.renderers() {
            // Some end by themselves before they are hit.
            let _ = kill(Pid::from_raw(renderer.id.cast_signed()), Signal::SIGKILL);
        }
    }

    fn renderers(&self) -> Vec<Process> {
        let mut processes = leftovers::below(self.id());
        processes.retain(|process| process.command.contains("--type=renderer"));
        processes
    }

    /// Kills it as it stands.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// What a killed one leaves.
    pub(crate) fn into_directory(mut self) -> TempDir {
        self.directory.take().unwrap()
    }

    /// Tells it to end, and checks that it does so without a trace.
    pub(crate) async fn end(mut self) {
        let browsers = leftovers::browsers(self.id());
        kill(Pid::from_raw(self.id().cast_signed()), Signal::SIGTERM).unwrap();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        assert!(status.success(), "{status}");
        assert!(!browsers.iter().any(Process::lives));
        let directory = self.directory.take().unwrap();
        let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().flatten().collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

impl Drop for Program {
    /// A test that failed leaves nothing either.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
