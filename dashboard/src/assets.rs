//! The files pages need besides themselves: style, scripts, icon, the frame of the preview.
//!
//! Invariant: a file's address holds the hash of its content, so it may be kept for ever, and a new
//! build is never mixed with an old file.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

use crate::hex;

/// One file.
#[derive(Debug, Clone, Copy)]
pub struct Asset {
    /// Its bytes.
    pub bytes: &'static [u8],
    /// Its media type.
    pub content_type: &'static str,
    /// It is the preview's frame, whose policy is another.
    pub is_frame: bool,
}

const FILES: [(&str, &str, &str, &str); 6] = [
    ("style", "css", "text/css; charset=utf-8", include_str!("../assets/style.css")),
    ("app", "js", "text/javascript; charset=utf-8", include_str!("../assets/app.js")),
    ("editor", "js", "text/javascript; charset=utf-8", include_str!("../assets/editor.js")),
    ("frame", "js", "text/javascript; charset=utf-8", include_str!("../assets/frame.js")),
    ("frame", "html", "text/html; charset=utf-8", include_str!("../assets/frame.html")),
    ("icon", "svg", "image/svg+xml", include_str!("../assets/icon.svg")),
];

struct Named {
    stem: &'static str,
    extension: &'static str,
    name: String,
    asset: Asset,
}

static ASSETS: LazyLock<Vec<Named>> = LazyLock::new(|| {
    // What the frame names changes with it.
    let all = FILES.iter().map(|(.., text)| text.as_bytes()).fold(Sha256::new(), Sha256::chain_update);
    let hash = hex::encode(&all.finalize()[..6]);
    FILES
        .iter()
        .map(|&(stem, extension, content_type, text)| Named {
            stem,
            extension,
            name: format!("{stem}-{hash}.{extension}"),
            asset: Asset { bytes: text.as_bytes(), content_type, is_frame: extension == "html" },
        })
        .collect()
});

/// The file of a name in an address.
#[must_use]
pub fn find(name: &str) -> Option<Asset> {
    ASSETS.iter().find(|named| named.name == name).map(|named| named.asset)
}

/// The address of a file.
#[must_use]
pub fn url(stem: &str, extension: &str) -> String {
    let named = ASSETS.iter().find(|named| named.stem == stem && named.extension == extension);
    format!("/dashboard/assets/{}", named.map_or("", |named| named.name.as_str()))
}

/// The preview's frame, with the address of its script.
#[must_use]
pub fn frame() -> String {
    let text = FILES.iter().find(|(_, extension, ..)| *extension == "html").map_or("", |(.., text)| text);
    text.replace("frame.js", &url("frame", "js")).replace("style.css", &url("style", "css"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_to_their_files() {
        for (stem, extension, content_type, text) in FILES {
            let url = url(stem, extension);
            let asset = find(url.strip_prefix("/dashboard/assets/").unwrap()).unwrap();
            assert_eq!((asset.content_type, asset.bytes), (content_type, text.as_bytes()));
        }
        assert!(find("style.css").is_none());
        assert!(find("").is_none());
        assert!(frame().contains(&url("frame", "js")));
    }
}
