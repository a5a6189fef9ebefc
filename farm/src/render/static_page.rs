//! The proof that a loaded page is static: it cannot change any more, so waiting gives the same file.
//!
//! A page is static if all of these conditions hold:
//! 1. No script of it has run (`ScriptDuration` of `Performance.getMetrics` has not grown). Without a script
//!    it has no timers, callbacks or handlers.
//! 2. No animation or transition was created in any tree of the document (`Animation` domain).
//! 3. It has one frame, no request in progress, no worker and no socket, and all its images are known to have
//!    one frame (`page_events`, [`is_still`]).
//! 4. Its markup has nothing that changes without a script ([`may_change`]): SMIL, media, a refresh, a blinking
//!    caret, an indeterminate progress bar, an event handler.
//!
//! Invariant: if one of these is unknown, the page counts as one that may change.

use std::borrow::Cow;

use base64::{
    Engine as _,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use chromiumoxide_cdp::cdp::browser_protocol::page::{GetFrameTreeParams, GetResourceContentParams};
use platen_cdp::{CdpError, MIN_CUT_STRING_BYTES};
use platen_shared::job::Source;

use super::{main_thread, rendering::Rendering};
use crate::error::JobError;

/// Whether the page of some markup is static and has loaded nothing, without asking the page.
pub(super) fn is_known_static(rendering: &Rendering<'_>) -> bool {
    let now = rendering.load_state();
    let has_static_markup =
        || matches!(&rendering.job.source, Source::Html(html) if !may_change(html.as_str()));
    !rendering.scripts.ran && !now.activity.may_change && now.requests.open == 0 && has_static_markup()
}

/// Whether the page is proven to be static.
pub(super) async fn is_static(rendering: &Rendering<'_>) -> Result<bool, JobError> {
    let now = main_thread::metrics(rendering.session).await?;
    if now.has_run_since(rendering.scripts.time_before) || rendering.load_state().activity.may_change {
        return Ok(false);
    }
    let markup = markup(rendering).await?;
    Ok(markup.is_some_and(|markup| !may_change(&markup)) && !rendering.load_state().changes())
}

/// Elements that change without a script.
const CHANGING_ELEMENTS: &str = "animate animateMotion animateTransform set discard video audio marquee progress \
    iframe frame object embed portal fencedframe bgsound applet";
/// Attributes that change the page: a focused field has a blinking caret, and `http-equiv` can refresh the
/// page.
const CHANGING_ATTRIBUTES: [&str; 2] = ["autofocus", "http-equiv"];

/// Whether markup has an element or attribute that can change the page without a script, or the handler of an event. May be
/// true for text that looks like one.
pub(super) fn may_change(markup: &str) -> bool {
    has_changing_part(markup) || has_handler(markup)
}

/// Whether markup may do something without its reader: change ([`may_change`]), run a script, or have rules for requests in a
/// script element. May be true for text that looks like that.
pub(super) fn may_act(markup: &str) -> bool {
    const SCRIPT: &[u8] = b"<script";
    may_change(markup)
        || markup.as_bytes().windows(SCRIPT.len()).any(|part| part.eq_ignore_ascii_case(SCRIPT))
}

fn has_changing_part(markup: &str) -> bool {
    let bytes = markup.as_bytes();
    let elements: Vec<&str> = CHANGING_ELEMENTS.split(' ').collect();
    let starts = |at: usize, name: &str| {
        bytes.get(at..at + name.len()).is_some_and(|part| part.eq_ignore_ascii_case(name.as_bytes()))
    };
    bytes.iter().enumerate().any(|(at, byte)| match byte {
        b'<' => {
            // In XML the name of an SVG element may have a namespace prefix.
            let name = &bytes[at + 1..bytes.len().min(at + 32)];
            let local = name.iter().position(|byte| !byte.is_ascii_alphanumeric());
            let local = local.filter(|&end| name[end] == b':').map_or(at + 1, |end| at + 2 + end);
            elements.iter().any(|name| starts(local, name))
        }
        b'a' | b'A' | b'h' | b'H' => CHANGING_ATTRIBUTES.iter().any(|name| starts(at, name)),
        _ => false,
    })
}

/// Whether markup has an attribute with the name of the handler of an event, such as `onresize`.
fn has_handler(markup: &str) -> bool {
    markup.match_indices('=').any(|(at, _)| {
        let text = markup.as_bytes()[..at].trim_ascii_end();
        let start =
            text.iter().rposition(|byte| !byte.is_ascii_alphanumeric()).map_or(0, |before| before + 1);
        let name = &text[start..];
        name.len() > 2 && name[..2].eq_ignore_ascii_case(b"on")
    })
}

/// The markup of the main document, as the server sent it; `None` if it is not known.
pub(super) async fn markup<'a>(rendering: &Rendering<'a>) -> Result<Option<Cow<'a, str>>, JobError> {
    let Rendering { job, session, main_frame, .. } = *rendering;
    match &job.source {
        Source::Html(html) => Ok(Some(html.as_str().into())),
        Source::Jinja(_) => Ok(None),
        Source::Url(_) => {
            let tree = session.call(&GetFrameTreeParams {}).await?;
            let url = tree.frame_tree.frame.url;
            let content = GetResourceContentParams::new(main_frame.to_owned(), url);
            match session.call(&content).await {
                Ok(content) => Ok((!content.base64_encoded).then_some(content.content.into())),
                Err(CdpError::Refused { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            }
        }
    }
}

/// Text in an SVG image that may make it change.
const SVG_MOTION: &str = "<animate <set :animate :set <script <foreignobject <style style= <image <!entity";

/// Whether the image of a `data:` URL has exactly one frame. `false` if its format is unknown. A URL that may be cut is judged
/// only by what comes before the cut.
pub(super) fn is_still(url: &str) -> bool {
    let Some((head, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(',')) else {
        return false;
    };
    let is_cut = url.len() >= MIN_CUT_STRING_BYTES;
    let mut parts = head.split(';');
    let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
    let bytes: Vec<u8> = percent_encoding::percent_decode_str(data).collect();
    let bytes = if parts.any(|part| part.trim().eq_ignore_ascii_case("base64")) {
        match base64_decoded(bytes, is_cut) {
            Some(bytes) => bytes,
            None => return false,
        }
    } else {
        bytes
    };
    if media_type == "image/svg+xml" {
        return !is_cut && is_still_svg(&bytes);
    }
    // Chromium detects the format by the content and ignores the media type.
    match bytes.as_slice() {
        [0xff, 0xd8, 0xff, ..] | [b'B', b'M', ..] => true,
        [0x89, b'P', b'N', b'G', ..] => is_still_png(&bytes),
        [b'G', b'I', b'F', ..] => gif_frames(&bytes) == Some(1),
        [b'R', b'I', b'F', b'F', ..] => is_still_webp(&bytes),
        _ => false,
    }
}

fn is_still_svg(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| {
        let text = text.to_ascii_lowercase();
        !SVG_MOTION.split(' ').any(|motion| text.contains(motion))
    })
}

/// Whether the pixels come before an `acTL` chunk, which animates them only if it comes first.
fn is_still_png(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(8..).unwrap_or_default();
    while let Some((length, chunk)) = rest.split_first_chunk() {
        match chunk.first_chunk() {
            Some(b"IDAT") => return true,
            Some(b"acTL") => return false,
            _ => {}
        }
        // A type, the data and a checksum.
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        rest = chunk.get(length.saturating_add(8)..).unwrap_or_default();
    }
    false
}

/// Decides by the first chunk, which tells whether there are frames.
fn is_still_webp(bytes: &[u8]) -> bool {
    const ANIMATION: u8 = 2;
    match bytes.get(8..16) {
        Some(b"WEBPVP8 " | b"WEBPVP8L") => true,
        Some(b"WEBPVP8X") => bytes.get(20).is_some_and(|flags| flags & ANIMATION == 0),
        _ => false,
    }
}

fn base64_decoded(mut text: Vec<u8>, is_cut: bool) -> Option<Vec<u8>> {
    const FORGIVING: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    text.retain(|byte| !byte.is_ascii_whitespace());
    if is_cut {
        text.truncate(text.len() / 4 * 4);
    }
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

    #[test]
    fn markup_that_can_change_without_a_script_is_detected() {
        for markup in [
            "<svg><animate attributeName=x></svg>",
            "<svg><animateTransform/></svg>",
            "<SVG><SET/></SVG>",
            "<svg:animate/>",
            "<x xmlns:s='http://www.w3.org/2000/svg'><s:set/></x>",
            "<video src=a>",
            "<AUDIO>",
            "<marquee>x",
            "<progress>",
            "<iframe>",
            "<frameset><frame></frameset>",
            "<object data=x>",
            "<embed>",
            "<meta HTTP-EQUIV=refresh content=1>",
            "<input AutoFocus>",
            "x<set",
            "<body onresize='x()'>",
            "<img src=a OnLoad\n= x()>",
        ] {
            assert!(may_change(markup), "{markup}");
        }
        for markup in [
            "",
            "<",
            "<p>set video",
            "<h1>a</h1><table><tr><td>1<img src='a.png'>",
            "ä<é",
            "a < b",
            "<a href=on>",
            "on=",
            "=",
        ] {
            assert!(!may_change(markup), "{markup}");
        }
    }

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
        let png = |chunks: &[&str]| {
            let chunks = chunks.iter().map(|chunk| format!("\0\0\0\u{5}{chunk}acTL.\0\0\0\0"));
            [b"\x89PNG\r\n\x1a\n", chunks.collect::<String>().as_bytes()].concat()
        };
        let webp = |first: &[u8]| [b"RIFF\0\0\0\0WEBP", first].concat();
        // As the beginnings of larger ones.
        let cut = |kind: &str, bytes: &[u8]| {
            let mut url = url(kind, &[bytes, &vec![0; MIN_CUT_STRING_BYTES]].concat());
            url.truncate(MIN_CUT_STRING_BYTES + 3);
            url
        };
        for (url, still) in [
            (url("image/gif", &gif(1)), true),
            (url("image/gif", &gif(2)), false),
            (url("image/png", &gif(2)), false),
            (url("image/gif", &gif(1)[..20]), false),
            (url("image/png", &png(&["IHDR", "tEXt", "IDAT"])), true),
            (url("image/png", &png(&["IHDR", "IDAT", "acTL"])), true),
            (url("image/png", &png(&["IHDR", "acTL", "IDAT"])), false),
            (url("image/png", &png(&["IHDR", "tEXt"])), false),
            (cut("image/png", &png(&["IHDR", "IDAT"])), true),
            (cut("image/png", &png(&["IHDR", "acTL", "IDAT"])), false),
            (url("image/jpeg", &[0xff, 0xd8, 0xff, 0xe0]), true),
            (url("image/webp", &webp(b"VP8 ....")), true),
            (url("image/webp", &webp(b"VP8L....")), true),
            (url("image/webp", &webp(b"VP8X\x0a\0\0\0\x10\0\0\0")), true),
            (url("image/webp", &webp(b"VP8X\x0a\0\0\0\x12\0\0\0")), false),
            (url("image/webp", &webp(b"VP8X")), false),
            (cut("image/webp", &webp(b"VP8 ....")), true),
            (cut("image/webp", &webp(b"VP8X\x0a\0\0\0\x12\0\0\0")), false),
            (cut("image/jpeg", &[0xff, 0xd8, 0xff, 0xe0]), true),
            (cut("image/gif", &gif(1)[..gif(1).len() - 1]), false),
            (cut("image/svg+xml", b"<svg>"), false),
            (url("image/avif", b"\0\0\0\x20ftypavif"), false),
            (svg("<rect width='1'/>"), true),
            (svg("<rect><animate/></rect>"), false),
            (svg("<SET/>"), false),
            (svg("<style>@keyframes a{}</style>"), false),
            ("data:image/svg+xml,%3Csvg%3E%3Canim%61te/%3E%3C/svg%3E".to_owned(), false),
            ("data:image/svg+xml,%3Csvg%3E%3C/svg%3E".to_owned(), true),
            ("data:image/gif;base64,@@".to_owned(), false),
            ("data:".to_owned(), false),
        ] {
            assert_eq!(is_still(&url), still, "{url:.200}");
        }
    }
}
