//! A server with a site and a name server of the attacker, canaries on private addresses, and a monitor of all sockets of
//! its browsers.
//!
//! Invariant: [`SsrfHarness::end`] fails if a canary got a packet, if a browser had a socket to anything but the proxy,
//! or if a connection was allowed that the case does not expect.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use http::StatusCode;
use platen_harness::{
    canary::Canary,
    dns::NameServer,
    procfs::Socket,
    site::{self, Reply, Site},
};

use super::attacks::Technique;
use crate::images::picture;
use crate::prelude::*;

/// A name whose pages are secure contexts without TLS.
pub(super) const SECURE_HOST: &str = "app.localhost";
/// An address that the operator allows, as a substitute for a public one.
pub(super) const ALLOWED: &str = "127.0.0.9";

/// The server and its surroundings.
pub(super) struct SsrfHarness {
    pub(super) target: Target,
    pub(super) canary: Canary,
    pub(super) names: NameServer,
    app: TestApp,
    site: Site,
    monitor: SocketMonitor,
}

/// A log line of the egress guard.
#[derive(Debug, Clone)]
pub(super) struct Decision {
    pub(super) job: String,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) verdict: String,
}

impl SsrfHarness {
    pub(super) async fn start(stage: &Stage) -> Result<Self> {
        Self::start_with(stage, &[]).await
    }

    pub(super) async fn start_with(stage: &Stage, arguments: &[&str]) -> Result<Self> {
        let (site, canary, names) =
            (Site::start().await?, Canary::start().await?, NameServer::start().await?);
        let mut options = Options::own_farm(stage.deployment).resolving(site::HOST).resolving(SECURE_HOST);
        let own = ["--egress-ports", "1-65535", "--egress-allow", ALLOWED, "--dns"];
        let more = own
            .iter()
            .copied()
            .chain([names.address().to_string().as_str()])
            .map(str::to_owned)
            .collect::<Vec<_>>();
        options.arguments.extend(more.into_iter().chain(arguments.iter().map(|text| (*text).to_owned())));
        let app = stage.start(&options).await?;
        let (_, target) = app.account(Quota::Unlimited).await?;
        for (name, addresses) in [
            ("127-0-0-1.nip.test", &["127.0.0.1"][..]),
            ("127.0.0.1.nip.test", &["127.0.0.1"]),
            ("under_score.nip.test", &["127.0.0.1"]),
            ("six.nip.test", &["::1"]),
            ("mapped.nip.test", &["::ffff:127.0.0.1"]),
            ("nat64.nip.test", &["64:ff9b::7f00:1"]),
            ("mixed.nip.test", &[ALLOWED, "127.0.0.1"]),
            ("mixed6.nip.test", &[ALLOWED, "::1"]),
            ("unspecified.nip.test", &["0.0.0.0"]),
            ("metadata.nip.test", &["169.254.169.254"]),
        ] {
            names.put(name, addresses);
        }
        let monitor = SocketMonitor::start(app.farm_process().pid());
        Ok(Self { target, canary, names, app, site, monitor })
    }

    /// Canaries by host and port: on loopback, and on a private address if this machine has one.
    pub(super) fn private_hosts(&self) -> Vec<String> {
        let port = self.canary.port();
        let addresses = self.canary.addresses();
        let loopback = addresses.iter().filter(|address| address.is_loopback()).take(1);
        let private = addresses.iter().filter(|address| !address.is_loopback()).take(1);
        let hosts = loopback.chain(private).map(|address| SocketAddr::from((*address, port)).to_string());
        let hosts: Vec<String> = hosts.collect();
        if hosts.len() < 2 {
            eprintln!(
                "this machine has no private address besides loopback; canaries listen on loopback only"
            );
        }
        hosts
    }

    /// Host and port of the site.
    pub(super) fn site_host(&self) -> String {
        self.site.url("").trim_start_matches("http://").to_owned()
    }

    pub(super) fn site_url(&self, path: &str) -> String {
        self.site.url(path)
    }

    pub(super) fn put(&self, path: &str, content_type: &str, body: &str) {
        // A cached answer must not replace a request.
        let reply = Reply::of(content_type, body.to_owned()).with_header("cache-control", "no-store");
        self.site.put(path, reply);
    }

    pub(super) fn put_cached(&self, path: &str, body: &str) {
        let reply = Reply::of("text/plain", body.to_owned()).with_header("cache-control", "max-age=9999");
        self.site.put(path, reply);
    }

    /// The server with the key of another account.
    pub(super) async fn other_account(&self) -> Result<Target> {
        Ok(self.app.target(&self.app.operator.account(Quota::Unlimited).await?))
    }

    pub(super) fn redirect(&self, path: &str, status: u16, to: &str) {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::FOUND);
        let reply = Reply::redirect(to).with_status(status).with_header("cache-control", "no-store");
        self.site.put(path, reply);
    }

    pub(super) async fn picture(&self, body: &Value) -> Result<Picture> {
        picture(&self.target, body, "image/png").await
    }

    /// Checks that each technique that sends plain HTTP has reached the site.
    pub(super) fn reached(&self, techniques: &[Technique]) -> Result<()> {
        let missing: Vec<&str> = techniques
            .iter()
            .filter(|technique| technique.reaches && self.site.hits(&format!("/{}", technique.name)) == 0)
            .map(|technique| technique.name)
            .collect();
        ensure!(missing.is_empty(), "these techniques do not work: {missing:?}");
        Ok(())
    }

    /// Checks that no canary has got a packet.
    pub(super) async fn untouched(&self) -> Result<()> {
        let visits = self.canary.visits().await?;
        ensure!(visits.is_empty(), "a canary was reached: {visits:?}");
        Ok(())
    }

    /// The log lines of the egress guard.
    pub(super) fn decisions(&self) -> Vec<Decision> {
        self.app.farm_process().log().lines().filter_map(decision).collect()
    }

    /// The number of connections with this verdict.
    pub(super) async fn counted(&self, verdict: &str) -> Result<u64> {
        self.app.metric(&format!("platen_farm_egress_total{{verdict=\"{verdict}\"}}")).await
    }

    /// The URLs of the metrics and, where the farm's process serves it, of the API.
    pub(super) fn listeners(&self) -> Result<Vec<String>> {
        let metrics = self.app.metrics_url()?.to_owned();
        let api = (!self.app.has_farm_process()).then(|| self.app.base_url.clone());
        Ok([metrics].into_iter().chain(api).collect())
    }

    /// The number of ports of the farm's process besides the proxies: the farm, in `platen up` also API and metrics.
    pub(super) fn service_ports(&self) -> usize {
        if self.app.has_farm_process() { 1 } else { 3 }
    }

    /// The ports on which the farm's process listens.
    pub(super) fn own_ports(&self) -> Vec<u16> {
        procfs::listening(self.app.farm_process().pid()).into_iter().map(|address| address.port()).collect()
    }

    /// The final checks.
    pub(super) async fn end(mut self) -> Result<()> {
        let allowed = [site::HOST, SECURE_HOST, ALLOWED];
        let decisions = self.decisions();
        let stray: Vec<&Decision> = decisions
            .iter()
            .filter(|line| ["public", "operator"].contains(&line.verdict.as_str()))
            .filter(|line| !allowed.contains(&line.host.as_str()) && !line.host.starts_with("rebind"))
            .collect();
        ensure!(stray.is_empty(), "unexpected allowed connections: {stray:?}");
        let own: Vec<&Decision> = decisions.iter().filter(|line| line.verdict == "browser").collect();
        ensure!(own.is_empty(), "the browser itself sent requests: {own:?}");
        let metric = self.app.metric("platen_farm_egress_total").await?;
        ensure!(metric > 0, "no connection was counted");
        let sockets = self.monitor.end();
        let ports: HashSet<u16> = sockets.proxies;
        let stray: Vec<&Socket> = sockets
            .seen
            .iter()
            .filter(|socket| {
                let to_proxy = socket.protocol == "tcp"
                    && socket.remote.ip().is_loopback()
                    // The proxy of a page may be closed before its connections are.
                    && (ports.contains(&socket.remote.port()) || !(socket.is_open || socket.listens));
                // A new socket has no address yet.
                let nowhere = socket.remote.port() == 0 && socket.local.port() == 0;
                // WebRTC binds a port before it finds that it may not use it; a packet would reach a canary.
                let silent = socket.protocol.starts_with("udp")
                    && socket.remote.port() == 0
                    && socket.local.ip().is_unspecified();
                let silent = silent || is_route_probe(socket);
                !to_proxy && !nowhere && !silent
            })
            .collect();
        ensure!(stray.is_empty(), "a browser has other sockets than those to the proxy: {stray:?}");
        ensure!(sockets.samples > 0, "the sockets were never read");
        self.untouched().await
    }
}

/// Chromium's check for IPv6 and IPv4 routes: it connects a UDP socket to a name server of Google and closes it without
/// sending anything.
fn is_route_probe(socket: &Socket) -> bool {
    let probed = ["8.8.8.8", "2001:4860:4860::8888"];
    socket.protocol.starts_with("udp")
        && [53, 443].contains(&socket.remote.port())
        && probed.contains(&socket.remote.ip().to_string().as_str())
}

/// `… egress job="…" host=… port=… address=… verdict="…"`
fn decision(line: &str) -> Option<Decision> {
    let (_, fields) = line.split_once(": egress ")?;
    let fields: HashMap<&str, &str> =
        fields.split_whitespace().filter_map(|field| field.split_once('=')).collect();
    Some(Decision {
        job: fields.get("job")?.trim_matches('"').to_owned(),
        host: (*fields.get("host")?).to_owned(),
        port: fields.get("port")?.parse().ok()?,
        verdict: fields.get("verdict")?.trim_matches('"').to_owned(),
    })
}

/// Reads the sockets of all browsers of a farm periodically.
struct SocketMonitor {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    seen: Arc<Mutex<Sockets>>,
}

#[derive(Debug, Default)]
struct Sockets {
    /// Sockets of browsers.
    seen: HashSet<Socket>,
    /// Ports on which the farm's process has listened, among them the proxies of pages.
    proxies: HashSet<u16>,
    samples: usize,
}

impl SocketMonitor {
    fn start(farm: u32) -> Self {
        let (stop, seen) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Sockets>>::default());
        let (stopped, sockets) = (Arc::clone(&stop), Arc::clone(&seen));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let begun = Instant::now();
                let mut processes: Vec<u32> =
                    procfs::descendants(farm).into_iter().map(|id| id.pid).collect();
                processes.push(farm);
                let (own, found): (Vec<Socket>, Vec<Socket>) =
                    procfs::sockets(&processes).into_iter().partition(|socket| socket.pid == farm);
                let own = own.into_iter().filter(|socket| socket.listens).map(|socket| socket.local.port());
                let mut sockets = sockets.lock().unwrap_or_else(PoisonError::into_inner);
                sockets.proxies.extend(own);
                sockets.seen.extend(found);
                sockets.samples += 1;
                drop(sockets);
                // The kernel's tables are slow to read on some machines.
                std::thread::sleep(Duration::from_millis(5).max(3 * begun.elapsed()));
            }
        });
        Self { stop, thread: Some(thread), seen }
    }

    fn end(&mut self) -> Sockets {
        self.stop();
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for SocketMonitor {
    fn drop(&mut self) {
        self.stop();
    }
}
