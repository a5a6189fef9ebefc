//! Static files.

use crate::{
    assets,
    component::{page_error::PageError, request_head::RequestHead, response::PageResponse},
};

pub(crate) fn asset(head: &RequestHead, name: &str) -> Result<PageResponse, PageError> {
    if head.is_post || head.is_unsupported {
        return Err(PageError::Method);
    }
    let asset = assets::find(name).ok_or(PageError::NotFound)?;
    let etag = format!("\"{name}\"");
    if head.header("if-none-match").as_deref() == Some(etag.as_str()) {
        return Ok(PageResponse::immutable(asset.content_type, Vec::new())
            .with_status(304)
            .with_header("etag", etag));
    }
    let response = if asset.is_frame {
        PageResponse::immutable(asset.content_type, assets::frame().into_bytes()).with_frame_policy()
    } else {
        PageResponse::immutable(asset.content_type, asset.bytes.to_vec())
    };
    Ok(response.with_header("etag", etag))
}
