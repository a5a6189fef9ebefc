//! Renders of a URL: pictures of pages, when a page counts as loaded, and addresses that a render may not reach.

use http::StatusCode;
use platen_harness::{
    client::ErrorBody,
    image_file::RED,
    loopback::ClosedPort,
    site::{HOST, Reply, Site},
};
use platen_shared::{address::classify, page_report::PAGE_IDLE, url_rule::is_local_name};

use crate::prelude::*;
use crate::{images::picture, pdf::pdf};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case::own_server("pages/a_page", a_page),
        Case::own_server("pages/waits_for_a_late_image", waits_for_a_late_image),
        Case::own_server("pages/domcontentloaded_does_not_wait", domcontentloaded),
        Case::own_server("pages/networkidle_waits_for_requests_after_load", networkidle),
        Case::own_server("pages/networkidle_leaves_out_what_stays_open", never_idle),
        Case::own_server("pages/redirects_are_followed", redirects),
        Case::own_server("pages/redirect_to_a_private_address", |stage| {
            redirect_to_private(stage, "127.0.0.1")
        }),
        Case::own_server("pages/redirect_to_localhost", |stage| redirect_to_private(stage, "localhost")),
        Case::any_database("pages/name_not_found", name_not_found),
        Case::own_server("pages/connection_refused", connection_refused),
        Case::own_server("pages/name_of_a_private_address", name_of_a_private_address),
        Case::own_server("pages/closed_without_an_answer", closed_without_an_answer),
        Case::own_server("pages/a_refusal_names_a_field_of_its_request", fields_of_refusals),
        Case::own_server("pages/no_data_of_the_client_is_sent", no_client_data),
        Case::any_server("pages/private_addresses_are_refused_before_a_render", literal_private),
    ];
    for (name, scheme, reply, message) in refusals() {
        let run = move |stage| is_refused(stage, format!("/{name}"), scheme, reply.clone(), message);
        cases.push(Case::own_server(format!("pages/{name}"), run));
    }
    for status in [403, 404, 410, 500, 503] {
        let name = format!("pages/a_page_with_status_{status}");
        cases.push(Case::own_server(name, move |stage| answering(stage, status)));
    }
    cases
}

const PAGE: &str = "<!doctype html><body style='margin:0;background:rgb(0,128,0)'>hello</body>";

/// The shared server and its site, with a new account.
struct Scene {
    real: std::sync::Arc<platen_harness::suite::Real>,
    account: Account,
    target: Target,
}

impl Scene {
    async fn set(stage: &Stage) -> Result<Self> {
        let real = stage.real().await?;
        let (account, target) = real.app.account(Quota::Of(20)).await?;
        Ok(Self { real, account, target })
    }

    fn site(&self) -> &Site {
        &self.real.site
    }

    async fn picture(&self, mut body: Value) -> Result<Picture> {
        body["width"] = 40.into();
        body["height"] = 30.into();
        picture(&self.target, &body, "image/png").await
    }

    /// The render of a URL is a 422 with this message, and counts.
    async fn refused(&self, url: &str, message: &str) -> Result<()> {
        refused(&self.real.app, &self.account, url, message).await
    }
}

async fn refused(service: &Service, account: &Account, url: &str, message: &str) -> Result<()> {
    let before = service.operator.attempts(&account.id).await?;
    service.target(account).render(&json!({ "url": url })).send().await?.error(422, message)?;
    let counted = service.operator.attempts(&account.id).await? - before;
    ensure!(counted == 1, "a 422 is an attempt, {counted} were counted");
    Ok(())
}

async fn a_page(stage: Stage) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    let url = scene.site().put("/a-page", Reply::page(PAGE));
    scene.picture(json!({ "url": url })).await?.expect(39, 29, GREEN)?;
    let text = pdf(&scene.target, json!({ "url": format!("{url}?query#fragment") })).await?.text()?;
    ensure!(text == "hello", "{text}");
    Ok(())
}

async fn answering(stage: Stage, status: u16) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    let reply = Reply::page(PAGE).with_status(StatusCode::from_u16(status)?);
    let url = scene.site().put(&format!("/answering-{status}"), reply);
    scene.picture(json!({ "url": url })).await?.expect(39, 29, GREEN)
}

async fn waits_for_a_late_image(stage: Stage) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    let image = Reply::of("image/png", Picture::png_of(GREEN, 40, 30)?).after(Duration::from_millis(700));
    scene.site().put("/late.png", image);
    let page =
        "<body style='margin:0;background:rgb(255,0,0)'><img src='/late.png' style='display:block'></body>";
    let url = scene.site().put("/late", Reply::page(page));
    for body in [
        json!({ "url": url }),
        json!({ "url": url, "waitUntil": "load" }),
        json!({ "url": url, "waitUntil": "networkidle" }),
    ] {
        scene.picture(body.clone()).await?.expect(20, 15, GREEN).with_context(|| body.to_string())?;
    }
    Ok(())
}

async fn domcontentloaded(stage: Stage) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    let latch = Latch::closed();
    scene.site().put("/held.png", Reply::of("image/png", Picture::png_of(GREEN, 40, 30)?).behind(&latch));
    let page =
        "<body style='margin:0;background:rgb(255,0,0)'><img src='/held.png' style='display:block'></body>";
    let url = scene.site().put("/held", Reply::page(page));
    // The image is not sent while the render runs.
    let picture = scene.picture(json!({ "url": url, "waitUntil": "domcontentloaded" })).await?;
    latch.open();
    picture.expect(20, 15, RED)
}

async fn networkidle(stage: Stage) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    scene.site().put("/data", Reply::of("text/plain", "green").after(Duration::from_millis(800)));
    // In progress when `load` fires, and answered after it.
    let page = "<html style='background:rgb(255,0,0)'><body><script>
        addEventListener('load', async () => {
          const answer = await (await fetch('/data')).text();
          if (answer === 'green') document.documentElement.style.background = 'rgb(0,128,0)';
        });</script></body></html>";
    let url = scene.site().put("/chain", Reply::page(page));
    scene.picture(json!({ "url": url, "waitUntil": "networkidle" })).await?.expect(20, 15, GREEN)
}

async fn never_idle(stage: Stage) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    scene.site().put("/stays-open", Reply::never());
    for (script, idle) in [("onload = () => fetch('/stays-open')", Some("false")), ("", None)] {
        let page = format!("{PAGE}<script>{script}</script>");
        let url = scene.site().put("/never-idle", Reply::page(page));
        let body = json!({ "url": url, "waitUntil": "networkidle" });
        let answer = scene.target.render(&body).send().await?;
        let found = answer.header(PAGE_IDLE).ok();
        ensure!(answer.status == 200 && found == idle, "{found:?} on {}", answer.summary());
    }
    Ok(())
}

async fn redirects(stage: Stage) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    let end = scene.site().put("/redirect-end", Reply::page(PAGE));
    scene.site().put("/redirect-2", Reply::redirect(&end));
    let url = scene.site().put("/redirect-1", Reply::redirect("/redirect-2"));
    scene.picture(json!({ "url": url })).await?.expect(39, 29, GREEN)
}

/// Responses of which there is no picture, the scheme of the URL, and the rest of the message.
fn refusals() -> [(&'static str, &'static str, Reply, &'static str); 5] {
    const NO_PAGE: &str = "\"site.test\" did not answer with a page";
    let download = Reply::of("application/octet-stream", vec![1, 2, 3]);
    let download = download.with_header("content-disposition", "attachment");
    [
        (
            "redirect_loop",
            "http",
            Reply::redirect("/redirect_loop"),
            "\"site.test\" redirected too many times",
        ),
        ("download", "http", download, NO_PAGE),
        ("no_content", "http", Reply::page("").with_status(StatusCode::NO_CONTENT), NO_PAGE),
        ("redirect_to_a_file", "http", Reply::redirect("file:///etc/passwd"), NO_PAGE),
        ("not_tls", "https", Reply::page(PAGE), "The TLS connection to \"site.test\" failed"),
    ]
}

async fn is_refused(stage: Stage, path: String, scheme: &str, reply: Reply, message: &str) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    let url = scene.site().put(&path, reply).replacen("http", scheme, 1);
    scene.refused(&url, message).await
}

/// The message does not name the target of the redirect.
async fn redirect_to_private(stage: Stage, host: &str) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    let path = format!("/secret-of-{host}");
    let secret = scene.site().private_url(&path).replacen("127.0.0.1", host, 1);
    let url = scene.site().put(&format!("/redirect-to-{host}"), Reply::redirect(&secret));
    scene.refused(&url, &format!("The address of \"{HOST}\" is not public")).await?;
    ensure!(scene.site().hits(&path) == 0, "{secret} was reached");
    Ok(())
}

/// A name that needs no resolver: its label is longer than DNS allows.
async fn name_not_found(stage: Stage) -> Result<()> {
    let service = stage.real_service().await?;
    let account = service.operator.account(Quota::Of(1)).await?;
    let host = format!("{}.test", "a".repeat(64));
    let message = format!("The name \"{host}\" could not be resolved");
    refused(&service, &account, &format!("http://{host}/"), &message).await
}

async fn connection_refused(stage: Stage) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    let port = ClosedPort::hold()?;
    let url = port.url()?.replace("127.0.0.1", HOST);
    scene.refused(&url, &format!("\"{HOST}\" refused the connection")).await
}

/// A name with a private address in this machine's hosts file that is not a local name by rule.
fn private_name() -> Option<String> {
    let hosts = std::fs::read_to_string("/etc/hosts").ok()?;
    hosts.lines().find_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        let address = words.next()?.parse().ok()?;
        let private = !classify(address).is_public();
        words.find(|name| private && !is_local_name(name) && name.is_ascii()).map(str::to_owned)
    })
}

async fn name_of_a_private_address(stage: Stage) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    let host = private_name().context("/etc/hosts needs a name with a private address besides localhost")?;
    scene.site().put("/secret-by-hosts", Reply::page(PAGE));
    let url = scene.site().private_url("/secret-by-hosts").replace("127.0.0.1", &host);
    // The port of the site is not allowed, and ports are checked before names.
    scene.refused(&url, &format!("The port of \"{host}\" is not allowed")).await?;
    ensure!(scene.site().hits("/secret-by-hosts") == 0, "{host} was reached");
    Ok(())
}

async fn closed_without_an_answer(stage: Stage) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    let server =
        platen_harness::loopback::Loopback::start(|_| async { Err(platen_harness::loopback::BreakOff) })
            .await?;
    let url = format!("http://{HOST}:{}/", server.address().port());
    scene.refused(&url, &format!("The connection to \"{HOST}\" failed")).await
}

async fn fields_of_refusals(stage: Stage) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    let template = scene.real.app.operator.template(&scene.account.id, "T", "<p>x").await?;
    let port = ClosedPort::hold()?;
    let closed = port.url()?.replace("127.0.0.1", HOST);
    let unknown = format!("http://{}.test/", "a".repeat(64));
    let going = format!("<script>location = '{closed}'</script>");
    let (refused, not_public) =
        (format!("\"{HOST}\" refused the connection"), format!("The address of \"{HOST}\" is not public"));
    let not_found = format!("The name \"{}.test\" could not be resolved", "a".repeat(64));
    for (body, message, field) in [
        (json!({ "url": closed }), &refused, Some("url")),
        (json!({ "html": "x", "baseUrl": closed }), &not_public, Some("baseUrl")),
        (json!({ "html": "x", "baseUrl": unknown }), &not_found, Some("baseUrl")),
        (json!({ "templateId": template, "baseUrl": unknown }), &not_found, Some("baseUrl")),
        // The page has chosen the host.
        (json!({ "html": going, "waitForTimeout": 1000 }), &refused, None),
    ] {
        let request = if body.get("templateId").is_some() {
            scene.target.render_template(&body)
        } else {
            scene.target.render(&body)
        };
        let answer = request.send().await?;
        answer.error(422, message)?;
        let named = ErrorBody::read(answer.status, &answer.body)?.field;
        ensure!(named.as_deref() == field, "{body}: {named:?}");
    }
    Ok(())
}

/// The site gets no data of the client.
async fn no_client_data(stage: Stage) -> Result<()> {
    let scene = Scene::set(&stage).await?;
    let page = "<body><script>document.write(document.referrer || 'no referrer', ' ', document.cookie || 'no cookie')</script>";
    let url = scene.site().put("/headers", Reply::page(page));
    let text = pdf(&scene.target, json!({ "url": url })).await?.text()?;
    ensure!(text == "no referrer no cookie", "{text}");
    let headers = scene.site().last_headers("/headers").context("the page was not requested")?;
    let key = scene.target.key.as_str();
    for (name, value) in &headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        ensure!(!value.contains(key) && !value.contains(&scene.account.id), "{name}: {value}");
        let forbidden =
            ["authorization", "cookie", "referer", "traceparent", "x-request-id", "x-forwarded-for"];
        ensure!(!forbidden.contains(&name.as_str()), "{name}: {value}");
    }
    Ok(())
}

async fn literal_private(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    // The other addresses are in the golden cases; this is the port of the server itself.
    let answer = target.render(&json!({ "url": target.base_url })).send().await?;
    answer.error(400, "\"url\" must be reachable from the public internet")
}
