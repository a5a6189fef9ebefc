//! Pages that try to get somewhere: whatever they try, no canary sees a packet, the browser talks to
//! the proxy alone, and the job is answered properly.
//!
//! Every port may be reached here, so that it is the address that keeps pages away. What a way in
//! looks like is shown by the same page against a site that may be reached.

mod attacks;
mod fortress;
mod leaks;
mod names;

use anyhow::{Context as _, Result, ensure};
use platen_tests::{case::Case, image_file::GREEN, pdf_file::Pdf, suite::Stage};
use serde_json::json;

use self::{
    attacks::{ELEMENTS, INSIDE, SCRIPTS, SECURE, SPELLINGS, WORKER, Way},
    fortress::{Fortress, SECURE_HOST},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::own_server_once("egress/elements", |stage| ways(stage, ELEMENTS)),
        Case::own_server_once("egress/scripts", |stage| ways(stage, SCRIPTS)),
        Case::own_server_once("egress/secure_contexts", secure),
        Case::own_server_once("egress/spellings", spellings),
        Case::own_server_once("egress/files_and_the_browser_itself", inside),
        Case::own_server_once("egress/navigations", navigations),
        Case::own_server_once("egress/the_services_own_ports", own_ports),
    ];
    cases.extend(names::cases());
    cases.extend(leaks::cases());
    cases
}

/// Long enough for what a page does after it has loaded.
const WAIT: u64 = 1_500;

const HEAD: &str =
    "<!doctype html><html style='background:rgb(0,128,0)'><body><div style='position:absolute;left:50px'>";

/// A page that goes all these ways to `host`.
fn page(ways: &[Way], host: &str) -> String {
    let ways = ways.iter().map(|way| {
        let path = format!("{host}/{}", way.name);
        let urls = [("WSS", "wss"), ("WS", "ws"), ("TLS", "https"), ("URL", "http")];
        let markup = urls.iter().fold(way.markup.to_owned(), |markup, (word, scheme)| {
            markup.replace(word, &format!("{scheme}://{path}"))
        });
        markup.replace("HOST", host)
    });
    HEAD.to_owned() + &ways.collect::<String>()
}

impl Fortress {
    /// The page becomes a picture, and a PDF, as if nothing were.
    async fn survives(&self, html: &str) -> Result<()> {
        let body = json!({ "html": html, "width": 40, "height": 30, "waitForTimeout": WAIT });
        self.picture(&body).await?.expect(1, 1, GREEN)?;
        let answer = self.target.render(&json!({ "html": html, "format": "pdf" })).send().await?;
        let text = Pdf::parse(answer.file("application/pdf")?)?.text()?;
        ensure!(!text.contains("root:"), "a file is shown: {text}");
        self.untouched()
    }
}

async fn ways(stage: Stage, ways: &[Way]) -> Result<()> {
    let fortress = Fortress::start(&stage).await?;
    for host in fortress.private_hosts() {
        fortress.survives(&page(ways, &host)).await.with_context(|| host)?;
    }
    // They are ways indeed.
    let host = fortress.site_host();
    let body = json!({ "html": page(ways, &host), "width": 40, "height": 30, "waitForTimeout": WAIT });
    fortress.picture(&body).await?.expect(1, 1, GREEN)?;
    fortress.reached(ways)?;
    fortress.end().await
}

async fn secure(stage: Stage) -> Result<()> {
    let fortress = Fortress::start(&stage).await?;
    fortress.put("/worker.js", "text/javascript", WORKER);
    let mut hosts = fortress.private_hosts();
    hosts.push(fortress.site_host());
    for host in hosts {
        let inside = page(SECURE, &host)
            + "<script>if (!isSecureContext) document.documentElement.style.background = 'red'</script>";
        fortress.put("/secure", "text/html", &inside);
        let address = fortress.site_url("/secure").replace(platen_tests::site::HOST, SECURE_HOST);
        let html = format!("{HEAD}<script>location = '{address}'</script>");
        let body = json!({ "html": html, "width": 40, "height": 30, "waitForTimeout": 2 * WAIT });
        fortress.picture(&body).await?.expect(1, 1, GREEN)?;
        fortress.untouched()?;
    }
    fortress.reached(SECURE)?;
    fortress.end().await
}

async fn spellings(stage: Stage) -> Result<()> {
    let fortress = Fortress::start(&stage).await?;
    let port = fortress.canary.port().to_string();
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
    fortress.survives(&(HEAD.to_owned() + &markup.concat())).await?;
    fortress.end().await
}

async fn inside(stage: Stage) -> Result<()> {
    let fortress = Fortress::start(&stage).await?;
    let port = fortress.canary.port().to_string();
    let places: Vec<String> = INSIDE.iter().map(|place| place.replace("PORT", &port)).collect();
    let markup: Vec<String> = places
        .iter()
        .map(|place| {
            format!(
                "<img src=\"{place}\"><iframe src=\"{place}\"></iframe><object data=\"{place}\"></object>\
                 <embed src=\"{place}\"><link rel=stylesheet href=\"{place}\"><script src=\"{place}\"></script>\
                 <video src=\"{place}\"></video><style>@import \"{place}\";</style>\
                 <svg><image href=\"{place}\"/></svg><a class=link href=\"{place}\" target=_blank></a>\
                 <script>try {{ fetch(\"{place}\").then(async r => document.write(await r.text())).catch(() => {{}}) }} catch {{}}\
                 try {{ open(\"{place}\") }} catch {{}}</script>"
            )
        })
        .collect();
    fortress.survives(&(HEAD.to_owned() + &markup.concat())).await?;
    // A page that goes there itself stays where it is, or is refused.
    for place in places {
        let target = json!(place);
        let html = format!("{HEAD}<script>setTimeout(() => location = {target}, 0)</script>");
        let body = json!({ "html": html, "format": "pdf", "waitForTimeout": 200 });
        let answer = fortress.target.render(&body).send().await?;
        ensure!([200, 422].contains(&answer.status), "{place}: {}", answer.summary());
        if answer.status == 200 {
            let text = Pdf::parse(answer.file("application/pdf")?)?.text()?;
            ensure!(!text.contains("root:") && !text.contains("Chromium"), "{place}: {text}");
        }
    }
    fortress.end().await
}

async fn navigations(stage: Stage) -> Result<()> {
    let fortress = Fortress::start(&stage).await?;
    for host in fortress.private_hosts() {
        for scheme in ["http", "https"] {
            let target = format!("{scheme}://{host}/secret");
            for page in [
                format!("<script>location = '{target}'</script>"),
                format!("<meta http-equiv=refresh content='0;url={target}'>"),
                format!("<form id=f method=post action='{target}'></form><script>f.submit()</script>"),
            ] {
                fortress.put("/away", "text/html", &page);
                let message = "The address of \"the page's destination\" is not public";
                let body = json!({ "html": page, "waitForTimeout": WAIT });
                fortress.target.render(&body).send().await?.error(422, message).context(page.clone())?;
                let body = json!({ "url": fortress.site_url("/away"), "waitForTimeout": WAIT });
                let named = "The address of \"site.test\" is not public";
                fortress.target.render(&body).send().await?.error(422, named).context(page)?;
            }
            for status in [301, 302, 303, 307, 308] {
                fortress.redirect("/gone", status, &target);
                for hop in (0..9).rev() {
                    let next = if hop == 8 { "/gone".to_owned() } else { format!("/hop-{}", hop + 1) };
                    fortress.redirect(&format!("/hop-{hop}"), status, &next);
                }
                for path in ["/gone", "/hop-0"] {
                    let url = fortress.site_url(path);
                    let named = "The address of \"site.test\" is not public";
                    fortress.target.render(&json!({ "url": url })).send().await?.error(422, named)?;
                    let html = format!(
                        "{HEAD}<img src='{url}'><iframe src='{url}'></iframe><script src='{url}'></script>"
                    );
                    let body = json!({ "html": html, "width": 40, "height": 30 });
                    fortress.picture(&body).await?.expect(1, 1, GREEN)?;
                }
            }
        }
    }
    fortress.end().await
}

/// Every port on which the server listens: the API's, the metrics', the farm's and those of the proxy. The
/// operator has allowed all of them, by address and by name (`--resolve`).
async fn own_ports(stage: Stage) -> Result<()> {
    let fortress = Fortress::start_with(&stage, &["--egress-allow", "127.0.0.0/8"]).await?;
    let ports = fortress.own_ports();
    // The API, the metrics and the farm, besides a proxy for each page.
    ensure!(ports.len() >= 4, "only {ports:?}");
    let hosts = ["127.0.0.1", "127.0.0.2", platen_tests::site::HOST];
    let targets = || ports.iter().flat_map(|port| hosts.map(|host| (host, *port)));
    let markup: Vec<String> = targets()
        .map(|(host, port)| {
            let target = format!("http://{host}:{port}/metrics");
            format!("<iframe src='{target}'></iframe><script>fetch('{target}', {{ mode: 'no-cors' }}).then(() => document.documentElement.style.background = 'red')</script>")
        })
        .collect();
    let body = json!({ "html": HEAD.to_owned() + &markup.concat(), "width": 40, "height": 30, "waitForTimeout": WAIT });
    fortress.picture(&body).await?.expect(1, 1, GREEN)?;
    let decided = fortress.decisions();
    for (host, port) in targets() {
        let lines: Vec<_> =
            decided.iter().filter(|line| (line.host.as_str(), line.port) == (host, port)).collect();
        let denied = !lines.is_empty() && lines.iter().all(|line| line.verdict == "own_port");
        ensure!(denied, "{host}:{port}: {lines:?}");
    }
    for url in fortress.listeners() {
        let url = url.replace("127.0.0.1", platen_tests::site::HOST);
        let message = format!("The address of \"{}\" is not public", platen_tests::site::HOST);
        fortress.target.render(&json!({ "url": url })).send().await?.error(422, &message).context(url)?;
    }
    fortress.end().await
}
