//! The farm as a program, so that tests can kill it and its browsers.

use std::{fs::Permissions, os::unix::fs::PermissionsExt as _, process::Command};

use nix::sys::signal::Signal;
use platen_harness::{
    farm_process,
    latch::Latch,
    metrics,
    process::Process,
    procfs::{self, ProcessId},
    site::Reply,
    wait,
};
use platen_shared::{job::RenderJob, wire};
use reqwest::{Client, Response};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use serde_json::json;

use super::{
    GREEN, MAX_WAIT_MS, MAX_WAIT_SECONDS, TOKEN, colour, send,
    site::{self, Site},
    url,
};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_platen-farm");

/// A running `platen-farm` that resolves the names of the site.
pub(crate) struct FarmProcess {
    process: Process,
    pub(crate) base_url: String,
    http: Client,
    /// The `TMPDIR` of the program.
    directory: TempDir,
}

impl FarmProcess {
    /// A directory for a farm: browsers of another user need search permission to reach their profiles.
    pub(crate) fn directory() -> TempDir {
        tempfile::Builder::new().permissions(Permissions::from_mode(0o711)).tempdir().unwrap()
    }

    pub(crate) async fn start(arguments: &[&str]) -> Self {
        Self::start_in(Self::directory(), arguments).await
    }

    pub(crate) async fn start_in(directory: TempDir, arguments: &[&str]) -> Self {
        Self::start_with(Command::new(PROGRAM), directory, arguments).await
    }

    /// Starts it by a command that gets its command line as further arguments.
    pub(crate) async fn start_by(wrapper: &[&str], arguments: &[&str]) -> Self {
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(PROGRAM);
        Self::start_with(command, Self::directory(), arguments).await
    }

    async fn start_with(mut command: Command, directory: TempDir, arguments: &[&str]) -> Self {
        command.args(arguments);
        command.args(site::HOSTS.iter().map(|host| format!("--resolve={host}=127.0.0.1")));
        command.env("TMPDIR", directory.path()).env("PLATEN_QUEUE_TIMEOUT", MAX_WAIT_SECONDS.to_string());
        let (process, address) = farm_process::start(command, TOKEN, None).await.unwrap();
        Self { process, base_url: format!("http://{address}"), http: Client::new(), directory }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(crate) fn log(&self) -> String {
        self.process.log()
    }

    pub(crate) fn post(&self, job: &RenderJob) -> reqwest::RequestBuilder {
        self.http.post(format!("{}{}", self.base_url, wire::JOBS_PATH)).bearer_auth(TOKEN).json(job)
    }

    /// The file of a job that must not be refused.
    pub(crate) async fn file(&self, job: &RenderJob) -> Vec<u8> {
        let (status, body) = send(self, job, MAX_WAIT_MS).await;
        assert_eq!(status, 200, "{} for {}", String::from_utf8_lossy(&body), json!(job));
        body
    }

    /// Checks that the middle of the picture of a job is green.
    pub(crate) async fn expect_green(&self, job: &RenderJob) {
        assert_eq!(colour(&self.file(job).await), GREEN, "{}", json!(job));
    }

    /// The value of a metric, 0 if there is none yet.
    pub(crate) async fn metric(&self, name: &str) -> u64 {
        metrics::read(&self.http, &self.metrics_url(), TOKEN, name).await.unwrap().unwrap_or(0)
    }

    /// How many jobs have had the page of an earlier one.
    pub(crate) async fn warm_pages(&self) -> u64 {
        self.metric("platen_farm_pages_total{source=\"warm\"}").await
    }

    /// How many waits have passed in this time: `skipped`, `virtual` or `real`.
    pub(crate) async fn waits(&self, time: &str) -> u64 {
        self.metric(&format!("platen_farm_waits_total{{time=\"{time}\"}}")).await
    }

    pub(crate) async fn until_metric(&self, name: &str, value: u64) {
        metrics::until(&self.http, &self.metrics_url(), TOKEN, name, value).await.unwrap();
    }

    fn metrics_url(&self) -> String {
        format!("{}/metrics", self.base_url)
    }

    /// The first of its browsers, once it runs.
    pub(crate) async fn browser(&self) -> ProcessId {
        let first = async || Ok(procfs::browsers(self.pid()).pop());
        wait::until_some("a browser runs", first).await.unwrap()
    }

    pub(crate) async fn until_renderer(&self) {
        wait::until("a renderer runs", || !procfs::renderers(self.pid()).is_empty()).await.unwrap();
    }

    /// Kills the renderers of all pages, used or not.
    pub(crate) fn kill_renderers(&self) {
        for renderer in procfs::renderers(self.pid()) {
            // It may have ended by itself.
            let _ = renderer.signal(Signal::SIGKILL);
        }
    }

    /// Sends a signal to the processes of its browsers whose command line contains `argument`; there must be one.
    pub(crate) fn signal_helpers(&self, argument: &str, signal: Signal) {
        let mut helpers = procfs::descendants(self.pid());
        helpers.retain(|process| process.command_line().contains(argument));
        assert!(!helpers.is_empty(), "no process with {argument}");
        for helper in helpers {
            helper.signal(signal).unwrap();
        }
    }

    /// Kills the renderer with the most memory, which is not that of a spare page.
    pub(crate) fn kill_largest_renderer(&self) {
        let largest = procfs::renderers(self.pid()).into_iter().max_by_key(ProcessId::anonymous_memory);
        largest.unwrap().signal(Signal::SIGKILL).unwrap();
    }

    /// Kills the farm, waits until its browsers have ended as well, and returns the directory that it leaves.
    pub(crate) async fn kill(mut self) -> TempDir {
        let processes = procfs::descendants(self.pid());
        self.signal(Signal::SIGKILL);
        self.process.ended().await.unwrap();
        have_ended(&processes).await;
        self.directory
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.process.signal(signal).unwrap();
    }

    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    pub(crate) async fn is_ready(&self) -> bool {
        let answer = self.http.get(format!("{}/readyz", self.base_url)).send().await;
        answer.is_ok_and(|answer| answer.status() == 200)
    }

    /// Terminates it, and checks that no process and no file is left.
    pub(crate) async fn end(self) {
        let processes = procfs::descendants(self.pid());
        self.terminate();
        self.ended(&processes).await;
    }

    /// Waits until a terminated farm has ended, and checks that none of its processes and no file is left.
    pub(crate) async fn ended(mut self, processes: &[ProcessId]) {
        let status = self.process.ended().await.unwrap();
        assert!(status.success(), "{status}");
        have_ended(processes).await;
        let files: Vec<_> = std::fs::read_dir(self.directory.path()).unwrap().flatten().collect();
        assert!(files.is_empty(), "{files:?}");
    }
}

pub(crate) async fn have_ended(processes: &[ProcessId]) {
    wait::until("the processes end", || !processes.iter().any(ProcessId::is_alive)).await.unwrap();
}

const PICTURE: &str = "/held.svg";

/// A farm, and a job for a green page whose picture is sent once the latch is open.
pub(crate) struct HeldPage {
    pub(crate) farm: FarmProcess,
    pub(crate) latch: Latch,
    pub(crate) job: RenderJob,
    site: Site,
}

impl HeldPage {
    /// The farm has one browser.
    pub(crate) async fn start(arguments: &[&str]) -> Self {
        let arguments = [&["--browsers", "1"], arguments].concat();
        let (farm, site) = (FarmProcess::start(&arguments).await, Site::start().await);
        let latch = Latch::closed();
        let picture = Reply::of("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'/>");
        site.put(PICTURE, picture.with_header("cache-control", "no-store").behind(&latch));
        // Its memory tells its renderer from those of spare pages.
        let page = format!(
            "<!doctype html><html style='background:green'><script>const large = new Uint8Array(1e8).fill(1)</script>\
             <img src='{PICTURE}'>"
        );
        let job = url(&site.put("/held", Reply::page(page)));
        Self { farm, latch, job, site }
    }

    pub(crate) fn post(&self) -> JoinHandle<reqwest::Result<Response>> {
        tokio::spawn(self.farm.post(&self.job).header(wire::DEADLINE_MS, MAX_WAIT_MS).send())
    }

    /// Waits until this many attempts of the job have requested the picture.
    pub(crate) async fn until_loading(&self, attempts: usize) {
        self.site.until_hits(PICTURE, attempts).await;
    }
}
