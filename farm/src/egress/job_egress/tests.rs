use hickory_resolver::proto::op::ResponseCode;

use super::{
    super::{
        own::tests::Network,
        resolver::tests::{FakeNameServer, Reply},
    },
    *,
};
use crate::{Config, metrics::Metrics};

fn egress(change: impl FnOnce(&mut Config)) -> Egress {
    let mut config = Config::default();
    change(&mut config);
    Egress::new(&config, Arc::new(Metrics::new())).unwrap()
}

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

async fn verdict(traffic: &JobEgress, text: &str) -> Verdict {
    traffic.decide(&host_port(&url(text)).unwrap()).await.verdict
}

#[tokio::test]
async fn the_failure_of_one_host_does_not_stand_for_another() {
    let egress = egress(|config| config.resolve.push("page.test=127.0.0.1".parse().unwrap()));
    let traffic = egress.traffic("job", PageStarted::default());
    let page = url("https://page.test:4443/");
    let target = host_port(&page).unwrap();
    assert_eq!(verdict(&traffic, page.as_str()).await, Verdict::Operator);
    traffic.dialled(&target, None);
    // The browser looks for the certificate of an issuer meanwhile.
    assert_ne!(verdict(&traffic, "http://10.0.0.1/ca.crt").await.failure(), None);
    assert_eq!(traffic.document_refusal(&page, "page.test"), None);
    assert_eq!(
        traffic.document_refusal(&url("http://10.0.0.1/"), "10.0.0.1").unwrap().code(),
        "address_not_public"
    );
    // Another port of the same host is another place.
    traffic.dialled(&(target.0.clone(), 81), Some(&DialError::TooSlow));
    assert_eq!(traffic.document_refusal(&page, "page.test"), None);
    traffic.dialled(&target, Some(&DialError::Refused(std::io::ErrorKind::ConnectionRefused.into())));
    let host = || "page.test".to_owned();
    assert_eq!(
        traffic.document_refusal(&page, "page.test"),
        Some(Refusal::ConnectionRefused { host: host() })
    );
    // A connection that is made later makes up for it.
    traffic.dialled(&target, None);
    assert_eq!(traffic.document_refusal(&page, "page.test"), None);
}

#[tokio::test]
async fn a_redirect_is_judged_by_where_it_led() {
    let egress = egress(|config| config.resolve.push("page.test=127.0.0.1".parse().unwrap()));
    let traffic = egress.traffic("job", PageStarted::default());
    let (page, next) = (url("http://page.test/"), url("http://10.0.0.1/secret"));
    verdict(&traffic, page.as_str()).await;
    traffic.document_requested(page.as_str());
    verdict(&traffic, next.as_str()).await;
    assert_eq!(traffic.document_refusal(&page, "page.test"), None);
    traffic.document_requested(next.as_str());
    let named = Refusal::AddressNotPublic { host: "page.test".to_owned() };
    assert_eq!(traffic.document_refusal(&page, "page.test"), Some(named));
    let unnamed = Refusal::AddressNotPublic { host: "somewhere".to_owned() };
    assert_eq!(traffic.document_refusal(&next, "somewhere"), Some(unnamed));
}

#[tokio::test]
async fn each_reason_is_its_own_refusal() {
    let server = FakeNameServer::start().await;
    for (name, code) in [("absent.test", ResponseCode::NXDomain), ("down.test", ResponseCode::ServFail)] {
        server.put_both(name, Reply::Code(code));
    }
    let egress = egress(|config| config.egress.dns = vec![server.setting()]);
    for (address, code) in [
        ("http://10.0.0.1/", "address_not_public"),
        ("http://1.1.1.1:25/", "port_not_allowed"),
        ("http://10.0.0.1:25/", "address_not_public"),
        ("http://absent.test:25/", "port_not_allowed"),
        ("http://absent.test/", "name_not_found"),
        ("http://down.test/", "name_server_failed"),
    ] {
        let refusal = egress.traffic("job", PageStarted::default()).judge(&url(address)).await.unwrap_err();
        assert_eq!(refusal.code(), code, "{address}");
    }
}

#[tokio::test]
async fn a_failed_lookup_is_asked_again_and_an_answer_is_kept() {
    let server = FakeNameServer::start().await;
    server.put_both("page.test", Reply::Code(ResponseCode::Refused));
    let egress = egress(|config| config.egress.dns = vec![server.setting()]);
    let traffic = egress.traffic("job", PageStarted::default());
    assert_eq!(verdict(&traffic, "http://page.test/").await, Verdict::NameServerFailed);
    server.put_both("page.test", Reply::Address("1.1.1.1".parse().unwrap()));
    assert_eq!(verdict(&traffic, "http://page.test/").await, Verdict::Public);
    server.put_both("page.test", Reply::Address("127.0.0.1".parse().unwrap()));
    assert_eq!(verdict(&traffic, "http://page.test/").await, Verdict::Public);
    let other = egress.traffic("other job", PageStarted::default());
    assert_eq!(verdict(&other, "http://page.test/").await.name(), "loopback");
}

#[test]
fn no_address_of_this_machine_and_no_port_of_the_service_is_reached() {
    Network::run(|| {
        Network::ip("address add 198.41.0.4/31 dev lo");
        Network::ip("address add 198.41.0.5/31 dev lo");
        Network::ip("route add default dev lo");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let egress = egress(|config| {
                config.resolve = vec!["here.test=198.41.0.5".parse().unwrap()];
                let places = ["198.41.0.4", "allowed.test", "127.0.0.0/8"];
                config.egress.allow = places.map(|place| place.parse().unwrap()).into();
                config.egress.ports = "1-65535".parse().unwrap();
            });
            egress.forbid_port(4000);
            let traffic = egress.traffic("job", PageStarted::default());
            for (address, expected) in [
                ("http://198.41.0.5/", Verdict::OwnAddress),
                ("http://[::ffff:198.41.0.5]/", Verdict::OwnAddress),
                ("http://198.41.0.6/", Verdict::Public),
                // What the operator allows may be on this machine, but not the service itself.
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
                assert_eq!(verdict(&traffic, address).await, expected, "{address}");
            }
        });
    });
}

#[tokio::test]
async fn the_port_of_a_gate_is_own_while_it_is_open() {
    let egress = egress(|config| {
        config.egress.allow = vec!["127.0.0.1".parse().unwrap()];
        config.egress.ports = "1-65535".parse().unwrap();
    });
    let traffic = egress.traffic("job", PageStarted::default());
    for proxy in [egress.proxy().await.unwrap(), egress.dead_end().await.unwrap()] {
        let address = proxy.address();
        // A listener on another address may have the same number.
        egress.forbid_port(url(&address).port().unwrap());
        assert_eq!(verdict(&traffic, &address).await, Verdict::OwnPort);
        drop(proxy);
        assert_eq!(verdict(&traffic, &address).await, Verdict::OwnPort);
    }
    let proxy = egress.proxy().await.unwrap();
    let address = proxy.address();
    drop(proxy);
    assert_eq!(verdict(&traffic, &address).await, Verdict::Operator);
}
