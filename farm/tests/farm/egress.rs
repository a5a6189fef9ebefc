//! The operator's settings of the egress guard. Where pages try to go on their own is in the
//! black-box suite.

use std::sync::Arc;

use platen_farm::{Config, Farm};
use platen_shared::{job::RenderJob, refusal::Refusal};

use crate::{
    Test,
    support::{GREEN, PATIENCE, Shared, farm, green_if, html, middle, upstream::Proxy, url},
};

pub(crate) const TESTS: &[Test] = &[
    ("a job has so many connections and no more", |s| Box::pin(connections(s))),
    ("a job has so many bytes and no more", |s| Box::pin(bytes(s))),
    ("a job's connections are cut after so long", |s| Box::pin(time(s))),
    ("what the operator denies is denied, whatever else he says", |s| Box::pin(denied(s))),
    ("what the operator allows is allowed, on the allowed ports", |s| Box::pin(allowed(s))),
    ("an upstream proxy is asked for judged addresses only", |s| Box::pin(upstream(s))),
];

async fn small(change: impl FnOnce(&mut Config)) -> Farm {
    farm(|config| {
        config.browsers = 1.try_into().ok();
        change(config);
    })
    .await
}

/// Green if the request fails.
fn green_unless(request: &str) -> RenderJob {
    let page = format!(
        "<!doctype html><script>const green = () => document.documentElement.style.background = 'green';\
         {request}</script>"
    );
    let mut job = html(&page);
    job.wait_for_timeout = 3_000.0.try_into().unwrap();
    job
}

async fn is_green(farm: &Farm, job: &RenderJob) {
    assert_eq!(middle(&farm.render(job, PATIENCE).await.unwrap()), GREEN, "{:?}", job.source);
}

fn not_public(host: &str) -> Refusal {
    Refusal::AddressNotPublic { host: host.to_owned() }
}

async fn connections(shared: Arc<Shared>) {
    let farm = small(|config| config.egress.connections = 5.try_into().unwrap()).await;
    // Each is asked for, whether it is allowed or not.
    let page = format!(
        "Promise.allSettled([...Array(10).keys()].map(i => fetch('http://10.0.0.1:' + (8000 + i))))\
         .then(() => fetch('{}', {{ mode: 'no-cors' }}).catch(green))",
        shared.site.at("/green")
    );
    is_green(&farm, &green_unless(&page)).await;
    // The next job has its own.
    assert_eq!(middle(&farm.render(&url(&shared.site.at("/green")), PATIENCE).await.unwrap()), GREEN);
    farm.shutdown().await;
}

async fn bytes(shared: Arc<Shared>) {
    let farm = small(|config| config.egress.megabytes = 1.try_into().unwrap()).await;
    let large = format!("fetch('{}').then(answer => answer.text()).catch(green)", shared.site.at("/large"));
    is_green(&farm, &green_unless(&large)).await;
    let then = format!(
        "fetch('{}').then(answer => answer.text()).catch(() => fetch('{}', {{ mode: 'no-cors' }}).catch(green))",
        shared.site.at("/large"),
        shared.site.elsewhere("/green")
    );
    is_green(&farm, &green_unless(&then)).await;
    assert_eq!(middle(&farm.render(&url(&shared.site.at("/green")), PATIENCE).await.unwrap()), GREEN);
    farm.shutdown().await;
}

async fn time(shared: Arc<Shared>) {
    let farm = small(|config| config.egress.seconds = 1.try_into().unwrap()).await;
    let late = format!(
        "fetch('{}', {{ mode: 'no-cors' }}).catch(() => fetch('{}', {{ mode: 'no-cors' }}).catch(green))",
        shared.site.at("/never"),
        shared.site.at("/green")
    );
    is_green(&farm, &green_unless(&late)).await;
    assert_eq!(middle(&farm.render(&url(&shared.site.at("/green")), PATIENCE).await.unwrap()), GREEN);
    farm.shutdown().await;
}

async fn denied(shared: Arc<Shared>) {
    let site = &shared.site;
    let farm = small(|config| {
        config.egress.deny = vec!["page.test".parse().unwrap()];
        config.egress.allow = vec!["page.test".parse().unwrap(), "*.test".parse().unwrap()];
    });
    let farm = farm.await;
    let page = url(&site.at("/green"));
    assert_eq!(farm.render(&page, PATIENCE).await.unwrap_err(), not_public("page.test"));
    assert_eq!(middle(&farm.render(&url(&site.elsewhere("/green")), PATIENCE).await.unwrap()), GREEN);
    farm.shutdown().await;

    let farm = small(|config| config.egress.deny = vec!["127.0.0.0/8".parse().unwrap()]).await;
    assert_eq!(farm.render(&page, PATIENCE).await.unwrap_err(), not_public("page.test"));
    farm.shutdown().await;
}

async fn allowed(shared: Arc<Shared>) {
    let site = &shared.site;
    let go = |host: &str| {
        let mut job = html(&format!("<script>location = 'http://{host}:{}/green'</script>", site.port()));
        job.wait_for_timeout = 1_000.0.try_into().unwrap();
        job
    };
    let farm = small(|config| {
        config.egress.allow = ["*.localhost", "127.0.0.0/8"].map(|place| place.parse().unwrap()).into();
        config.egress.ports = format!("80,{}", site.port()).parse().unwrap();
        config.resolve.push("wiki.localhost=127.0.0.1".parse().unwrap());
    });
    let farm = farm.await;
    is_green(&farm, &go("127.0.0.1")).await;
    is_green(&farm, &go("wiki.localhost")).await;
    // From a first document of a page and from a later one, which Chromium does not take for alike.
    for host in ["127.0.0.1", "wiki.localhost", "127.0.0.1"] {
        let fetch =
            format!("fetch('http://{host}:{}/green', {{ mode: 'no-cors' }}).then(green)", site.port());
        is_green(&farm, &green_unless(&fetch)).await;
        is_green(&farm, &html(&green_if("true"))).await;
        is_green(&farm, &green_unless(&fetch)).await;
    }
    assert_eq!(farm.render(&go("localhost"), PATIENCE).await.unwrap_err(), not_public("localhost"));
    farm.shutdown().await;

    let farm = small(|config| config.egress.allow = vec!["127.0.0.1".parse().unwrap()]).await;
    let nameless = not_public("the page's destination");
    assert_eq!(farm.render(&go("127.0.0.1"), PATIENCE).await.unwrap_err(), nameless);
    farm.shutdown().await;
}

async fn upstream(shared: Arc<Shared>) {
    let site = &shared.site;
    let proxy = Proxy::start(true).await;
    let farm = small(|config| config.egress.proxy = Some(proxy.url().into())).await;
    assert_eq!(middle(&farm.render(&url(&site.at("/green")), PATIENCE).await.unwrap()), GREEN);
    let host = || "page.test".to_owned();
    let tls = farm.render(&url(&site.without_tls()), PATIENCE).await.unwrap_err();
    assert_eq!(tls, Refusal::Tls { host: host() });
    let before = proxy.heads().len();
    let redirect = url(&site.at(&format!("/to?{}", site.forbidden())));
    assert_eq!(farm.render(&redirect, PATIENCE).await.unwrap_err(), not_public("page.test"));
    assert!(before >= 2 && proxy.heads().len() == before + 1, "{:?}", proxy.heads());
    for head in proxy.heads() {
        assert!(head.starts_with(&format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n", site.port())), "{head}");
        assert!(
            head.contains("\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n") && !head.contains(".test"),
            "{head}"
        );
    }
    farm.shutdown().await;

    let unwilling = Proxy::start(false).await;
    let farm = small(|config| config.egress.proxy = Some(unwilling.url().into())).await;
    let refusal = farm.render(&url(&site.at("/green")), PATIENCE).await.unwrap_err();
    assert_eq!(refusal, Refusal::ConnectionFailed { host: host() });
    farm.shutdown().await;

    let config = Config { egress: bad_proxy(), ..Config::default() };
    let error = Farm::start(config).await.unwrap_err().to_string();
    assert!(error.contains("PLATEN_EGRESS_PROXY") && !error.contains("s3cret"), "{error}");
}

fn bad_proxy() -> platen_farm::EgressConfig {
    platen_farm::EgressConfig {
        proxy: Some("https://user:s3cret@proxy.example".into()),
        ..Default::default()
    }
}
