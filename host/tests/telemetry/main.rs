//! Traces by OTLP: a collector receives those of a server with a farm in its process.

mod collector;
mod deployment;

use std::{collections::HashMap, fs, time::Instant};

use opentelemetry_proto::tonic::trace::v1::{Span, span::SpanKind};
use platen_harness::wait::{MAX_WAIT, until, until_some};

use self::{
    collector::Collector,
    deployment::{Deployment, up},
};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";
const BODY: &str = r#"{"html": "<p>s3cret-markup", "format": "png", "waitUntil": "networkidle"}"#;

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
fn a_setting_that_is_not_supported_stops_the_start_and_secrets_are_not_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_TRACES_SAMPLER", "xray"),
        ("OTEL_TRACES_SAMPLER_ARG", "2"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_TRACES_EXPORTER", "zipkin"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "ca.pem"),
        ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "s3cret"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "bad name=s3cret"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://user:s3cret@127.0.0.1"),
    ] {
        let output = up(directory.path(), &[endpoint, (name, value)]).output().expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(name), "{errors}");
        assert!(errors.contains(value) != value.contains("s3cret") && !errors.contains("s3cret"), "{errors}");
    }
}
