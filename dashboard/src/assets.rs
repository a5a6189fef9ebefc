//! The static files of pages: style sheet, scripts, icon, the preview's frame.
//!
//! Invariant: the name of a file in its address holds a hash of all files' contents, so browsers may cache it
//! without limit and never combine files of two builds.

use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Asset {
    pub(crate) bytes: &'static [u8],
    pub(crate) content_type: &'static str,
    /// Whether it is the preview's frame, which has a content security policy of its own.
    pub(crate) is_frame: bool,
}

const FRAME: &str = include_str!("../assets/frame.html");
/// Stem and extension of the name, content type, and content.
const FILES: [(&str, &str, &str, &str); 6] = [
    ("style", "css", "text/css; charset=utf-8", include_str!("../assets/style.css")),
    ("app", "js", "text/javascript; charset=utf-8", include_str!("../assets/app.js")),
    ("editor", "js", "text/javascript; charset=utf-8", include_str!("../assets/editor.js")),
    ("frame", "js", "text/javascript; charset=utf-8", include_str!("../assets/frame.js")),
    ("frame", "html", "text/html; charset=utf-8", FRAME),
    ("icon", "svg", "image/svg+xml", include_str!("../assets/icon.svg")),
];

/// A hash of all files. The frame refers to the script and the style sheet, so its address changes with theirs.
static HASH: LazyLock<String> = LazyLock::new(|| {
    let all = FILES.iter().map(|(.., text)| text.as_bytes()).fold(Sha256::new(), Sha256::chain_update);
    hex::encode(&all.finalize()[..6])
});

fn file_name(stem: &str, extension: &str) -> String {
    format!("{stem}-{}.{extension}", *HASH)
}

/// The file of this name, with its hash.
pub(crate) fn find(name: &str) -> Option<Asset> {
    let file = FILES.iter().find(|(stem, extension, ..)| file_name(stem, extension) == name);
    file.map(|&(_, extension, content_type, text)| Asset {
        bytes: text.as_bytes(),
        content_type,
        is_frame: extension == "html",
    })
}

/// The path of a file in the browser.
pub(crate) fn url(stem: &str, extension: &str) -> String {
    format!("/dashboard/assets/{}", file_name(stem, extension))
}

/// The HTML of the preview's frame, with the addresses of its script and style sheet.
pub(crate) fn frame() -> String {
    FRAME.replace("frame.js", &url("frame", "js")).replace("style.css", &url("style", "css"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_url_finds_its_file() {
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
