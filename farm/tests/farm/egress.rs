//! The settings of the egress guard. What pages try by themselves is in the black-box suite.

use std::sync::Arc;

use platen_farm::{Config, EgressConfig, Farm, FarmToken};
use platen_harness::{
    dns::NameServer, http_proxy::HttpProxy, latch::Latch, metrics, site::Reply, tls, wait::MAX_WAIT,
};
use platen_shared::{job::RenderJob, refusal::Refusal};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::{
    MAX_WAIT_MS, Shared, TOKEN, expect_green, farm,
    farm_process::FarmProcess,
    green_if, html, middle, request, send,
    site::{GREEN_PICTURE, Site},
    url, waiting,
};

tests! {
    "connections, bytes and time of a job are limited" => limits,
    "each attempt of a job has the limits of a job" => attempts,
    "an allowed host is reached on allowed ports" => allowed,
    "a denied port and a denied address are different refusals" => ports,
    "a page does not reach hosts that its request blocks" => blocked,
    "a failure of the name server is not an unknown name" => name_server,
    "the refused address of a certificate's issuer is not reported as the page's" => issuer,
    "the service's own ports are closed to pages" => own_ports,
    "an upstream proxy gets only validated addresses" => upstream,
}

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
        "<!doctype html><script>const green = () => document.documentElement.style.background = 'green',\
         get = url => fetch(url, {{ mode: 'no-cors' }});{request}</script>"
    );
    waiting(html(&page), 3_000.0)
}

fn not_public(host: &str) -> Refusal {
    Refusal::AddressNotPublic { host: host.to_owned() }
}

async fn limits(shared: Arc<Shared>) {
    type Change = fn(&mut EgressConfig);
    let (page, elsewhere) = (shared.site.at("/green"), shared.site.elsewhere("/green"));
    let large = shared.site.at("/large");
    let limits: [(Change, String); 3] = [
        // Denied connections count too.
        (
            |limits| limits.connections = 5.try_into().unwrap(),
            format!(
                "Promise.allSettled([...Array(10).keys()].map(i => fetch('http://10.0.0.1:' + (8000 + i))))\
                 .then(() => get('{page}').catch(green))"
            ),
        ),
        (
            |limits| limits.megabytes = 1.try_into().unwrap(),
            format!("fetch('{large}').then(answer => answer.text()).catch(green)"),
        ),
        (
            |limits| limits.megabytes = 1.try_into().unwrap(),
            format!(
                "fetch('{large}').then(answer => answer.text()).catch(() => get('{elsewhere}').catch(green))"
            ),
        ),
    ];
    for (change, request) in limits {
        let farm = small(|config| change(&mut config.egress)).await;
        expect_green(&farm, &green_unless(&request)).await;
        // The next job has a new limit.
        expect_green(&farm, &url(&page)).await;
        farm.shutdown().await;
    }
}

/// A page that needs more than half of a limit is rendered again after its renderer was killed, and in real time.
async fn attempts(_: Arc<Shared>) {
    const CONNECTIONS: &str =
        "Promise.allSettled([1, 2, 3].map(i => fetch('http://10.0.0.1:' + (8000 + i))))";
    let large = format!("/*{}*/ Promise.resolve()", "x".repeat(600_000));
    let (killed, stalled) = (
        // Its memory tells its renderer from those of spare pages.
        "large = new Uint8Array(1e8).fill(1); document.body.append(Object.assign(new Image(), { src: '/held' }))",
        // Without an end in virtual time.
        "setInterval(() => { const start = Date.now(); while (Date.now() === start); }, 100)",
    );
    for (limit, expensive) in
        [(["--egress-connections", "6"], CONNECTIONS), (["--egress-megabytes", "1"], large.as_str())]
    {
        let arguments = [&limit[..], &["--browsers", "1"]].concat();
        let (farm, site) = (FarmProcess::start(&arguments).await, Site::start().await);
        let latch = Latch::closed();
        site.put("/held", Reply::page("").behind(&latch));
        let page = |then: &str| {
            let last = site.elsewhere("/green");
            let page = format!(
                "<!doctype html><html style='background:red'><body><script>{expensive}\
                 .then(() => fetch('{last}', {{ mode: 'no-cors' }})).then(() => {{\
                 document.documentElement.style.background = 'green'; {then} }})</script>"
            );
            waiting(url(&site.put("/page", Reply::page(page))), 2_000.0)
        };
        let job = page(killed);
        let killing = async {
            site.until_hits("/held", 1).await;
            farm.kill_largest_renderer();
            site.until_hits("/held", 2).await;
            latch.open();
        };
        tokio::join!(farm.expect_green(&job), killing);
        assert_eq!(farm.metric("platen_farm_retries_total").await, 1);

        farm.expect_green(&page(stalled)).await;
        assert_eq!(farm.metric("platen_farm_real_time_retries_total").await, 1);
        farm.end().await;
    }
}

async fn allowed(shared: Arc<Shared>) {
    let site = &shared.site;
    let go = |host: &str| going_to(&format!("http://{host}:{}/green", site.port()));
    let farm = small(|config| {
        config.egress.allow = ["*.localhost", "127.0.0.0/8"].map(|pattern| pattern.parse().unwrap()).into();
        config.egress.ports = format!("80,{}", site.port()).parse().unwrap();
        config.resolve.push("wiki.localhost=127.0.0.1".parse().unwrap());
    });
    let farm = farm.await;
    expect_green(&farm, &go("127.0.0.1")).await;
    expect_green(&farm, &go("wiki.localhost")).await;
    // From the first document of a page and from a later one, which Chromium treats differently.
    for host in ["127.0.0.1", "wiki.localhost", "127.0.0.1"] {
        let fetch = green_unless(&format!("get('http://{host}:{}/green').then(green)", site.port()));
        for job in [&fetch, &html(&green_if("true")), &fetch] {
            expect_green(&farm, job).await;
        }
    }
    expect_green(&farm, &go("localhost")).await;
    assert_eq!(farm.render(&go("a.b.internal"), MAX_WAIT).await.unwrap_err(), not_public("a.b.internal"));
    farm.shutdown().await;

    let farm = small(|config| config.egress.allow = vec!["127.0.0.1".parse().unwrap()]).await;
    let nameless = Refusal::PortNotAllowed { host: "the page's destination".to_owned() };
    assert_eq!(farm.render(&go("127.0.0.1"), MAX_WAIT).await.unwrap_err(), nameless);
    farm.shutdown().await;
}

/// A page that navigates to an address.
fn going_to(address: &str) -> RenderJob {
    waiting(html(&format!("<script>location = '{address}'</script>")), 1_000.0)
}

async fn blocked(shared: Arc<Shared>) {
    let site = &shared.site;
    let picture = Reply::of("image/svg+xml", GREEN_PICTURE).with_header("cache-control", "max-age=9999");
    site.put("/blocked.svg", picture);
    let elsewhere = site.elsewhere("/blocked.svg");
    let socket = elsewhere.replace("http:", "ws:");
    let with = |markup: &str, hosts: Value| {
        request(
            &json!({ "html": markup, "width": 100, "height": 100, "blockHosts": hosts, "waitUntil": "networkidle" }),
        )
    };
    let shown = format!("<!doctype html><body style='margin:0;background:red'><img src='{elsewhere}'>");
    // The picture is in the caches of the page, which the account keeps.
    shared.expect_green(&with(&shown, json!(["*.other.test", "er.test", "page.test"]))).await;
    let hits = site.hits("/blocked.svg");
    for hosts in [json!(["OTHER.test."]), json!(["a.example", "*.test"])] {
        let file = shared.file(&with(&shown, hosts.clone())).await;
        assert_eq!((middle(&file), file.page.is_idle), ([255, 0, 0], true), "{hosts}");
        let ways = [
            format!("get('{elsewhere}').catch(green)"),
            format!("get('{}').catch(green)", site.elsewhere("/green")),
            format!("new WebSocket('{socket}').onerror = green"),
            format!("Object.assign(new EventSource('{elsewhere}')).onerror = green"),
            format!("navigator.sendBeacon('{elsewhere}'); green()"),
            format!(
                "new Worker(URL.createObjectURL(new Blob([`fetch('{elsewhere}', {{mode: 'no-cors'}}).catch(() => postMessage(1))`]))).onmessage = green"
            ),
        ];
        for way in ways {
            let mut job = green_unless(&way);
            job.options.block_hosts = serde_json::from_value(hosts.clone()).unwrap();
            shared.expect_green(&job).await;
        }
    }
    assert_eq!(site.hits("/blocked.svg"), hits);
    let frame =
        format!("<body style='margin:0;background:green'><iframe hidden src='{}'>", site.elsewhere("/green"));
    shared.expect_green(&with(&frame, json!(["other.test"]))).await;
    let page = site.at(&format!("/to?{}", site.elsewhere("/green")));
    for mut job in [url(&page), going_to(&site.elsewhere("/green"))] {
        job.options.block_hosts = vec!["other.test".parse().unwrap()];
        assert_eq!(shared.render(&job).await.unwrap_err(), Refusal::HostBlocked, "{:?}", job.source);
    }
}

async fn ports(shared: Arc<Shared>) {
    let closed = "http://1.1.1.1:2525/";
    let refusal = |host: &str| Refusal::PortNotAllowed { host: host.to_owned() };
    let redirect = shared.site.at(&format!("/to?{closed}"));
    for (job, host) in [
        (url(closed), "1.1.1.1"),
        (url(&redirect), "page.test"),
        (going_to(closed), "the page's destination"),
    ] {
        assert_eq!(shared.render(&job).await.unwrap_err(), refusal(host), "{:?}", job.source);
    }
    // A port that Chromium itself blocks, on an allowed host.
    assert_eq!(shared.render(&url("http://page.test:25/")).await.unwrap_err(), refusal("page.test"));
}

async fn name_server(shared: Arc<Shared>) {
    let (site, names) = (&shared.site, NameServer::start().await.unwrap());
    names.fail("down.test");
    let address = names.address().to_string().parse().unwrap();
    let farm = small(|config| config.egress.dns = vec![address]).await;
    let (down, absent) = ("http://down.test/", "http://absent.test/");
    let refusal = farm.render(&url(down), MAX_WAIT).await.unwrap_err();
    assert_eq!(refusal, Refusal::NameServerFailed);
    let not_found = Refusal::NameNotFound { host: "absent.test".to_owned() };
    assert_eq!(farm.render(&url(absent), MAX_WAIT).await.unwrap_err(), not_found);
    for job in [url(&site.at(&format!("/to?{down}"))), going_to(down)] {
        let refusal = farm.render(&job, MAX_WAIT).await.unwrap_err();
        assert_eq!(refusal, Refusal::NameServerFailed, "{:?}", job.source);
    }
    let not_found = Refusal::NameNotFound { host: "page.test".to_owned() };
    let redirect = url(&site.at(&format!("/to?{absent}")));
    assert_eq!(farm.render(&redirect, MAX_WAIT).await.unwrap_err(), not_found);
    // A request of a page fails like any other.
    expect_green(&farm, &green_unless(&format!("get('{down}').catch(green)"))).await;
    farm.shutdown().await;
}

async fn issuer(_: Arc<Shared>) {
    let farm = FarmProcess::start(&["--browsers", "1"]).await;
    let tls = tls::untrusted_server().await.unwrap();
    let page = url(&format!("https://page.test:{}/", tls.address().port()));
    let (_, refusal) = send(&farm, &page, MAX_WAIT_MS).await;
    assert_eq!(String::from_utf8_lossy(&refusal), r#"{"code":"tls","host":"page.test"}"#);
    let denied = farm.metric("platen_farm_egress_total{verdict=\"private\"}").await;
    assert!(denied > 0, "the browser did not request the issuer, so the test proves nothing");
    farm.end().await;
}

async fn own_ports(_: Arc<Shared>) {
    let farm = small(|config| {
        config.egress.allow = ["127.0.0.0/8", "::1"].map(|pattern| pattern.parse().unwrap()).into();
        config.egress.ports = "1-65535".parse().unwrap();
    })
    .await;
    let listener = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
    // The second is another listener of the process, as in `platen up`.
    let (own, other) = (listener().await, listener().await);
    let ports = [&own, &other].map(|listener| listener.local_addr().unwrap().port());
    farm.forbid_port(ports[1]);
    let serving = farm.serve(own, FarmToken::new(TOKEN).unwrap(), CancellationToken::new());
    let test = async {
        for port in ports {
            let address = |host: &str| format!("http://{host}:{port}/metrics");
            let refusal = farm.render(&url(&address("page.test")), MAX_WAIT).await.unwrap_err();
            assert_eq!(refusal, not_public("page.test"));
            for host in ["page.test", "127.0.0.1", "127.0.0.2", "[::1]", "[::ffff:127.0.0.1]"] {
                let fetch = format!("get('{}').catch(green)", address(host));
                expect_green(&farm, &green_unless(&fetch)).await;
            }
        }
        let metrics_url = format!("http://127.0.0.1:{}/metrics", ports[0]);
        let denied = "platen_farm_egress_total{verdict=\"own_port\"}";
        let denied = metrics::read(&Client::new(), &metrics_url, TOKEN, denied).await.unwrap().unwrap_or(0);
        // On [::1] the service does not listen, but the port is denied too.
        assert!(denied >= 12, "{denied} connections were denied as own ports");
    };
    tokio::select! {
        served = serving => panic!("{served:?}"),
        () = test => {}
    }
    farm.shutdown().await;
}

async fn upstream(shared: Arc<Shared>) {
    let site = &shared.site;
    let proxy = HttpProxy::start(true).await.unwrap();
    let farm = small(|config| config.egress.proxy = Some(proxy.url().into())).await;
    expect_green(&farm, &url(&site.at("/green"))).await;
    let host = || "page.test".to_owned();
    let tls = farm.render(&url(&site.without_tls()), MAX_WAIT).await.unwrap_err();
    assert_eq!(tls, Refusal::Tls { host: host() });
    let before = proxy.heads().len();
    let redirect = url(&site.at(&format!("/to?{}", site.forbidden())));
    assert_eq!(farm.render(&redirect, MAX_WAIT).await.unwrap_err(), not_public("page.test"));
    assert!(before >= 2 && proxy.heads().len() == before + 1, "{:?}", proxy.heads());
    for head in proxy.heads() {
        assert!(head.starts_with(&format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n", site.port())), "{head}");
        assert!(
            head.contains("\r\nProxy-Authorization: Basic dXNlcjpwYXNz\r\n") && !head.contains(".test"),
            "{head}"
        );
    }
    farm.shutdown().await;

    let refusing = HttpProxy::start(false).await.unwrap();
    let farm = small(|config| config.egress.proxy = Some(refusing.url().into())).await;
    let refusal = farm.render(&url(&site.at("/green")), MAX_WAIT).await.unwrap_err();
    assert_eq!(refusal, Refusal::ConnectionFailed { host: host() });
    farm.shutdown().await;

    let proxy = Some("https://user:s3cret@proxy.example".into());
    let config = Config { egress: EgressConfig { proxy, ..EgressConfig::default() }, ..Config::default() };
    let error = Farm::start(config).await.unwrap_err().to_string();
    assert!(error.contains("PLATEN_EGRESS_PROXY") && !error.contains("s3cret"), "{error}");
}
