//! What a site answers: markup, an asset, or a file of a folder, of which a range may be asked for.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use platen_shared::job::{Asset, AssetContent};
use url::{Position, Url};

use crate::folder::{Folder, Found, Missing};

/// The type of files without another one.
const ANY_TYPE: &str = "application/octet-stream";

#[derive(Debug)]
pub(super) enum Content<'a> {
    /// A 404.
    None,
    Markup(&'a str),
    /// An asset, or the range of it that is asked for.
    Asset(&'a Asset, Option<String>),
    File(FolderFile),
}

impl Content<'_> {
    pub(super) fn body(self) -> Body {
        match self {
            Self::None => Body::missing(Missing::NotFound),
            Self::Markup(markup) => {
                Body::of_type("text/html; charset=utf-8".to_owned(), Part::whole(STANDARD.encode(markup)))
            }
            Self::Asset(asset, range) => Body::of_type(content_type(asset), part_of(asset, range.as_deref())),
            Self::File(file) => file.read(),
        }
    }
}

/// A file of a folder, which is read when its turn comes.
#[derive(Debug)]
pub(super) struct FolderFile {
    pub(super) folder: Folder,
    pub(super) url: Url,
    pub(super) range: Option<String>,
}

impl FolderFile {
    /// Reads the file, which may wait for its disk.
    pub(super) fn read(self) -> Body {
        let path = self.url.path();
        match self.folder.read(path) {
            Ok(Found::File(bytes)) => {
                // A folder is answered by its index.
                let name = if path.ends_with('/') { Folder::INDEX } else { path };
                Body::of_type(type_of(name).to_owned(), part_of_bytes(&bytes, self.range.as_deref()))
            }
            Ok(Found::Folder) => {
                let mut to = self.url.clone();
                to.set_path(&format!("{path}/"));
                Body { status: 301, location: Some(to[Position::BeforePath..].to_owned()), ..Body::default() }
            }
            Err(missing) => Body::missing(missing),
        }
    }
}

/// The body of an answer, and its head.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) status: i64,
    pub(super) base64: String,
    pub(super) of_type: Option<String>,
    /// Its `content-range`.
    pub(super) range: Option<String>,
    /// Where the file is.
    pub(super) location: Option<String>,
}

impl Body {
    pub(super) fn missing(missing: Missing) -> Self {
        Self { status: missing as i64, ..Self::default() }
    }

    fn of_type(of_type: String, Part { base64, status, range }: Part) -> Self {
        Self { status, base64, of_type: Some(of_type), range, location: None }
    }

    /// Its length in bytes.
    pub(super) fn len(&self) -> usize {
        let padding = self.base64.bytes().rev().take_while(|byte| *byte == b'=').count();
        (self.base64.len() / 4 * 3).saturating_sub(padding)
    }
}

/// A file, or a range of it.
struct Part {
    base64: String,
    status: i64,
    range: Option<String>,
}

impl Part {
    fn whole(base64: String) -> Self {
        Self { base64, status: 200, range: None }
    }
}

fn part_of(asset: &Asset, range: Option<&str>) -> Part {
    let encoded = match &asset.content {
        AssetContent::Base64(content) => content.as_str().to_owned(),
        AssetContent::Text(text) => STANDARD.encode(text.as_str()),
        AssetContent::Stored { content, .. } => {
            content.as_ref().map(|content| content.as_str().to_owned()).unwrap_or_default()
        }
    };
    if range.is_none() {
        return Part::whole(encoded);
    }
    part_of_bytes(&STANDARD.decode(&encoded).unwrap_or_default(), range)
}

fn part_of_bytes(bytes: &[u8], range: Option<&str>) -> Part {
    let length = bytes.len();
    match range.and_then(|range| part(range, length)) {
        None => Part::whole(STANDARD.encode(bytes)),
        Some(Err(())) => {
            Part { base64: String::new(), status: 416, range: Some(format!("bytes */{length}")) }
        }
        Some(Ok((first, last))) => Part {
            base64: STANDARD.encode(&bytes[first..=last]),
            status: 206,
            range: Some(format!("bytes {first}-{last}/{length}")),
        },
    }
}

/// The first and the last byte of a range of RFC 9110, section 14.1.2; an error if the file has none of them, and `None` if it
/// is to be ignored.
fn part(range: &str, length: usize) -> Option<Result<(usize, usize), ()>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (first, last) = match (first, last) {
        ("", suffix) => (length.saturating_sub(suffix.parse().ok()?), length),
        (first, "") => (first.parse().ok()?, length),
        (first, last) => (first.parse().ok()?, last.parse().ok()?),
    };
    if first > last {
        return None;
    }
    Some(if first < length { Ok((first, last.min(length - 1))) } else { Err(()) })
}

fn content_type(asset: &Asset) -> String {
    let given = asset.mime_type.as_ref().map(|given| given.as_str().to_owned());
    let of_extension = || type_of(asset.path.as_str()).to_owned();
    let of_type = given.unwrap_or_else(of_extension);
    let is_text = matches!(asset.content, AssetContent::Text(_)) && of_type.starts_with("text/");
    if is_text && !of_type.contains(';') { format!("{of_type}; charset=utf-8") } else { of_type }
}

fn type_of(path: &str) -> &'static str {
    mime_guess::from_path(path).first_raw().unwrap_or(ANY_TYPE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_part_of_the_file() {
        for (range, expected) in [
            ("bytes=0-", Some(Ok((0, 9)))),
            ("bytes=2-3", Some(Ok((2, 3)))),
            ("bytes=2-300", Some(Ok((2, 9)))),
            ("bytes=-4", Some(Ok((6, 9)))),
            ("bytes=-40", Some(Ok((0, 9)))),
            ("bytes=10-", Some(Err(()))),
            ("bytes=-0", Some(Err(()))),
            ("bytes=3-2", None),
            ("bytes=0-1,3-4", None),
            ("lines=0-1", None),
        ] {
            assert_eq!(part(range, 10), expected, "{range}");
        }
        assert_eq!(part("bytes=0-", 0), Some(Err(())));
    }
}
