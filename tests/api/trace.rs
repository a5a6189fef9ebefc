//! The farm receives the request id, the trace context, its token and the deadline.

use http::{HeaderMap, HeaderName, header::AUTHORIZATION};
use platen_harness::client::Call;

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::own_server("trace/request_id_and_context_are_forwarded", forwarded),
        Case::own_server("trace/invalid_context_is_replaced", replaced),
        Case::own_server("trace/farm_receives_its_token_and_not_the_key", token),
        Case::own_server("trace/deadline_is_forwarded", deadline),
    ]
}

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// Sends a render: the answer, and the headers that the farm received.
async fn received(stand_in: &StandIn, change: impl FnOnce(Call) -> Call) -> Result<(Answer, HeaderMap)> {
    let answer = change(stand_in.common.minimal()).send().await?;
    answer.file("image/png")?;
    let received = stand_in.farm.received_as(answer.header(wire::REQUEST_ID)?)?;
    Ok((answer, received.headers))
}

fn one<'h>(headers: &'h HeaderMap, name: &str) -> Result<&'h str> {
    ensure!(headers.get_all(name).iter().count() == 1, "{name} in {headers:?}");
    Ok(headers.get(name).context("just counted")?.to_str()?)
}

async fn forwarded(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let id = format!("trace-{:016x}", rand::random::<u64>());
    let (answer, headers) = received(&stand_in, |call| {
        let call = call.request_id(&id).header(HeaderName::from_static(wire::TRACEPARENT), PARENT.as_bytes());
        call.header(HeaderName::from_static(wire::TRACESTATE), b"vendor=value,other=1")
    })
    .await?;
    ensure!(answer.header(wire::REQUEST_ID)? == id && one(&headers, wire::REQUEST_ID)? == id, "{headers:?}");
    // The trace is the same; the parent may be a span of the edge.
    let parent = one(&headers, wire::TRACEPARENT)?;
    ensure!(parent.starts_with(&PARENT[..36]) && parent.len() == PARENT.len(), "{parent}");
    ensure!(one(&headers, wire::TRACESTATE)? == "vendor=value,other=1", "{headers:?}");
    Ok(())
}

async fn replaced(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let upper = PARENT.to_uppercase();
    for bad in ["", "x", &PARENT[1..], &upper, &format!("ff{}", &PARENT[2..])] {
        let name = HeaderName::from_static(wire::TRACEPARENT);
        let (_, headers) = received(&stand_in, |call| call.header(name, bad.as_bytes())).await?;
        let parent = one(&headers, wire::TRACEPARENT)?;
        ensure!(
            parent.len() == PARENT.len() && parent.starts_with("00-") && parent != bad,
            "{bad:?} became {parent:?}"
        );
    }
    let (_, headers) = received(&stand_in, |call| call).await?;
    ensure!(one(&headers, wire::TRACEPARENT)?.len() == PARENT.len(), "{headers:?}");
    Ok(())
}

async fn token(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let (_, headers) = received(&stand_in, |call| call).await?;
    ensure!(one(&headers, AUTHORIZATION.as_str())? == format!("Bearer {FARM_TOKEN}"), "{headers:?}");
    let key = &stand_in.common.key;
    let has_key = headers.values().any(|value| String::from_utf8_lossy(value.as_bytes()).contains(key));
    ensure!(!has_key, "the farm received the key of the client");
    ensure!(stand_in.farm.rejected() == 0, "the farm refused requests");
    Ok(())
}

async fn deadline(stage: Stage) -> Result<()> {
    let stand_in = stage.stand_in().await?;
    let (_, headers) = received(&stand_in, |call| call).await?;
    let left: u64 = one(&headers, wire::DEADLINE_MS)?.parse()?;
    ensure!((1..=platen_shared::limits::RENDER_TIMEOUT_MS).contains(&left), "{left} ms left");
    Ok(())
}
