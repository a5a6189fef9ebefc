//! Reads `assets`. An error quotes the path of its file, which is the caller's text, in the rule and not in the field.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{invalid::InvalidRequest, object::Field};
use crate::{
    job::{Asset, AssetContent, AssetPath, InvalidOptions},
    limits,
    text::shortened,
};

const RULE: &str = "must be an object of objects, by path, with \"content\" or \"text\", and \"mimeType\"";

pub(super) fn assets(field: Field<'_>) -> Result<Option<Vec<Asset>>, InvalidRequest> {
    let mut assets = Vec::new();
    field.each_member(RULE, |path, value| {
        if assets.len() == limits::MAX_ASSETS {
            return Err(field.rule(InvalidOptions::TooManyAssets));
        }
        assets.push(asset(field, path, value)?);
        Ok(())
    })?;
    if assets.iter().map(Asset::bytes).sum::<usize>() > limits::MAX_ASSET_BYTES {
        return Err(field.rule(InvalidOptions::AssetsTooLarge));
    }
    match Asset::repeated(&assets) {
        None => Ok(field.value.map(|_| assets)),
        Some(index) => Err(field.rule(format!("holds \"{}\" twice", shortened(assets[index].path.as_str())))),
    }
}

fn asset<'a>(field: Field<'a>, path: Cow<'a, str>, value: &'a RawValue) -> Result<Asset, InvalidRequest> {
    let quoted = shortened(&path);
    let rule = |rule: String| field.rule(format!("holds \"{quoted}\", {rule}"));
    let path = AssetPath::try_from(path.into_owned()).map_err(|error| rule(format!("which {error}")))?;
    let of_member = |error| match error {
        InvalidRequest::Rule { field, rule: broken } => rule(format!("whose \"{}\" {broken}", field.last())),
        error => error,
    };
    let members = Field { value: Some(value), ..field }.members(["content", "text", "mimeType"])?;
    let [content, text, mime_type] = members.ok_or_else(|| field.rule(RULE))?;
    let content = content.text_of().map_err(of_member)?.map(AssetContent::Base64);
    let text = text.text_of().map_err(of_member)?.map(AssetContent::Text);
    let ((Some(content), None) | (None, Some(content))) = (content, text) else {
        return Err(rule("which must have either \"content\" or \"text\"".to_owned()));
    };
    Ok(Asset { path, content, mime_type: mime_type.text_of().map_err(of_member)? })
}
