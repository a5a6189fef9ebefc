use platen_harness::dns;

use super::{
    super::{Egress, own_addresses::tests::NetworkNamespace},
    *,
};
use crate::config::Config;

fn egress(change: impl FnOnce(&mut Config)) -> Egress {
    let mut config = Config::default();
    change(&mut config);
    Egress::new(Arc::new(config), Arc::new(Metrics::new())).unwrap()
}

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

fn target(url: &Url) -> HostPort {
    HostPort::from_url(url).unwrap()
}

async fn verdict(job: &JobEgress, text: &str) -> Verdict {
    job.decide(&target(&url(text))).await.verdict
}

#[tokio::test]
async fn the_failure_of_one_host_is_not_reported_for_another() {
    let egress = egress(|config| config.resolve.push("page.test=127.0.0.1".parse().unwrap()));
    let job = egress.job("job", PageStarted::default(), &[]);
    let page = url("https://page.test:4443/");
    let target = target(&page);
    assert_eq!(verdict(&job, page.as_str()).await, Verdict::Operator);
    job.record_dial(&target, None);
    // Chromium requests the certificate of an issuer from another host meanwhile.
    assert!(!verdict(&job, "http://10.0.0.1/ca.crt").await.allows());
    assert_eq!(job.document_refusal(&page, "page.test"), None);
    assert_eq!(
        job.document_refusal(&url("http://10.0.0.1/"), "10.0.0.1").unwrap().code(),
        "address_not_public"
    );
    // Another port of the same host has its own outcome.
    job.record_dial(&HostPort { port: 81, ..target.clone() }, Some(&DialError::Timeout));
    assert_eq!(job.document_refusal(&page, "page.test"), None);
    job.record_dial(&target, Some(&DialError::Refused(std::io::ErrorKind::ConnectionRefused.into())));
    let host = || "page.test".to_owned();
    assert_eq!(job.document_refusal(&page, "page.test"), Some(Refusal::ConnectionRefused { host: host() }));
    // A later connection replaces the outcome.
    job.record_dial(&target, None);
    assert_eq!(job.document_refusal(&page, "page.test"), None);
}

#[tokio::test]
async fn the_outcome_of_a_redirect_is_that_of_its_last_target() {
    let egress = egress(|config| config.resolve.push("page.test=127.0.0.1".parse().unwrap()));
    let job = egress.job("job", PageStarted::default(), &[]);
    let (page, next) = (url("http://page.test/"), url("http://10.0.0.1/secret"));
    verdict(&job, page.as_str()).await;
    job.document_requested(page.as_str());
    verdict(&job, next.as_str()).await;
    assert_eq!(job.document_refusal(&page, "page.test"), None);
    job.document_requested(next.as_str());
    let named = Refusal::AddressNotPublic { host: "page.test".to_owned() };
    assert_eq!(job.document_refusal(&page, "page.test"), Some(named));
    let unnamed = Refusal::AddressNotPublic { host: "somewhere".to_owned() };
    assert_eq!(job.document_refusal(&next, "somewhere"), Some(unnamed));
}

#[tokio::test]
async fn a_failed_lookup_is_repeated_and_an_answer_is_kept() {
    let server = dns::NameServer::start().await.unwrap();
    server.fail("page.test");
    let egress = egress(|config| config.egress.dns = vec![server.address().to_string().parse().unwrap()]);
    let job = egress.job("job", PageStarted::default(), &[]);
    assert_eq!(verdict(&job, "http://page.test/").await, Verdict::NameServerFailed);
    server.put("page.test", &["1.1.1.1"]);
    assert_eq!(verdict(&job, "http://page.test/").await, Verdict::Public);
    server.put("page.test", &["127.0.0.1"]);
    assert_eq!(verdict(&job, "http://page.test/").await, Verdict::Public);
    let other = egress.job("other job", PageStarted::default(), &[]);
    assert_eq!(verdict(&other, "http://page.test/").await.name(), "loopback");
}

#[tokio::test]
async fn addresses_of_a_name_are_judged_by_all_that_they_reach() {
    let server = dns::NameServer::start().await.unwrap();
    let egress = egress(|config| {
        config.egress.dns = vec![server.address().to_string().parse().unwrap()];
        config.egress.deny = vec!["11.22.33.45/32".parse().unwrap()];
    });
    for (addresses, expected) in [
        (&["64:ff9b::b16:212d"][..], Verdict::DeniedAddress),
        (&["2002:b16:212d::1"], Verdict::DeniedAddress),
        (&["1.1.1.1", "2606:4700::5efe:b16:212d"], Verdict::DeniedAddress),
        (&["1.1.1.1", "64:ff9b::b16:212e", "2002:b16:212c::1"], Verdict::Public),
    ] {
        server.put("page.test", addresses);
        let job = egress.job("job", PageStarted::default(), &[]);
        assert_eq!(verdict(&job, "http://page.test/").await, expected, "{addresses:?}");
    }
}

#[test]
fn own_addresses_and_ports_of_the_service_are_denied() {
    NetworkNamespace::run(|| {
        NetworkNamespace::ip("address add 198.41.0.4/31 dev lo");
        NetworkNamespace::ip("address add 198.41.0.5/31 dev lo");
        NetworkNamespace::ip("route add default dev lo");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let egress = egress(|config| {
                config.resolve = vec!["here.test=198.41.0.5".parse().unwrap()];
                let patterns = ["198.41.0.4", "allowed.test", "127.0.0.0/8"];
                config.egress.allow = patterns.map(|pattern| pattern.parse().unwrap()).into();
                config.egress.ports = "1-65535".parse().unwrap();
            });
            egress.forbid_port(4000);
            let job = egress.job("job", PageStarted::default(), &[]);
            for (address, expected) in [
                ("http://198.41.0.5/", Verdict::OwnAddress),
                ("http://[::ffff:198.41.0.5]/", Verdict::OwnAddress),
                ("http://198.41.0.6/", Verdict::Public),
                // In each form of 198.41.0.5 and of the address after it.
                ("http://[64:ff9b::c629:5]/", Verdict::OwnAddress),
                ("http://[2002:c629:5::1]/", Verdict::OwnAddress),
                ("http://[2606:4700::5efe:c629:5]/", Verdict::OwnAddress),
                ("http://[64:ff9b::c629:6]/", Verdict::Public),
                ("http://[2002:c629:6::1]/", Verdict::Public),
                ("http://[64:ff9b::c629:4]/", Verdict::Operator),
                ("http://[64:ff9b::c629:4]:4000/", Verdict::OwnPort),
                ("http://[2002:c629:4::1]:4000/", Verdict::OwnPort),
                ("http://[64:ff9b::7f00:1]:4000/", Verdict::OwnPort),
                ("http://[64:ff9b::c629:6]:4000/", Verdict::Public),
                // The operator can allow addresses of this machine, but not the service itself.
                ("http://198.41.0.4/", Verdict::Operator),
                ("http://127.0.0.1/", Verdict::Operator),
                ("http://here.test/", Verdict::Operator),
                ("http://198.41.0.4:4000/", Verdict::OwnPort),
                ("http://[::ffff:198.41.0.4]:4000/", Verdict::OwnPort),
                ("http://198.41.0.5:4000/", Verdict::OwnPort),
                ("http://127.0.0.1:4000/", Verdict::OwnPort),
                ("http://127.7.7.7:4000/", Verdict::OwnPort),
                ("http://here.test:4000/", Verdict::OwnPort),
                ("http://198.41.0.6:4000/", Verdict::Public),
            ] {
                assert_eq!(verdict(&job, address).await, expected, "{address}");
            }
        });
    });
}

/// Runs `test` in a network namespace with an address and these further routes and rules.
fn with_routes(routes: &'static [&str], test: impl AsyncFnOnce() + Send + 'static) {
    NetworkNamespace::run(move || {
        NetworkNamespace::ip("address add 11.22.33.1/32 dev lo");
        NetworkNamespace::ip("route add default dev lo");
        NetworkNamespace::ip("-6 route add default dev lo");
        for route in routes {
            NetworkNamespace::ip(route);
        }
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test());
    });
}

#[test]
fn addresses_that_are_routed_to_this_machine_are_denied() {
    let routes = &[
        "-6 route add local 2600:8::/64 dev lo",
        "route add local 46.46.46.0/24 dev lo src 11.22.33.1",
        "route add local 47.47.47.47 dev lo proto 66",
        "-6 route add local 2600:9::47 dev lo proto 66",
        "route add broadcast 48.48.48.0/24 dev lo",
        "-6 route add anycast 2600:a::47 dev lo",
        // In other tables, by a network, a protocol and a port.
        "route add local default dev lo table 100",
        "-6 route add local default dev lo table 100",
        "rule add to 49.49.49.0/24 lookup 100",
        "-6 rule add to 2600:b::/64 lookup 100",
        "rule add to 50.50.50.0/24 ipproto tcp dport 8000 lookup 100",
        "-6 rule add to 2600:c::/64 ipproto tcp dport 8000 lookup 100",
        // Nothing is there to connect to.
        "route add unreachable 51.51.51.0/25",
        "route add prohibit 51.51.51.128/25",
        "route add blackhole 52.52.52.0/24",
        "-6 route add unreachable 2600:d::/64",
        "-6 route add prohibit 2600:e::/64",
        "-6 route add blackhole 2600:f::/64",
    ];
    with_routes(routes, async || {
        let egress = egress(|_| {});
        let job = egress.job("job", PageStarted::default(), &[]);
        for (host, expected) in [
            ("[2600:8::47]", Verdict::OwnAddress),
            ("46.46.46.46", Verdict::OwnAddress),
            ("[::ffff:46.46.46.46]", Verdict::OwnAddress),
            ("47.47.47.47", Verdict::OwnAddress),
            ("[2600:9::47]", Verdict::OwnAddress),
            ("48.48.48.48", Verdict::OwnAddress),
            ("[2600:a::47]", Verdict::OwnAddress),
            ("49.49.49.49", Verdict::OwnAddress),
            ("[2600:b::47]", Verdict::OwnAddress),
            ("50.50.50.50", Verdict::OwnAddress),
            ("[2600:c::47]", Verdict::OwnAddress),
            ("51.51.51.1", Verdict::Public),
            ("51.51.51.200", Verdict::Public),
            ("52.52.52.52", Verdict::Public),
            ("[2600:d::47]", Verdict::Public),
            ("[2600:e::47]", Verdict::Public),
            ("[2600:f::47]", Verdict::Public),
            // Just outside.
            ("46.46.47.1", Verdict::Public),
            ("47.47.47.48", Verdict::Public),
            ("[2600:8:0:1::47]", Verdict::Public),
        ] {
            assert_eq!(verdict(&job, &format!("http://{host}:8000/")).await, expected, "{host}");
        }
        // The rule of the port 8000 only.
        assert_eq!(verdict(&job, "http://50.50.50.50:8080/").await, Verdict::Public);
    });
}

#[test]
fn a_port_of_the_service_is_denied_at_every_address_that_arrives_here() {
    let routes = &[
        "-6 route add local 2600:8::/64 dev lo",
        "route add local 46.46.46.0/24 dev lo src 11.22.33.1",
        "route add local 10.46.46.0/24 dev lo src 11.22.33.1",
    ];
    with_routes(routes, async || {
        let allowed = ["46.46.46.0/24", "10.46.46.0/24", "2600:8::/64"];
        let allowing =
            egress(|config| config.egress.allow = allowed.map(|pattern| pattern.parse().unwrap()).into());
        for (egress, otherwise) in [(egress(|_| {}), Verdict::OwnAddress), (allowing, Verdict::Operator)] {
            egress.forbid_port(8000);
            let job = egress.job("job", PageStarted::default(), &[]);
            for host in ["46.46.46.46", "[2600:8::47]"] {
                assert_eq!(verdict(&job, &format!("http://{host}:8000/")).await, Verdict::OwnPort, "{host}");
                assert_eq!(verdict(&job, &format!("http://{host}:8080/")).await, otherwise, "{host}");
            }
            // Before any other reason.
            for host in ["10.46.46.46", "127.0.0.1", "[::1]"] {
                assert_eq!(verdict(&job, &format!("http://{host}:8000/")).await, Verdict::OwnPort, "{host}");
            }
            assert_eq!(verdict(&job, "http://1.1.1.1:8000/").await, Verdict::Public);
        }
    });
}

#[tokio::test]
async fn the_port_of_a_page_proxy_is_own_while_it_is_open() {
    let egress = egress(|config| {
        config.egress.allow = vec!["127.0.0.1".parse().unwrap()];
        config.egress.ports = "1-65535".parse().unwrap();
    });
    let job = egress.job("job", PageStarted::default(), &[]);
    for proxy in [egress.page_proxy().await.unwrap(), egress.browser_proxy().await.unwrap()] {
        let address = proxy.address();
        // A listener on another address can have the same port.
        egress.forbid_port(url(&address).port().unwrap());
        assert_eq!(verdict(&job, &address).await, Verdict::OwnPort);
        drop(proxy);
        assert_eq!(verdict(&job, &address).await, Verdict::OwnPort);
    }
    let proxy = egress.page_proxy().await.unwrap();
    let address = proxy.address();
    drop(proxy);
    assert_eq!(verdict(&job, &address).await, Verdict::Operator);
}
