//! Static files.

use crate::{
    assets,
    component::{answer::Answer, page_error::PageError, request_head::RequestHead},
};

pub(in crate::component) fn asset(head: &RequestHead, name: &str) -> Result<Answer, PageError> {
    if head.is_post || head.is_unsupported {
        return Err(PageError::Method);
    }
    let asset = assets::find(name).ok_or(PageError::NotFound)?;
    let etag = format!("\"{name}\"");
    if head.if_none_match.as_deref() == Some(etag.as_str()) {
        return Ok(Answer::immutable(asset.content_type, Vec::new()).status(304).with("etag", etag));
    }
    let answer = if asset.is_frame {
        Answer::immutable(asset.content_type, assets::frame().into_bytes()).with_frame_policy()
    } else {
        Answer::immutable(asset.content_type, asset.bytes.to_vec())
    };
    Ok(answer.with("etag", etag))
}
