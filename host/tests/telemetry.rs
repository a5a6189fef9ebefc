//! Traces by OTLP: a collector receives those of a server with a farm in its process.

use std::{
    collections::HashMap,
    fs,
    path::Path,
    process::Command,
    sync::{Arc, Mutex, MutexGuard},
    time::Instant,
};

use http_body_util::BodyExt as _;
use nix::sys::signal::Signal;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    trace::v1::{Span, span::SpanKind},
};
use platen_harness::{
    app::share_compiled,
    loopback::{Loopback, full},
    operator::Operator,
    process::{Process, rest_of_line},
    settings::built_components,
    wait::{MAX_WAIT, until, until_some},
};
use prost::Message as _;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
const BODY: &str = r#"{"html": "<p>s3cret-markup", "format": "png", "waitUntil": "networkidle"}"#;

/// What a collector has received.
#[derive(Default)]
struct Received {
    /// The heads of the requests.
    heads: Vec<String>,
    /// Each with its `service.name`.
    spans: Vec<(String, Span)>,
}

/// A collector at a port of its own. It keeps what it receives, or, if it hangs, never answers.
struct Collector {
    server: Loopback,
    received: Arc<Mutex<Received>>,
}

impl Collector {
    async fn start(hangs: bool) -> Self {
        let received = Arc::<Mutex<Received>>::default();
        let kept = Arc::clone(&received);
        let server = Loopback::start(move |request: http::Request<_>| {
            let received = Arc::clone(&kept);
            async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                let (head, body) = request.into_parts();
                let body: hyper::body::Incoming = body;
                let body = body.collect().await.expect("a complete request").to_bytes();
                let export = ExportTraceServiceRequest::decode(body).expect("an export of traces");
                let mut received = received.lock().expect("no thread panics");
                received.heads.push(format!("{} {} {:?}", head.method, head.uri, head.headers));
                received.spans.extend(export.resource_spans.into_iter().flat_map(|resource| {
                    let attributes = resource.resource.map(|it| it.attributes).unwrap_or_default();
                    let service = attributes.iter().find(|attribute| attribute.key == "service.name");
                    let service = service.map(|it| format!("{:?}", it.value)).unwrap_or_default();
                    let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                    spans.map(|span| (service.clone(), span)).collect::<Vec<_>>()
                }));
                Ok(http::Response::new(full("")))
            }
        });
        Self { server: server.await.expect("a port"), received }
    }

    fn endpoint(&self) -> String {
        self.server.url()
    }

    fn received(&self) -> MutexGuard<'_, Received> {
        self.received.lock().expect("no thread panics")
    }

    fn spans(&self) -> Vec<(String, Span)> {
        self.received().spans.clone()
    }
}

/// A server and a farm of its own, with one key.
struct Deployment {
    server: Process,
    directory: tempfile::TempDir,
    url: String,
    key: String,
}

/// `platen up` with no other environment than this one.
fn up(directory: &Path, environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new("env");
    command.arg("-i").arg(format!("TMPDIR={}", directory.display()));
    if let Ok(chromium) = std::env::var("PLATEN_CHROMIUM") {
        command.arg(format!("PLATEN_CHROMIUM={chromium}"));
    }
    command.args(environment.iter().map(|(name, value)| format!("{name}={value}")));
    command
        .arg(env!("CARGO_BIN_EXE_platen"))
        .current_dir(directory)
        .arg("up")
        .arg("--components")
        .arg(built_components());
    command.args(["--listen", "127.0.0.1:0", "--browsers", "1"]);
    command
}

impl Deployment {
    async fn start(environment: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        share_compiled(&directory.path().join(".platen")).expect("a directory");
        let server = Process::start("platen up", &up(directory.path(), environment), Signal::SIGTERM);
        let server = server.expect("the binary runs");
        let url =
            server.wait_for(|log| rest_of_line(log, "platen is listening on ")).await.expect("it starts");
        let operator = Operator::in_directory(Path::new(env!("CARGO_BIN_EXE_platen")), directory.path());
        operator.json(&["account", "create", "acme"]).expect("an account");
        let key = operator.json(&["key", "create", "--account", "acme"]).expect("a key");
        let key = key["key"].as_str().expect("a key").to_owned();
        Self { server, directory, url: url.trim_end_matches('/').to_owned(), key }
    }

    /// The status of a render of this body.
    async fn render(&self, headers: &[(&str, &str)], body: &'static str) -> u16 {
        platen_harness::tls::use_ring();
        let request = reqwest::Client::new().post(format!("{}/v1/render", self.url)).bearer_auth(&self.key);
        let request = request.header("content-type", "application/json").body(body);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        request.send().await.expect("it answers").status().as_u16()
    }
}

#[tokio::test]
async fn a_render_is_one_tree_of_spans_in_the_callers_trace() {
    let collector = Collector::start(false).await;
    let endpoint = collector.endpoint();
    let deployment = Deployment::start(&[
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=s3cret-header"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ])
    .await;
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    assert_eq!(deployment.render(&[("traceparent", &traceparent), ("tracestate", "a=1")], BODY).await, 200);
    let of_trace = || {
        let spans = collector.spans().into_iter().map(|(_, span)| span);
        spans.filter(|span| hex::encode(&span.trace_id) == TRACE).collect::<Vec<_>>()
    };
    let have_arrived = async || {
        let spans = of_trace();
        let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
        let expected =
            ["POST /...", "INSERT", "POST job", "render", "queue", "lease", "load", "settle", "capture"];
        Ok(expected.iter().all(|name| names.contains(name)).then_some(spans))
    };
    let spans = until_some("all spans arrive", have_arrived).await.expect("a trace");
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
    let described = |name: &str| {
        let span = spans.iter().find(|span| span.name == name).expect("it arrived");
        let mut attributes: Vec<_> = span.attributes.iter().map(|attribute| attribute.key.as_str()).collect();
        attributes.sort_unstable();
        (span.kind(), attributes)
    };
    for (name, kind, attributes) in [
        (
            "POST /...",
            SpanKind::Server,
            &["http.request.method", "http.response.status_code", "http.route", "platen.request_id"][..],
        ),
        ("INSERT", SpanKind::Internal, &["db.operation.name", "db.system.name"]),
        (
            "POST job",
            SpanKind::Client,
            &["http.request.method", "http.response.status_code", "server.address"],
        ),
        (
            "render",
            SpanKind::Server,
            &[
                "http.response.status_code",
                "platen.account",
                "platen.format",
                "platen.outcome",
                "platen.request_id",
                "platen.source",
            ],
        ),
        ("load", SpanKind::Internal, &[]),
    ] {
        assert_eq!(described(name), (kind, attributes.to_vec()), "{name}");
    }
    assert!(!deployment.server.log().contains("otel."), "{}", deployment.server.log());
    let all = format!("{spans:?}");
    for secret in ["s3cret-markup", "s3cret-header", &deployment.key] {
        assert!(!all.contains(secret) && !deployment.server.log().contains(secret));
    }
    let heads = collector.received().heads.join("\n");
    assert!(
        heads.contains("POST /v1/traces") && heads.contains(r#""x-collector-key": "s3cret-header""#),
        "{heads}"
    );
    assert!(collector.spans().iter().all(|(service, _)| service.contains("platen")));

    // A caller that does not sample is followed, and an invalid context begins a new trace.
    let unsampled = format!("00-{}-{PARENT}-00", "1".repeat(32));
    assert_eq!(deployment.render(&[("traceparent", &unsampled)], BODY).await, 200);
    assert_eq!(deployment.render(&[("traceparent", "00-zz-01")], BODY).await, 200);
    let is_new = |(_, span): &(_, Span)| span.name == "render" && hex::encode(&span.trace_id) != TRACE;
    until("the new trace arrives", || collector.spans().iter().any(is_new)).await.expect("a trace");
    assert!(collector.spans().iter().all(|(_, span)| hex::encode(&span.trace_id) != "1".repeat(32)));
}

#[tokio::test]
async fn a_collector_that_hangs_or_is_absent_delays_nothing() {
    let collector = Collector::start(true).await;
    for (endpoint, hangs) in [(collector.endpoint(), true), ("http://127.0.0.1:9".to_owned(), false)] {
        let mut deployment = Deployment::start(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            // Far longer than what is waited for: nothing waits until an export ends.
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "600000"),
            ("OTEL_BSP_SCHEDULE_DELAY", "50"),
            ("OTEL_BSP_MAX_QUEUE_SIZE", "8"),
            ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "8"),
        ])
        .await;
        let began = Instant::now();
        for _ in 0..5 {
            assert_eq!(deployment.render(&[], BODY).await, 200);
        }
        assert!(began.elapsed() < MAX_WAIT / 2, "{:?}", began.elapsed());
        if !hangs {
            let is_logged = |log: &str| log.contains("traces were not exported").then_some(());
            deployment.server.wait_for(is_logged).await.expect("a warning");
        }
        let stopped = deployment.server.stop().await.expect("it ends");
        assert!(stopped.status == "exit status: 0" && stopped.duration < MAX_WAIT / 2, "{stopped:?}");
        let left = fs::read_dir(deployment.directory.path()).expect("a directory");
        let left: Vec<_> = left.map(|entry| entry.expect("a file").file_name()).collect();
        assert_eq!(left, [".platen"]);
    }
}

#[test]
fn an_endpoint_that_is_no_url_stops_the_start_and_is_not_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] {
        let endpoint = (name, "http://user:s3cret@a host:4318");
        let output = up(directory.path(), &[endpoint]).output().expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains("OTEL_EXPORTER_OTLP"), "{errors}");
        assert!(!errors.contains("s3cret"), "{errors}");
    }
}
