use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use prometheus_client::registry::Registry;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    task::JoinHandle,
};

use super::*;
use crate::server::{
    connections::{Connections, OpenConnection},
    response_body::ResponseBody,
};

struct Server {
    connections: Arc<Connections>,
    metrics: Arc<Metrics>,
    open: OpenConnection,
}

impl Server {
    fn new() -> Self {
        let metrics = Arc::new(Metrics::register(&mut Registry::default(), &<_>::default()));
        let connections = Connections::new(9, None, Arc::clone(&metrics));
        let open = connections.open(std::net::IpAddr::from([127, 0, 0, 1]).into()).unwrap();
        Self { connections, metrics, open }
    }

    fn stream(&self, stream: DuplexStream) -> ClientStream<DuplexStream> {
        ClientStream::new(stream, self.open.connection(), Arc::clone(&self.metrics))
    }

    /// Serves a connection with a buffer of `buffer` bytes, and answers each request with its path and its body. The
    /// paths `/early` and `/late` are answered before the body and after a second.
    fn serve(&self, buffer: usize) -> (DuplexStream, JoinHandle<()>) {
        let (ours, theirs) = duplex(buffer);
        let (connection, metrics) = (self.open.connection(), Arc::clone(&self.metrics));
        let respond = move |request: Request<Incoming>| {
            let response = ResponseBody::begin(Arc::clone(&metrics), Arc::clone(&connection));
            async move {
                let (head, body) = request.into_parts();
                let mut answer = head.uri.path().as_bytes().to_vec();
                match head.uri.path() {
                    "/early" => drop(body),
                    path => {
                        if path == "/late" {
                            sleep(Duration::from_secs(1)).await;
                        }
                        answer.extend(body.collect().await?.to_bytes());
                    }
                }
                let body = Full::new(answer.into()).map_err(|never| match never {}).boxed_unsync();
                Ok::<_, hyper::Error>(Response::new(response.with(body, true, &Arc::default())))
            }
        };
        let serving = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(self.stream(ours)), service_fn(respond));
        (theirs, tokio::spawn(async move { drop(serving.await) }))
    }
}

/// The statuses and bodies of all responses until the connection is closed.
async fn answers(mut client: DuplexStream) -> Vec<String> {
    let mut text = Vec::new();
    client.read_to_end(&mut text).await.unwrap();
    statuses_and_bodies(&text)
}

fn statuses_and_bodies(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    let parts = text.split("HTTP/1.1 ").skip(1).map(|response| {
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        format!("{} {body}", head.split_once(' ').unwrap().0)
    });
    parts.collect()
}

fn post(path: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

const CHUNKED: &str = "POST /c HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nxy\r\n0\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn pipelined_requests_are_answered_in_order_however_they_are_split() {
    let input =
        [post("/late", "1"), CHUNKED.to_owned(), "\r\n".to_owned(), post("/b", &"x".repeat(5_000))].concat();
    let last = "GET /d HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let input = [input.as_str(), last].concat();
    let expected = ["200 /late1", "200 /cxy", &format!("200 /b{}", "x".repeat(5_000)), "200 /d"];
    for (buffer, step) in [(1 << 20, usize::MAX), (1 << 20, 1), (64, 7), (64, usize::MAX), (1 << 20, 4_000)] {
        let server = Server::new();
        let (client, _serving) = server.serve(buffer);
        let (mut reader, mut writer) = tokio::io::split(client);
        let text = input.clone();
        let sending = tokio::spawn(async move {
            for piece in text.as_bytes().chunks(step.min(text.len())) {
                writer.write_all(piece).await.unwrap();
            }
            writer
        });
        let mut received = Vec::new();
        reader.read_to_end(&mut received).await.unwrap();
        sending.await.unwrap();
        assert_eq!(statuses_and_bodies(&received), expected, "in steps of {step} with a buffer of {buffer}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_head_is_answered_after_the_requests_before_it() {
    for (head, status) in [
        ("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1\nhost: a\r\n\r\n".to_owned(), "400"),
        ("nonsense\r\n\r\n".to_owned(), "400"),
        (format!("GET /{} HTTP/1.1\r\n", "x".repeat(9_000)), "414"),
        (format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "x".repeat(70_000)), "431"),
        ("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\n".to_owned(), "501"),
        // Nothing follows.
        ("GET / HTTP/1.1\r\n".to_owned(), "408"),
    ] {
        let server = Server::new();
        let (mut client, serving) = server.serve(1 << 20);
        client.write_all(format!("{}{}{head}", post("/late", "1"), CHUNKED).as_bytes()).await.unwrap();
        let answers = answers(client).await;
        assert_eq!(answers.len(), 3, "{head:.40}: {answers:?}");
        assert_eq!((answers[0].as_str(), answers[1].as_str()), ("200 /late1", "200 /cxy"));
        assert!(answers[2].starts_with(&format!("{status} {{\"error\":")), "{head:.40}: {answers:?}");
        serving.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_before_the_end_of_a_body_closes_the_connection_after_the_body() {
    let server = Server::new();
    let (mut client, serving) = server.serve(1 << 10);
    client.write_all(b"POST /early HTTP/1.1\r\nhost: a\r\ncontent-length: 2000000\r\n\r\n").await.unwrap();
    let body = vec![b'x'; 2_000_000];
    client.write_all(&body).await.unwrap();
    assert_eq!(answers(client).await, ["200 /early"]);
    serving.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn idle_connections_and_those_after_a_response_are_closed() {
    for (sent, seconds) in [("", 30), ("GET /", 30), (post("/a", "").as_str(), 75)] {
        let server = Server::new();
        let (mut client, serving) = server.serve(1 << 20);
        let began = Instant::now();
        client.write_all(sent.as_bytes()).await.unwrap();
        let _answers = answers(client).await;
        serving.await.unwrap();
        assert_eq!(began.elapsed().as_secs(), seconds, "{sent}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_draining_server_closes_idle_connections_and_answers_requests() {
    for (sent, expected, seconds) in [
        ("", None, 1),
        (post("/a", "").as_str(), Some("200 /a"), 0),
        (post("/late", "").as_str(), Some("200 /late"), 1),
    ] {
        let server = Server::new();
        let (mut client, serving) = server.serve(1 << 20);
        client.write_all(sent.as_bytes()).await.unwrap();
        // The request is read.
        sleep(Duration::from_millis(1)).await;
        let began = Instant::now();
        server.connections.drain();
        // What the select in the server does.
        let poked = client.write_all(b"\r\n").await;
        let answers = answers(client).await;
        serving.await.unwrap();
        poked.unwrap();
        assert_eq!(answers.first().map(String::as_str), expected);
        assert!(began.elapsed().as_secs() <= seconds.max(5), "{sent}: {:?}", began.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_to_a_client_that_reads_too_little_times_out() {
    let server = Server::new();
    for (bytes, seconds) in [(0, 30), (1_000, 30), (8_000, 122)] {
        let (ours, mut theirs) = duplex(16 * 1024);
        let reading = tokio::spawn(async move {
            let mut buffer = vec![0; bytes];
            while bytes > 0 && theirs.read_exact(&mut buffer).await.is_ok() {
                sleep(Duration::from_secs(1)).await;
            }
            theirs
        });
        let began = Instant::now();
        let mut stream = server.stream(ours);
        let written = stream.write_all(&vec![0; 1_000_000]).await;
        assert_eq!(
            written.map_err(|error| error.kind()).err(),
            (seconds == 30).then_some(io::ErrorKind::TimedOut)
        );
        assert!(began.elapsed().as_secs().abs_diff(seconds) < 3, "{bytes}: {:?}", began.elapsed());
        reading.abort();
    }
}

/// Seconds until a connection is closed whose client sends `bytes` every 1.5 s.
async fn lingering_seconds(sent: &str, bytes: usize) -> u64 {
    let server = Server::new();
    let (mut client, serving) = server.serve(1 << 20);
    client.write_all(sent.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.unwrap();
    let began = Instant::now();
    let (mut reader, mut writer) = tokio::io::split(client);
    tokio::spawn(async move {
        while writer.write_all(&vec![b'x'; bytes]).await.is_ok() {
            sleep(Duration::from_millis(1_500)).await;
        }
    });
    tokio::spawn(async move { tokio::io::copy(&mut reader, &mut tokio::io::sink()).await });
    serving.await.unwrap();
    began.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_lingering_connection_is_closed_while_its_client_sends() {
    let complete = "GET /a HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    assert_eq!(lingering_seconds(complete, 1).await, 5);
    let refused = "POST /early HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999\r\n\r\n";
    assert!(lingering_seconds(refused, 1).await <= 6);
    assert_eq!(lingering_seconds(refused, 200_000).await, 30);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_the_client_closed_is_closed_at_once() {
    let server = Server::new();
    let (ours, theirs) = duplex(16);
    drop(theirs);
    let began = Instant::now();
    server.stream(ours).shutdown().await.unwrap();
    assert_eq!(began.elapsed(), Duration::ZERO);
}
