//! Database statements per request, as the server counts them: 1 for a render, 1 more for the first request of a key, 1 for an
//! invalid body, and 1 that logs these after the answer; 0 for a malformed key. `dashboard/log.rs` checks that the answer does not wait for the log.

use http::{Method, header::AUTHORIZATION};
use platen_harness::client::Call;

use crate::account_limits::limited;
use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    let case = Case::own_server("statements/per_request", per_request);
    vec![case.not_on_spin("a metric of platen up")]
}

/// Needs a server for this case only, because it counts the statements of all requests.
async fn per_request(stage: Stage) -> Result<()> {
    const TIMES: u64 = 5;
    /// Rejected requests have at most 30 rows a minute.
    const LOG: u64 = 1;
    const LARGE: usize = 1024 * 1024 + 1;
    let stand_in = stage.start_stand_in(None).await?;
    let target = &stand_in.common;
    let (_, exhausted) = stand_in.app.account(Quota::Of(0)).await?;
    let limited = async |flag: &str| -> Result<Target> {
        Ok(limited(&stand_in.app, Quota::Unlimited, &[flag, "4000"]).await?.1)
    };
    let (per_minute, at_once) = (limited("--requests-per-minute").await?, limited("--concurrency").await?);
    let unknown = target.with_unknown_key();
    let (html, invalid) = (json!({ "html": "x" }), "{}");
    let large = format!("{}{html}", " ".repeat(LARGE));
    let filled = json!({
        "templateId": target.template_id, "variables": { "customer": "c", "total": 1, "markup": "" },
    });
    let table: Vec<(&str, Call, u16, u64)> = vec![
        ("a render", target.render(&html), 200, 1 + LOG),
        ("a render of a template", target.render_template(&filled), 200, 1 + LOG),
        ("a render with a limit of requests in a minute", per_minute.render(&html), 200, 1 + LOG),
        ("a render with a limit of requests at once", at_once.render(&html), 200, 2 + LOG),
        ("an invalid body", target.post(RENDER, invalid), 400, 1 + LOG),
        ("an invalid body for a template", target.post(TEMPLATE, invalid), 400, 1 + LOG),
        ("no body", target.post(RENDER, ""), 400, 1 + LOG),
        ("another content type", target.post(RENDER, "x").without(&http::header::CONTENT_TYPE), 415, 1 + LOG),
        ("no key", target.render(&html).without(&AUTHORIZATION), 401, 0),
        ("a junk key", target.render(&html).key("junk"), 401, 0),
        ("a key with a wrong checksum", target.render(&html).key(&format!("plt_{}", "a".repeat(38))), 401, 0),
        ("a junk key and an invalid body", target.post(RENDER, invalid).key("junk"), 401, 0),
        ("no such path", target.post("/v1/nothing", "{}"), 404, 0),
        ("no such method", target.post(RENDER, "").method(Method::GET), 405, 0),
        ("a well-formed unknown key", unknown.render(&html), 401, 1),
        ("a well-formed unknown key, invalid body", unknown.post(RENDER, invalid), 401, 1),
        ("a body over 1 MiB", target.post(RENDER, large), 200, 1 + LOG),
        ("an invalid body over 1 MiB", target.post(RENDER, " ".repeat(LARGE)), 400, 1 + LOG),
        ("a well-formed unknown key, body over 1 MiB", unknown.post(RENDER, " ".repeat(LARGE)), 401, 1),
        // The claim, and then the statement that finds out why it returned no row.
        ("no such template", target.render_template(&json!({ "templateId": "tpl_x" })), 404, 2 + LOG),
    ];
    let mut expected_total = stand_in.app.metric("platen_db_statements_total").await?;
    // The key is looked up before its body is read.
    for (key, expected) in [(target, 2), (&per_minute, 2), (&at_once, 3)] {
        ensure!(key.render(&html).send().await?.status == 200, "the first render with a key");
        expected_total += expected + LOG;
        until_statements(&stand_in, expected_total).await.context("the first render with a key")?;
    }
    for (what, call, status, expected) in table {
        for _ in 0..TIMES {
            ensure!(call.clone().send().await?.status == status, "{what}: not a {status}");
            expected_total += expected;
            // Before the next request, whose row could be written by the same statement.
            until_statements(&stand_in, expected_total).await.context(what)?;
        }
    }
    // A refusal is a look-up, unless another instance of the component gets the request, such as a new one after a pause: then a
    // claim is before it. One statement writes several rows.
    let before = stand_in.app.metric("platen_db_statements_total").await?;
    for _ in 0..20 {
        ensure!(exhausted.render(&html).send().await?.status == 429, "no quota left: not a 429");
    }
    let counted = stand_in.app.metric("platen_db_statements_total").await? - before;
    ensure!((20..=50).contains(&counted), "no quota left: {counted} statements");
    Ok(())
}

/// Waits until this many statements have been run. The next wait detects statements that are too many.
async fn until_statements(stand_in: &StandIn, expected: u64) -> Result<()> {
    wait::until_true(&format!("{expected} statements"), async || {
        let counted = stand_in.app.metric("platen_db_statements_total").await?;
        ensure!(counted <= expected, "{counted} statements instead of {expected}");
        Ok(counted == expected)
    })
    .await
}
