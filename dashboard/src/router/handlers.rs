//! The handlers of all addresses: each parses its form, uses the store, and shows a page or redirects. Here are static files,
//! and the pages with what a user had entered into a form that was not saved.
//!
//! Invariant: the user sees every field that is submitted again.

pub(super) mod audit;
mod export;
pub(super) mod fill;
pub(super) mod invites;
pub(super) mod keys;
pub(super) mod links;
pub(super) mod operator;
pub(super) mod people;
pub(super) mod playground;
pub(super) mod profile;
pub(super) mod requests;
pub(super) mod retention;
pub(super) mod sign_in;
pub(super) mod template_editor;
pub(super) mod templates;
pub(super) mod usage;

use super::{
    context::Context,
    page_error::{PageError, PageResult},
    request_head::RequestHead,
    response::PageResponse,
};
use crate::{assets, form::Form};

/// A file of [`assets`].
pub(super) fn asset(head: &RequestHead, name: &str) -> Result<PageResponse, PageError> {
    if head.is_post || head.is_unsupported {
        return Err(PageError::Method);
    }
    let asset = assets::find(name).ok_or(PageError::NotFound)?;
    let etag = format!("\"{name}\"");
    let is_known = head.header("if-none-match").as_deref() == Some(etag.as_str());
    let response = if is_known {
        PageResponse::immutable(asset.content_type, Vec::new()).with_status(304)
    } else if asset.frame.is_some() {
        PageResponse::immutable(asset.content_type, assets::frame().into_bytes())
    } else if !asset.is_compressed {
        PageResponse::immutable(asset.content_type, asset.bytes.to_vec())
    } else if accepts_gzip(&head.headers.get("accept-encoding")) {
        PageResponse::immutable(asset.content_type, asset.bytes.to_vec())
            .with_header("content-encoding", "gzip".to_owned())
    } else {
        PageResponse::immutable(asset.content_type, assets::decompressed(asset.bytes))
    };
    // Browsers replace the policy of a file in their cache by that of a 304.
    let response = match asset.frame {
        Some(loads_pictures) => response.with_frame_policy(loads_pictures),
        None => response,
    };
    Ok(response.with_header("vary", "accept-encoding".to_owned()).with_header("etag", etag))
}

/// Whether the client names gzip, without a weight of 0 (RFC 9110, section 12.5.3).
fn accepts_gzip(values: &[Vec<u8>]) -> bool {
    let mut codings =
        values.iter().filter_map(|value| std::str::from_utf8(value).ok()).flat_map(|value| value.split(','));
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_zero = weight
            .trim()
            .to_ascii_lowercase()
            .strip_prefix("q=")
            .is_some_and(|weight| weight.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !is_zero
    })
}

/// Whether a form of this address has text that a user has typed.
pub(super) fn is_resumable(segments: &[&str]) -> bool {
    matches!(
        segments,
        ["templates" | "links", _]
            | ["keys" | "operator" | "playground"]
            | ["playground", "template"]
            | ["keys", _, "name" | "expiry"]
            | ["templates", _, "links"]
            | ["links", _, "settings"]
            | ["people", "invite"]
            | ["operator", "retention"]
            | ["operator", "accounts", _, "name" | "quota" | "limits" | "invite"]
    )
}

/// The page of a form with these values.
pub(super) async fn resume(context: &Context<'_>, segments: &[&str], form: &Form) -> PageResult {
    match segments {
        ["templates", "new"] | ["playground", "template"] => {
            template_editor::resume(context, None, form).await
        }
        ["templates", id] => template_editor::resume(context, Some(id), form).await,
        ["playground"] => playground::show(context, form).await,
        ["templates", id, "links"] => links::resume(context, id, form).await,
        ["links", id] => links::sign(context, id, form).await,
        ["links", id, "settings"] => links::resume_settings(context, id, form).await,
        ["keys"] => keys::resume(context, form).await,
        ["keys", id, _] => keys::resume_key(context, id, form).await,
        ["operator", "retention"] => retention::resume(context, form).await,
        ["people", "invite"] => people::resume(context, form).await,
        ["operator"] => operator::resume(context, form).await,
        ["operator", "accounts", id, field] => operator::resume_account(context, id, field, form).await,
        _ => Err(PageError::NotFound),
    }
}
