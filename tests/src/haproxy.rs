//! A real HAProxy with the file `deploy/haproxy/farms.cfg`.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use nix::sys::signal::Signal;
use socket2::{Domain, Socket, Type};
use tempfile::NamedTempFile;

use crate::process::Process;

/// Where Debian installs it.
const PROGRAM: &str = "/usr/sbin/haproxy";
const CONFIGURATION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/haproxy/farms.cfg");

/// A running proxy.
#[derive(Debug)]
pub struct HaProxy {
    process: Process,
    address: SocketAddr,
    /// Holds the port, which the proxy shares because it has the same user.
    _port: Socket,
    _configuration: NamedTempFile,
}

impl HaProxy {
    /// Starts it in front of these farms, which it names `farm-1`, `farm-2` and so on.
    pub async fn start(farms: &[SocketAddr]) -> Result<Self> {
        ensure!(fs::exists(PROGRAM)?, "{PROGRAM} does not exist: install haproxy");
        let port = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        port.set_reuse_port(true)?;
        port.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())?;
        let address = port.local_addr()?.as_socket().context("an address")?;
        let shipped = fs::read_to_string(CONFIGURATION)?;
        let is_server = |line: &&str| line.starts_with("  server ");
        let mut lines: Vec<_> = shipped.lines().filter(|line| !is_server(line)).map(str::to_owned).collect();
        let bind = lines.iter_mut().find(|line| *line == "  bind :3001").context("no line `bind`")?;
        *bind = format!("  bind {address}");
        lines.extend((1..).zip(farms).map(|(number, farm)| format!("  server farm-{number} {farm}\n")));
        let configuration = NamedTempFile::new()?;
        fs::write(configuration.path(), lines.join("\n"))?;
        let mut command = Command::new(PROGRAM);
        command.arg("-db").arg("-f").arg(configuration.path());
        let process = Process::start("haproxy", &command, Signal::SIGKILL)?;
        process.wait_until(|| TcpStream::connect(address).ok()).await?;
        Ok(Self { process, address, _port: port, _configuration: configuration })
    }

    /// The `--farm-url` of the edges.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until it sends no more jobs to a farm, whose number counts from 1.
    pub async fn until_down(&self, number: usize) -> Result<()> {
        let line = format!("Server farms/farm-{number} is DOWN");
        self.process.wait_for(|log| log.contains(&line).then_some(())).await
    }
}
