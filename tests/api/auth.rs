//! Keys: every invalid key gets the same answer, which does not say why it is invalid.

use http::header::AUTHORIZATION;
use platen_harness::operator::text;
use platen_shared::key::{ApiKey, KEY_CHARS, RANDOM_BYTES};

use crate::prelude::*;

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::any_server("auth/no_header", no_header),
        Case::any_server("auth/bad_headers", bad_headers),
        Case::any_server("auth/bad_headers_that_are_not_ascii", not_ascii)
            .not_on_spin("Spin answers 500 without the component"),
        Case::any_server("auth/two_headers", two_headers),
        Case::any_server("auth/bad_keys", bad_keys),
        Case::any_server("auth/scheme_in_any_case", scheme_in_any_case),
        Case::any_server("auth/key_elsewhere_than_in_the_header", key_elsewhere),
        Case::any_database("auth/disabled_keys_and_accounts", disabled),
        Case::any_database("auth/a_second_key_works_beside_the_first", second_key),
    ]
}

/// A body that is refused after the key was accepted, so nothing is rendered.
const INVALID: &str = "{}";
const NOT_RENDERED: &str = "\"html\" or \"url\" is required";

/// Checks for exactly this answer, without the headers of an answer to a valid key.
fn refused(answer: &Answer) -> Result<()> {
    answer.error(401, "Invalid API key")?;
    ensure!(answer.body == r#"{"error":"Invalid API key"}"#, "the body is {:?}", answer.body);
    ensure!(!answer.headers.contains_key("ratelimit"), "an invalid key gets a quota");
    Ok(())
}

async fn with_authorization(target: &Target, value: &[u8]) -> Result<Answer> {
    target.post(RENDER, INVALID).header(AUTHORIZATION, value).send().await
}

async fn no_header(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    refused(&target.post(RENDER, INVALID).without(&AUTHORIZATION).send().await?)
}

async fn bad_headers(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let key = target.key.as_str();
    let long = format!("Bearer {}", "a".repeat(6_000));
    for value in [
        "",
        " ",
        "Bearer",
        "Bearer ",
        "Bearer  ",
        "bearer",
        "Bearer null",
        "Bearer undefined",
        "Bearer \"\"",
        &long,
        key,
        &format!("Bearer{key}"),
        &format!("Bearer:{key}"),
        &format!("Bearer\t{key}"),
        &format!("Bearer \"{key}\""),
        &format!("Bearer <{key}>"),
        &format!("Bearer {key},"),
        &format!("Bearer {key}, Bearer {key}"),
        &format!("Bearer {key} {key}"),
        &format!("Bearer Bearer {key}"),
        &format!("Basic {key}"),
        &format!("Digest {key}"),
        &format!("Token {key}"),
        &format!("ApiKey {key}"),
        &format!("Bearerx {key}"),
    ] {
        let answer = with_authorization(&target, value.as_bytes()).await?;
        refused(&answer).with_context(|| format!("{value:.80}").replace(key, "KEY"))?;
    }
    Ok(())
}

async fn not_ascii(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let key = target.key.as_bytes();
    for value in [b"Bearer \xff\xfe".as_slice(), "Bearer plt_é".as_bytes(), &[key, b"\xff"].concat()] {
        refused(&with_authorization(&target, value).await?)?;
    }
    Ok(())
}

async fn two_headers(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let good = format!("Bearer {}", target.key);
    for second in [good.as_str(), "Bearer x", ""] {
        let call = target.post(RENDER, INVALID).more(AUTHORIZATION, second.as_bytes());
        refused(&call.send().await?).with_context(|| format!("the valid key, then {second:?}"))?;
    }
    Ok(())
}

async fn bad_keys(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let key = target.key.clone();
    let body = &key[4..];
    for bad in [
        key.to_uppercase(),
        key.to_lowercase(),
        format!("{key}a"),
        format!("a{key}"),
        key[..KEY_CHARS - 1].to_owned(),
        key[..8].to_owned(),
        format!("PLT_{body}"),
        format!("plt-{body}"),
        format!("sk_{body}"),
        format!("tlp_{body}"),
        body.to_owned(),
        "plt_".to_owned(),
        format!("plt_{}", "0".repeat(38)),
        "' OR 1=1 --".to_owned(),
        "plt_' OR 1=1 --aaaaaaaaaaaaaaaaaaaaaaaaaaa".to_owned(),
        // With a right checksum.
        ApiKey::from_random(rand::random::<[u8; RANDOM_BYTES]>()).expose().to_owned(),
    ] {
        let answer = with_authorization(&target, format!("Bearer {bad}").as_bytes()).await?;
        refused(&answer).with_context(|| bad.replace(body, "BODY"))?;
    }
    Ok(())
}

async fn scheme_in_any_case(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    for scheme in ["Bearer", "bearer", "BEARER", "bEaReR"] {
        let value = format!("{scheme} {}", target.key);
        let answer = with_authorization(&target, value.as_bytes()).await?;
        answer.error(400, NOT_RENDERED).context(scheme)?;
    }
    Ok(())
}

async fn key_elsewhere(stage: Stage) -> Result<()> {
    let target = stage.common().await?;
    let key = target.key.clone();
    for path in [format!("{RENDER}?key={key}"), format!("{RENDER}?access_token={key}")] {
        refused(&target.post(&path, INVALID).without(&AUTHORIZATION).send().await?)?;
    }
    let body = json!({ "html": "x", "key": key, "authorization": key }).to_string();
    refused(&target.post(RENDER, body).without(&AUTHORIZATION).send().await?)?;
    for name in ["x-api-key", "cookie", "proxy-authorization"] {
        let call = target.post(RENDER, INVALID).without(&AUTHORIZATION);
        refused(&call.header(name.parse()?, format!("Bearer {key}").as_bytes()).send().await?)
            .context(name)?;
    }
    Ok(())
}

async fn disabled(stage: Stage) -> Result<()> {
    for what in ["key", "account"] {
        let (service, account, target) = stage.account_with_key(Quota::Of(5)).await?;
        target.post(RENDER, INVALID).send().await?.error(400, NOT_RENDERED)?;
        let id = if what == "key" { &account.key_id } else { &account.id };
        service.operator.run(&[what, "disable", id]).await?;
        refused(&target.post(RENDER, INVALID).send().await?).context("an invalid body")?;
        refused(&target.minimal().send().await?).context("a valid body")?;
        stage.no_job_was_received(&account).await?;
        ensure!(service.operator.attempts(&account.id).await? == 0, "a disabled {what} was counted");
    }
    Ok(())
}

async fn second_key(stage: Stage) -> Result<()> {
    let (service, account, target) = stage.account_with_key(Quota::Of(5)).await?;
    let second = target.with_key(&text(&service.operator.key(&account.id).await?, "key")?);
    for target in [&target, &second] {
        target.renders().await?;
    }
    // Both keys use the quota of the account.
    ensure!(service.operator.attempts(&account.id).await? == 2, "two keys, two attempts");
    service.operator.run(&["key", "disable", &account.key_id]).await?;
    refused(&target.minimal().send().await?)?;
    second.renders().await
}
