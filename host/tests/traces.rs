//! Traces by OTLP: a collector receives those of a server and a farm that run as separate programs.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead as _, BufReader, Read, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use opentelemetry_proto::tonic::{collector::trace::v1::ExportTraceServiceRequest, trace::v1::Span};
use platen_tests::wait::MAX_WAIT;
use prost::Message as _;
use serde_json::Value;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// Spans with the `service.name` of each.
type Spans = Arc<Mutex<Vec<(String, Span)>>>;

/// A collector at a port of its own. It keeps what it receives, or, if it hangs, never answers.
struct Collector {
    port: u16,
    spans: Spans,
    /// The heads of the requests.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Collector {
    fn start(hangs: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (spans, heads) = (Spans::default(), Arc::new(Mutex::new(Vec::new())));
        let (received, received_heads) = (Arc::clone(&spans), Arc::clone(&heads));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (spans, heads) = (Arc::clone(&received), Arc::clone(&received_heads));
                thread::spawn(move || {
                    if hangs {
                        thread::sleep(MAX_WAIT);
                    } else {
                        while receive(&stream, &spans, &heads).is_some() {}
                    }
                });
            }
        });
        Self { port, spans, heads }
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn spans(&self) -> Vec<(String, Span)> {
        self.spans.lock().expect("no thread panics").clone()
    }
}

/// Receives one request; `None` at the end of the connection.
fn receive(stream: &TcpStream, spans: &Spans, heads: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).ok()? > 2 {}
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    heads.lock().expect("no thread panics").push(head);
    let export = ExportTraceServiceRequest::decode(&body[..]).expect("an export of traces");
    for resource in export.resource_spans {
        let attributes = resource.resource.map(|resource| resource.attributes).unwrap_or_default();
        let service = attributes.iter().find(|attribute| attribute.key == "service.name");
        let service = service.map(|attribute| format!("{:?}", attribute.value)).unwrap_or_default();
        let mut spans = spans.lock().expect("no thread panics");
        let new = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        spans.extend(new.map(|span| (service.clone(), span)));
    }
    (&mut &*stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").ok()
}

/// A program with its output. It has ended when this is dropped.
struct Program {
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Program {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let log = Arc::new(Mutex::new(String::new()));
        let streams: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|stream| Box::new(stream) as _),
            child.stderr.take().map(|stream| Box::new(stream) as _),
        ];
        for stream in streams.into_iter().flatten() {
            let log = Arc::clone(&log);
            thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    let mut log = log.lock().expect("no thread panics");
                    log.push_str(&line);
                    log.push('\n');
                }
            });
        }
        Self { child, log }
    }

    fn log(&self) -> String {
        self.log.lock().expect("no thread panics").clone()
    }

    /// What follows a text in the log, up to white space.
    fn until(&self, text: &str) -> String {
        until(&format!("{text} in the log"), || {
            let log = self.log();
            let (_, rest) = log.split_once(text)?;
            let (line, _) = rest.split_once('\n')?;
            Some(line.split_whitespace().next()?.to_owned())
        })
    }

    /// Ends it by SIGTERM, and returns for how long that took.
    fn stop(&mut self) -> Duration {
        let began = Instant::now();
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process"));
        kill(pid, Signal::SIGTERM).expect("it runs");
        assert!(self.child.wait().expect("it ends").success(), "{}", self.log());
        began.elapsed()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn until<T>(what: &str, condition: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + MAX_WAIT;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < end, "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// A server and a farm of its own, with one key.
struct Deployment {
    directory: tempfile::TempDir,
    server: Program,
    url: String,
    key: String,
}

fn platen(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_platen"));
    command.env_clear().env("TMPDIR", directory).current_dir(directory);
    if let Some(chromium) = std::env::var_os("PLATEN_CHROMIUM") {
        command.env("PLATEN_CHROMIUM", chromium);
    }
    command
}

fn up(directory: &Path, environment: &[(&str, &str)]) -> Command {
    let mut command = platen(directory);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spin.toml");
    command.arg("up").arg("--manifest").arg(manifest).args(["--listen", "127.0.0.1:0", "--browsers", "1"]);
    command.envs(environment.iter().copied());
    command
}

impl Deployment {
    fn start(environment: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let server = Program::start(up(directory.path(), environment));
        let url = server.until("platen is listening on ");
        let json = |arguments: &[&str]| {
            let Output { status, stdout, .. } =
                platen(directory.path()).args(arguments).arg("--json").output().expect("it runs");
            assert!(status.success());
            serde_json::from_slice::<Value>(&stdout).expect("JSON")
        };
        json(&["account", "create", "acme"]);
        let key = json(&["key", "create", "--account", "acme"])["key"].as_str().expect("a key").to_owned();
        Self { directory, server, url, key }
    }

    /// The status of a render of this body.
    fn render(&self, headers: &[(&str, &str)], body: &str) -> u16 {
        let address = self.url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).expect("it listens");
        let headers: String =
            headers.iter().map(|(name, value)| [name, ": ", value, "\r\n"].concat()).collect();
        let request = format!(
            "POST /v1/render HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            self.key,
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut response = Vec::new();
        stream.read_to_end(&mut response).expect("it answers");
        let head = String::from_utf8_lossy(&response);
        head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
    }
}

const BODY: &str = r#"{"html": "<p>s3cret-markup", "format": "png", "waitUntil": "networkidle"}"#;

#[test]
fn a_render_is_one_tree_of_spans_in_the_callers_trace() {
    let collector = Collector::start(false);
    let endpoint = collector.endpoint();
    let deployment = Deployment::start(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=s3cret-header"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ]);
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    assert_eq!(deployment.render(&[("traceparent", &traceparent), ("tracestate", "a=1")], BODY), 200);
    let of_trace = || {
        let spans = collector.spans().into_iter().map(|(_, span)| span);
        spans.filter(|span| hex::encode(&span.trace_id) == TRACE).collect::<Vec<_>>()
    };
    let spans = until("all spans arrive", || {
        let spans = of_trace();
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        let expected =
            ["POST /...", "INSERT", "POST job", "render", "queue", "lease", "load", "settle", "capture"];
        expected.iter().all(|name| names.contains(name)).then_some(spans)
    });
    let by_id: HashMap<&[u8], &Span> = spans.iter().map(|span| (&span.span_id[..], span)).collect();
    let parent_of = |name: &str| {
        let span = spans.iter().find(|span| span.name == name).expect("it arrived");
        let parent = by_id.get(&span.parent_span_id[..]);
        parent.map_or_else(|| hex::encode(&span.parent_span_id), |parent| parent.name.clone())
    };
    assert_eq!(parent_of("POST /..."), PARENT);
    assert_eq!(
        (parent_of("INSERT"), parent_of("POST job")),
        ("POST /...".to_owned(), "POST /...".to_owned())
    );
    assert_eq!(parent_of("render"), "POST job");
    for phase in ["queue", "lease", "load", "settle", "capture"] {
        assert_eq!(parent_of(phase), "render");
        let span = spans.iter().find(|span| span.name == phase).expect("it arrived");
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
    }
    let all = format!("{spans:?}");
    for secret in ["s3cret-markup", "s3cret-header", &deployment.key] {
        assert!(!all.contains(secret) && !deployment.server.log().contains(secret));
    }
    let heads = collector.heads.lock().expect("no thread panics").join("\n");
    assert!(heads.contains("POST /v1/traces") && heads.contains("x-collector-key: s3cret-header"), "{heads}");
    assert!(collector.spans().iter().all(|(service, _)| service.contains("platen")));

    // A caller that does not sample is followed, and an invalid context begins a new trace.
    let unsampled = format!("00-{}-{PARENT}-00", "1".repeat(32));
    assert_eq!(deployment.render(&[("traceparent", &unsampled)], BODY), 200);
    assert_eq!(deployment.render(&[("traceparent", "00-zz-01")], BODY), 200);
    until("the new trace arrives", || {
        let spans = collector.spans();
        spans.iter().find(|(_, span)| span.name == "render" && hex::encode(&span.trace_id) != TRACE).map(drop)
    });
    assert!(collector.spans().iter().all(|(_, span)| hex::encode(&span.trace_id) != "1".repeat(32)));
}

#[test]
fn a_collector_that_hangs_or_is_absent_delays_nothing() {
    for (endpoint, hangs) in
        [(Collector::start(true).endpoint(), true), ("http://127.0.0.1:9".to_owned(), false)]
    {
        let mut deployment = Deployment::start(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            // Far longer than what is waited for: nothing waits until an export ends.
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "600000"),
            ("OTEL_BSP_SCHEDULE_DELAY", "50"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "8"),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8"),
        ]);
        let began = Instant::now();
        for _ in 0..5 {
            assert_eq!(deployment.render(&[], BODY), 200);
        }
        assert!(began.elapsed() < MAX_WAIT / 2, "{:?}", began.elapsed());
        if !hangs {
            deployment.server.until("traces were not exported");
        }
        let stopped = deployment.server.stop();
        assert!(stopped < MAX_WAIT / 2, "{stopped:?}");
        let left = fs::read_dir(deployment.directory.path()).expect("a directory");
        let left: Vec<_> = left.map(|entry| entry.expect("a file").file_name()).collect();
        assert_eq!(left, [".platen"]);
    }
}

#[test]
fn a_setting_that_is_not_supported_stops_the_start() {
    let directory = tempfile::tempdir().expect("a directory");
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_TRACES_SAMPLER", "xray"),
        ("OTEL_TRACES_SAMPLER_ARG", "2"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
    ] {
        let output = up(directory.path(), &[endpoint, (name, value)]).output().expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(name) && errors.contains(value), "{errors}");
    }
}
