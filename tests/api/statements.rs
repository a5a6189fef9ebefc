//! Database statements per request, by the server's own count: 1 for a render and 1 that writes it
//! down after its answer, 1 for an invalid body, 0 for a junk key. That the one after an answer is
//! not waited for is shown in `dashboard/log.rs`.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use http::{Method, header::AUTHORIZATION};
use platen_shared::key::{ApiKey, RANDOM_BYTES};
use platen_tests::{
    case::Case,
    client::{Call, RENDER, TEMPLATE},
    operator::Quota,
    suite::{Stage, StandIn},
};
use serde_json::json;

pub(crate) fn cases() -> Vec<Case> {
    vec![Case::own_server("statements/per_request", per_request)]
}

/// Only so that a count that never comes does not hang the run.
const PATIENCE: Duration = Duration::from_mins(2);

/// One server for itself: its counter is for all requests.
async fn per_request(stage: Stage) -> Result<()> {
    const TIMES: u32 = 5;
    const AFTER: u32 = 1;
    let stand_in = stage.start_stand_in(None).await?;
    let target = &stand_in.common;
    let exhausted = stand_in.app.operator.account(Quota::Of(0)).await?;
    let exhausted = stand_in.app.target(&exhausted);
    let unknown = target.with_key(ApiKey::from_random(rand::random::<[u8; RANDOM_BYTES]>()).expose());
    let (html, invalid) = (json!({ "html": "x" }), "{}");
    let filled = json!({
        "templateId": target.template_id, "variables": { "customer": "c", "total": 1, "markup": "" },
    });
    let table: Vec<(&str, Call, u16, u32)> = vec![
        ("a render", target.render(&html), 200, 1 + AFTER),
        ("a render of a template", target.render_template(&filled), 200, 1 + AFTER),
        ("an invalid body", target.post(RENDER, invalid), 400, 1),
        ("an invalid body for a template", target.post(TEMPLATE, invalid), 400, 1),
        ("no body", target.post(RENDER, ""), 400, 1),
        ("another content type", target.post(RENDER, "x").without(&http::header::CONTENT_TYPE), 415, 1),
        ("no key", target.render(&html).without(&AUTHORIZATION), 401, 0),
        ("a junk key", target.render(&html).key("junk"), 401, 0),
        ("a key with a wrong checksum", target.render(&html).key(&format!("plt_{}", "a".repeat(38))), 401, 0),
        ("a junk key and an invalid body", target.post(RENDER, invalid).key("junk"), 401, 0),
        ("no such path", target.post("/v1/nothing", "{}"), 404, 0),
        ("no such method", target.post(RENDER, "").method(Method::GET), 405, 0),
        ("a well-formed key nobody has, invalid body", unknown.post(RENDER, invalid), 401, 1),
        // The claim, and then the question why it came to nothing.
        ("a well-formed key nobody has", unknown.render(&html), 401, 2),
        ("no quota left", exhausted.render(&html), 429, 2),
        ("no such template", target.render_template(&json!({ "templateId": "tpl_x" })), 404, 2),
    ];
    let mut wanted = stand_in.app.metric("platen_db_statements_total").await?;
    for (what, call, status, expected) in table {
        for _ in 0..TIMES {
            ensure!(call.clone().send().await?.status == status, "{what}: not a {status}");
        }
        wanted += f64::from(expected * TIMES);
        come_to(&stand_in, wanted).await.context(what)?;
    }
    Ok(())
}

/// Waits until so many statements have been run. What comes late is noticed by the next to wait.
async fn come_to(stand_in: &StandIn, wanted: f64) -> Result<()> {
    let began = Instant::now();
    loop {
        let counted = stand_in.app.metric("platen_db_statements_total").await?;
        if (counted - wanted).abs() < 0.5 {
            return Ok(());
        }
        ensure!(counted < wanted && began.elapsed() < PATIENCE, "{counted} statements, not {wanted}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
