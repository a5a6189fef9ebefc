//! Clients that send invalid, slow or no requests: they get an error where there is one to give, and other clients are
//! served meanwhile.

use platen_harness::{
    client::ErrorBody,
    raw_connection::{RawConnection, authority, render_head},
    wait::MAX_WAIT,
};
use tokio::time::{sleep, timeout};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_server("connections/an_invalid_head_is_refused", invalid_heads).not_on_spin(OTHER_HEADS),
        Case::any_server("connections/a_head_has_a_maximum_size", sizes_of_heads).not_on_spin(OTHER_HEADS),
        Case::any_server("connections/pipelined_requests_are_answered_in_order", pipelined)
            .not_on_spin(OTHER_HEADS),
        Case::any_server("connections/an_ambiguous_length_hides_no_request", ambiguous_length)
            .not_on_spin(OTHER_HEADS),
        Case::any_server("connections/a_body_that_is_not_read_ends_the_connection", unread_bodies)
            .not_on_spin(NO_LIMITS),
        Case::own_server("connections/slow_bodies_do_not_delay_others", slow_bodies).not_on_spin(NO_LIMITS),
        Case::own_server("connections/slow_uploads_do_not_delay_others", slow_uploads).not_on_spin(NO_LIMITS),
        Case::own_server("connections/slow_heads_do_not_delay_others", slow_heads).not_on_spin(NO_LIMITS),
        Case::own_server("connections/one_address_has_a_maximum", one_address).not_on_spin(NO_LIMITS),
        Case::own_server("connections/a_client_that_continues_to_send_is_disconnected", lingering)
            .not_on_spin(NO_LIMITS),
        Case::own_server("connections/few_files_lower_the_number_of_connections", few_files)
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
    const HOST: &str = "The request has no valid host";
    const CODING: &str = "The only transfer coding that is supported is chunked";
    let target = stage.common().await?;
    let host = authority(&target);
    let head = |headers: &str| format!("POST /v1/render HTTP/1.1\r\nhost: {host}\r\n{headers}\r\n");
    for (sent, status, message) in [
        (head(&format!("host: {host}\r\n")), 400, HOST),
        (head("host: other.test\r\n"), 400, HOST),
        ("GET /v1/render HTTP/1.1\r\n\r\n".to_owned(), 400, HOST),
        ("GET /v1/render HTTP/1.1\r\nhost: a b\r\n\r\n".to_owned(), 400, HOST),
        ("GET /v1/render HTTP/1.1\r\nhost: a/b\r\n\r\n".to_owned(), 400, HOST),
        ("GET /v1/render HTTP/1.1\r\nhost: user@a\r\n\r\n".to_owned(), 400, HOST),
        ("GET /v1/render HTTP/1.1\r\nhost: a:70000\r\n\r\n".to_owned(), 400, HOST),
        (head("transfer-encoding: gzip, chunked\r\n"), 501, CODING),
        (head("transfer-encoding: chunked, chunked\r\n"), 501, CODING),
        (head("transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n"), 501, CODING),
    ] {
        let mut connection = RawConnection::open(&target).await?;
        connection.send(&sent).await?;
        let answer = connection.answer().await.with_context(|| format!("{sent:?}"))?;
        is_error(&answer, status, message).with_context(|| format!("{sent:?}"))?;
    }
    // What hyper refuses has no body.
    for sent in [
        head("transfer-encoding: chunked, gzip\r\n"),
        head("transfer-encoding: identity\r\n"),
        head("content-length: 2\r\ncontent-length: 3\r\n"),
        head("content-length: 2, 2\r\n"),
        head("content-length: -1\r\n"),
        head("content-length: +1\r\n"),
        head("x: a\rb\r\n"),
        head("x: a\r\n folded\r\n"),
        head("x : a\r\n"),
        head("x: \0\r\n"),
        format!("GET / HTTP/3.0\r\nhost: {host}\r\n\r\n"),
        format!("GET  / HTTP/1.1\r\nhost: {host}\r\n\r\n"),
        "\u{16}\u{3}\u{1}\r\n\r\n".to_owned(),
    ] {
        let mut connection = RawConnection::open(&target).await?;
        connection.send(&sent).await?;
        let answer = connection.answer().await.with_context(|| format!("{sent:?}"))?;
        ensure!(answer.status == 400, "{sent:?}: {}", answer.summary());
        connection.closed().await?;
    }
    Ok(())
}

/// A proxy in front may believe the length, and another request may be in what follows the chunks.
async fn ambiguous_length(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    for headers in [
        "content-length: 200\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 200\r\n",
    ] {
        let mut connection = RawConnection::open(&target).await?;
        let hidden = "GET /v1/render HTTP/1.1\r\nhost: a\r\n\r\n";
        connection.send(format!("{}2\r\n{{}}\r\n0\r\n\r\n{hidden}", render_head(&target, headers))).await?;
        ensure!(connection.answer().await?.status == 400, "an empty object");
        connection.closed().await?;
    }
    Ok(())
}

async fn sizes_of_heads(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let head = |size: usize| {
        let begin = format!("POST /nowhere HTTP/1.1\r\nhost: {}\r\nx: ", authority(&target));
        format!("{begin}{}\r\n\r\n", "x".repeat(size - begin.len() - 4))
    };
    let many = format!("POST /nowhere HTTP/1.1\r\nhost: a\r\n{}\r\n", "x: y\r\n".repeat(100));
    for (sent, status) in [(head(64 * 1024), 404), (head(64 * 1024 + 1), 431), (many, 431)] {
        // A head that arrives as a whole, and one that arrives in pieces, most likely. The result is the same.
        for pause in [None, Some(Duration::from_millis(20))] {
            let mut connection = RawConnection::open(&target).await?;
            for piece in sent.as_bytes().chunks(if pause.is_some() { 30_000 } else { sent.len() }) {
                connection.send(piece).await?;
                sleep(pause.unwrap_or_default()).await;
            }
            let answer = connection.answer().await?;
            ensure!(answer.status == status, "{} bytes: {}", sent.len(), answer.summary());
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
        "POST /nowhere HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
        "nonsense\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
    ];
    connection.send(sent.concat()).await?;
    let mut statuses = Vec::new();
    for _ in 0..5 {
        statuses.push(connection.answer().await?.status);
    }
    ensure!(statuses == [405, 400, 400, 404, 400], "{statuses:?}");
    connection.closed().await
}

/// Otherwise the client sends its next request into a connection that is being closed.
async fn unread_bodies(stage: Stage) -> Result<()> {
    const LARGE: usize = 1024 * 1024 + 1;
    let unknown = stage.common().await?.with_unknown_key();
    for path in [RENDER, "/none"] {
        let answer = unknown.post(path, "  ").send().await?;
        ensure!(answer.header("connection").is_err(), "{path}: {}", answer.summary());
        // The rest does not arrive before the answer.
        let head = render_head(&unknown, &format!("content-length: {LARGE}\r\n")).replace(RENDER, path);
        let mut connection = RawConnection::open(&unknown).await?;
        connection.send(head + " ").await?;
        let answer = connection.answer().await?;
        ensure!(answer.header("connection")? == "close", "{path}: {}", answer.summary());
    }
    Ok(())
}

/// 560 requests of which one byte arrives.
async fn slow_bodies(stage: Stage) -> Result<()> {
    let StandIn { app, common, .. } = &stage.start_stand_in(None).await?;
    let disabled = app.operator.account(Quota::Of(5)).await?;
    app.operator.run(&["key", "disable", &disabled.key_id]).await?;
    let clients = [common.clone(), app.target(&disabled), common.with_unknown_key(), common.with_key("junk")];
    let mut connections = Vec::new();
    for index in 0..560_u16 {
        let client = &clients[usize::from(index) % clients.len()];
        let mut connection = RawConnection::open_from(client, 2 + (index % 8) as u8).await?;
        connection.send(format!("{} ", render_head(client, "content-length: 1000\r\n"))).await?;
        connections.push(connection);
    }
    // More than have places at once, if each took one.
    app.until_metric_is_at_least("platen_http_requests_in_flight", 513).await?;
    common.renders().await
}

/// 500 connections from a few addresses on which a head does not end.
async fn slow_heads(stage: Stage) -> Result<()> {
    let StandIn { app, common, .. } = &stage.start_stand_in(None).await?;
    let mut connections = Vec::new();
    for index in 0..500_u16 {
        let mut connection = RawConnection::open_from(common, 2 + (index % 4) as u8).await?;
        connection.send("POST /v1/render HTTP/1.1\r\nhost: a\r\n").await?;
        connections.push(connection);
    }
    app.until_metric_is_at_least("platen_http_connections", 500).await?;
    common.renders().await
}

/// 16 uploads of 32 MiB that stop after the first MiB, and further ones of the same addresses, with the same key.
async fn slow_uploads(stage: Stage) -> Result<()> {
    let first = " ".repeat(1 << 20);
    // Behind a proxy, all clients have its address.
    for (per_address, uploads) in [("1024", 80), ("0", 16)] {
        let arguments = ["--max-connections-per-address", per_address];
        let start = stage.start_stand_in_with(|options| options.arguments(&arguments));
        let StandIn { app, common: target, .. } = &start.await?;
        let slow = app.target(&app.operator.account(Quota::Of(5)).await?);
        let mut connections = Vec::new();
        for index in 0..uploads {
            let mut connection = RawConnection::open_from(target, 2 + index % 5).await?;
            let head = render_head(&slow, "content-length: 33554432\r\n");
            connection.send(if index < 16 { head + &first } else { head + " " }).await?;
            connections.push(connection);
        }
        app.until_metric("platen_http_requests_in_flight", uploads.into()).await?;
        let html = "x".repeat(2 << 20);
        target.render(&json!({ "html": html })).send().await?.file("image/png")?;
        slow.render(&json!({ "html": html })).send().await?.file("image/png")?;
        // A body in chunks, whose size is not known before.
        let body = json!({ "html": html }).to_string();
        let mut chunked = RawConnection::open(target).await?;
        chunked.send(render_head(target, "transfer-encoding: chunked\r\n")).await?;
        for piece in body.as_bytes().chunks(100_000) {
            chunked.send(format!("{:x}\r\n", piece.len())).await?;
            chunked.send([piece, b"\r\n"].concat()).await?;
        }
        chunked.send("0\r\n\r\n").await?;
        chunked.answer().await?.file("image/png")?;
    }
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
    answer.error(503, "The server is busy, try again shortly")?;
    ensure!(answer.header("retry-after")? == "1", "{}", answer.summary());
    ensure!(app.metric("platen_http_connections_refused_total").await? == 1);
    // Another address is served, and so are the requests of the first one.
    common.renders().await?;
    for connection in &mut busy {
        connection.send("{}").await?;
        ensure!(connection.answer().await?.status == 400, "an unfinished body");
    }
    // A connection that ends makes space for another one.
    drop(busy);
    app.until_metric("platen_http_connections", 1).await?;
    let mut next = RawConnection::open_from(common, 2).await?;
    next.send("GET /nowhere HTTP/1.1\r\nhost: a\r\n\r\n").await?;
    is_error(&next.answer().await?, 404, "Not found")
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
            // The pace of a sender, on which no result depends.
            while connection.send("x").await.is_ok() {
                sleep(Duration::from_millis(500)).await;
            }
        };
        timeout(MAX_WAIT, sending).await.with_context(|| format!("still connected: {head:?}"))?;
    }
    app.until_metric("platen_http_connections", 0).await
}

/// Half of the files are for connections, so that requests have some.
async fn few_files(stage: Stage) -> Result<()> {
    let arguments = ["--max-connections-per-address", "3"];
    let start = stage
        .start_stand_in_with(|options| Options { file_limit: Some(FILES), ..options.arguments(&arguments) });
    let StandIn { app, common, .. } = &start.await?;
    let mut connections = Vec::new();
    for index in 0..400_u16 {
        connections.push(RawConnection::open_from(common, 2 + (index % 8) as u8).await?);
    }
    for _ in 0..3 {
        common.renders().await?;
    }
    let log = app.process.log();
    ensure!(log.contains("the limit of open files lowers --max-connections"), "{log}");
    let lines = log.lines().filter(|line| line.contains("connections refused")).count();
    ensure!((1..=5).contains(&lines), "{lines} lines: {log}");
    Ok(())
}

/// Descriptors, of which the server has used most when it has started.
const FILES: u64 = 64;
