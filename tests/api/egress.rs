//! SSRF: pages that try to reach private addresses. No canary gets a packet, the browser connects only to the proxy, and
//! the job is answered.
//!
//! All ports are allowed, so only the address protects a target. The same page against an allowed site proves that each
//! technique works.

mod attacks;
mod leaks;
mod names;
mod ssrf_harness;

use self::{
    attacks::{ELEMENTS, INTERNAL_URLS, SCRIPTS, SECURE, SPELLINGS, Technique, WORKER},
    ssrf_harness::{SECURE_HOST, SsrfHarness},
};
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::own_server("egress/elements", |stage| techniques(stage, ELEMENTS)),
        Case::own_server("egress/scripts", |stage| techniques(stage, SCRIPTS)),
        Case::own_server("egress/secure_contexts", secure),
        Case::own_server("egress/spellings", spellings),
        Case::own_server("egress/files_and_internal_pages", internal_urls),
        Case::own_server("egress/navigations", navigations),
        Case::own_server("egress/the_services_own_ports", own_ports),
    ];
    cases.extend(names::cases());
    cases.extend(leaks::cases());
    cases
}

/// The wait in milliseconds for what a page does after load.
const WAIT_MS: u64 = 1_500;

const HEAD: &str =
    "<!doctype html><html style='background:rgb(0,128,0)'><body><div style='position:absolute;left:50px'>";

/// A page that tries all these techniques with `host`.
fn page(techniques: &[Technique], host: &str) -> String {
    let markup = techniques.iter().map(|technique| {
        let path = format!("{host}/{}", technique.name);
        let urls = [("WSS", "wss"), ("WS", "ws"), ("TLS", "https"), ("URL", "http")];
        let markup = urls.iter().fold(technique.markup.to_owned(), |markup, (word, scheme)| {
            markup.replace(word, &format!("{scheme}://{path}"))
        });
        markup.replace("HOST", host)
    });
    HEAD.to_owned() + &markup.collect::<String>()
}

impl SsrfHarness {
    /// Checks that the page is rendered as a picture and as a PDF, and reaches no canary.
    async fn is_rendered(&self, html: &str) -> Result<()> {
        let body = json!({ "html": html, "width": 40, "height": 30, "waitForTimeout": WAIT_MS });
        self.picture(&body).await?.expect(1, 1, GREEN)?;
        let answer = self.target.render(&json!({ "html": html, "format": "pdf" })).send().await?;
        let text = Pdf::parse(answer.file("application/pdf")?)?.text()?;
        ensure!(!text.contains("root:"), "the text of a file: {text}");
        self.untouched().await
    }
}

async fn techniques(stage: Stage, techniques: &[Technique]) -> Result<()> {
    let harness = SsrfHarness::start(&stage).await?;
    for host in harness.private_hosts() {
        harness.is_rendered(&page(techniques, &host)).await.with_context(|| host)?;
    }
    // Each technique works against an allowed host.
    let host = harness.site_host();
    let body =
        json!({ "html": page(techniques, &host), "width": 40, "height": 30, "waitForTimeout": WAIT_MS });
    harness.picture(&body).await?.expect(1, 1, GREEN)?;
    harness.reached(techniques)?;
    harness.end().await
}

async fn secure(stage: Stage) -> Result<()> {
    let harness = SsrfHarness::start(&stage).await?;
    harness.put("/worker.js", "text/javascript", WORKER);
    let mut hosts = harness.private_hosts();
    hosts.push(harness.site_host());
    for host in hosts {
        let secure_page = page(SECURE, &host)
            + "<script>if (!isSecureContext) document.documentElement.style.background = 'red'</script>";
        harness.put("/secure", "text/html", &secure_page);
        let address = harness.site_url("/secure").replace(platen_harness::site::HOST, SECURE_HOST);
        let html = format!("{HEAD}<script>location = '{address}'</script>");
        let body = json!({ "html": html, "width": 40, "height": 30, "waitForTimeout": 2 * WAIT_MS });
        harness.picture(&body).await?.expect(1, 1, GREEN)?;
        harness.untouched().await?;
    }
    harness.reached(SECURE)?;
    harness.end().await
}

async fn spellings(stage: Stage) -> Result<()> {
    let harness = SsrfHarness::start(&stage).await?;
    let port = harness.canary.port().to_string();
    let targets = SPELLINGS.iter().map(|spelling| spelling.replace("PORT", &port));
    let markup: Vec<String> = targets
        .map(|target| {
            let text = json!(target).to_string().replace('<', "\\u003c");
            format!(
                "<script>{{ const target = {text};
                 new Image().src = target;
                 try {{ fetch(target, {{ mode: 'no-cors' }}).catch(() => {{}}) }} catch {{}}
                 const frame = document.createElement('iframe'); frame.src = target; document.body.append(frame);
                 try {{ new WebSocket(target.replace('http', 'ws')) }} catch {{}} }}</script>"
            )
        })
        .collect();
    harness.is_rendered(&(HEAD.to_owned() + &markup.concat())).await?;
    harness.end().await
}

async fn internal_urls(stage: Stage) -> Result<()> {
    let harness = SsrfHarness::start(&stage).await?;
    let port = harness.canary.port().to_string();
    let urls: Vec<String> = INTERNAL_URLS.iter().map(|url| url.replace("PORT", &port)).collect();
    let markup: Vec<String> = urls
        .iter()
        .map(|url| {
            format!(
                "<img src=\"{url}\"><iframe src=\"{url}\"></iframe><object data=\"{url}\"></object>\
                 <embed src=\"{url}\"><link rel=stylesheet href=\"{url}\"><script src=\"{url}\"></script>\
                 <video src=\"{url}\"></video><style>@import \"{url}\";</style>\
                 <svg><image href=\"{url}\"/></svg><a class=link href=\"{url}\" target=_blank></a>\
                 <script>try {{ fetch(\"{url}\").then(async r => document.write(await r.text())).catch(() => {{}}) }} catch {{}}\
                 try {{ open(\"{url}\") }} catch {{}}</script>"
            )
        })
        .collect();
    harness.is_rendered(&(HEAD.to_owned() + &markup.concat())).await?;
    // A page that navigates there stays where it is, or is refused.
    for url in urls {
        let target = json!(url);
        let html = format!("{HEAD}<script>setTimeout(() => location = {target}, 0)</script>");
        let body = json!({ "html": html, "format": "pdf", "waitForTimeout": 200 });
        let answer = harness.target.render(&body).send().await?;
        ensure!([200, 422].contains(&answer.status), "{url}: {}", answer.summary());
        if answer.status == 200 {
            let text = Pdf::parse(answer.file("application/pdf")?)?.text()?;
            ensure!(!text.contains("root:") && !text.contains("Chromium"), "{url}: {text}");
        }
    }
    harness.end().await
}

async fn navigations(stage: Stage) -> Result<()> {
    let harness = SsrfHarness::start(&stage).await?;
    for host in harness.private_hosts() {
        for scheme in ["http", "https"] {
            let target = format!("{scheme}://{host}/secret");
            for page in [
                format!("<script>location = '{target}'</script>"),
                format!("<meta http-equiv=refresh content='0;url={target}'>"),
                format!("<form id=f method=post action='{target}'></form><script>f.submit()</script>"),
            ] {
                harness.put("/away", "text/html", &page);
                let message = "The address of \"the page's destination\" is not public";
                let body = json!({ "html": page, "waitForTimeout": WAIT_MS });
                harness.target.render(&body).send().await?.error(422, message).context(page.clone())?;
                let body = json!({ "url": harness.site_url("/away"), "waitForTimeout": WAIT_MS });
                let named = "The address of \"site.test\" is not public";
                harness.target.render(&body).send().await?.error(422, named).context(page)?;
            }
            for status in [301, 302, 303, 307, 308] {
                harness.redirect("/gone", status, &target);
                for hop in (0..9).rev() {
                    let next = if hop == 8 { "/gone".to_owned() } else { format!("/hop-{}", hop + 1) };
                    harness.redirect(&format!("/hop-{hop}"), status, &next);
                }
                for path in ["/gone", "/hop-0"] {
                    let url = harness.site_url(path);
                    let named = "The address of \"site.test\" is not public";
                    harness.target.render(&json!({ "url": url })).send().await?.error(422, named)?;
                    let html = format!(
                        "{HEAD}<img src='{url}'><iframe src='{url}'></iframe><script src='{url}'></script>"
                    );
                    let body = json!({ "html": html, "width": 40, "height": 30 });
                    harness.picture(&body).await?.expect(1, 1, GREEN)?;
                }
            }
        }
    }
    harness.end().await
}

/// Every port on which the farm's process listens: farm and proxies, in `platen up` also API and metrics. The operator
/// has allowed all of them, by address and by name (`--resolve`).
async fn own_ports(stage: Stage) -> Result<()> {
    let harness = SsrfHarness::start_with(&stage, &["--egress-allow", "127.0.0.0/8"]).await?;
    let ports = harness.own_ports();
    // The listeners of the service, and at least one page's proxy.
    ensure!(ports.len() > harness.service_ports(), "only {ports:?}");
    let hosts = ["127.0.0.1", "127.0.0.2", platen_harness::site::HOST];
    let targets = || ports.iter().flat_map(|port| hosts.map(|host| (host, *port)));
    let markup: Vec<String> = targets()
        .map(|(host, port)| {
            let target = format!("http://{host}:{port}/metrics");
            format!("<iframe src='{target}'></iframe><script>fetch('{target}', {{ mode: 'no-cors' }}).then(() => document.documentElement.style.background = 'red')</script>")
        })
        .collect();
    let body = json!({ "html": HEAD.to_owned() + &markup.concat(), "width": 40, "height": 30, "waitForTimeout": WAIT_MS });
    harness.picture(&body).await?.expect(1, 1, GREEN)?;
    let decided = harness.decisions();
    for (host, port) in targets() {
        let lines: Vec<_> =
            decided.iter().filter(|line| (line.host.as_str(), line.port) == (host, port)).collect();
        let denied = !lines.is_empty() && lines.iter().all(|line| line.verdict == "own_port");
        ensure!(denied, "{host}:{port}: {lines:?}");
    }
    for url in harness.listeners()? {
        let url = url.replace("127.0.0.1", platen_harness::site::HOST);
        let message = format!("The address of \"{}\" is not public", platen_harness::site::HOST);
        harness.target.render(&json!({ "url": url })).send().await?.error(422, &message).context(url)?;
    }
    harness.end().await
}
