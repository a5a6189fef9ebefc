//! A real HAProxy with a file of `deploy/haproxy`.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
};

use anyhow::{Result, ensure};
use nix::{sys::signal::Signal, unistd::Uid};
use socket2::Socket;
use tempfile::TempDir;

use crate::{loopback, process::Process, tls};

/// Where Debian installs it.
const PROGRAM: &str = "/usr/sbin/haproxy";
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/haproxy");

#[derive(Debug)]
pub struct HaProxy {
    process: Process,
    address: SocketAddr,
    _port: Socket,
    _files: TempDir,
}

impl HaProxy {
    /// Starts it with `farms.cfg` in front of these farms, which it names `farm-1`, `farm-2` and so on.
    pub async fn start(farms: &[SocketAddr]) -> Result<Self> {
        let servers = (1..).zip(farms).map(|(number, farm)| format!("  server farm-{number} {farm}"));
        let servers = servers.collect::<Vec<_>>().join("\n");
        Self::run("farms.cfg", ":3001", &servers, TempDir::new()?).await
    }

    /// Starts it with `edge.cfg`, and the certificate of `localhost` of [`tls::issuer`], in front of this server.
    pub async fn for_internet(server: SocketAddr) -> Result<Self> {
        let files = TempDir::new()?;
        fs::write(files.path().join("platen.pem"), tls::localhost_pem())?;
        Self::run("edge.cfg", ":443", &format!("  server platen {server}"), files).await
    }

    /// Starts it with a shipped file whose lines `server` are these, and which listens on a free port instead of `listen`
    /// and has its certificate in `files`.
    async fn run(shipped: &str, listen: &str, servers: &str, files: TempDir) -> Result<Self> {
        ensure!(fs::exists(PROGRAM)?, "{PROGRAM} does not exist: install haproxy");
        let (port, address) = loopback::reserve_port()?;
        let text = fs::read_to_string(Path::new(DIRECTORY).join(shipped))?;
        let text = text.replace("/etc/haproxy", &files.path().to_string_lossy());
        // Only root can become another user.
        let mut left_out = vec!["  server ", "  bind :80"];
        if !Uid::effective().is_root() {
            left_out.extend(["  user ", "  group "]);
        }
        let lines = text.lines().filter(|line| !left_out.iter().any(|start| line.starts_with(start)));
        let mut configuration = lines.collect::<Vec<_>>().join("\n") + "\n";
        let bind = format!("  bind {listen}");
        ensure!(configuration.contains(&bind), "{shipped} has no line{bind}");
        configuration = configuration.replace(&bind, &format!("  bind {address}")) + servers + "\n";
        let file = files.path().join("haproxy.cfg");
        fs::write(&file, configuration)?;
        let mut command = Command::new(PROGRAM);
        command.arg("-db").arg("-f").arg(file);
        let process = Process::start("haproxy", &command, Signal::SIGKILL)?;
        process.wait_until(|| TcpStream::connect(address).ok()).await?;
        Ok(Self { process, address, _port: port, _files: files })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The `--farm-url` of the edges.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until it sends no more jobs to a farm, whose number counts from 1.
    pub async fn until_down(&self, number: usize) -> Result<()> {
        let line = format!("Server farms/farm-{number} is DOWN");
        self.process.wait_for(|log| log.contains(&line).then_some(())).await
    }
}
