//! Whether an image in a `data:` URL is still.
//!
//! Invariant: an image that counts as still has exactly one frame. Unknown formats do not count as still.

use base64::{Engine as _, engine::DecodePaddingMode, engine::GeneralPurpose, engine::GeneralPurposeConfig};

/// Text in an SVG image that may make it change.
const SVG_MOTION: &[&str] = &[
    "<animate",
    "<set",
    ":animate",
    ":set",
    "<script",
    "<foreignobject",
    "<style",
    "style=",
    "<image",
    "<!entity",
];

/// Whether the image of a `data:` URL has exactly one frame.
pub(super) fn is_still(url: &str) -> bool {
    let Some((head, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) else {
        return false;
    };
    let mut parts = head.split(';');
    let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
    let bytes = percent_decoded(data);
    let bytes = if parts.any(|part| part.trim().eq_ignore_ascii_case("base64")) {
        match base64_decoded(bytes) {
            Some(bytes) => bytes,
            None => return false,
        }
    } else {
        bytes
    };
    if media_type == "image/svg+xml" {
        return is_still_svg(&bytes);
    }
    // Chromium detects the format by the content and ignores the media type.
    match bytes.as_slice() {
        [0xff, 0xd8, 0xff, ..] | [b'B', b'M', ..] => true,
        [0x89, b'P', b'N', b'G', ..] => !contains(&bytes, b"acTL"),
        [b'G', b'I', b'F', ..] => gif_frames(&bytes) == Some(1),
        [b'R', b'I', b'F', b'F', ..] => !contains(&bytes, b"ANIM"),
        _ => false,
    }
}

fn is_still_svg(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| {
        let text = text.to_ascii_lowercase();
        !SVG_MOTION.iter().any(|motion| text.contains(motion))
    })
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

fn percent_decoded(text: &str) -> Vec<u8> {
    percent_encoding::percent_decode_str(text).collect()
}

fn base64_decoded(mut text: Vec<u8>) -> Option<Vec<u8>> {
    const FORGIVING: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    text.retain(|byte| !byte.is_ascii_whitespace());
    FORGIVING.decode(text).ok()
}

/// The number of frames of a GIF: its image descriptors (section 20 of its specification). `None` if
/// it is truncated or invalid.
fn gif_frames(bytes: &[u8]) -> Option<u32> {
    let color_table = |flags: u8| if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) };
    let mut at = 13 + color_table(*bytes.get(10)?);
    let mut frames = 0;
    loop {
        match bytes.get(at)? {
            0x3b => return Some(frames),
            // An extension: a label, then sub-blocks.
            0x21 => at += 2,
            0x2c => {
                frames += 1;
                // The descriptor, its colour table, the minimum code size, then sub-blocks.
                at += 11 + color_table(*bytes.get(at + 9)?);
            }
            _ => return None,
        }
        loop {
            let length = usize::from(*bytes.get(at)?);
            at += 1 + length;
            if length == 0 {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    /// A GIF of one pixel.
    fn gif(frames: usize) -> Vec<u8> {
        let mut bytes = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff".to_vec();
        for _ in 0..frames {
            bytes.extend(b"\x21\xf9\x04\0\x0a\0\0\0\x2c\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0");
        }
        bytes.push(0x3b);
        bytes
    }

    #[test]
    fn an_image_with_one_frame_is_still() {
        let url = |kind: &str, bytes: &[u8]| format!("data:{kind};base64,{}", BASE64_STANDARD.encode(bytes));
        let svg = |content: &str| url("image/svg+xml", format!("<svg>{content}</svg>").as_bytes());
        let table = [
            (url("image/gif", &gif(1)), true),
            (url("image/gif", &gif(2)), false),
            (url("image/png", &gif(2)), false),
            (url("image/gif", &gif(1)[..20]), false),
            (url("image/png", b"\x89PNG\r\n\x1a\n....IHDR....IDAT"), true),
            (url("image/png", b"\x89PNG\r\n\x1a\n....IHDR....acTL...IDAT"), false),
            (url("image/jpeg", &[0xff, 0xd8, 0xff, 0xe0]), true),
            (url("image/webp", b"RIFF....WEBPVP8 ...."), true),
            (url("image/webp", b"RIFF....WEBPVP8X....ANIM"), false),
            (url("image/avif", b"\0\0\0\x20ftypavif"), false),
            (svg("<rect width='1'/>"), true),
            (svg("<rect><animate/></rect>"), false),
            (svg("<SET/>"), false),
            (svg("<style>@keyframes a{}</style>"), false),
            ("data:image/svg+xml,%3Csvg%3E%3Canim%61te/%3E%3C/svg%3E".to_owned(), false),
            ("data:image/svg+xml,%3Csvg%3E%3C/svg%3E".to_owned(), true),
            ("data:image/gif;base64,@@".to_owned(), false),
            ("data:".to_owned(), false),
        ];
        for (url, still) in table {
            assert_eq!(is_still(&url), still, "{url}");
        }
    }
}
