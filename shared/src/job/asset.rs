//! Files beside markup.

use std::{collections::HashSet, sync::Arc};

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use super::Base64;
use crate::{
    limits,
    text::{kept, texts},
    token::sha256_hex,
};

texts! {
    /// The path of a file beside markup, relative to the address of the markup.
    #[derive(PartialOrd, Ord)]
    AssetPath = |text| {
        let max = limits::MAX_ASSET_PATH_CHARS;
        let rule = format!(
            "must be a relative path of 1 to {max} characters, such as \"img/logo.png\", without \".\", \"..\", empty names, \
             \"\\\", \"?\", \"#\", a scheme and control characters"
        );
        kept(text, is_asset_path, rule)
    };
    /// The text of a file.
    AssetText = Ok;
    /// A media type that may have a `charset`, such as `text/css; charset=utf-8`.
    AssetType = |text| {
        kept(text, is_asset_type, "must be a media type, such as \"text/css\", with no parameter but \"charset\"")
    };
    /// The hash of a content: SHA-256 in lower-case hex.
    #[derive(PartialOrd, Ord, Hash)]
    ContentHash = |text| kept(text, is_hash, "must be SHA-256 in lower-case hex");
}

impl ContentHash {
    /// The hash of a content.
    #[must_use]
    pub fn of(content: &[u8]) -> Self {
        Self(sha256_hex(content))
    }
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// A stored content that does not have its hash, or is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stored file of a template is damaged or missing")]
pub struct DamagedFile;

/// A file beside markup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asset {
    /// Where the page finds it.
    pub path: AssetPath,
    /// Its bytes.
    pub content: AssetContent,
    /// Its media type; without it that of the extension of its path.
    #[serde(default)]
    pub mime_type: Option<AssetType>,
}

/// The bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssetContent {
    /// Content in base64.
    Base64(Base64),
    /// Content in UTF-8.
    Text(AssetText),
    /// Content of a file of a template, which a farm may have from an earlier job.
    Stored {
        /// Its hash.
        hash: ContentHash,
        /// The content, if it is sent or found.
        #[serde(default)]
        content: Option<Arc<Base64>>,
    },
}

impl Asset {
    /// The index of the first one whose path is equal to that of one before it.
    #[must_use]
    pub fn repeated(assets: &[Self]) -> Option<usize> {
        let mut paths = HashSet::new();
        assets.iter().position(|it| !paths.insert(path_names(it.path.as_str())))
    }

    /// The number of its bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.content {
            AssetContent::Base64(content) => content.decoded_bytes(),
            AssetContent::Text(text) => text.as_str().len(),
            AssetContent::Stored { content, .. } => {
                content.as_ref().map_or(0, |content| content.decoded_bytes())
            }
        }
    }
}

/// The names of the path of an address, as paths are compared: percent-decoded and in NFC. A name in which a `/` is
/// encoded is equal to no name of an asset.
#[must_use]
pub fn path_names(path: &str) -> Vec<String> {
    path.split('/').map(|name| percent_decode_str(name).decode_utf8_lossy().nfc().collect()).collect()
}

fn is_asset_path(text: &str) -> bool {
    let is_name = |name: &str| {
        percent_decode_str(name).decode_utf8().is_ok_and(|name| {
            !["", ".", ".."].contains(&&*name)
                && !name.contains(['/', '\\'])
                && !name.contains(char::is_control)
        })
    };
    // Of the first name, as an address is parsed.
    let has_scheme =
        text.split('/').next().and_then(|name| name.split_once(':')).is_some_and(|(scheme, _)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        });
    text.chars().count() <= limits::MAX_ASSET_PATH_CHARS
        && !text.contains(['?', '#'])
        && !has_scheme
        && text.split('/').all(is_name)
}

fn is_asset_type(text: &str) -> bool {
    let (of_type, charset) = match text.split_once(';') {
        Some((of_type, parameter)) => (of_type, Some(parameter.trim_matches([' ', '\t']))),
        None => (text, None),
    };
    super::text::is_media_type(of_type.trim_end_matches([' ', '\t']))
        && charset.is_none_or(|parameter| {
            parameter.split_once('=').is_some_and(|(name, value)| {
                name.eq_ignore_ascii_case("charset")
                    && !value.is_empty()
                    && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:+".contains(&byte))
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_below_the_address() {
        for text in [
            "a",
            "img/logo.png",
            "a b.css",
            "ü/%C3%BC.js",
            "100%.png",
            "a/b:c",
            ".hidden",
            "%3F",
            "x".repeat(200).as_str(),
        ] {
            assert!(AssetPath::try_from(text.to_owned()).is_ok(), "{text}");
        }
        for text in [
            "",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "../a",
            "a/./b",
            "a/..",
            "%2e%2e/a",
            "a/%2E",
            "a\\b",
            "a%2Fb",
            "a%5cb",
            "a%00",
            "a%0Ab",
            "a?b",
            "a#b",
            "a\nb",
            "\u{7f}",
            "%FF",
            "http://a",
            "c:a",
            "data:,a",
            "x".repeat(201).as_str(),
        ] {
            assert!(AssetPath::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    #[test]
    fn paths_are_compared_decoded_and_in_nfc() {
        assert_eq!(path_names("a/u\u{308}%20b"), path_names("%61/%C3%BC b"));
        assert_ne!(path_names("a%2Fb"), path_names("a/b"));
        assert_ne!(path_names("A"), path_names("a"));
    }

    #[test]
    fn a_type_has_a_charset_at_most() {
        for text in [
            "text/css",
            "text/css;charset=utf-8",
            "text/html; Charset=ISO-8859-1",
            "image/svg+xml ; charset=utf-8",
        ] {
            assert!(AssetType::try_from(text.to_owned()).is_ok(), "{text}");
        }
        for text in [
            "",
            "css",
            "text/css; a=b",
            "text/css; charset=",
            "text/css; charset=a; b=c",
            "text/css;",
            "a/b\r\nc: d",
        ] {
            assert!(AssetType::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
