//! The order of checks, statuses that need no body, and content types.

use http::{
    Method,
    header::{ACCEPT_ENCODING, ALLOW, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, WWW_AUTHENTICATE},
};
use platen_harness::client::Call;

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_server("order/unknown_paths", unknown_paths),
        Case::any_server("order/other_methods", other_methods),
        Case::any_server("order/path_before_method_before_key", path_method_key),
        Case::any_server("order/key_before_content_type_before_body", key_content_type_body),
        Case::any_server("order/content_types", content_types),
        Case::any_server("order/content_encodings", content_encodings),
        Case::any_server("order/body_before_template", body_before_template),
        Case::any_database("order/template_and_variables_before_quota", template_before_quota),
        Case::any_database("order/quota_before_farm", quota_before_farm),
    ]
}

async fn unknown_paths(stage: Stage) -> Result<()> {
    const PATHS: &str = "/v1 /v1/ /v1/renders /v1/render/ /v1/render/template/ /v1/render/templates /V1/render /v2/render \
        /render /v1//render /v1/render%2Ftemplate /v1/render;x /.well-known/x /healthz/x";
    let target = stage.common().await?;
    for path in PATHS.split_whitespace() {
        target.post(path, "{}").send().await?.error(404, "Not found").context(path)?;
    }
    // The query is not part of the path.
    let answer = target.post(&format!("{RENDER}?x=1"), "{}").send().await?;
    answer.error(400, "\"html\" or \"url\" is required")
}

async fn other_methods(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    for path in [RENDER, TEMPLATE] {
        for method in ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "post"] {
            let call = target.post(path, "").method(Method::from_bytes(method.as_bytes())?);
            let answer = call.send().await?;
            answer.error(405, "Method not allowed").with_context(|| format!("{method} {path}"))?;
            ensure!(
                answer.header(ALLOW.as_str())?.eq_ignore_ascii_case("POST"),
                "allow: {}",
                answer.summary()
            );
        }
        let head = target.post(path, "").method(Method::HEAD).send().await?;
        ensure!(head.status == 405 && head.body.is_empty(), "HEAD {path}: {}", head.summary());
    }
    Ok(())
}

async fn path_method_key(stage: Stage) -> Result<()> {
    let target = stage.common().await?.with_key("junk");
    target.post("/nowhere", "").method(Method::GET).send().await?.error(404, "Not found")?;
    target.post(RENDER, "").method(Method::GET).send().await?.error(405, "Method not allowed")
}

async fn key_content_type_body(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let wrong_type = |call: Call| call.header(CONTENT_TYPE, b"text/plain");
    wrong_type(target.post(RENDER, "{").key("junk")).send().await?.error(401, "Invalid API key")?;
    wrong_type(target.post(RENDER, "{").without(&AUTHORIZATION))
        .send()
        .await?
        .error(401, "Invalid API key")?;
    let answer = target.post(RENDER, "{").key("junk").send().await?;
    answer.error(401, "Invalid API key")?;
    ensure!(answer.header(WWW_AUTHENTICATE.as_str())? == "Bearer", "{}", answer.summary());
    let answer = wrong_type(target.post(RENDER, "{")).send().await?;
    answer.error(415, "Content type must be application/json")?;
    // Too large and of the wrong type; too large and with an invalid key.
    let large = vec![b' '; 32 * 1024 * 1024 + 1];
    let answer = wrong_type(target.post(RENDER, large.clone())).send().await?;
    answer.error(415, "Content type must be application/json")?;
    target.post(RENDER, large.clone()).key("junk").send().await?.error(401, "Invalid API key")?;
    target.post(RENDER, large).send().await?.error(413, "The body must be at most 33554432 bytes")
}

async fn content_types(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    for good in [
        "application/json",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        "Application/JSON",
        "application/json ; charset=\"utf-8\"",
        "application/json;",
        "application/json; profile=x; charset=utf-8",
        "application/json; CHARSET=Utf-8",
        "application/json; charset=utf-8; charset=\"UTF-8\"",
        "application/json; profile=\"a;charset=utf-16\"",
    ] {
        let answer = target.post(RENDER, "{}").header(CONTENT_TYPE, good.as_bytes()).send().await?;
        answer.error(400, "\"html\" or \"url\" is required").context(good)?;
    }
    for bad in [
        "",
        "json",
        "text/json",
        "text/plain",
        "application/jsonp",
        "application/json5",
        "application/x-json",
        "application/problem+json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain; application/json",
        "application/ json",
        "application/json; charset=utf-16",
        "application/json;charset=\"UTF-16\"",
        "Application/Json; Charset=ISO-8859-1",
        "application/json; charset=us-ascii",
        "application/json; charset=utf-8; charset=utf-16",
        "application/json; charset=utf-16; charset=utf-8",
        "application/json; charset=",
        "application",
        "*/*",
    ] {
        let answer = target.post(RENDER, "{}").header(CONTENT_TYPE, bad.as_bytes()).send().await?;
        answer.error(415, "Content type must be application/json").context(bad)?;
    }
    let answer = target.post(RENDER, "{}").without(&CONTENT_TYPE).send().await?;
    answer.error(415, "Content type must be application/json").context("no content type")
}

async fn content_encodings(stage: Stage) -> Result<()> {
    const REFUSED: &str = "The body must not be encoded; content-encoding must be identity or absent";
    let target = stage.common().await?;
    for good in ["identity", "Identity", "", "identity, identity"] {
        let answer = target.post(RENDER, "{}").header(CONTENT_ENCODING, good.as_bytes()).send().await?;
        answer.error(400, "\"html\" or \"url\" is required").context(good)?;
    }
    for bad in ["gzip", "br", "identity, gzip", "x"] {
        let call = target.post(RENDER, "{}").header(CONTENT_ENCODING, bad.as_bytes());
        let answer = call.clone().send().await?;
        answer.error(415, REFUSED).context(bad)?;
        ensure!(answer.header(ACCEPT_ENCODING.as_str())? == "identity", "{}", answer.summary());
        call.clone().key("junk").send().await?.error(401, "Invalid API key")?;
        let answer = call.header(CONTENT_TYPE, b"text/plain").send().await?;
        answer.error(415, "Content type must be application/json")?;
        ensure!(!answer.headers.contains_key(ACCEPT_ENCODING), "{}", answer.summary());
    }
    let call = target.post(RENDER, "{}").header(CONTENT_ENCODING, b"identity");
    call.more(CONTENT_ENCODING, b"gzip").send().await?.error(415, REFUSED)?;
    let large = target.post(RENDER, vec![b' '; 32 * 1024 * 1024 + 1]).header(CONTENT_ENCODING, b"gzip");
    large.send().await?.error(415, REFUSED).context("encoded and too large")
}

async fn body_before_template(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let answer = target.render_template(&json!({ "templateId": "tpl_unknown", "width": 0 })).send().await?;
    answer.error(400, "\"width\" must be a whole number from 1 to 7680")
}

async fn template_before_quota(stage: Stage) -> Result<()> {
    let service = stage.service().await?;
    let operator = &service.operator;
    let account = operator.account(Quota::Of(0)).await?;
    let template = operator.template(&account.id, "T", "{{ total }}").await?;
    let target = service.target(&account);
    let send = async |body| target.render_template(&body).send().await;
    send(json!({ "templateId": "tpl_unknown" })).await?.error(404, "Template not found")?;
    send(json!({ "templateId": template })).await?.error(400, "Missing template variable \"total\"")?;
    send(json!({ "templateId": template, "variables": { "total": 1 } }))
        .await?
        .error(429, "Monthly quota exhausted")?;
    send(json!({ "templateId": template, "scale": 9 }))
        .await?
        .error(400, "\"scale\" must be a number from 0.1 to 2")?;
    ensure!(operator.attempts(&account.id).await? == 0, "something was counted");
    Ok(())
}

async fn quota_before_farm(stage: Stage) -> Result<()> {
    let (service, account) = stage.account(Quota::Of(0)).await?;
    let answer = service.target(&account).minimal().send().await?;
    answer.error(429, "Monthly quota exhausted")?;
    stage.no_job_was_received(&account).await?;
    Ok(())
}
