//! The static files of pages: style sheet, scripts, icon, the preview's frame, pictures of starters.
//!
//! Invariant: the name of a file in its address holds a hash of all files' contents, so browsers may cache it
//! without limit and never combine files of two builds.

use std::{io::Read as _, sync::LazyLock};

use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Asset {
    pub(crate) bytes: &'static [u8],
    pub(crate) content_type: &'static str,
    /// Whether the bytes are compressed (gzip).
    pub(crate) is_compressed: bool,
    /// Whether it is the preview's frame, which has a content security policy of its own; `Some(true)` for the one that loads
    /// pictures of other hosts.
    pub(crate) frame: Option<bool>,
}

/// What `scripts/build-starters` has rendered.
macro_rules! picture {
    ($id:literal) => {
        (
            concat!("starter-", $id),
            "webp",
            "image/webp",
            include_bytes!(concat!("../assets/starters/", $id, ".webp")),
        )
    };
}

const FRAME: &str = include_str!("../assets/frame.html");
/// The same frame, with another policy.
const WITH_PICTURES: &str = "frame-pictures";
const JS: &str = "text/javascript; charset=utf-8";
/// Compressed by the build script, because it is ten times the size of all others.
const EDITOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/editor.js.gz"));
/// Stem and extension of the name, content type, and content.
const FILES: [(&str, &str, &str, &[u8]); 15] = [
    ("style", "css", "text/css; charset=utf-8", include_bytes!("../assets/style.css")),
    ("app", "js", JS, include_bytes!("../assets/app.js")),
    ("editor", "js", JS, EDITOR),
    ("frame", "js", JS, include_bytes!("../assets/frame.js")),
    ("frame", "html", "text/html; charset=utf-8", FRAME.as_bytes()),
    (WITH_PICTURES, "html", "text/html; charset=utf-8", FRAME.as_bytes()),
    ("icon", "svg", "image/svg+xml", include_bytes!("../assets/icon.svg")),
    picture!("numbered-invoice"),
    picture!("social-card"),
    picture!("certificate"),
    picture!("report"),
    picture!("packing-list"),
    picture!("shipping-label"),
    picture!("email"),
    picture!("arabic-letter"),
];

/// A hash of all files. The frame refers to its script, so its address changes with that of the script.
static HASH: LazyLock<String> = LazyLock::new(|| {
    let all = FILES.iter().map(|(.., bytes)| *bytes).fold(Sha256::new(), Sha256::chain_update);
    hex::encode(&all.finalize()[..6])
});

fn file_name(stem: &str, extension: &str) -> String {
    format!("{stem}-{}.{extension}", *HASH)
}

/// The file of this name, with its hash.
pub(crate) fn find(name: &str) -> Option<Asset> {
    let file = FILES.iter().find(|(stem, extension, ..)| file_name(stem, extension) == name);
    file.map(|&(stem, extension, content_type, bytes)| Asset {
        bytes,
        content_type,
        is_compressed: stem == "editor",
        frame: (extension == "html").then_some(stem == WITH_PICTURES),
    })
}

/// The content of a compressed file.
pub(crate) fn decompressed(bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    let read = GzDecoder::new(bytes).read_to_end(&mut content);
    read.expect("the build script has compressed it");
    content
}

/// The path of a file in the browser.
pub(crate) fn url(stem: &str, extension: &str) -> String {
    format!("/dashboard/assets/{}", file_name(stem, extension))
}

/// The HTML of the preview's frame, with the address of its script.
pub(crate) fn frame() -> String {
    FRAME.replace("frame.js", &url("frame", "js"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_url_finds_its_file() {
        for (stem, extension, content_type, bytes) in FILES {
            let url = url(stem, extension);
            let asset = find(url.strip_prefix("/dashboard/assets/").unwrap()).unwrap();
            assert_eq!((asset.content_type, asset.bytes), (content_type, bytes));
        }
        assert!(decompressed(EDITOR).starts_with(b"/*"), "the licences of what the script contains");
        assert!(find("style.css").is_none());
        assert!(find("").is_none());
        assert!(frame().contains(&url("frame", "js")));
    }
}
