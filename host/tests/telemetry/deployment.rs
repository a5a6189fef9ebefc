//! A server with a farm in its process, as a separate program.

use std::{
    io::{BufRead as _, BufReader, Read, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use platen_tests::wait::MAX_WAIT;
use serde_json::Value;

/// A program with its output. It has ended when this is dropped.
pub(crate) struct Program {
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Program {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let log = Arc::new(Mutex::new(String::new()));
        let streams: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as _),
            child.stderr.take().map(|stream| Box::new(stream) as _),
        ];
        for stream in streams.into_iter().flatten() {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let mut log = log.lock().expect("no thread panics");
                    log.push_str(&line);
                    log.push('\n');
                }
            });
        }
        Self { child, log }
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().expect("no thread panics").clone()
    }

    /// What follows a text in the log, up to white space.
    pub(crate) fn until(&self, text: &str) -> String {
        until(&format!("{text} in the log"), || {
            let log = self.log();
            let (_, rest) = log.split_once(text)?;
            let (line, _) = rest.split_once('\n')?;
            Some(line.split_whitespace().next()?.to_owned())
        })
    }

    /// Ends it by SIGTERM, and returns for how long that took.
    pub(crate) fn stop(&mut self) -> Duration {
        let began = Instant::now();
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process"));
        kill(pid, Signal::SIGTERM).expect("it runs");
        assert!(self.child.wait().expect("it ends").success(), "{}", self.log());
        began.elapsed()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn until<T>(what: &str, condition: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + MAX_WAIT;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// A server and a farm of its own, with one key.
pub(crate) struct Deployment {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) server: Program,
    url: String,
    pub(crate) key: String,
}

fn platen(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_platen"));
    command.env_clear().env("TMPDIR", directory).current_dir(directory);
    if let Some(chromium) = std::env::var_os("PLATEN_CHROMIUM") {
        command.env("PLATEN_CHROMIUM", chromium);
    }
    command
}

pub(crate) fn up(directory: &Path, environment: &[(&str, &str)]) -> Command {
    let mut command = platen(directory);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spin.toml");
    command.arg("up").arg("--manifest").arg(manifest).args(["--listen", "127.0.0.1:0", "--browsers", "1"]);
    command.envs(environment.iter().copied());
    command
}

impl Deployment {
    pub(crate) fn start(environment: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let server = Program::start(up(directory.path(), environment));
        let url = server.until("platen is listening on ");
        let json = |arguments: &[&str]| {
            let Output { status, stdout, .. } =
                platen(directory.path()).args(arguments).arg("--json").output().expect("it runs");
            assert!(status.success());
            serde_json::from_slice::<Value>(&stdout).expect("JSON")
        };
        json(&["account", "create", "acme"]);
        let key = json(&["key", "create", "--account", "acme"])["key"].as_str().expect("a key").to_owned();
        Self { directory, server, url, key }
    }

    /// The status of a render of this body.
    pub(crate) fn render(&self, headers: &[(&str, &str)], body: &str) -> u16 {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).expect("it listens");
        let headers: String =
            headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat()).collect();
        let request = format!(
            "POST /v1/render HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            self.key,
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut response = Vec::new();
        stream.read_to_end(&mut response).expect("it answers");
        let head = String::from_utf8_lossy(&response);
        head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }
}
