//! Headers of every answer, and limits of requests.

use http::header::ACCEPT_ENCODING;
use platen_harness::raw_connection::{RawConnection, authority, render_head};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_server("headers/request_id_is_kept", request_id_kept),
        Case::any_server("headers/invalid_request_id_is_replaced", invalid_request_id),
        Case::any_server("headers/request_ids_differ", request_ids_differ),
        Case::any_server("headers/no_internal_headers", nothing_internal),
        Case::any_server("headers/answers_are_not_encoded", not_encoded),
        Case::any_server("headers/chunked_body", chunked_body),
        Case::any_server("headers/announced_body_over_the_limit", announced_over_the_limit),
        Case::any_server("headers/chunked_body_over_the_limit", chunked_over_the_limit),
        Case::any_server("headers/a_client_that_disconnects_within_its_body", unfinished_body),
        Case::any_server("headers/keep_alive_after_every_error", keep_alive),
        Case::any_database("headers/ratelimit_counts_down", ratelimit_counts_down),
        Case::any_database("headers/ratelimit_of_no_limit", ratelimit_of_no_limit),
    ]
}

async fn invalid(target: &Target, id: &str) -> Result<Answer> {
    target.post(RENDER, "{}").request_id(id).send().await
}

async fn request_id_kept(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let long = "x".repeat(128);
    for id in ["a", "A-b_c.d:9", "0192f0c4-7c3e-7cc0-a1b2-c3d4e5f60718", &long] {
        let answer = invalid(&target, id).await?;
        ensure!(answer.header(wire::REQUEST_ID)? == id, "{id} became {}", answer.header(wire::REQUEST_ID)?);
    }
    // The first checks answer with it too.
    let answer = target.post("/nowhere", "").key("junk").request_id("mine").send().await?;
    ensure!(answer.header(wire::REQUEST_ID)? == "mine", "{}", answer.summary());
    Ok(())
}

async fn invalid_request_id(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let long = "x".repeat(129);
    for id in ["", "a b", "a/b", "<x>", "é", "\"quoted\"", "a,b", &long] {
        let answer = invalid(&target, id).await?;
        let given = answer.header(wire::REQUEST_ID)?;
        ensure!(given != id && wire::is_request_id(given), "{id:?} became {given:?}");
    }
    let call = target.post(RENDER, "{}").request_id("one");
    let answer = call.more(wire::REQUEST_ID.parse()?, b"two").send().await?;
    ensure!(wire::is_request_id(answer.header(wire::REQUEST_ID)?), "{}", answer.summary());
    Ok(())
}

async fn request_ids_differ(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let mut ids = std::collections::HashSet::new();
    for _ in 0..20 {
        ids.insert(target.post(RENDER, "{}").send().await?.header(wire::REQUEST_ID)?.to_owned());
    }
    ensure!(ids.len() == 20, "{ids:?}");
    Ok(())
}

async fn nothing_internal(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let file = target.render(&json!({ "html": "x", "width": 10, "height": 10 })).send().await?;
    file.file("image/png")?;
    for answer in [file, target.post(RENDER, "{}").send().await?, target.post("/", "").send().await?] {
        for name in [
            "server",
            "x-powered-by",
            "via",
            "set-cookie",
            "x-platen-deadline-ms",
            "authorization",
            "location",
        ] {
            ensure!(!answer.headers.contains_key(name), "{name} on {}", answer.summary());
        }
    }
    Ok(())
}

async fn not_encoded(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let call = target.post(RENDER, "{}").header(ACCEPT_ENCODING, b"gzip, br, zstd");
    let answer = call.send().await?;
    answer.error(400, "\"html\" or \"url\" is required")?;
    ensure!(!answer.headers.contains_key("content-encoding"), "{}", answer.summary());
    Ok(())
}

/// Sends a request that a client library would not send.
async fn by_hand(target: &Target, header: &str, body: &[&[u8]]) -> Result<Answer> {
    let mut connection = RawConnection::open(target).await?;
    connection.send(render_head(target, &format!("connection: close\r\n{header}\r\n"))).await?;
    for piece in body {
        // The server may answer and close before it has read everything.
        if connection.send(piece).await.is_err() {
            break;
        }
    }
    connection.answer().await
}

async fn chunked_body(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let chunks: &[&[u8]] = &[b"5\r\n{\"htm\r\n", b"7\r\nl\":\"\"}x\r\n", b"0\r\n\r\n"];
    for coding in ["chunked", "Chunked", "CHUNKED", " chunkeD "] {
        let answer = by_hand(&target, &format!("Transfer-Encoding:{coding}"), chunks).await?;
        let body = String::from_utf8_lossy(&answer.body);
        let is_read = answer.status == 400 && body.contains("trailing characters at line 1 column 12");
        ensure!(is_read, "{coding}: {body}");
    }
    Ok(())
}

const TOO_LARGE: &str = "The body must be at most 33554432 bytes";

async fn announced_over_the_limit(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    by_hand(&target, "content-length: 33554433", &[]).await?.error(413, TOO_LARGE)
}

async fn chunked_over_the_limit(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let megabyte = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    let mut chunks = vec![megabyte.as_slice(); 33];
    chunks.push(b"0\r\n\r\n");
    by_hand(&target, "transfer-encoding: chunked", &chunks).await?.error(413, TOO_LARGE)
}

async fn unfinished_body(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let mut connection = RawConnection::open(&target).await?;
    connection.send(render_head(&target, "content-length: 100\r\n") + "{\"html\":").await?;
    connection.end().await?;
    // The server closes the connection once it has noticed the end, with an answer or without one.
    let _ = connection.closed().await;
    target.post(RENDER, "{}").send().await?.error(400, "\"html\" or \"url\" is required")
}

async fn keep_alive(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let (host, key) = (authority(&target), &target.key);
    let body = "content-length: 2\r\n\r\n{}";
    let mut connection = RawConnection::open(&target).await?;
    for (request, status) in [
        (format!("POST /nowhere HTTP/1.1\r\nhost: {host}\r\n{body}"), 404),
        (format!("GET {RENDER} HTTP/1.1\r\nhost: {host}\r\n\r\n"), 405),
        (format!("POST {RENDER} HTTP/1.1\r\nhost: {host}\r\n{body}"), 401),
        (format!("POST {RENDER} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n{body}"), 415),
        (render_head(&target, "content-length: 2\r\n") + "{}", 400),
    ] {
        connection.send(&request).await?;
        let answer = connection.answer().await.with_context(|| format!("waiting for a {status}"))?;
        ensure!(answer.status == status, "expected {status}: {}", answer.summary());
        ensure!(!answer.header("connection").is_ok_and(|value| value == "close"), "{}", answer.summary());
    }
    Ok(())
}

async fn ratelimit_counts_down(stage: Stage) -> Result<()> {
    let (_, _, target) = stage.account_with_key(Quota::Of(2)).await?;
    let valid = json!({ "html": "x" });
    let left = |answer: &Answer| -> Result<u64> {
        let limit = answer.rate_limit()?;
        ensure!(limit.quota == 2, "{limit:?}");
        Ok(limit.left)
    };
    ensure!(left(&target.post(RENDER, "{}").send().await?)? == 2, "an invalid body took an attempt");
    ensure!(left(&target.render(&valid).send().await?)? == 1, "the first render leaves one attempt");
    ensure!(left(&target.render(&valid).send().await?)? == 0, "the second leaves none");
    ensure!(left(&target.render(&valid).send().await?)? == 0, "none is left");
    let invalid = target.post(RENDER, "{}").send().await?;
    invalid.error(400, "\"html\" or \"url\" is required")?;
    ensure!(left(&invalid)? == 0, "none is left");
    Ok(())
}

async fn ratelimit_of_no_limit(stage: Stage) -> Result<()> {
    const MANY: u64 = 999_999_999_999_999;
    let service = stage.service().await?;
    let target = service.target(&service.operator.account(Quota::Unlimited).await?);
    for answer in [target.minimal().send().await?, target.post(RENDER, "{}").send().await?] {
        let limit = answer.rate_limit()?;
        ensure!((limit.quota, limit.left) == (MANY, MANY), "{limit:?}");
    }
    Ok(())
}
