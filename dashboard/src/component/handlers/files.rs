//! Style, scripts, icon, frame.

use crate::{
    assets,
    component::{answer::Answer, fault::Fault, visit::Visit},
};

pub(in crate::component) fn asset(visit: &Visit, name: &str) -> Result<Answer, Fault> {
    if visit.is_post || visit.is_odd {
        return Err(Fault::Method);
    }
    let asset = assets::find(name).ok_or(Fault::NotFound)?;
    let tag = format!("\"{name}\"");
    if visit.none_match.as_deref() == Some(tag.as_str()) {
        return Ok(Answer::file(asset.content_type, Vec::new()).status(304).with("etag", tag));
    }
    let answer = if asset.is_frame {
        Answer::file(asset.content_type, assets::frame().into_bytes()).frame()
    } else {
        Answer::file(asset.content_type, asset.bytes.to_vec())
    };
    Ok(answer.with("etag", tag))
}
