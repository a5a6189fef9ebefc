//! Static files.

use crate::{
    assets,
    router::{page_error::PageError, request_head::RequestHead, response::PageResponse},
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
    } else if !asset.is_compressed {
        PageResponse::immutable(asset.content_type, asset.bytes.to_vec())
    } else if accepts_gzip(&head.headers.get("accept-encoding")) {
        PageResponse::immutable(asset.content_type, asset.bytes.to_vec())
            .with_header("content-encoding", "gzip".to_owned())
    } else {
        PageResponse::immutable(asset.content_type, assets::decompressed(asset.bytes))
    };
    Ok(response.with_header("vary", "accept-encoding".to_owned()).with_header("etag", etag))
}

/// Whether the client names gzip, without a weight of 0 (RFC 9110, section 12.5.3).
fn accepts_gzip(values: &[Vec<u8>]) -> bool {
    let mut codings =
        values.iter().filter_map(|value| std::str::from_utf8(value).ok()).flat_map(|value| value.split(','));
    codings.any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let is_zero = weight.trim().strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !is_zero
    })
}
