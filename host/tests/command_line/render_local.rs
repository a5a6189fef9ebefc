//! Pages of servers on this machine, with `platen render`.

use std::fs;

use hyper::body::Incoming;
use platen_harness::loopback::{Loopback, full};

use super::Platen;

async fn server(page: String) -> Loopback {
    let serve = move |_: http::Request<Incoming>| {
        let answer = http::Response::builder().header("content-type", "text/html");
        let answer = answer.body(full(page.clone())).expect("an answer");
        async move { Ok(answer) }
    };
    Loopback::start(serve).await.expect("a port")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_document_reach_a_local_page() {
    let site = server("<p>development".to_owned()).await;
    let port = site.address().port().to_string();
    let document = include_str!("../../../docs/how-to/local-page.md");
    let commands = document.lines().filter(|line| line.starts_with("platen render http"));
    let mut count = 0;
    for command in commands {
        let command = command.replace(":8000", &format!(":{port}")).replace("5173", &port);
        let mut words: Vec<&str> = command.split_whitespace().skip(1).collect();
        if command.matches(&*port).count() == 1 && !command.contains("--resolve") {
            // The port of the document is one of those that are allowed.
            words.extend(["--egress-ports", &port]);
        }
        let platen = Platen::new();
        let (status, _, errors) = platen.run(&words);
        assert!(status == 0 && platen.path("page.png").exists(), "{command}: {errors}");
        count += 1;
    }
    assert_eq!(count, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_page_is_reached_where_the_options_name_it() {
    let platen = Platen::new();
    let body = |colour: &str| format!("<!doctype html><html style='background: {colour}'>");
    platen.write("lime.html", &body("lime"));
    let (status, _, errors) = platen.run(&["render", "lime.html", "-o", "lime.png"]);
    assert_eq!(status, 0, "{errors}");

    let secret = server("secret".to_owned()).await;
    // It tries a port and two addresses that are not allowed, and is green if it reaches none.
    let page = format!(
        "{}<script type=module>const urls = ['{}', 'http://127.0.0.2:' + location.port, 'http://[::1]:' + location.port];\
         const reached = await Promise.allSettled(urls.map(url => fetch(url, {{ mode: 'no-cors' }})));\
         if (reached.every(one => one.status === 'rejected')) document.documentElement.style.background = 'lime'</script>",
        body("red"),
        secret.url()
    );
    let site = server(page).await;
    let port = site.address().port().to_string();
    let local = |host: &str| format!("http://{host}:{port}/");
    let render = |host: &str, options: &[&str]| {
        platen.run(&[&["render", &local(host), "-o", "a.png"], options].concat())
    };
    let own = ["--egress-ports", &port];
    for (host, allow) in [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("2130706433", "127.0.0.1")]
    {
        let (status, _, errors) = render(host, &[&["--egress-allow", allow], &own[..]].concat());
        assert_eq!((status, errors.matches("not public").count()), (0, 3), "{host}: {errors}");
        let [file, lime] = ["a.png", "lime.png"].map(|name| fs::read(platen.path(name)).expect("a file"));
        assert!(file == lime, "{host} reaches what is not allowed");
        fs::remove_file(platen.path("a.png")).expect("a file");
    }
    // By its name, at each address that it has.
    let (status, _, errors) = render("localhost", &[&["--egress-allow", "localhost"], &own[..]].concat());
    assert_eq!(status, 0, "{errors}");
    fs::remove_file(platen.path("a.png")).expect("a file");

    let more_ports = format!("--egress-ports 80,443,8000,8080,8443,{port}");
    let refused = |host: &str, options: &str| {
        format!("platen: The address of \"{host}\" is not public; it is allowed with {options}\n")
    };
    for (host, options, expected, message) in [
        ("127.0.0.1", &own[..], 3, refused("127.0.0.1", "--egress-allow 127.0.0.1")),
        ("localhost", &own, 3, refused("localhost", "--egress-allow localhost")),
        ("127.0.0.1", &[], 3, refused("127.0.0.1", &format!("--egress-allow 127.0.0.1 {more_ports}"))),
        (
            "localhost",
            &["--egress-allow", "127.0.0.1"],
            3,
            format!("platen: The port of \"localhost\" is not allowed; it is allowed with {more_ports}\n"),
        ),
        (
            "127.0.0.1",
            &["--egress-allow", "127.0.0.1", "--egress-deny", "127.0.0.0/8"],
            3,
            "platen: The address of \"127.0.0.1\" is not public\n".to_owned(),
        ),
        (
            "localhost",
            &["--egress-allow", "localhost", "--block-hosts", "localhost"],
            2,
            "platen: \"blockHosts\" must not have the host of \"url\"\n".to_owned(),
        ),
    ] {
        let (status, _, errors) = render(host, options);
        assert_eq!((status, errors), (expected, message), "{host} {options:?}");
        assert!(!platen.path("a.png").exists(), "{host} {options:?}");
    }
    // That the markup of a file has the origin of a local address is not allowed.
    for (base, expected) in [(local("127.0.0.1"), 2), (local("localhost"), 2)] {
        let base = ["render", "lime.html", "-o", "a.png", "--egress-allow", "127.0.0.1", "--base-url", &base];
        let (status, _, errors) = platen.run(&base);
        assert_eq!(status, expected, "{errors}");
        assert!(errors.contains("\"baseUrl\" must be reachable from the public internet"), "{errors}");
    }
}
