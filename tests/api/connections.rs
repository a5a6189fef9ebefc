//! Clients that send invalid, slow or no requests: they get an error where there is one to give, and other clients are
//! served meanwhile.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use platen_shared::{
    key::{ApiKey, RANDOM_BYTES},
    wire,
};
use platen_tests::{
    app::Options,
    case::Case,
    client::{Answer, RENDER, Target},
    error_body::ErrorBody,
    operator::Quota,
    raw_connection::{RawConnection, authority, render_head},
    suite::{Stage, StandIn},
    wait::MAX_WAIT,
};
use serde_json::json;
use tokio::time::{sleep, timeout};

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_server("connections/an_invalid_head_is_answered_with_an_error", invalid_heads)
            .once()
            .not_on_spin(OTHER_HEADS),
        Case::any_server("connections/a_head_has_a_maximum_size", sizes_of_heads)
            .once()
            .not_on_spin(OTHER_HEADS),
        Case::any_server("connections/pipelined_requests_are_answered_in_order", pipelined)
            .once()
            .not_on_spin(OTHER_HEADS),
        Case::any_server("connections/a_body_that_is_not_read_ends_the_connection", unread_bodies)
            .once()
            .not_on_spin(NO_LIMITS),
        Case::own_server("connections/slow_bodies_do_not_delay_others", slow_bodies)
            .once()
            .not_on_spin(NO_LIMITS),
        Case::own_server("connections/announced_bodies_do_not_delay_others", announced_bodies)
            .once()
            .not_on_spin(NO_LIMITS),
        Case::own_server("connections/idle_connections_do_not_delay_others", idle_connections)
            .once()
            .not_on_spin(NO_LIMITS),
        Case::own_server("connections/one_address_has_a_maximum", one_address).once().not_on_spin(NO_LIMITS),
        Case::own_server("connections/a_client_that_continues_to_send_is_disconnected", lingering)
            .once()
            .not_on_spin(NO_LIMITS),
        Case::own_server("connections/missing_files_are_logged_once", missing_files)
            .once()
            .not_on_spin(NO_LIMITS),
    ]
}

const OTHER_HEADS: &str = "Spin checks heads differently and responds without a body";
const NO_LIMITS: &str = "Spin does not limit connections and slow clients";

/// Checks everything that the contract promises for an error of the server.
fn is_error(answer: &Answer, status: u16, message: &str) -> Result<()> {
    let body = ErrorBody::read(answer.status, &answer.body).with_context(|| answer.summary())?;
    ensure!((answer.status, body.error.as_str()) == (status, message), "{}", answer.summary());
    for (name, value) in [("content-type", "application/json"), ("cache-control", "no-store")] {
        ensure!(answer.header(name)? == value, "{name}: {}", answer.summary());
    }
    ensure!(wire::is_request_id(answer.header(wire::REQUEST_ID)?), "{}", answer.summary());
    Ok(())
}

async fn invalid_heads(stage: Stage) -> Result<()> {
    const MALFORMED: &str = "The request head is malformed";
    const HOST: &str = "The request has no valid host";
    const LENGTH: &str = "The length of the request body is invalid or ambiguous";
    const CODING: &str = "The only transfer coding that is supported is chunked";
    let target = stage.common().await?;
    let host = authority(&target);
    let head = |headers: &str| format!("POST /v1/render HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n");
    for (sent, status, message) in [
        (head(&format!("host: {host}\r\n")), 400, HOST),
        (head("host: other.test\r\n"), 400, HOST),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), 400, HOST),
        ("GET / HTTP/1.1\r\nhost: a b\r\n\r\n".to_owned(), 400, HOST),
        ("GET / HTTP/1.1\r\nhost: a/b\r\n\r\n".to_owned(), 400, HOST),
        ("GET / HTTP/1.1\r\nhost: user@a\r\n\r\n".to_owned(), 400, HOST),
        ("GET / HTTP/1.1\r\nhost: a:70000\r\n\r\n".to_owned(), 400, HOST),
        (head("transfer-encoding: gzip, chunked\r\n"), 501, CODING),
        (head("transfer-encoding: chunked, chunked\r\n"), 501, CODING),
        (head("transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n"), 501, CODING),
        (head("transfer-encoding: chunked\r\ncontent-length: 2\r\n"), 400, LENGTH),
        (head("content-length: 2\r\ntransfer-encoding: chunked\r\n"), 400, LENGTH),
        (head("content-length: 2\r\ncontent-length: 2\r\n"), 400, LENGTH),
        (head("content-length: 2, 2\r\n"), 400, LENGTH),
        (head("content-length: -1\r\n"), 400, LENGTH),
        (format!("GET / HTTP/1.1\nhost: {host}\r\n\r\n"), 400, MALFORMED),
        (format!("GET / HTTP/1.1\r\nhost: {host}\n\r\n"), 400, MALFORMED),
        (format!("GET / HTTP/1.1\r\nhost: {host}\r\n\n"), 400, MALFORMED),
        (head("x: a\rb\r\n"), 400, MALFORMED),
        (head("x: a\r\n folded\r\n"), 400, MALFORMED),
        (head("x : a\r\n"), 400, MALFORMED),
        (head("x: \0\r\n"), 400, MALFORMED),
        (format!("GET / HTTP/3.0\r\nhost: {host}\r\n\r\n"), 400, MALFORMED),
        (format!("GET  / HTTP/1.1\r\nhost: {host}\r\n\r\n"), 400, MALFORMED),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), 400, MALFORMED),
        ("\u{16}\u{3}\u{1}\r\n\r\n".to_owned(), 400, MALFORMED),
    ] {
        let mut connection = RawConnection::open(&target).await?;
        connection.send(&sent).await?;
        let answer = connection.answer().await.with_context(|| format!("{sent:?}"))?;
        is_error(&answer, status, message).with_context(|| format!("{sent:?}"))?;
        ensure!(answer.header("connection")? == "close", "{sent:?}: {}", answer.summary());
        connection.end().await?;
        connection.closed().await?;
    }
    Ok(())
}

async fn sizes_of_heads(stage: Stage) -> Result<()> {
    const TOO_LARGE: &str = "The request head must be at most 65536 bytes and 100 headers";
    let target = stage.common().await?;
    let head = |line: &str, size: usize| {
        let begin = format!("{line}\r\nhost: {}\r\nx: ", authority(&target));
        format!("{begin}{}\r\n\r\n", "x".repeat(size - begin.len() - 4))
    };
    let line = "POST /nowhere HTTP/1.1";
    let many = format!("{line}\r\nhost: a\r\n{}\r\n", "x: y\r\n".repeat(100));
    let long = format!("GET /{} HTTP/1.1", "x".repeat(8 * 1024));
    let too_long = "The request line must be at most 8192 bytes";
    for (sent, status, message) in [
        (head(line, 64 * 1024), 404, "Not found"),
        (head(line, 64 * 1024 + 1), 431, TOO_LARGE),
        (head(line, 100_000), 431, TOO_LARGE),
        (many, 431, TOO_LARGE),
        (head(&long, 10_000), 414, too_long),
        (long, 414, too_long),
    ] {
        // A head that arrives as a whole, and one that arrives in pieces.
        for pause in [None, Some(Duration::from_millis(20))] {
            let mut connection = RawConnection::open(&target).await?;
            for piece in sent.as_bytes().chunks(if pause.is_some() { 30_000 } else { sent.len() }) {
                connection.send(piece).await?;
                sleep(pause.unwrap_or_default()).await;
            }
            is_error(&connection.answer().await?, status, message)
                .with_context(|| format!("{status} after {} bytes", sent.len()))?;
        }
    }
    Ok(())
}

async fn pipelined(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let host = authority(&target);
    let mut connection = RawConnection::open(&target).await?;
    let chunked = render_head(&target, "transfer-encoding: chunked\r\n");
    let sent = [
        format!("GET /v1/render HTTP/1.1\r\nhost: {host}\r\n\r\n"),
        format!("{chunked}2\r\n{{}}\r\n0\r\n\r\n"),
        format!("{}{{}}", render_head(&target, "content-length: 2\r\n")),
        "GET /v1/render HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
    ];
    connection.send(sent.concat()).await?;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(connection.answer().await?.status);
    }
    ensure!(statuses == [405, 400, 400, 400], "{statuses:?}");
    connection.end().await?;
    connection.closed().await
}

/// A render that the stand-in farm answers.
async fn renders(target: &Target) -> Result<()> {
    target.render(&json!({ "html": "x" })).send().await?.file("image/png").map(drop)
}

/// Otherwise the client sends its next request into a connection that is being closed.
async fn unread_bodies(stage: Stage) -> Result<()> {
    const LARGE: usize = 1024 * 1024 + 1;
    let target = stage.common().await?;
    let unknown = target.with_key(ApiKey::from_random(rand::random::<[u8; RANDOM_BYTES]>()).expose());
    for (path, bytes, closes) in
        [(RENDER, 2, false), (RENDER, LARGE, true), ("/none", 2, false), ("/none", LARGE, true)]
    {
        let answer = unknown.post(path, " ".repeat(bytes)).send().await?;
        let is_closed = answer.header("connection").is_ok_and(|value| value == "close");
        ensure!(is_closed == closes, "{path}, {bytes} bytes: {}", answer.summary());
    }
    Ok(())
}

/// 560 requests of which one byte arrives.
async fn slow_bodies(stage: Stage) -> Result<()> {
    let StandIn { app, common, .. } = &stage.start_stand_in(None).await?;
    let disabled = app.operator.account(Quota::Of(5)).await?;
    app.operator.run(&["key", "disable", &disabled.key_id]).await?;
    let unknown = ApiKey::from_random(rand::random::<[u8; RANDOM_BYTES]>());
    let clients =
        [common.clone(), app.target(&disabled), common.with_key(unknown.expose()), common.with_key("junk")];
    let mut connections = Vec::new();
    for index in 0..560_u16 {
        let client = &clients[usize::from(index) % clients.len()];
        let mut connection = RawConnection::open_from(client, 2 + (index % 8) as u8).await?;
        connection.send(format!("{} ", render_head(client, "content-length: 1000\r\n"))).await?;
        connections.push(connection);
    }
    // More than have places at once, if each took one.
    app.until_metric_is_at_least("platen_http_requests_in_flight", 513).await?;
    renders(common).await
}

/// More than may wait for large bodies, from several addresses.
async fn announced_bodies(stage: Stage) -> Result<()> {
    let StandIn { app, common: target, .. } = &stage.start_stand_in(None).await?;
    let slow = app.target(&app.operator.account(Quota::Of(5)).await?);
    let mut connections = Vec::new();
    for index in 0..80 {
        let mut connection = RawConnection::open_from(target, 2 + index % 5).await?;
        connection.send(format!("{} ", render_head(&slow, "content-length: 33554432\r\n"))).await?;
        connections.push(connection);
    }
    app.until_metric_is_at_least("platen_http_requests_in_flight", 32).await?;
    let html = "x".repeat(2 << 20);
    target.render(&json!({ "html": html })).send().await?.file("image/png")?;
    // Half of the places are left to one key, and one of these to a request with the same key.
    app.until_metric("platen_http_requests_in_flight", 32).await?;
    slow.render(&json!({ "html": html })).send().await?.file("image/png")?;
    // The same in chunks, whose size is not known before.
    let body = json!({ "html": html }).to_string();
    let mut chunked = RawConnection::open(target).await?;
    chunked.send(render_head(target, "transfer-encoding: chunked\r\n")).await?;
    for piece in body.as_bytes().chunks(100_000) {
        chunked.send(format!("{:x}\r\n", piece.len())).await?;
        chunked.send([piece, b"\r\n"].concat()).await?;
    }
    chunked.send("0\r\n\r\n").await?;
    chunked.answer().await?.file("image/png")?;
    Ok(())
}

async fn idle_connections(stage: Stage) -> Result<()> {
    let start = stage.start_stand_in_with(|options| options.arguments(&["--max-connections", "20"]));
    let StandIn { app, common, .. } = &start.await?;
    let mut connections = Vec::new();
    for index in 0..60 {
        let mut connection = RawConnection::open_from(common, 2 + index % 3).await?;
        if index % 2 == 0 {
            connection.send("GET / HTTP/1.1\r\n").await?;
        }
        connections.push(connection);
    }
    renders(common).await?;
    // The first ones were closed, and the last one is still served.
    for connection in &mut connections[..10] {
        connection.closed().await?;
    }
    let last = connections.last_mut().context("there are connections")?;
    last.send("GET /nowhere HTTP/1.1\r\nhost: a\r\n\r\n").await?;
    is_error(&last.answer().await?, 404, "Not found")?;
    ensure!(app.metric("platen_http_connections_evicted_total").await? >= 40);
    ensure!(app.metric("platen_http_connections").await? <= 20);
    Ok(())
}

async fn one_address(stage: Stage) -> Result<()> {
    let start =
        stage.start_stand_in_with(|options| options.arguments(&["--max-connections-per-address", "3"]));
    let StandIn { app, common, .. } = &start.await?;
    let mut busy = Vec::new();
    for _ in 0..3 {
        let mut connection = RawConnection::open_from(common, 2).await?;
        connection.send(render_head(common, "content-length: 2\r\n")).await?;
        busy.push(connection);
    }
    app.until_metric("platen_http_requests_in_flight", 3).await?;
    let mut fourth = RawConnection::open_from(common, 2).await?;
    let answer = fourth.answer().await?;
    is_error(&answer, 503, "The server is busy, try again shortly")?;
    ensure!(answer.header("retry-after")? == "1", "{}", answer.summary());
    ensure!(app.metric("platen_http_connections_refused_total").await? == 1);
    // Another address is served, and so are the requests of the first one.
    renders(common).await?;
    for connection in &mut busy {
        connection.send("{}").await?;
        ensure!(connection.answer().await?.status == 400, "an unfinished body");
    }
    // An idle connection of the address makes space for a new one.
    let mut next = RawConnection::open_from(common, 2).await?;
    next.send("GET /nowhere HTTP/1.1\r\nhost: a\r\n\r\n").await?;
    ensure!(next.answer().await?.status == 404, "the address has an idle connection");
    busy[0].closed().await
}

/// The server reads on for a while after its last response, see RFC 9112, section 9.6.
async fn lingering(stage: Stage) -> Result<()> {
    let StandIn { app, common, .. } = &stage.start_stand_in(None).await?;
    for (head, status) in [
        ("GET /nowhere HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n", 404),
        ("POST /nowhere HTTP/1.1\r\nhost: a\r\ncontent-length: 2000000\r\n\r\n", 404),
        ("nonsense\r\n\r\n", 400),
    ] {
        let mut connection = RawConnection::open(common).await?;
        connection.send(head).await?;
        ensure!(connection.answer().await?.status == status, "{head:?}");
        let sending = async {
            while connection.send("x").await.is_ok() {
                sleep(Duration::from_millis(500)).await;
            }
        };
        timeout(MAX_WAIT, sending).await.with_context(|| format!("still connected: {head:?}"))?;
    }
    app.until_metric("platen_http_connections", 0).await
}

/// Fewer files than connections: the server closes idle ones, and logs a few lines.
async fn missing_files(stage: Stage) -> Result<()> {
    let start = stage.start_stand_in_with(|options| Options { file_limit: Some(FILES), ..options });
    let StandIn { app, common, .. } = &start.await?;
    let mut connections = Vec::new();
    for index in 0..400_u16 {
        connections.push(RawConnection::open_from(common, 2 + (index % 8) as u8).await?);
    }
    for _ in 0..3 {
        renders(common).await?;
    }
    let log = app.process.log();
    ensure!(log.contains("the limit of open files lowers --max-connections"), "{log}");
    let lines = log.lines().filter(|line| line.contains("cannot accept connections")).count();
    ensure!((1..=5).contains(&lines), "{lines} lines: {log}");
    Ok(())
}

/// Of which the server has used most when it has started.
const FILES: u64 = 64;
