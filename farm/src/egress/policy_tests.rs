//! A verdict for each reason, and for each form of an address.

use super::*;

fn config() -> Config {
    let patterns = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    Config {
        resolve: ["resolved.test=10.0.0.7", "denied.test=10.0.0.8", "denied-address.test=9.9.9.9"]
            .map(|rule| rule.parse().unwrap())
            .into(),
        egress: EgressConfig {
            allow: patterns(&["allowed.test", "*.below.test", "172.16.5.0/24", "wiki.internal"]),
            deny: patterns(&["denied.test", "*.evil.test", "9.9.9.0/24", "172.16.5.9"]),
            ports: "80,443".parse().unwrap(),
            ..EgressConfig::default()
        },
        ..Config::default()
    }
}

/// The verdict on `host` and `port`, where a lookup of any name returns `addresses`.
fn judge(host: &str, port: u16, addresses: &[&str]) -> Verdict {
    let config = config();
    match judge_host(&config, &HostPort { host: Host::parse(host).unwrap(), port }) {
        HostDecision::Denied(verdict) => verdict,
        HostDecision::Addresses(addresses, trust) => judge_resolved(&config, &addresses, trust),
        HostDecision::Lookup(_, trust) => {
            let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
            judge_resolved(&config, &addresses, trust)
        }
    }
}

fn judge_resolved(config: &Config, addresses: &[IpAddr], trust: Trust) -> Verdict {
    judge_addresses(&config.egress, addresses, trust, |address| address == OWN).0
}

const OWN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(8, 8, 8, 8));

#[test]
fn each_reason_has_its_verdict() {
    use address::Verdict::{LinkLocal, Loopback, Private, SharedNat, UniqueLocal};
    let public: &[&str] = &["1.1.1.1", "2606:4700::1"];
    let table: &[(&str, u16, &[&str], Verdict)] = &[
        ("example.test", 80, public, Verdict::Public),
        ("example.test.", 443, public, Verdict::Public),
        ("example.test", 22, public, Verdict::Port),
        ("example.test", 80, &[], Verdict::NotFound),
        ("example.test", 80, &["1.1.1.1", "10.0.0.1"], Verdict::NotPublic(Private)),
        ("example.test", 80, &["2606:4700::1", "1.1.1.1", "fd00::1"], Verdict::NotPublic(UniqueLocal)),
        ("example.test", 80, &["::ffff:127.0.0.1"], Verdict::NotPublic(Loopback)),
        ("example.test", 80, &["1.1.1.1", "9.9.9.9"], Verdict::DeniedAddress),
        ("example.test", 80, &["172.16.5.1"], Verdict::Operator),
        ("example.test", 80, &["::ffff:172.16.5.1"], Verdict::Operator),
        ("example.test", 80, &["172.16.5.9"], Verdict::DeniedAddress),
        ("example.test", 80, &["1.1.1.1", "8.8.8.8"], Verdict::OwnAddress),
        ("example.test", 80, &["172.16.5.1", "8.8.8.8"], Verdict::OwnAddress),
        ("allowed.test", 80, &["8.8.8.8"], Verdict::Operator),
        ("example.test", 80, &["172.16.5.1", "172.16.6.1"], Verdict::NotPublic(Private)),
        ("1.1.1.1", 80, &[], Verdict::Public),
        ("1.1.1.1", 25, &[], Verdict::Port),
        ("127.0.0.1", 25, &[], Verdict::NotPublic(Loopback)),
        ("2130706433", 80, &[], Verdict::NotPublic(Loopback)),
        ("0x7f.1", 80, &[], Verdict::NotPublic(Loopback)),
        ("169.254.169.254", 80, &[], Verdict::NotPublic(LinkLocal)),
        ("100.100.100.200", 80, &[], Verdict::NotPublic(SharedNat)),
        ("[fd00:ec2::254]", 80, &[], Verdict::NotPublic(UniqueLocal)),
        ("172.16.5.1", 80, &[], Verdict::Operator),
        ("172.16.5.1", 81, &[], Verdict::Port),
        ("[::ffff:9.9.9.9]", 80, &[], Verdict::DeniedAddress),
        ("localhost", 80, public, Verdict::LocalName),
        ("localhost", 22, public, Verdict::LocalName),
        ("a.LOCALHOST.", 80, public, Verdict::LocalName),
        ("metadata.google.internal", 80, public, Verdict::LocalName),
        ("wiki.internal", 80, &["10.1.1.1"], Verdict::Operator),
        ("allowed.test", 80, &["10.1.1.1"], Verdict::Operator),
        ("allowed.test", 80, &["1.1.1.1"], Verdict::Operator),
        ("allowed.test", 81, &["10.1.1.1"], Verdict::Port),
        ("allowed.test", 80, &["172.16.5.9"], Verdict::DeniedAddress),
        ("not-allowed.test", 80, &["10.1.1.1"], Verdict::NotPublic(Private)),
        ("a.below.test", 80, &["10.1.1.1"], Verdict::Operator),
        ("below.test", 80, &["10.1.1.1"], Verdict::NotPublic(Private)),
        ("resolved.test", 8123, &[], Verdict::Operator),
        ("denied-address.test", 80, &[], Verdict::DeniedAddress),
        ("RESOLVED.test.", 80, &[], Verdict::Operator),
        ("denied.test", 80, public, Verdict::DeniedHost),
        ("x.evil.test", 80, public, Verdict::DeniedHost),
    ];
    for (host, port, addresses, expected) in table {
        assert_eq!(judge(host, *port, addresses), *expected, "{host}:{port} {addresses:?}");
    }
}

#[test]
fn localhost_is_the_loopback_addresses_that_are_allowed() {
    use Verdict::{DeniedHost, LocalName, Operator, Port};
    for (allow, deny, host, port, expected) in [
        ("127.0.0.1", "", "localhost", 80, Ok(vec!["127.0.0.1"])),
        ("127.0.0.0/8", "", "LOCALHOST.", 443, Ok(vec!["127.0.0.1"])),
        ("127.0.0.1,::1", "", "localhost", 80, Ok(vec!["127.0.0.1", "::1"])),
        ("::1", "", "localhost", 80, Ok(vec!["::1"])),
        ("127.0.0.1", "", "localhost", 5173, Err(Port)),
        ("127.0.0.1", "localhost", "localhost", 80, Err(DeniedHost)),
        ("127.0.0.1", "", "a.localhost", 80, Err(LocalName)),
        ("127.0.0.1", "", "localhost.localdomain", 80, Err(LocalName)),
        ("127.0.0.2", "", "localhost", 80, Err(LocalName)),
        ("", "", "localhost", 80, Err(LocalName)),
    ] {
        let patterns = |text: &str| text.split_terminator(',').map(|it| it.parse().unwrap()).collect();
        let egress = EgressConfig { allow: patterns(allow), deny: patterns(deny), ..EgressConfig::default() };
        let config = Config { egress, ..Config::default() };
        let target = HostPort { host: Host::parse(host).unwrap(), port };
        let expected = match expected {
            Ok(texts) => {
                let addresses: Vec<IpAddr> = texts.iter().map(|text| text.parse().unwrap()).collect();
                assert_eq!(judge_resolved(&config, &addresses, Trust::Untrusted), Operator);
                HostDecision::Addresses(addresses, Trust::Untrusted)
            }
            Err(verdict) => HostDecision::Denied(verdict),
        };
        assert_eq!(judge_host(&config, &target), expected, "{host}:{port} with {allow}");
    }
}

/// The options that are missing are those that allow the connection.
#[test]
fn the_options_that_are_missing_are_named() {
    const PORTS: &str = "--egress-ports 80,443,8000,8080,8443,5173";
    let judge = |config: &Config, target: &HostPort| match judge_host(config, target) {
        HostDecision::Denied(verdict) => verdict,
        HostDecision::Addresses(addresses, trust) => judge_resolved(config, &addresses, trust),
        HostDecision::Lookup(_, trust) => judge_resolved(config, &["10.0.0.7".parse().unwrap()], trust),
    };
    for (url, allow) in [
        ("http://127.0.0.1/", "127.0.0.1"),
        ("http://127.0.0.1:5173/", "127.0.0.1"),
        ("http://localhost:5173/", "localhost"),
        ("http://localhost./", "localhost"),
        ("http://[::1]:5173/", "::1"),
        ("http://[::ffff:10.0.0.1]/", "10.0.0.1"),
        ("http://[64:ff9b::a00:1]/", "10.0.0.1,64:ff9b::a00:1"),
        ("http://intranet.example/", "intranet.example"),
        ("http://8.8.8.8/", "8.8.8.8"),
    ] {
        let mut config = Config::default();
        let target = HostPort::from_url(&url.parse().unwrap()).unwrap();
        let missing = |config: &Config| missing_options(&config.egress, &target, judge(config, &target));
        let ports = if target.port == 5173 { format!(" {PORTS}") } else { String::new() };
        assert_eq!(missing(&config), Some(format!("--egress-allow {allow}{ports}")), "{url}");
        config.egress.allow = allow.split(',').map(|it| it.parse().unwrap()).collect();
        let expected = (target.port == 5173).then(|| PORTS.to_owned());
        assert_eq!(missing(&config), expected, "{url}");
        config.egress.ports = PORTS.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!((judge(&config, &target), missing(&config)), (Verdict::Operator, None), "{url}");
        // None of these options allows what is denied.
        config.egress.deny = config.egress.allow.clone();
        assert_eq!(missing(&config), None, "{url}");
    }
}

/// What packets to an address may reach is judged as well as the address, by each of the rules.
#[test]
fn an_address_is_judged_by_all_that_it_may_reach() {
    use address::Verdict::{Private, ProtocolAssignment};
    let patterns = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let rules = EgressConfig {
        deny: patterns(&["11.22.33.45/32", "2600:dd::/32"]),
        allow: patterns(&[
            "10.1.0.0/16",
            "12.1.1.1",
            "64:ff9b::10.2.0.0/112",
            "64:ff9b:1::/48",
            "2001::/32",
            "2600:a::/32",
        ]),
        ..EgressConfig::default()
    };
    let own = ["44.55.66.77".parse().unwrap(), "12.1.1.1".parse().unwrap()];
    let judge = |text: &str, trust| {
        let address: IpAddr = text.parse().unwrap_or_else(|_| panic!("{text}"));
        judge_addresses(&rules, &[address], trust, |it| own.contains(&it)).0
    };
    // Each form of an IPv4 address in hexadecimal, and of the next one.
    let forms = |[a, b, c, d]: [u8; 4]| {
        let (high, low) = (format!("{a:x}{b:02x}"), format!("{c:x}{d:02x}"));
        let inverted = format!("{:x}{:02x}:{:x}{:02x}", !a, !b, !c, !d);
        [
            format!("::ffff:{a}.{b}.{c}.{d}"),
            format!("64:ff9b::{high}:{low}"),
            format!("64:ff9b:1:2:3:4:{high}:{low}"),
            format!("64:ff9b:1:{high}:{c:02x}:{d:02x}00::"),
            format!("64:ff9b:1:{a:x}:{b:x}:{c:x}{d:02x}::"),
            format!("64:ff9b:1:99:{a:x}:{b:x}{c:02x}:{d:x}00::"),
            format!("2002:{high}:{low}::1"),
            format!("2001:0:{high}:{low}:8000:63bf:f7f7:f7f7"),
            format!("2001:0:808:808:8000:63bf:{inverted}"),
            format!("2606:4700::5efe:{high}:{low}"),
            format!("2606:4700::200:5efe:{high}:{low}"),
        ]
    };
    for trust in [Trust::Untrusted, Trust::Operator] {
        for denied in forms([11, 22, 33, 45]).iter().map(String::as_str).chain(["11.22.33.45", "2600:dd::1"])
        {
            assert_eq!(judge(denied, trust), Verdict::DeniedAddress, "{denied}");
        }
        for next in forms([11, 22, 33, 46]).iter().chain(&forms([11, 22, 33, 44])) {
            assert!(judge(next, trust).allows(), "{next}");
        }
    }
    for own in forms([44, 55, 66, 77]) {
        assert_eq!(judge(&own, Trust::Untrusted), Verdict::OwnAddress, "{own}");
        assert_eq!(judge(&own, Trust::Operator), Verdict::Operator, "{own}");
    }
    for next in forms([44, 55, 66, 78]) {
        assert!(judge(&next, Trust::Untrusted).allows(), "{next}");
    }
    // One that is allowed allows no other.
    for private in forms([10, 2, 0, 1]) {
        assert_eq!(judge(&private, Trust::Untrusted), Verdict::NotPublic(Private), "{private}");
    }
    for allowed in forms([10, 1, 0, 1]).into_iter().chain(forms([12, 1, 1, 1])) {
        assert_eq!(judge(&allowed, Trust::Untrusted), Verdict::Operator, "{allowed}");
    }
    assert_eq!(judge("2600:a::5efe:10.2.0.1", Trust::Untrusted), Verdict::NotPublic(Private));
    assert_eq!(judge("2600:a::5efe:44.55.66.77", Trust::Untrusted), Verdict::OwnAddress);
    assert_eq!(judge("2600:a::5efe:10.1.0.1", Trust::Untrusted), Verdict::Operator);
    // The range of the address counts as well.
    let teredo = "2001:0:808:808:8000:63bf:f7f7:f7f7".parse().unwrap();
    let verdict = judge_addresses(&EgressConfig::default(), &[teredo], Trust::Untrusted, |_| false).0;
    assert_eq!(verdict, Verdict::NotPublic(ProtocolAssignment));
}

#[test]
fn each_verdict_has_a_name_and_a_refusal() {
    for (verdict, name, code) in [
        (Verdict::Public, "public", None),
        (Verdict::Operator, "operator", None),
        (Verdict::NotPublic(address::Verdict::Private), "private", Some("address_not_public")),
        (Verdict::LocalName, "local_name", Some("address_not_public")),
        (Verdict::OwnAddress, "own_address", Some("address_not_public")),
        (Verdict::OwnPort, "own_port", Some("address_not_public")),
        (Verdict::DeniedHost, "denied_host", Some("address_not_public")),
        (Verdict::DeniedAddress, "denied_address", Some("address_not_public")),
        (Verdict::Port, "port", Some("port_not_allowed")),
        (Verdict::NotFound, "not_found", Some("name_not_found")),
        (Verdict::NameServerFailed, "name_server_failed", Some("name_server_failed")),
        (Verdict::NoJob, "no_job", Some("connection_failed")),
        (Verdict::Browser, "browser", Some("connection_failed")),
        (Verdict::ConnectionLimit, "too_many", Some("connection_failed")),
        (Verdict::ByteLimit, "too_much", Some("connection_failed")),
    ] {
        let refusal = verdict.failure().map(|refusal| refusal("a.test".to_owned()));
        assert_eq!((verdict.name(), refusal.as_ref().map(Refusal::code)), (name, code));
        assert_eq!(verdict.allows(), code.is_none());
    }
}
