//! A real nginx with the file of `deploy/nginx`.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
};

use anyhow::{Context as _, Result};
use nix::sys::signal::Signal;
use socket2::Socket;
use tempfile::TempDir;

use crate::{loopback, process::Process, settings::Settings};

const CONFIGURATION: &str = include_str!("../../deploy/nginx/links.conf");

#[derive(Debug)]
pub struct Nginx {
    address: SocketAddr,
    _process: Process,
    _port: Socket,
    _files: TempDir,
}

impl Nginx {
    /// Starts it in front of this server, on a free port and with an empty cache.
    pub async fn start(settings: &Settings, server: &str) -> Result<Self> {
        let program =
            settings.nginx.as_ref().context("set PLATEN_NGINX to what scripts/install-nginx prints")?;
        let files = TempDir::with_prefix("platen-tests-")?;
        let (port, address) = loopback::reserve_port()?;
        let file = files.path().join("nginx.conf");
        fs::write(&file, configuration(files.path(), address, server))?;
        let mut command = Command::new(program);
        command.arg("-c").arg(file).arg("-p").arg(files.path());
        let process = Process::start("nginx", &command, Signal::SIGQUIT)?;
        process.wait_until(|| TcpStream::connect(address).ok()).await?;
        Ok(Self { address, _process: process, _port: port, _files: files })
    }

    /// Its URL, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// The shipped file in a process that stays in the foreground and has all its files in a directory.
fn configuration(directory: &Path, address: SocketAddr, server: &str) -> String {
    let directory = directory.display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary = temporary.map(|name| format!("{name}_temp_path {directory}/{name};\n")).concat();
    let shipped = CONFIGURATION
        .replace("/var/cache/nginx", &directory.to_string())
        .replace("listen 80;", &format!("listen {address} reuseport;"))
        .replace("server 127.0.0.1:3000;", &format!("server {server};"));
    format!(
        "daemon off;\nmaster_process off;\npid {directory}/nginx.pid;\nerror_log stderr;\nevents {{}}\n\
         http {{\naccess_log off;\n{temporary}{shipped}}}\n"
    )
}
