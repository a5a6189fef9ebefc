//! A collector that keeps what it receives.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

use opentelemetry_proto::tonic::{collector::trace::v1::ExportTraceServiceRequest, trace::v1::Span};
use platen_tests::wait::MAX_WAIT;
use prost::Message as _;

/// What a collector has received.
#[derive(Default)]
pub(crate) struct Received {
    /// The heads of the requests.
    pub(crate) heads: Vec<String>,
    /// Each with its `service.name`.
    pub(crate) spans: Vec<(String, Span)>,
}

/// A collector at a port of its own. It keeps what it receives, or, if it hangs, never answers.
pub(crate) struct Collector {
    port: u16,
    received: Arc<Mutex<Received>>,
}

impl Collector {
    pub(crate) fn start(hangs: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let received = Arc::<Mutex<Received>>::default();
        let kept = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let received = Arc::clone(&kept);
                thread::spawn(move || {
                    if hangs {
                        thread::sleep(MAX_WAIT);
                    } else {
                        while receive(&stream, &received).is_some() {}
                    }
                });
            }
        });
        Self { port, received }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().expect("no thread panics")
    }

    pub(crate) fn spans(&self) -> Vec<(String, Span)> {
        self.received().spans.clone()
    }
}

/// Receives one request; `None` at the end of the connection.
fn receive(stream: &TcpStream, received: &Mutex<Received>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).ok()? > 2 {}
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let mut received = received.lock().expect("no thread panics");
    let export = ExportTraceServiceRequest::decode(&body[..]).expect("an export of traces");
    for resource in export.resource_spans {
        let attributes = resource.resource.map(|resource| resource.attributes).unwrap_or_default();
        let service = attributes.iter().find(|attribute| attribute.key == "service.name");
        let service = service.map(|attribute| format!("{:?}", attribute.value)).unwrap_or_default();
        let new = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        received.spans.extend(new.map(|span| (service.clone(), span)));
    }
    received.heads.push(head);
    drop(received);
    (&mut &*stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()
}
