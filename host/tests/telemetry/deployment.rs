//! A server with a farm in its process, as a separate program.

use std::{path::Path, process::Command};

use nix::sys::signal::Signal;
use platen_harness::{
    operator::Operator,
    process::{Process, rest_of_line},
};

/// A server and a farm of its own, with one key.
pub(crate) struct Deployment {
    pub(crate) server: Process,
    pub(crate) directory: tempfile::TempDir,
    url: String,
    pub(crate) key: String,
}

/// `platen up` with no other environment than this one.
pub(crate) fn up(directory: &Path, environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new("env");
    command.arg("-i").arg(format!("TMPDIR={}", directory.display()));
    if let Ok(chromium) = std::env::var("PLATEN_CHROMIUM") {
        command.arg(format!("PLATEN_CHROMIUM={chromium}"));
    }
    command.args(environment.iter().map(|(name, value)| format!("{name}={value}")));
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spin.toml");
    command
        .arg(env!("CARGO_BIN_EXE_platen"))
        .current_dir(directory)
        .arg("up")
        .arg("--manifest")
        .arg(manifest);
    command.args(["--listen", "127.0.0.1:0", "--browsers", "1"]);
    command
}

impl Deployment {
    pub(crate) async fn start(environment: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let server = Process::start("platen up", &up(directory.path(), environment), Signal::SIGTERM);
        let server = server.expect("the binary runs");
        let url =
            server.wait_for(|log| rest_of_line(log, "platen is listening on ")).await.expect("it starts");
        let operator = Operator::in_directory(Path::new(env!("CARGO_BIN_EXE_platen")), directory.path());
        operator.json(&["account", "create", "acme"]).expect("an account");
        let key = operator.json(&["key", "create", "--account", "acme"]).expect("a key");
        let key = key["key"].as_str().expect("a key").to_owned();
        Self { server, directory, url: url.trim_end_matches('/').to_owned(), key }
    }

    /// The status of a render of this body.
    pub(crate) async fn render(&self, headers: &[(&str, &str)], body: &'static str) -> u16 {
        platen_harness::tls::use_ring();
        let request = reqwest::Client::new().post(format!("{}/v1/render", self.url)).bearer_auth(&self.key);
        let request = request.header("content-type", "application/json").body(body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.send().await.expect("it answers").status().as_u16()
    }
}
