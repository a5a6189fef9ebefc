//! Properties of heads: `PROPTEST_CASES` is the number of cases of each.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Empty;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use proptest::{collection::vec, prelude::*, sample::select};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// The status of hyper's response to a head, or of our own service, which is 204.
fn status_of_hyper(head: &[u8]) -> Option<StatusCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (client, server) = tokio::io::duplex(256 * 1024);
        let service = service_fn(async |_| {
            let mut response = Response::new(Empty::<Bytes>::new());
            *response.status_mut() = StatusCode::NO_CONTENT;
            Ok::<_, Infallible>(response)
        });
        let serving =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(server), service);
        // The connection ends when the client is dropped.
        let exchange = async move {
            let mut client = client;
            client.write_all(head).await.unwrap();
            let mut start = [0; 12];
            client.read_exact(&mut start).await.ok()?;
            StatusCode::from_bytes(&start[9..]).ok()
        };
        tokio::join!(exchange, serving).0
    })
}

fn line() -> impl Strategy<Value = String> {
    let name = select(vec![
        "host",
        "Host",
        "content-length",
        "transfer-encoding",
        "connection",
        "expect",
        "x",
        "x y",
        "",
    ]);
    let value = prop_oneof![
        select(vec![
            "a",
            "a:80",
            "[::1]",
            "0",
            "3",
            "+3",
            "03",
            "3, 3",
            "chunked",
            "gzip, chunked",
            "close",
            "100-continue"
        ])
        .prop_map(str::to_owned),
        "[ -~\t]{0,20}",
    ];
    (name, select(vec![": ", ":", " : "]), value)
        .prop_map(|(name, colon, value)| format!("{name}{colon}{value}"))
}

fn head() -> impl Strategy<Value = Vec<u8>> {
    let method =
        prop_oneof![select(vec!["GET", "POST", "get", "M-SEARCH", ""]).prop_map(str::to_owned), "[ -~]{1,6}"];
    let target = prop_oneof![
        select(vec!["/", "/v1/render", "*", "http://a/b", "a:80", "//", "/%zz", ""]).prop_map(str::to_owned),
        "[ -~]{0,12}",
    ];
    let version = select(vec!["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "http/1.1", "HTTP/1.1 "]);
    (method, target, version, vec(line(), 0..5)).prop_map(|(method, target, version, lines)| {
        let lines: String = lines.into_iter().map(|line| line + "\r\n").collect();
        format!("{method} {target} {version}\r\nhost: a\r\n{lines}\r\n").into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hyper_accepts_every_head_that_passes(head in head()) {
        if check(&head).is_ok() && !head.starts_with(b"CONNECT") {
            prop_assert_eq!(status_of_hyper(&head), Some(StatusCode::NO_CONTENT), "{}", String::from_utf8_lossy(&head));
        }
    }

    #[test]
    fn bytes_are_a_head_or_refused(bytes in vec(any::<u8>(), 0..300)) {
        let mut search = HeadSearch::default();
        if let Ok(Some(end)) = search.find_end(&bytes) {
            let _ = check(&bytes[..end]);
        }
    }

    #[test]
    fn the_end_of_a_head_does_not_depend_on_its_parts(head in head(), cut in any::<prop::sample::Index>()) {
        let whole = HeadSearch::default().find_end(&head);
        let mut search = HeadSearch::default();
        let first = search.find_end(&head[..cut.index(head.len())]);
        let in_parts = match first {
            Ok(None) => search.find_end(&head),
            other => other,
        };
        prop_assert_eq!(in_parts, whole);
    }
}
