//! Style, scripts, icon, frame.

use crate::{
    assets,
    component::{answer::Answer, page_error::PageError, request_head::RequestHead},
};

pub(in crate::component) fn asset(head: &RequestHead, name: &str) -> Result<Answer, PageError> {
    if head.is_post || head.is_odd {
        return Err(PageError::Method);
    }
    let asset = assets::find(name).ok_or(PageError::NotFound)?;
    let tag = format!("\"{name}\"");
    if head.none_match.as_deref() == Some(tag.as_str()) {
        return Ok(Answer::file(asset.content_type, Vec::new()).status(304).with("etag", tag));
    }
    let answer = if asset.is_frame {
        Answer::file(asset.content_type, assets::frame().into_bytes()).frame()
    } else {
        Answer::file(asset.content_type, asset.bytes.to_vec())
    };
    Ok(answer.with("etag", tag))
}
