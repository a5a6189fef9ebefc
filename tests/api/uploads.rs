//! Uploads that are refused, by senders that read the answer only after they have sent everything.

use platen_harness::{
    client::ErrorBody,
    raw_connection::{RawConnection, authority, render_head},
};
use tokio::time::sleep;

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_server("uploads/refused_uploads_are_answered", refused),
        Case::own_server("uploads/a_slow_upload_is_answered", slow),
        Case::any_server("uploads/a_body_that_stays_too_slow_is_refused", too_slow)
            .not_on_spin("no limit for slow bodies"),
        Case::any_server("uploads/a_body_that_is_not_chunked_is_refused", not_chunked)
            .not_on_spin("the error of the component"),
    ]
}

const UPLOAD_BYTES: usize = 33 * 1024 * 1024;

async fn refused(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let host = authority(&target);
    let piece = vec![b'x'; 1 << 20];
    for (status, method, path, key, content_type) in [
        (404, "POST", "/nowhere", target.key.as_str(), "application/json"),
        (405, "PUT", RENDER, &target.key, "application/json"),
        (401, "POST", RENDER, "junk", "application/json"),
        (415, "POST", RENDER, &target.key, "text/plain"),
        (413, "POST", RENDER, &target.key, "application/json"),
    ] {
        let mut connection = RawConnection::open(&target).await?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n\
             content-type: {content_type}\r\ncontent-length: {UPLOAD_BYTES}\r\n\r\n"
        );
        connection.send(head).await?;
        for _ in 0..UPLOAD_BYTES / piece.len() {
            connection.send(&piece).await.with_context(|| format!("the upload that gets {status}"))?;
        }
        let answer = connection.answer().await.with_context(|| format!("waiting for {status}"))?;
        ensure!(answer.status == status, "expected {status}: {}", answer.summary());
    }
    Ok(())
}

/// The component runs for a moment again and again during the upload, which must not count as computing time: an instance
/// that computes for 15 s is ended, together with the requests of others.
async fn slow(stage: Stage) -> Result<()> {
    // Its own server: the component does nothing else.
    let stand_in = stage.start_stand_in(None).await?;
    let target = &stand_in.common;
    let mut connection = RawConnection::open(target).await?;
    let (pieces, piece) = (1_000, " ".repeat(2_000));
    let length = pieces * piece.len();
    connection.send(render_head(target, &format!("content-length: {length}\r\n"))).await?;
    for _ in 0..pieces {
        connection.send(&piece).await?;
        // The pace of the sender is what is tested.
        sleep(Duration::from_millis(18)).await;
    }
    let answer = connection.answer().await?;
    ensure!(answer.status == 400, "{}", answer.summary());
    Ok(())
}

async fn too_slow(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let mut connection = RawConnection::open(&target).await?;
    // At this pace the body is complete after 30 s, and never pauses for long.
    connection.send(render_head(&target, "content-length: 60\r\n")).await?;
    for _ in 0..60 {
        if connection.send(" ").await.is_err() {
            break;
        }
        sleep(Duration::from_millis(500)).await;
    }
    let answer = connection.answer().await?;
    ensure!(answer.status == 408, "{}", answer.summary());
    let body = ErrorBody::read(answer.status, &answer.body).with_context(|| answer.summary())?;
    ensure!(body.error == "The request body did not arrive in time", "{}", answer.summary());
    Ok(())
}

async fn not_chunked(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    for body in ["x\r\n", "1\r\nab\r\n", "5\nhello\r\n0\r\n\r\n", "fffffffffffffffff\r\n"] {
        let mut connection = RawConnection::open(&target).await?;
        connection.send(render_head(&target, "transfer-encoding: chunked\r\n")).await?;
        connection.send(body).await?;
        let answer = connection.answer().await?;
        ensure!(answer.status == 400, "{body:?}: {}", answer.summary());
        ensure!(answer.header("connection")? == "close", "{body:?}: {}", answer.summary());
    }
    Ok(())
}
